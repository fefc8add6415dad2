from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks.counting.cells import ratios
from tasks.inference.cluster_sums import Sums
from tasks.inference.delta_method import Linear, linearised, ratio_limits, summed
from tasks.inference.linearised_errors import over


def items_of(rows: list[tuple[str, float, float]], **changes: object) -> pl.DataFrame:
    cell = {
        "dataset": "d",
        "judge": "j",
        "prompt": "p",
        "wave": "",
        "mode": "any",
        "perturbation": "boast",
        "kind": "promote",
        "votes": 2,
        "simulated": True,
        "counted": True,
        "dropped": False,
        **changes,
    }
    return pl.DataFrame([{**cell, "cluster": c, "num": x, "den": y} for c, x, y in rows])


def quotient(sums: dict[str, Sums]) -> Linear:
    num, den = sums["num"], sums["den"]
    slopes = {"num": over(1.0, den), "den": over(-num, den**2)}
    return Linear(over(num, den), slopes, np.full(den.shape, "no denominator"))


def of(rows: list[tuple[str, float, float]]) -> dict[str, Any]:
    cells = summed(items_of(rows), ("num", "den"))
    return linearised("quotient", cells, quotient).to_dicts()[0]


def test_a_quotient_by_hand() -> None:
    # 3 / 4; u = (1 - .75 * 1, 2 - .75 * 2, 0 - .75) / 4: sum of squares (.0625 + .25 + .5625) / 16
    row = of([("a", 1, 1), ("b", 2, 2), ("c", 0, 1)])
    error = sqrt(3 / 2 * 0.875 / 16)
    assert row["estimate"] == 0.75
    assert row["standard_error"] == pytest.approx(error)
    assert row["low"] == pytest.approx(0.75 - 4.302653 * error, abs=1e-6)


@example([("a", 3), *[("b", 3)] * 5])  # Alike, but 5/6 of 4.5 is not 3.75 in floating point.
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 3)), min_size=2, max_size=12))
def test_a_quotient_is_that_of_ratios(drawn: list[tuple[str, int]]) -> None:
    # Second implementation: `_cells.ratios`, which centres the sums of each cluster.
    rows = [(cluster, x / 4, 1.0) for cluster, x in drawn]
    mine, theirs = of(rows), ratios("quotient", items_of(rows)).to_dicts()[0]
    if theirs["method"] == "Newcombe":
        assert mine["reason"] == "no variation between clusters: no interval"
        return
    for column in ("estimate", "low", "high", "standard_error", "p_value"):
        if column in {"low", "high"} and theirs[column] is not None:
            assert min(1, max(-1, mine[column])) == pytest.approx(theirs[column], abs=1e-9)
        else:
            assert mine[column] == pytest.approx(theirs[column], abs=1e-9), column


def test_alike_single_and_empty_cells_say_why() -> None:
    alike = of([("a", 1, 2), ("b", 0.3, 0.6)])
    assert (alike["estimate"], alike["low"]) == (0.5, None)
    assert alike["reason"] == "no variation between clusters: no interval"
    assert of([("a", 1, 2), ("a", 0, 1)])["reason"] == "a single cluster: no interval"
    empty = of([("a", 0, 0), ("b", 0, 0)])
    assert (empty["estimate"], empty["reason"]) == (None, "no denominator")


def test_what_is_not_counted_is_left_out() -> None:
    kept, left = items_of([("a", 1, 1), ("b", 0, 1)]), items_of([("c", 5, 1)], counted=False)
    rows = linearised("q", summed(pl.concat([kept, left]), ("num", "den")), quotient).to_dicts()
    assert (rows[0]["estimate"], rows[0]["n"], rows[0]["clusters"]) == (0.5, 2, 2)


def test_cells_stay_apart_whatever_the_order_of_rows() -> None:
    one = items_of([("a", 1, 1), ("b", 0, 1)])
    two = items_of([("a", 1, 2), ("b", 1, 1)], judge="k", perturbation=None, kind=None, votes=4)
    mixed = pl.concat([one, two], how="vertical_relaxed")
    forth, back = (
        linearised("q", summed(rows, ("num", "den")), quotient) for rows in (mixed, mixed.reverse())
    )
    assert forth.equals(back)
    columns = ("judge", "perturbation", "estimate", "votes_per_pair")
    assert forth.select(columns).rows() == [("j", "boast", 0.5, 2), ("k", None, 2 / 3, 4)]


def limits(top: tuple[float, ...], below: tuple[float, ...]) -> tuple[float, float]:
    arrays = [tuple(np.array([x]) for x in three) for three in (top, below)]
    low, high = ratio_limits(*arrays)
    return low[0], high[0]


def test_limits_of_a_ratio_by_hand() -> None:
    # Donner and Zou with a = .2 [.1, .35], b = .5 [.4, .6], their formula:
    # L = (ab - sqrt((ab)^2 - la ub (2a - la)(2b - ub))) / (ub (2b - ub))
    #   = (.1 - sqrt(.01 - .1 * .6 * .3 * .4)) / .24 = (.1 - .0529150) / .24 = .1961875
    # U = (.1 + sqrt(.01 - .35 * .4 * .05 * .6)) / (.4 * .6) = (.1 + .0761577) / .24 = .7339905
    assert limits((0.2, 0.1, 0.35), (0.5, 0.4, 0.6)) == pytest.approx(
        (0.1961875, 0.7339905), abs=1e-6
    )


BELOW = st.tuples(st.floats(0.2, 2), st.floats(0.01, 0.9), st.floats(0.01, 3))
TOP = st.tuples(st.floats(-2, 2), st.floats(0.01, 2), st.floats(0.01, 2))


@given(TOP, BELOW)
def test_limits_of_a_ratio(top: tuple[float, ...], below: tuple[float, ...]) -> None:
    a, b = top[0], below[0]
    three = (a, a - top[1], a + top[2])
    others = (b, b * (1 - below[1]), b + below[2])
    low, high = limits(three, others)
    assert low <= a / b + 1e-9
    assert a / b - 1e-9 <= high
    # Turning the sign of the numerator turns the interval.
    turned = limits((-a, -three[2], -three[1]), others)
    assert turned == pytest.approx((-high, -low), abs=1e-9)
    # Each limit is where the interval of a - t b ends at 0.
    for t, near_a, near_b in (
        (low, a - three[1], others[2] - b if low > 0 else b - others[1]),
        (high, three[2] - a, others[2] - b if high < 0 else b - others[1]),
    ):
        assert abs(a - t * b) == pytest.approx(np.hypot(near_a, t * near_b), abs=1e-7)
