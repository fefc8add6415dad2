import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from tasks.inference.permutation import sign_test


def test_docstring_example() -> None:
    assert sign_test(np.array([4.0, 2.0]), np.array([0.0, 1.0])).tolist() == [0.125, 1.0]


def test_against_scipy() -> None:
    # Second implementation: scipy.stats.binomtest.
    pairs = pl.DataFrame({"one": range(26)}).join(pl.DataFrame({"other": range(26)}), how="cross")
    found = sign_test(*(pairs[c].cast(pl.Float64).to_numpy() for c in ("one", "other")))
    expected = [
        binomtest(one, one + other).pvalue if one + other else 1.0 for one, other in pairs.rows()
    ]
    assert found == pytest.approx(expected, abs=1e-12)
