"""Adjusted p-values, against scipy's."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from tasks._families import benjamini_hochberg


@given(st.lists(st.none() | st.floats(0, 1), max_size=30))
def test_adjusted_like_scipy_with_nulls_left_out(values: list[float | None]) -> None:
    adjusted = benjamini_hochberg(pl.Series("p", values, pl.Float64)).to_list()
    told = [value for value in values if value is not None]
    assert [value is None for value in adjusted] == [value is None for value in values]
    expected = false_discovery_control(told).tolist() if told else []
    assert [value for value in adjusted if value is not None] == pytest.approx(expected)


def test_by_hand() -> None:
    # .01 * 4/1, then .02 * 4/2 = .03 * 4/3 = .04, and .5 * 4/4
    adjusted = benjamini_hochberg(pl.Series("p", [0.5, 0.02, 0.03, 0.01]))
    assert adjusted.to_list() == pytest.approx([0.5, 0.04, 0.04, 0.04])
