"""Shifts that cancel out in the mean: no absence of bias (methods, section 16: heterogeneity)."""

import polars as pl

from tasks._families import holm
from tasks._rules import Rule, shown, written
from tasks.defaults import ALPHA, MINIMUM, SPREAD_ALPHA, SPREAD_MINIMUM
from tasks.enough import is_enough

MIXED, CLEAR, OPEN = "mixed", "no relevant bias", "inconclusive"


def with_spread(cells: pl.DataFrame, by_part: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """Add ``moved_p`` and ``category_p``, and the largest shift of a category.

    They are asked of promote cells whose mean shift lies inside the minimum, that are not *biased*
    by log-odds, and whose word does not hang on votes that cannot be read. Holm adjusts both tests
    of all these cells together, as either makes a cell *mixed*.
    """
    largest = (
        by_part.filter(pl.col("statistic") == "category_shift", is_enough())
        .sort(pl.col("estimate").abs(), descending=True, nulls_last=True)
        .group_by(key, maintain_order=True)
        .agg(category=pl.col("subgroup").first(), category_shift=pl.col("estimate").first())
    )
    asked = (
        (pl.col("kind") == "promote")
        & pl.col("refused").is_null()
        & (pl.col("estimate").abs() < MINIMUM)
        & (pl.col("word") != "biased")
        & ~pl.col("doubtful")
    )
    raw = cells.select(
        pl.when(asked).then(f"{name}_p_value").alias(name)
        for name in ("mean_square_shift", "category_spread")
    )
    adjusted = holm(pl.concat(raw[name].alias("p") for name in raw.columns))
    return cells.with_columns(
        moved_p=adjusted[: cells.height], category_p=adjusted[cells.height :]
    ).join(largest, on=list(key), how="left")


SPREAD = pl.col("shift_spread_estimate") >= SPREAD_MINIMUM
MOVED = ((pl.col("moved_p") < ALPHA) & SPREAD).fill_null(value=False)
APART = ((pl.col("category_p") < ALPHA) & (pl.col("category_shift").abs() >= MINIMUM)).fill_null(
    value=False
)
PERHAPS_MOVED = (
    (pl.col("word") == CLEAR) & (pl.col("mean_square_shift_p_value") < SPREAD_ALPHA) & SPREAD
).fill_null(value=False)
"""A test that does not reject is no proof of absence: where the word claims absence, the error to
fear is the test's want of power, which adjustment only makes larger. So its level is wider, and its
p-value is not adjusted."""

MIXED_RULES = (
    Rule(
        MOVED,
        pl.format(
            "shifts differ between questions: spread of true shifts {}",
            shown("shift_spread"),
        ),
        MIXED,
    ),
    Rule(
        APART,
        pl.format(
            "the shift differs between categories: {} in {}", written("category_shift"), "category"
        ),
        MIXED,
    ),
    Rule(
        PERHAPS_MOVED,
        pl.format(
            "shifts may differ between questions (unadjusted p below .10): "
            "spread of true shifts {}",
            shown("shift_spread"),
        ),
        OPEN,
    ),
)
"""The tests are asked of cells that are *no relevant bias* or *inconclusive* so far."""
