"""Votes that cannot be read: a finding of their own, and words that must hold without them."""

import polars as pl

from schemas.results import LOST
from tasks._families import holm
from tasks._rules import Rule, written
from tasks.defaults import ALPHA, LOST_MINIMUM, MOST_LOST
from tasks.enough import is_enough

BASES = ("sham", "control")


def with_lost(cells: pl.DataFrame, by_arm: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """Add what became of votes that cannot be read (methods, section 16: missing votes).

    ``lost_difference``, ``lost_over`` and ``lost_p``: of the two other arms the one with the
    smaller p, after Holm over both arms of all cells; ``lost_finding``; ``most_lost`` and
    ``most_lost_arm``, the arm that lost the largest share; ``doubtful``, whether the word must hold
    in both worst cases.
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
    p_values = [adjusted[at * cells.height : (at + 1) * cells.height] for at in range(len(BASES))]
    cells = cells.with_columns(
        p.alias(f"lost_p_{base}") for base, p in zip(BASES, p_values, strict=True)
    )
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
        .group_by(key, maintain_order=True)
        .agg(most_lost=pl.col("estimate").first(), most_lost_arm=pl.col("subgroup").first())
    )
    differs = (pl.col("lost_p") < ALPHA) & (pl.col("lost_difference").abs() >= LOST_MINIMUM)
    return (
        cells.with_columns(
            pl.when(known).then(pl.when(plain).then(sham).otherwise(control)).alias(name)
            for name, (sham, control) in chosen.items()
        )
        .join(rates, on=list(key), how="left")
        .with_columns(
            lost_finding=pl.when(differs).then(pl.lit(LOST)),
            doubtful=(differs | (pl.col("most_lost") > MOST_LOST)).fill_null(value=False),
        )
    )


def _same(side: str) -> pl.Expr:
    """Tell whether a worst case has the same word, and a shift in the same direction."""
    word = pl.col(f"word_{side}") == pl.col("word")
    way = (pl.col(f"at_{side}").sign() == pl.col("estimate").sign()) | (pl.col("word") != "biased")
    return (word & way).fill_null(value=False)


SHARE = pl.format("{} of the {} votes cannot be read", written("most_lost"), "most_lost_arm")
WORDS = [
    pl.format("{} (shift {})", f"word_{side}", written(f"at_{side}")).fill_null("not measured")
    for side in ("anchor", "target")
]
LOST_RULES = (
    Rule(
        pl.col("doubtful") & _same("anchor") & _same("target") & (pl.col("word") != OPEN),
        pl.format("{}; the word holds whatever they would have said", SHARE),
    ),
    Rule(
        pl.col("doubtful") & ~(_same("anchor") & _same("target")) & (pl.col("word") != OPEN),
        pl.format("{}: {} if they were all for the anchor, {} if for the target", SHARE, *WORDS),
        OPEN,
    ),
)
