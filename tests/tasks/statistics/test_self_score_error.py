from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.statistics.self_score_error import self_score_error

Make = Callable[..., Any]
SCORE = st.sampled_from([0.0, 0.25, 0.5, 1.0, None])


def judged(scores: dict[str, list[float | None]], **more: Any) -> list[dict[str, Any]]:
    """Return the scores that judges give the answers of "bee"."""
    return [
        {"judge": judge, "sample": f"s{n:02}", "score": score, **more}
        for judge, each in scores.items()
        for n, score in enumerate(each)
    ]


def test_docstring_example(make_contests: Make) -> None:
    rows = judged({"bee": [1.0, 0.5], "cat": [0.5, 0.5], "dog": [0.0, 0.5]})
    (row,) = self_score_error(contests=make_contests(rows)).to_dicts()
    assert (row["judge"], row["subgroup"], row["estimate"]) == ("bee", "bee", 1.0)
    assert (row["n"], row["clusters"], row["dropped"]) == (2, 2, 0)
    # u = .75 - .25, 0 - .5 = .5, -.5: SE = sqrt(2 * .5) / .75.
    assert row["standard_error"] == pytest.approx(1 / 0.75)


def test_each_side_of_a_contest_is_seen(make_contests: Make) -> None:
    # Judge "ant" wrote the anchors: scores of .25 for the target are .75 for its own.
    rows = judged({"ant": [0.25] * 4, "cat": [0.5] * 4, "bee": [1.0] * 4})
    found = {r["judge"]: r for r in self_score_error(contests=make_contests(rows)).to_dicts()}
    # Others give ant (.5 + 0) / 2, and bee (.25 + .5) / 2.
    assert found["ant"]["estimate"] == pytest.approx(0.75 / 0.25 - 1)
    assert found["bee"]["estimate"] == pytest.approx(1 / 0.375 - 1)
    assert found["bee"]["reason"] == "no variation between clusters: no interval"


def test_formulas_are_no_other_judges(make_contests: Make) -> None:
    rows = [*judged({"bee": [1.0] * 3}), *judged({"formula": [0.5] * 3}, simulated=True)]
    (row,) = self_score_error(contests=make_contests(rows)).to_dicts()
    assert (row["estimate"], row["n"], row["dropped"]) == (None, 0, 3)
    assert row["reason"].startswith("nothing qualifies: ")


def test_others_who_give_nothing_give_no_ratio(make_contests: Make) -> None:
    rows = judged({"bee": [1.0, 0.5, None], "cat": [0.0, 0.0, 1.0]})
    (row,) = self_score_error(contests=make_contests(rows)).to_dicts()
    assert (row["estimate"], row["n"], row["dropped"]) == (None, 2, 1)


def test_nobody_judges_their_own(make_contests: Make) -> None:
    assert self_score_error(contests=make_contests(judged({"cat": [0.5]}))).is_empty()
    assert self_score_error(contests=make_contests([])).is_empty()


def test_coverage(make_contests: Make) -> None:
    # The judge gives .15 more than another to answers worth .4: error .15 / .4.
    draw = np.random.default_rng(5)
    hits = 0
    for _ in range(60):
        worth = np.clip(draw.normal(0.4, 0.1, 60), 0, 0.8)
        noise = draw.normal(0, 0.04, (2, 60))
        own, other = np.clip(worth + 0.15 + noise[0], 0, 1), np.clip(worth + noise[1], 0, 1)
        rows = judged({"bee": own.tolist(), "cat": other.tolist()})
        (row,) = self_score_error(contests=make_contests(rows)).to_dicts()
        hits += row["low"] <= 0.15 / 0.4 <= row["high"]
    assert hits >= 51  # of 60 at 95 %: fewer than 51 in 1 of 10,000


@settings(max_examples=20)
@given(st.lists(st.tuples(SCORE, SCORE), min_size=1, max_size=12))
def test_order_and_types_of_keys_do_not_matter(
    make_contests: Make, scores: list[tuple[float | None, float | None]]
) -> None:
    own, other = (list(each) for each in zip(*scores, strict=True))
    contests = make_contests(judged({"bee": own, "cat": other}))
    plain = self_score_error(contests=contests)
    keys = ["dataset", "judge", "prompt", "wave", "sample", "cluster"]
    turned = contests.sample(fraction=1, shuffle=True, seed=3).with_columns(
        pl.col(keys).cast(pl.Categorical)
    )
    assert self_score_error(contests=turned).equals(plain)
    assert plain["estimate"].is_nan().sum() == 0
