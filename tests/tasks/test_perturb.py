import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pandera.typing.polars import DataFrame

from schemas.curation import Answers, PerturbedAnswers, Questions, Versions
from tasks.datasets import DATASETS
from tasks.perturb import perturb, perturbation_table
from tasks.perturbations import PERTURBATIONS, SECOND, asked_under
from tasks.validation.unknown_names import UnknownNameError

TEMPLATES = ["fake_reference", "padding", "rich_content"]
NAMES = ["factual_error", "fake_reference", "gender_bias", "padding", "rich_content"]
TARGET = "The tide falls at noon. The moon is high, because it is full."
WRONG = "The tide falls at noon. The moon is low, because it is full."


def frames(
    *questions: tuple[str, str, str], versions: tuple[tuple[str, str, str], ...] = ()
) -> tuple[DataFrame[Questions], DataFrame[Answers], DataFrame[Versions]]:
    """Return the frames of (id, anchor, target) and of (answer_id, perturbation, version)."""
    rows = [
        {"question_id": key, "dataset": "q", "question": f"Why tides, {key}?"}
        for key, _, _ in questions
    ]
    answers = [
        {"answer_id": f"{key}/a{slot}", "question_id": key, "slot": slot, "answer": text}
        for key, *both in questions
        for slot, text in enumerate(both, start=1)
    ]
    brought = pl.DataFrame(versions, schema=Versions.dtypes(), orient="row")
    return (
        Questions.of(pl.DataFrame(rows)),
        Answers.of(pl.DataFrame(answers)),
        Versions.of(brought),
    )


def test_a_template_perturbs_slot_2() -> None:
    row = perturb(*frames(("q/1", "Anchor.", TARGET)), "fake_reference", 5).row(0, named=True)
    assert row["answer_id"] == "q/1/a2"
    assert row["question_id"] == "q/1"
    assert (row["perturbation"], row["recipe"], row["seed"]) == ("fake_reference", 1, 5)
    assert row["made_by"] == "template"
    assert row["perturbed"].startswith(f"{TARGET}\n\nReferences\n")
    assert row["sham"].startswith(TARGET)
    assert row["length_ratio"] == len(row["perturbed"]) / 61  # characters of TARGET by hand
    assert row["sham_ratio"] == len(row["sham"]) / len(row["perturbed"])
    assert row["words_kept"] == 1.0
    assert row["failure"] is None
    assert row["sham_failure"] is None


def test_brought_versions_name_the_target_and_replace_the_template() -> None:
    found = perturb(
        *frames(
            ("q/1", TARGET, "Other."),
            ("q/2", "Anchor.", TARGET),
            ("q/3", "Anchor.", "No version."),
            versions=(
                ("q/1/a1", "factual_error", WRONG),
                ("q/2/a2", "factual_error", WRONG),
                ("q/3/a2", "gender_bias", "x"),
            ),
        ),
        "factual_error",
        0,
    )
    assert found["answer_id"].to_list() == ["q/1/a1", "q/2/a2", "q/3/a2"]
    assert found["made_by"].to_list() == ["dataset"] * 3
    assert found["perturbed"].to_list() == [WRONG, WRONG, None]
    assert found["failure"].to_list() == [
        None,
        None,
        "the dataset brings no version of this answer",
    ]
    assert found["words_kept"].to_list() == [pytest.approx(12 / 13), pytest.approx(12 / 13), None]
    assert found["sham"].is_null().to_list() == [False, False, True]
    assert found["sham_failure"].to_list() == [None, None, "no perturbed text to match"]


def test_without_template_and_version_there_is_no_text() -> None:
    row = perturb(*frames(("q/1", "Anchor.", TARGET)), "gender_bias", 0).row(0, named=True)
    why = "no version: the dataset has none, and no template makes one of this text"
    assert row["failure"] == why
    assert row["made_by"] == "template"
    assert row["perturbed"] is None
    assert row["sham"] is None
    assert row["length_ratio"] is None


def test_a_failed_check_keeps_the_text() -> None:
    brought = (("q/1/a2", "factual_error", "Something else."),)
    found = perturb(*frames(("q/1", "Anchor.", TARGET), versions=brought), "factual_error", 0)
    row = found.row(0, named=True)
    assert row["perturbed"] == "Something else."
    assert row["failure"] == "is 0.24 of the original's length, needs 0.80 to 1.25"  # 15 of 61
    assert row["words_kept"] == 0.0


