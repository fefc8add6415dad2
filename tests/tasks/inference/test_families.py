"""Adjusted p-values, against scipy's and statsmodels'; e-BH against its definition."""

import gc
from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from tasks.inference.multiplicity import (
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
    rejected_by_e_values,
)

METHODS = [(benjamini_hochberg, "fdr_bh"), (benjamini_yekutieli, "fdr_by"), (holm, "holm")]
VALUES = st.lists(st.none() | st.floats(0, 1), max_size=30)


@pytest.mark.parametrize(("adjust", "method"), METHODS)
@given(values=VALUES)
def test_adjusted_like_statsmodels_with_nulls_left_out(
    adjust: Callable[[pl.Series], pl.Series], method: str, values: list[float | None]
) -> None:
    adjusted = adjust(pl.Series("p", values, pl.Float64)).to_list()
    reported = [value for value in values if value is not None]
    assert [value is None for value in adjusted] == [value is None for value in values]
    with pytest.MonkeyPatch.context() as patch:
        # statsmodels collects garbage for Holm's method, which takes long beside other tests.
        patch.setattr(gc, "collect", lambda: 0)
        expected = multipletests(reported, method=method)[1].tolist() if reported else []
    assert [value for value in adjusted if value is not None] == pytest.approx(expected)


@given(VALUES)
def test_false_discovery_rates_like_scipy(values: list[float | None]) -> None:
    reported = pl.Series("p", [value for value in values if value is not None], pl.Float64)
    if reported.is_empty():
        return
    assert benjamini_hochberg(reported).to_list() == pytest.approx(
        false_discovery_control(reported)
    )
    assert benjamini_yekutieli(reported).to_list() == pytest.approx(
        false_discovery_control(reported, method="by")
    )


def test_by_hand() -> None:
    p_values = pl.Series("p", [0.5, 0.02, None, 0.03, 0.01])
    # .01 * 4/1, then .02 * 4/2 = .03 * 4/3 = .04, and .5 * 4/4
    assert benjamini_hochberg(p_values).to_list() == [
        0.5,
        pytest.approx(0.04),
        None,
        pytest.approx(0.04),
        pytest.approx(0.04),
    ]
    # times 1 + 1/2 + 1/3 + 1/4 = 25/12
    assert benjamini_yekutieli(p_values).drop_nulls().to_list() == pytest.approx(
        [1.0, 1 / 12, 1 / 12, 1 / 12]
    )
    # .01 * 4, .02 * 3, .03 * 2, .5
    assert holm(p_values).drop_nulls().to_list() == pytest.approx([0.5, 0.06, 0.06, 0.04])


def test_e_values_by_hand() -> None:
    # m = 4, alpha .05: the k largest need 80 / k each: 80, 40, 26.7, 20.
    found = rejected_by_e_values(pl.Series("e", [30.0, 1.0, None, 50.0, 27.0]), 0.05)
    # 50 < 80 and 30 < 40, but 27 >= 26.7 takes all three.
    assert found.to_list() == [True, False, None, True, True]
    assert rejected_by_e_values(pl.Series("e", [26.0, 50.0, 30.0, 1.0]), 0.05).sum() == 0
    assert rejected_by_e_values(pl.Series("e", [None], pl.Float64), 0.05).to_list() == [None]
    with pytest.raises(ValueError, match=r"alpha \(1\) must lie in"):
        rejected_by_e_values(pl.Series("e", [1.0]), 1)


@given(st.lists(st.floats(1e-3, 1), min_size=1, max_size=20))
def test_e_values_of_one_over_p_reject_like_benjamini_hochberg(p_values: list[float]) -> None:
    # e_(k) >= m / (a k) with e = 1 / p is p_(k) <= a k / m.
    p = pl.Series("p", p_values)
    adjusted = benjamini_hochberg(p)
    sure = (adjusted - 0.05).abs() > 1e-9
    found = rejected_by_e_values(1 / p, 0.05)
    assert found.filter(sure).to_list() == (adjusted < 0.05).filter(sure).to_list()
