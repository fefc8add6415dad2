from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.rating_agreement import rating_agreement

Make = Callable[..., Any]
BOTH = [(1, 1)] * 4 + [(0, 0)] * 3 + [(1, 0)] + [(0, 1)] * 2
"""The judge's verdict and that of people on ten answers."""


def rows_of(pairs: list[tuple[Any, Any]], **more: Any) -> list[dict[str, Any]]:
    return [
        {"sample": f"s{i}", "item": f"s{i}", "cluster": f"q{i}", "value": y, "human_value": h}
        | more
        for i, (y, h) in enumerate(pairs)
    ]


def test_kappa_of_verdicts(make_ratings: Make) -> None:
    ratings = make_ratings(rows_of(BOTH), kind="label")
    [row] = rating_agreement(ratings=ratings).to_dicts()
    # p_o = .7, p_e = .5 * .6 + .5 * .4 = .5
    assert (row["statistic"], row["estimate"]) == ("rating_kappa", pytest.approx(0.4))
    assert row["low"] < 0.4 < row["high"]
    assert (row["n"], row["clusters"], row["dropped"], row["subgroup"]) == (10, 10, 0, "")
    assert (row["family"], row["unit"], row["null_value"]) == ("agreement", "coefficient", 0.0)


def test_repeats_make_one_verdict_and_ties_none(make_ratings: Make) -> None:
    again = rows_of(BOTH, repeat=1)
    # The second rating of the last answer differs: a tie, so nine answers are left. Both pass 4,
    # both fail 3, one each alone: p_o = 7 / 9, p_e = (5 * 5 + 4 * 4) / 81, kappa = 22 / 40.
    again[-1]["value"] = 1
    ratings = make_ratings([*rows_of(BOTH), *again], kind="label")
    [row] = rating_agreement(ratings=ratings).to_dicts()
    assert (row["n"], row["dropped"]) == (9, 1)
    assert row["estimate"] == pytest.approx(22 / 40)


def test_rank_correlation_of_grades(make_ratings: Make) -> None:
    ratings = make_ratings(rows_of([(1, 2), (2, 1), (3, 4), (4, 3)]))
    [row] = rating_agreement(ratings=ratings).to_dicts()
    # All four ranks differ by 1: rho is 1 - 6 * 4 / (4 * 15).
    assert (row["statistic"], row["estimate"]) == ("rating_correlation", pytest.approx(0.6))


def test_one_label_alone_has_no_kappa(make_ratings: Make) -> None:
    ratings = make_ratings(rows_of([(1, 1)] * 12), kind="label")
    [row] = rating_agreement(ratings=ratings).to_dicts()
    assert row["estimate"] is None
    assert "only one label occurs" in row["reason"]


def test_nothing_without_people_or_with_their_grades_of_verdicts(make_ratings: Make) -> None:
    assert rating_agreement(ratings=make_ratings(rows_of([(1, None)]), kind="label")).is_empty()
    assert rating_agreement(ratings=make_ratings([])).is_empty()
    graded = make_ratings(rows_of([(1, 1), (0, 4), (1, 2)]), kind="label")
    assert rating_agreement(ratings=graded).is_empty()