@pytest.mark.parametrize("anchor", [TARGET, WRONG])
def test_an_anchor_like_the_target_or_its_version_fails(anchor: str) -> None:
    brought = (("q/1/a2", "factual_error", WRONG),)
    found = perturb(*frames(("q/1", anchor, TARGET), versions=brought), "factual_error", 0)
    assert found["failure"].to_list() == ["identical to the other answer"]


def test_padding_has_no_sham_by_design() -> None:
    target = f"{TARGET} The boats rest on the sand. Nobody sails before it is over."
    row = perturb(*frames(("q/1", "Anchor.", target)), "padding", 0).row(0, named=True)
    assert row["failure"] is None
    assert row["sham"] is None
    assert row["sham_failure"] == "has no sham by design"


def test_says_why_there_is_no_sham() -> None:
    brought = (("q/1/a2", "factual_error", WRONG[:52]),)
    found = perturb(*frames(("q/1", "Anchor.", TARGET), versions=brought), "factual_error", 0)
    # TARGET can lose 9 of its 61 characters by no neutral edit
    assert found["sham_failure"].to_list() == [
        "no neutral edit of the answer is as long as the perturbed text"
    ]
    assert found["sham"].to_list() == [None]


def test_no_questions_make_an_empty_frame() -> None:
    found = perturb(Questions.empty(), Answers.empty(), Versions.empty(), "padding", 0)
    assert found.height == 0
    assert found.columns == list(PerturbedAnswers.dtypes())


def test_a_misspelt_name_is_corrected() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'padding'"):
        perturb(*frames(("q/1", "Anchor.", TARGET)), "pading", 0)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_all_bundled_questions_are_valid(name: str, seed: int) -> None:
    found = perturb(*DATASETS["bloom"].load(None)[:3], name, seed)
    assert found.height == 60
    assert found["failure"].null_count() == 60
    assert set(found["made_by"]) == {"template" if name in TEMPLATES else "dataset"}
    reasons = set(found["sham_failure"])
    assert reasons == ({"has no sham by design"} if name == "padding" else {None})
    assert found["sham_ratio"].drop_nulls().is_between(0.95, 1.05).all()
    assert found.equals(perturb(*DATASETS["bloom"].load(None)[:3], name, seed))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "padding"])
def test_every_bundled_answer_has_a_second_sham_of_another_kind(name: str) -> None:
    first, second = (
        perturb(*DATASETS["bloom"].load(None)[:3], n, 0) for n in (name, name + SECOND)
    )
    assert second["perturbation"].unique().to_list() == [f"{name}/second"]
    assert second["perturbed"].equals(first["perturbed"])
    assert second["sham_failure"].null_count() == 60
    assert not (first["sham"] == second["sham"]).any()


def test_what_is_asked_about_follows_from_the_choice_of_shams() -> None:
    names = ["padding", "factual_error"]
    assert asked_under(names, "first") == asked_under(names, "none") == names
    assert asked_under(names, "second") == ["padding", "factual_error/second"]
    assert asked_under(names, "both") == [*names, "factual_error/second"]


def test_perturbation_table() -> None:
    found = perturbation_table([*NAMES, "padding"])
    assert found["perturbation"].to_list() == NAMES
    assert found["kind"].to_list() == ["detract", "promote", "detract", "promote", "promote"]
    assert found["bias"].to_list() == [
        "misinformation oversight",
        "authority",
        "gender",
        "verbosity",
        "beauty",
    ]
    assert sorted(PERTURBATIONS) == NAMES


@pytest.mark.parametrize(
    ("file", "name", "valid"),
    [
        # methods.md, section 7: every reference version keeps every original word
        ("reference", "fake_reference", 142),
        # a second implementation (textbook table of common words, markup cut by a loop over lines)
        # counts the same, and 18 of rich_content: one has its digits as keycap emoji, cut here
        ("rich_content", "rich_content", 17),
        ("gender", "gender_bias", 127),
        ("factual_error", "factual_error", 140),
    ],
)
def test_the_study_of_humans_or_llms(
    reference_data: Path, file: str, name: str, valid: int
) -> None:
    study = reference_data / "bias_study"
    raw = {row["question_id"]: row for row in _rows(study / "raw.jsonl")}
    counts: Counter[bool] = Counter()
    for row in _rows(study / f"{file}.jsonl"):
        question_id = row["question_id"].rsplit("-", 1)[0]
        for slot, answer in row["answers"].items():
            if answer.get("perturb"):
                original = raw[question_id]["answers"][slot]["answer"]
                counts[PERTURBATIONS[name].check(original, answer["answer"]) is None] += 1
    assert counts[True] == valid
    assert counts.total() == 142


def _rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
