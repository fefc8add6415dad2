"""Cautions on findings: invalid votes, mixed shifts (methods, section 16)."""

import polars as pl

from schemas.keys import CELL
from schemas.results import LOST
from tasks.conclusions.rules import BIASED, CLEAR, INCONCLUSIVE, Rule, shown, written
from tasks.inference.linearised_errors import is_enough
from tasks.inference.multiplicity import holm
from tasks.kit.defaults import ALPHA, limits
from tasks.pointwise.endpoints import minimum_spread, unit, worst_words

MIXED = "mixed"
BASES = ("sham", "control")


def with_lost(cells: pl.DataFrame, by_arm: pl.DataFrame) -> pl.DataFrame:
    """Add the evidence on invalid votes (methods, section 16: missing votes).

    ``lost_difference``, ``lost_over`` and ``lost_p``: the comparison of experimental with sham or
    control that has the smaller p-value, after Holm over both comparisons in all cells;
    ``lost_finding``; ``most_lost`` and ``most_lost_arm``: the largest invalid share, its arm;
    ``doubtful``: whether the finding must hold in both worst cases.
    """
    raw = pl.concat(
        cells.select(
            pl.when(is_enough(f"lost_over_{base}_clusters", f"lost_over_{base}_df")).then(
                f"lost_over_{base}_p_value"
            )
        ).to_series()
        for base in BASES
    )
    adjusted = holm(raw)
    sham_p, control_p = adjusted[: cells.height], adjusted[cells.height :]
    cells = cells.with_columns(lost_p_sham=sham_p, lost_p_control=control_p)
    plain = pl.col("lost_p_sham").fill_null(2) <= pl.col("lost_p_control").fill_null(2)
    known = pl.any_horizontal(pl.col(f"lost_p_{base}").is_not_null() for base in BASES)
    chosen = {
        "lost_over": (pl.lit("sham"), pl.lit("control")),
        "lost_p": (pl.col("lost_p_sham"), pl.col("lost_p_control")),
        "lost_difference": tuple(pl.col(f"lost_over_{base}_estimate") for base in BASES),
    }
    rates = (
        by_arm.filter(pl.col("statistic") == "lost_rate", pl.col("estimate").is_not_null())
        .sort("estimate", descending=True)
        .group_by(CELL, maintain_order=True)
        .agg(most_lost=pl.col("estimate").first(), most_lost_arm=pl.col("subgroup").first())
    )
    large = pl.col("lost_difference").abs() >= limits().minimum_lost
    differs = (pl.col("lost_p") < ALPHA) & large
    return (
        cells.with_columns(
            pl.when(known).then(pl.when(plain).then(sham).otherwise(control)).alias(name)
            for name, (sham, control) in chosen.items()
        )
        .join(rates, on=CELL, how="left")
        .with_columns(
            lost_finding=pl.when(differs).then(pl.lit(LOST)),
            doubtful=(differs | (pl.col("most_lost") > limits().most_lost)).fill_null(value=False),
        )
    )


def _same_finding(side: str) -> pl.Expr:
    """Tell whether a worst case gives the same finding and, if biased, the same direction."""
    word = pl.col(f"word_{side}") == pl.col("word")
    way = (pl.col(f"at_{side}").sign() == pl.col("estimate").sign()) | (pl.col("word") != BIASED)
    return (word & way).fill_null(value=False)


SHARE = pl.format(
    "{} of the {} {} are invalid",
    written("most_lost"),
    "most_lost_arm",
    pl.when(unit() == "score").then(pl.lit("votes")).otherwise(pl.lit("ratings")),
)
WORDS = [
    pl.format("{} (shift {})", f"word_{side}", written(f"at_{side}")).fill_null("not measured")
    for side in ("anchor", "target")
]
DOUBTFUL = pl.col("doubtful") & (pl.col("word") != INCONCLUSIVE)
HOLDS = _same_finding("anchor") & _same_finding("target")
LOST_RULES = (
    Rule(
        DOUBTFUL & HOLDS,
        pl.format("{}; the word holds whatever they would have said", SHARE),
    ),
    Rule(
        DOUBTFUL & ~HOLDS,
        pl.format(
            "{}: {} if they were {}, {} if {}",
            SHARE,
            WORDS[0],
            worst_words("anchor"),
            WORDS[1],
            worst_words("target"),
        ),
        INCONCLUSIVE,
    ),
)


