from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.inference.bootstrap import formulas_only, weights
from tasks.inference.quantiles import widened
from tasks.kit.defaults import Thresholds, limited_by
from tasks.statistics.rogan_gladen import BEYOND, BLIND, EMPTY, ONE_SIDED, rogan_gladen

Make = Callable[..., Any]


def contests(make: Make, design: tuple[int, ...]) -> Any:
    """Return ``m1`` labelled wins of "bee", ``m0`` others and ``n`` contests without a label."""
    right_1, m1, right_0, m0, won, n = design
    ones = [{"score": float(i < right_1), "human_score": 1.0} for i in range(m1)]
    zeros = [{"score": float(i >= right_0), "human_score": 0.0} for i in range(m0)]
    return make([*ones, *zeros, *({"score": float(i < won)} for i in range(n))])


def row_of(frame: pl.DataFrame) -> dict[str, Any]:
    return rogan_gladen(contests=frame).filter(pl.col("subgroup") == "bee").to_dicts()[0]


def test_docstring_example_with_its_error(make_contests: Make) -> None:
    row = row_of(contests(make_contests, (18, 20, 16, 20, 60, 100)))
    theta = 0.4 / 0.7
    # Binomial variances of section 12 with G/(G - 1), as in section 3: v - 1 for v.
    variance = 0.24 / 99 + theta**2 * 0.09 / 19 + (1 - theta) ** 2 * 0.16 / 19
    error = np.sqrt(variance) / 0.7
    assert row["estimate"] == pytest.approx(theta)
    assert row["standard_error"] == pytest.approx(error)
    # Fieller's ends are where the rates are just t errors of theirs away.
    for end in (row["low"], row["high"]):
        spread = 0.24 / 99 + end**2 * 0.09 / 19 + (1 - end) ** 2 * 0.16 / 19
        assert abs(0.4 - 0.7 * end) == pytest.approx(stats.t.ppf(0.975, 19) * np.sqrt(spread))
    assert 0 < row["low"] < theta < row["high"] < 1
    assert (row["n"], row["clusters"]) == (100, 20)


def test_a_perfect_judge_is_taken_at_its_word(make_contests: Make) -> None:
    row = row_of(contests(make_contests, (20, 20, 20, 20, 70, 100)))
    assert row["estimate"] == 0.7
    assert row["standard_error"] == pytest.approx(np.sqrt(0.21 / 99))


def test_a_rate_beyond_what_errors_allow_has_no_interval(make_contests: Make) -> None:
    """Of four unlabelled contests none is won, though a third of the lost ones should be."""
    row = row_of(contests(make_contests, (20, 20, 8, 12, 0, 4)))
    # theta = (0 + 2/3 - 1) / (1 + 2/3 - 1) = -1/2
    assert row["estimate"] == 0
    assert row["low"] is row["high"] is row["standard_error"] is None
    assert row["reason"] == BEYOND


def test_names_may_be_enumerations(make_contests: Make) -> None:
    frame = contests(make_contests, (18, 20, 16, 20, 60, 100))
    names = pl.col("dataset", "judge", "prompt", "wave")
    # As the warehouse returns them.
    stored = frame.with_columns(names.cast(pl.Categorical))
    assert rogan_gladen(contests=stored).equals(rogan_gladen(contests=frame))


@given(
    right_1=st.integers(0, 20),
    right_0=st.integers(0, 12),
    won=st.integers(0, 50),
)
@settings(
    max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@example(right_1=20, right_0=3, won=10)  # theta below 0, and what lies above is contradicted
@example(right_1=11, right_0=8, won=25)  # nothing is
def test_the_interval_has_all_that_is_not_contradicted(
    make_contests: Make, right_1: int, right_0: int, won: int
) -> None:
    with formulas_only():
        row = row_of(contests(make_contests, (right_1, 20, right_0, 12, won, 50)))
    p, se, sp = won / 50, right_1 / 20, right_0 / 12
    if se + sp - 1 < 0.2 or row["low"] is None:
        return
    # A second implementation: try them.
    grid = np.linspace(0, 1, 20001)
    spread = p * (1 - p) / 49 + grid**2 * se * (1 - se) / 19 + (1 - grid) ** 2 * sp * (1 - sp) / 11
    kept = grid[
        np.abs(p + sp - 1 - grid * (se + sp - 1)) <= stats.t.ppf(0.975, 11) * np.sqrt(spread)
    ]
    ends = (*kept[[0, -1]],) if kept.size else (row["estimate"],) * 2
    assert (row["low"], row["high"]) == pytest.approx(ends, abs=1e-4)
    assert row["low"] <= row["estimate"] <= row["high"]


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        ((11, 20, 12, 20, 60, 100), BLIND.format(".20")),  # .55 + .6 - 1 = .15
        ((18, 20, 16, 20, 0, 0), EMPTY),
        ((18, 20, 0, 0, 60, 100), ONE_SIDED),
        ((1, 1, 16, 20, 60, 100), ONE_SIDED),
    ],
)
def test_refusals(make_contests: Make, design: tuple[int, ...], reason: str) -> None:
    row = row_of(contests(make_contests, design))
    assert (row["estimate"], row["low"], row["reason"]) == (None, None, reason)


def test_a_study_may_ask_for_less_information(make_contests: Make) -> None:
    with limited_by(Thresholds(least_informedness=0.1)):
        row = row_of(contests(make_contests, (11, 20, 12, 20, 60, 100)))
    assert row["estimate"] is not None  # (.6 + .6 - 1) / .15 is above 1


def test_without_labels_there_is_no_row(make_contests: Make) -> None:
    assert rogan_gladen(contests=make_contests([{"score": 1.0}])).is_empty()
    assert rogan_gladen(contests=make_contests([])).is_empty()


def test_the_bootstrap_beside_it(make_contests: Make) -> None:
    design = (18, 20, 16, 20, 60, 100)
    frame = contests(make_contests, design)
    row = row_of(frame)
    right = np.repeat([1.0, 0, 1, 0], [18, 2, 16, 4])
    won = np.repeat([1.0, 0], [60, 40])
    order = frame["cluster"].cast(pl.String).arg_sort().to_numpy()
    drawn = []
    for some in weights(140):
        weight = np.empty_like(some)
        weight[:, order] = some
        ones, zeros, rest = weight[:, :20], weight[:, 20:40], weight[:, 40:]
        p = rest @ won / rest.sum(axis=1)
        se = ones @ right[:20] / ones.sum(axis=1)
        sp = zeros @ right[20:] / zeros.sum(axis=1)
        drawn.append(((p + sp - 1) / (se + sp - 1))[se + sp - 1 >= 0.2])
    level = float(widened(0.95, 20))
    ends = np.quantile(np.concatenate(drawn), [(1 - level) / 2, (1 + level) / 2])
    assert (row["boot_low"], row["boot_high"]) == pytest.approx(tuple(ends))
    with formulas_only():
        bare = row_of(frame)
    assert (bare["boot_low"], bare["low"], bare["level"]) == (None, row["low"], 0.95)
