"""Unequal numbers of samples, simulated small and seeded: benchmarks/unequal_questions.py."""

from collections.abc import Callable
from math import sqrt
from types import ModuleType

import polars as pl
import pytest

from tasks.inference.bootstrap import formulas_only

pytestmark = pytest.mark.slow

Import = Callable[[str], ModuleType]
STUDIES, SEED = 400, 1
FEW = ("100, 50, 20, nine of 5", "300, thirty of 1")


@pytest.mark.parametrize("shared", [0.0, 0.3])
@pytest.mark.parametrize("design", FEW)
def test_few_questions_that_carry_most_samples_get_no_word(
    benchmark: Import, design: str, shared: float
) -> None:
    unequal = benchmark("unequal_questions")
    found = unequal.sizes_of(unequal.DESIGNS[design], shared, 40, SEED)
    assert found["word"].to_list() == [0.0] * found.height
    assert {"mps", "mps_sham", "los", "position_gap", "position_kappa"} < {*found["statistic"]}


# methods.md, section 16: .04, .07 and .08 of 2000 draws; at most .08 of a design with a word.
@pytest.mark.parametrize(("shared", "size"), [(0.0, 0.04), (0.1, 0.07), (0.3, 0.08)])
def test_size_where_a_word_is_given(benchmark: Import, shared: float, size: float) -> None:
    unequal = benchmark("unequal_questions")
    with formulas_only():
        rows = unequal.scores(unequal.DESIGNS["40, 30, 20, 10, forty of 2"], shared, 1000, SEED)
    rejected = (rows["p_value"] <= 0.05).mean()
    assert rows["df"].to_list() == pytest.approx([9.4] * rows.height, abs=0.05)
    assert rejected == pytest.approx(size, abs=3 * sqrt(size * (1 - size) / rows.height))


def test_size_of_equal_clusters_is_what_it_was(benchmark: Import) -> None:
    unequal = benchmark("unequal_questions")
    with formulas_only():
        rows = unequal.scores(unequal.DESIGNS["twenty of 8"], 0.3, 1000, SEED)
    rejected = (rows["p_value"] <= 0.05).mean()
    assert rows["df"].to_list() == [19.0] * rows.height
    assert rejected == pytest.approx(0.05, abs=3 * sqrt(0.05 * 0.95 / 1000))


@pytest.mark.parametrize("shared", [0.0, 0.3])
def test_tests_of_votes_where_a_word_is_given(benchmark: Import, shared: float) -> None:
    unequal = benchmark("unequal_questions")
    sizes = unequal.DESIGNS["40, 30, 20, 10, forty of 2"]
    found = unequal.sizes_of(sizes, shared, STUDIES, SEED)
    found = found.filter(pl.col("statistic") != "mean of normal scores")
    error = sqrt(0.08 * 0.92 / STUDIES)
    too_large = found.filter(found["found"] > 0.08 + 3 * error)
    assert too_large.is_empty(), too_large
