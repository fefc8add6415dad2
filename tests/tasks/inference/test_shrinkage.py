"""Empirical Bayes, against statsmodels' DerSimonian-Laird."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.meta_analysis import combine_effects  # type: ignore[import-untyped]

from tasks.inference.multiplicity import shrunk

CELLS = st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 1)), min_size=3, max_size=20)


def cells(*rows: tuple[float | None, float | None], group: str = "g") -> pl.DataFrame:
    schema = {"estimate": pl.Float64, "standard_error": pl.Float64}
    return pl.DataFrame(list(rows), schema, orient="row").with_columns(group=pl.lit(group))


def test_docstring_example() -> None:
    found = shrunk(cells((0.0, 0.1), (0.2, 0.1), (0.4, 0.1)), ["group"])
    assert found["shrunk"].to_list() == pytest.approx([0.05, 0.2, 0.35])
    assert (found["shrunk_error"] ** 2).to_list() == pytest.approx([0.0075 + 0.0625 * 0.04 / 3] * 3)
    assert found.columns == ["estimate", "standard_error", "group", "shrunk", "shrunk_error"]


@given(CELLS)
def test_against_statsmodels(rows: list[tuple[float, float]]) -> None:
    found = shrunk(cells(*rows), ["group"])
    theta, error = np.array(rows).T
    with np.errstate(all="ignore"):  # it goes on with a variance below 0
        pooled = combine_effects(theta, error**2, method_re="dl")
    tau2 = max(0.0, pooled.tau2)
    weight = 1 / (error**2 + tau2)
    mean = (weight * theta).sum() / weight.sum()
    expected = mean + tau2 / (tau2 + error**2) * (theta - mean)
    assert found["shrunk"].to_list() == pytest.approx(expected, abs=1e-9)
    # between the mean and itself, and never less sure than before by more than the mean is
    assert (found["shrunk_error"] <= np.sqrt(error**2 + 1 / weight.sum()) + 1e-12).all()


def test_alike_cells_are_one() -> None:
    found = shrunk(cells((0.1, 0.1), (0.11, 0.1), (0.12, 0.1)), ["group"])
    assert found["shrunk"].to_list() == pytest.approx([0.11] * 3)
    assert found["shrunk_error"].to_list() == pytest.approx([0.1 / 3**0.5] * 3)


def test_groups_are_apart_and_what_cannot_be_weighed_is_left_out() -> None:
    frame = pl.concat(
        [
            cells((0.0, 0.1), (0.2, 0.1), (0.4, 0.1), (0.9, None), (None, None), (1.0, 0.0)),
            cells((0.5, 0.1), (0.6, 0.1), group="two are too few"),
        ]
    )
    assert shrunk(frame, ["group"])["shrunk"].to_list() == [
        pytest.approx(0.05),
        pytest.approx(0.2),
        pytest.approx(0.35),
        None,
        None,
        None,
        None,
        None,
    ]


def test_a_cell_without_doubt_leaves_nothing_to_tell() -> None:
    found = shrunk(cells((0.0, 1.0), (0.0, 1e-9), (1.0, 0.5)), ["group"])
    assert found["shrunk"].to_list() == [None] * 3
    assert found["shrunk_error"].to_list() == [None] * 3
    near = shrunk(cells((0.0, 1.0), (0.0, 1e-4), (1.0, 0.5)), ["group"])
    assert near["shrunk"].is_finite().all()