def with_spread(cells: pl.DataFrame, by_part: pl.DataFrame) -> pl.DataFrame:
    """Add ``moved_p`` and ``category_p``, and the largest shift of a category.

    Only promote cells are tested whose mean shift lies within the minimum, that are not *biased* by
    log-odds, and whose finding does not depend on invalid votes. Holm adjusts both tests of all
    these cells together, as either makes a cell *mixed*.
    """
    largest = (
        by_part.filter(pl.col("statistic") == "category_shift", is_enough())
        .sort(pl.col("estimate").abs(), descending=True, nulls_last=True)
        .group_by(CELL, maintain_order=True)
        .agg(category=pl.col("subgroup").first(), category_shift=pl.col("estimate").first())
    )
    asked = (
        (pl.col("kind") == "promote")
        & pl.col("refused").is_null()
        & (pl.col("estimate").abs() < pl.col("minimum"))
        & (pl.col("word") != BIASED)
        & ~pl.col("doubtful")
    )
    raw = cells.select(
        pl.when(asked).then(f"{name}_p_value").alias(name)
        for name in ("mean_square_shift", "category_spread")
    )
    adjusted = holm(pl.concat(raw[name].alias("p") for name in raw.columns))
    return cells.with_columns(
        moved_p=adjusted[: cells.height], category_p=adjusted[cells.height :]
    ).join(largest, on=CELL, how="left")


def differs_between_questions(spread: str) -> pl.Expr:
    """Tell whether the ``spread`` of true shifts between questions makes a cell *mixed*."""
    moved = (pl.col("moved_p") < ALPHA) & (pl.col(spread) >= minimum_spread())
    return moved.fill_null(value=False)


def mixed_words(spread: str) -> tuple[pl.Expr, pl.Expr]:
    """Say what shifts differ between: questions, and categories or criteria."""
    parts = pl.when(unit() == "score").then(pl.lit("categories")).otherwise(pl.lit("criteria"))
    return (
        pl.format(
            "shifts differ between questions: spread of true shifts {}",
            shown("shift_spread", spread),
        ),
        pl.format(
            "the shift differs between {}: {} in {}", parts, written("category_shift"), "category"
        ),
    )


def mixed_rules() -> tuple[Rule, ...]:
    """Return the rules for cells that are *no relevant bias* or *inconclusive* so far.

    A test that does not reject proves no absence. Where the finding claims absence, the error to
    guard against is low power, which adjustment makes worse. So the last rule has a larger level
    and an unadjusted p-value.
    """
    level = limits().spread_alpha
    spread = "shift_spread_estimate"
    categories_differ = (pl.col("category_p") < ALPHA) & (
        pl.col("category_shift").abs() >= pl.col("minimum")
    )
    perhaps = (
        (pl.col("word") == CLEAR)
        & (pl.col("mean_square_shift_p_value") < level)
        & (pl.col(spread) >= minimum_spread())
    )
    between_questions, between_categories = mixed_words(spread)
    return (
        Rule(differs_between_questions(spread), between_questions, MIXED),
        Rule(categories_differ.fill_null(value=False), between_categories, MIXED),
        Rule(
            perhaps.fill_null(value=False),
            pl.format(
                "shifts may differ between questions (unadjusted p below {}): "
                "spread of true shifts {}",
                pl.lit(f"{level:.2f}".removeprefix("0")),
                shown("shift_spread"),
            ),
            INCONCLUSIVE,
        ),
    )
