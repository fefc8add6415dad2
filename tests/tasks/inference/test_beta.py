import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from schemas.keys import ShareInterval
from tasks.inference.intervals import (
    INTERVALS,
    LABELS,
    clopper_pearson,
    jeffreys,
    proportions,
    table_moments,
    wilson,
)
from tasks.kit.defaults import share_interval

CASES = [(k, n, level) for n in (1, 7, 142) for k in (0, 1, n // 2, n) for level in (0.9, 0.95)]


@pytest.mark.parametrize(("hits", "n", "level"), CASES)
def test_exact_and_jeffreys_are_those_of_statsmodels(hits: int, n: int, level: float) -> None:
    exact = proportion_confint(hits, n, alpha=1 - level, method="beta")
    assert clopper_pearson(hits, n, level) == pytest.approx(exact, abs=1e-12)
    low, high = proportion_confint(hits, n, alpha=1 - level, method="jeffreys")
    # methods.md, section 3: to the end where all are alike, unlike statsmodels
    expected = (0.0 if hits == 0 else low, 1.0 if hits == n else high)
    assert jeffreys(hits, n, level) == pytest.approx(expected, abs=1e-12)


@given(st.floats(0.0, 1.0), st.floats(0.5, 500.0))
def test_effective_sizes_need_not_be_whole(rate: float, n: float) -> None:
    hits = np.array([rate * n, 0.0, n])
    for interval in (clopper_pearson, jeffreys):
        low, high = interval(hits, np.array([n] * 3), 0.95)
        assert ((low >= 0) & (high <= 1) & (low <= high)).all()
        assert (low[1], high[2]) == (0.0, 1.0)
        assert low[0] <= rate + 1e-9
        assert high[0] >= rate - 1e-9


def test_exact_intervals_hold_those_of_jeffreys() -> None:
    hits, n = np.arange(11.0), np.full(11, 10.0)
    exact, other = clopper_pearson(hits, n, 0.95), jeffreys(hits, n, 0.95)
    assert (exact[0] <= other[0]).all()
    assert (exact[1] >= other[1]).all()


@pytest.mark.parametrize("name", LABELS)
def test_shares_get_the_interval_that_is_asked_for(name: ShareInterval) -> None:
    # Three clusters of two with 2, 0 and 1 hits. R = 1/2, u = 1, -1, 0: var = 3/2 * 2 / 36 = 1/12,
    # deff = 6/12 / (1/4) = 2, so the effective size is 3.
    moments = table_moments(np.array([[2.0], [0.0], [1.0]]), np.full((3, 1), 2.0))
    expected = {
        "wilson": proportion_confint(1.5, 3, method="wilson"),
        "clopper_pearson": proportion_confint(1.5, 3, method="beta"),
        "jeffreys": proportion_confint(1.5, 3, method="jeffreys"),
    }
    with share_interval(name):
        (row,) = proportions(moments).to_dicts()
    assert (row["low"], row["high"]) == pytest.approx(expected[name], abs=1e-12)
    assert row["method"] == f"cluster-adjusted {LABELS[name]}"
    assert proportions(moments)["method"].to_list() == ["cluster-adjusted Wilson"]


def test_each_interval_is_known_and_others_are_not() -> None:
    assert INTERVALS["wilson"] is wilson
    assert set(INTERVALS) == set(LABELS)
    with pytest.raises(ValueError, match=r"no interval 'wald' of a share\. Known: wilson, "):
        share_interval("wald").__enter__()  # type: ignore[arg-type]
