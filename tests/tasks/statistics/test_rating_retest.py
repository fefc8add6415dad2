from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tasks.statistics.rating_retest import rating_retest

Make = Callable[..., Any]


def ratings(make: Make, values: list[list[float | None]], **more: Any) -> Any:
    rows = [
        {"sample": f"s{i}", "repeat": j, "value": value}
        for i, repeats in enumerate(values)
        for j, value in enumerate(repeats)
    ]
    return make(rows, **more)


def rows(made: Any) -> dict[str, dict[str, Any]]:
    return {row["statistic"]: row for row in rating_retest(ratings=made).to_dicts()}


def test_variance_correlation_and_flips_by_hand(make_ratings: Make) -> None:
    found = rows(ratings(make_ratings, [[4, 6], [8, 8], [3, None]], passes_at=5.0))
    assert {name: row["estimate"] for name, row in found.items()} == pytest.approx(
        {"within_item_variance": 1.0, "rating_icc": 0.8, "retest_flips": 0.5}
    )
    assert {row["n"] for row in found.values()} == {2}
    assert found["within_item_variance"]["unit"] == "squared points"


def test_the_correlation_of_shrout_and_fleiss(make_ratings: Make) -> None:
    # Shrout and Fleiss (1979), table 2: six targets, four judges; ICC(1, 1) = .17.
    table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    found = rows(ratings(make_ratings, [[float(v) for v in row] for row in table]))
    assert found["rating_icc"]["estimate"] == pytest.approx(0.1657, abs=5e-5)
    assert found["within_item_variance"]["estimate"] == pytest.approx(6.2639, abs=5e-5)


def test_intervals_are_those_of_a_jackknife(make_ratings: Make) -> None:
    random = np.random.default_rng(3)
    sizes = random.integers(2, 5, 300)
    values = [(6 + random.normal(0, 1.2) + random.normal(0, 0.8, size)).tolist() for size in sizes]
    found = rows(ratings(make_ratings, values))

    def both(kept: list[list[float]]) -> tuple[float, float]:
        k = np.array([len(v) for v in kept])
        means = np.array([np.mean(v) for v in kept])
        within = sum(np.var(v) * len(v) for v in kept) / (k.sum() - len(k))
        grand = (k * means).sum() / k.sum()
        between = (k * (means - grand) ** 2).sum() / (len(k) - 1)
        per_item = (k.sum() - (k**2).sum() / k.sum()) / (len(k) - 1)
        return within, (between - within) / (between + (per_item - 1) * within)

    assert (found["within_item_variance"]["estimate"], found["rating_icc"]["estimate"]) == (
        pytest.approx(both(values))
    )
    left = np.array([both(values[:i] + values[i + 1 :]) for i in range(300)])
    errors = np.sqrt(299 * left.var(axis=0))
    assert found["within_item_variance"]["standard_error"] == pytest.approx(errors[0], rel=0.03)
    # Its derivatives leave out terms of order 1 / n.
    assert found["rating_icc"]["standard_error"] == pytest.approx(errors[1], rel=0.06)


def test_a_judge_that_repeats_itself(make_ratings: Make) -> None:
    found = rows(ratings(make_ratings, [[7, 7], [8, 8], [3, 3]]))
    assert found["within_item_variance"]["estimate"] == 0
    assert found["rating_icc"]["estimate"] == pytest.approx(1)
    equal = rows(ratings(make_ratings, [[7, 7], [7, 7]]))
    assert equal["rating_icc"]["estimate"] is None
    assert "no variance" in equal["rating_icc"]["reason"]


def test_replicates_are_repeats(make_ratings: Make) -> None:
    given = [
        {"sample": s, "arm": arm, "value": v}
        for s, values in (("a", (1, 0)), ("b", (1, 1)))
        for arm, v in zip(("control", "replicate"), values, strict=True)
    ]
    found = rows(make_ratings(given, kind="label"))
    assert found["retest_flips"]["estimate"] == 0.5
    assert "within_item_variance" not in found


def test_nothing_without_repeats(make_ratings: Make) -> None:
    assert rating_retest(ratings=make_ratings([])).is_empty()
    assert rating_retest(ratings=ratings(make_ratings, [[4], [5]])).is_empty()
    assert rating_retest(ratings=ratings(make_ratings, [[4, None], [None, 5]])).is_empty()
