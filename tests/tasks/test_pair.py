from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tasks.pair import pair_up

Make = Callable[..., Any]
Study = Callable[..., pl.DataFrame]


@pytest.fixture
def pairs_of(
    make_questions: Make, make_answers: Make, make_perturbed_answers: Make, make_perturbations: Make
) -> Study:
    def pairs(perturbed: list[dict[str, Any]], checks: str = "drop") -> pl.DataFrame:
        return pair_up(
            make_questions([{"question_id": f"demo/{n}", "question": f"Why {n}?"} for n in (1, 2)]),
            make_answers([{"question_id": f"demo/{n}", "slot": s} for n in (1, 2) for s in (1, 2)]),
            make_perturbed_answers(perturbed),
            make_perturbations([{}, {"perturbation": "error", "kind": "detract"}]),
            checks,
        )

    return pairs


def shown(pairs: pl.DataFrame) -> list[tuple[Any, ...]]:
    columns = ("sample", "arm", "perturbation", "kind", "anchor", "target")
    return sorted(pairs.select(columns).rows(), key=str)


def test_three_arms_of_one_sample(pairs_of: Study) -> None:
    pairs = pairs_of([{}])
    anchor, target = "Text of demo/1/a1.", "Text of demo/1/a2."
    assert shown(pairs) == [
        ("demo/1/a2", "control", None, None, anchor, target),
        ("demo/1/a2", "experimental", "boast", "promote", anchor, "Boasting."),
        ("demo/1/a2", "sham", "boast", "promote", anchor, "Neutral."),
    ]
    assert pairs["question"].unique().to_list() == ["Why 1?"]
    assert pairs["cluster"].unique().to_list() == ["demo/1"]
    assert pairs["dataset"].unique().to_list() == ["demo"]


def test_the_perturbed_answer_is_the_target_whichever_slot_it_has(pairs_of: Study) -> None:
    pairs = pairs_of([{"answer_id": "demo/1/a1"}])
    assert pairs["anchor"].unique().to_list() == ["Text of demo/1/a2."]
    assert pairs.filter(arm="control")["target"].to_list() == ["Text of demo/1/a1."]
    assert pairs["sample"].unique().to_list() == ["demo/1/a1"]


def test_control_serves_every_perturbation_of_a_sample(pairs_of: Study) -> None:
    pairs = pairs_of([{}, {"perturbation": "error", "perturbed": "Wrong.", "sham": None}])
    arms = pairs.group_by("arm", "perturbation").len().sort("arm", "perturbation").rows()
    assert arms == [
        ("control", None, 1),
        ("experimental", "boast", 1),
        ("experimental", "error", 1),
        ("sham", "boast", 1),
    ]
    assert pairs.filter(perturbation="error")["kind"].to_list() == ["detract"]


def test_two_targets_of_a_question_are_two_samples_of_a_cluster(pairs_of: Study) -> None:
    pairs = pairs_of([{}, {"answer_id": "demo/1/a1", "perturbation": "error"}])
    assert pairs.filter(arm="control").height == 2
    assert pairs["sample"].n_unique() == 2
    assert pairs["cluster"].unique().to_list() == ["demo/1"]


@pytest.mark.parametrize(("checks", "arms"), [("drop", 0), ("flag", 3)])
def test_failed_checks(pairs_of: Study, checks: str, arms: int) -> None:
    assert pairs_of([{"failure": "too long"}], checks).height == arms


@pytest.mark.parametrize("checks", ["drop", "flag"])
def test_without_a_text_there_is_no_pair(pairs_of: Study, checks: str) -> None:
    nothing = {"perturbed": None, "sham": None, "failure": "no version"}
    assert pairs_of([nothing], checks).is_empty()


def test_a_sham_that_failed_is_left_out(pairs_of: Study) -> None:
    assert sorted(pairs_of([{"sham_failure": "too short"}])["arm"]) == ["control", "experimental"]
    assert sorted(pairs_of([{"sham": None}])["arm"]) == ["control", "experimental"]


def test_ids_depend_on_what_is_shown_alone(pairs_of: Study) -> None:
    rows: list[dict[str, Any]] = [
        {},
        {"question_id": "demo/2", "answer_id": "demo/2/a2"},
        {"perturbation": "error"},
    ]
    pairs = pairs_of(rows)
    assert pairs["pair_id"].n_unique() == pairs.height == 8
    assert pairs_of(rows[::-1]).equals(pairs)
    changed = pairs_of([{"perturbed": "Boasting!"}])
    same = set(pairs["pair_id"]) & set(changed["pair_id"])
    assert set(pairs.filter(pl.col("pair_id").is_in(list(same)))["arm"]) == {"control", "sham"}


def test_nothing_perturbed_gives_no_pairs(pairs_of: Study) -> None:
    assert pairs_of([]).is_empty()


def test_unknown_policy_is_refused(pairs_of: Study) -> None:
    with pytest.raises(ValueError, match="checks 'keep' must be 'drop' or 'flag'"):
        pairs_of([{}], "keep")


def test_a_study_may_do_without_shams(
    make_questions: Make, make_answers: Make, make_perturbed_answers: Make, make_perturbations: Make
) -> None:
    frames = (
        make_questions(),
        make_answers([{"slot": 1}, {"slot": 2}]),
        make_perturbed_answers(),
        make_perturbations(),
    )
    pairs = pair_up(*frames, "drop", shams=False)
    assert pairs["arm"].to_list() == ["control", "experimental"]
    assert pairs.equals(pair_up(*frames, "drop").filter(pl.col("arm") != "sham"))


def test_replicates_show_control_again(
    make_questions: Make, make_answers: Make, make_perturbed_answers: Make, make_perturbations: Make
) -> None:
    pairs = pair_up(
        make_questions(),
        make_answers([{"slot": 1}, {"slot": 2}]),
        make_perturbed_answers(),
        make_perturbations(),
        "drop",
        replicates=True,
    )
    control, again = (pairs.filter(arm=arm) for arm in ("control", "replicate"))
    assert again["pair_id"].to_list() != control["pair_id"].to_list()
    assert again.drop("arm", "pair_id").equals(control.drop("arm", "pair_id"))
    assert again.height == 1
