import random
from collections.abc import Callable
from statistics import fmean
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.counting import contests as contests_module
from tasks.statistics.win_rate import win_rate

Make = Callable[..., Any]
SCORE = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, None])


def rows(contests: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    found = win_rate(contests=contests).to_dicts()
    return {(row["statistic"], row["subgroup"]): row for row in found}


def test_docstring_example(make_contests: Make) -> None:
    # Anchor "ant" wins where it is first, target "bee" where it is.
    found = rows(make_contests([{"score": 0.5, "score_12": 0.0, "score_21": 1.0}] * 3))
    assert found["win_rate_naive", "ant"]["estimate"] == 1.0
    assert found["win_rate_naive", "ant vs bee"]["estimate"] == 1.0
    assert found["win_rate", "ant vs bee"]["estimate"] == 0.5


def test_sides_are_mirrored_and_drops_are_counted(make_contests: Make) -> None:
    swapped = {"anchor_author": "bee", "target_author": "ant"}
    contests = make_contests([{"score": 1.0}, {"score": 0.25, **swapped}, {"score": None}])
    found = rows(contests)
    # bee: 1 and .75; ant: 0 and .25.
    assert found["win_rate", "bee"]["estimate"] == 0.875
    assert found["win_rate", "ant"]["estimate"] == 0.125
    assert found["win_rate", "ant vs bee"]["estimate"] == 0.125
    assert {(row["n"], row["dropped"]) for row in found.values()} == {(2, 1)}


def test_differences_are_paired_by_question_and_opponent(make_contests: Make) -> None:
    def contest(question: str, model: str, score: float) -> dict[str, Any]:
        return {
            "sample": f"{question}/{model}",
            "cluster": question,
            "target_author": model,
            "anchor_author": "base",
            "score": score,
        }

    contests = make_contests(
        [
            contest("q1", "x", 1.0),
            contest("q1", "y", 0.5),
            contest("q2", "x", 0.5),
            contest("q2", "y", 0.5),
            contest("q3", "x", 1.0),
        ]
    )
    row = rows(contests)["win_rate_difference", "x vs y"]
    # d = .5, 0: mean .25, SE = sd / sqrt 2 = .353553 / 1.414214 = .25; q3 has no partner.
    assert (row["estimate"], row["n"], row["clusters"]) == (0.25, 2, 2)
    assert row["standard_error"] == pytest.approx(0.25)


def test_votes_of_people_together(make_contests: Make) -> None:
    people = [
        {"judge": "ann", "human": True, "score": 1.0},
        {"judge": "ann", "human": True, "score": 1.0},
        {"judge": "bob", "human": True, "score": 0.0},
    ]
    found = win_rate(contests=make_contests([*people, {"judge": "gpt", "score": 0.0}]))
    rates = found.filter(statistic="win_rate", subgroup="bee").sort("judge")
    assert rates["judge"].to_list() == ["ann", "bob", "gpt", "humans"]
    assert rates["n"].to_list() == [2, 1, 1, 3]
    assert rates["estimate"].to_list() == pytest.approx([1, 0, 0, 2 / 3])
    alone = win_rate(contests=make_contests(people[:2]))
    assert set(alone["judge"]) == {"ann"}


@pytest.mark.parametrize("at_once", [1, 100, 1_000_000])
def test_differences_of_many_models(
    make_contests: Make, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(contests_module, "PAIRS_AT_ONCE", at_once)
    models = [f"m{number:02}" for number in range(20)]
    draw = random.Random(1)
    scores = {
        (question, model): draw.choice([0.0, 0.25, 0.5, 0.75, 1.0])
        for question in "abcdefghijkl"
        for model in draw.sample(models, 15)
    }
    found = rows(
        make_contests(
            {
                "sample": f"{question}/{model}",
                "cluster": question,
                "target_author": model,
                "anchor_author": "base",
                "score": score,
            }
            for (question, model), score in scores.items()
        )
    )
    expected: dict[str, list[float]] = {}
    for (question, one), score in sorted(scores.items()):
        for (again, other), its_score in sorted(scores.items()):
            if question == again and one < other:
                expected.setdefault(f"{one} vs {other}", []).append(score - its_score)
    measured = {who: row for (name, who), row in found.items() if name == "win_rate_difference"}
    assert {who: row["n"] for who, row in measured.items()} == {
        who: len(values) for who, values in expected.items()
    }
    for who, values in expected.items():
        assert measured[who]["estimate"] == pytest.approx(fmean(values))


@settings(max_examples=25)
@given(st.lists(st.tuples(SCORE, st.booleans()), min_size=1, max_size=12))
def test_a_model_loses_what_the_other_wins(
    make_contests: Make, contests: list[tuple[float | None, bool]]
) -> None:
    turned = {"anchor_author": "bee", "target_author": "ant"}
    found = rows(make_contests({"score": s, **(turned if t else {})} for s, t in contests))
    ant, bee = found["win_rate", "ant"], found["win_rate", "bee"]
    assert (
        (ant["estimate"] is None)
        == (bee["estimate"] is None)
        == all(score is None for score, _ in contests)
    )
    if ant["estimate"] is not None:
        assert ant["estimate"] == pytest.approx(1 - bee["estimate"])
    if ant["low"] is not None:
        assert (ant["low"], ant["high"]) == pytest.approx((1 - bee["high"], 1 - bee["low"]))


def test_one_question_has_no_interval(make_contests: Make) -> None:
    contests = make_contests([{"score": 1.0}, {"score": 0.0}], cluster="q")
    row = rows(contests)["win_rate", "bee"]
    assert (row["estimate"], row["low"], row["reason"]) == (
        0.5,
        None,
        "a single cluster: no interval",
    )
    assert win_rate(contests=make_contests([])).is_empty()
