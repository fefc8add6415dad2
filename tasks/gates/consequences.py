"""What a gate means for the recommendation of its judge (methods, section 17)."""

import polars as pl

from schemas.conclusions import RECOMMENDATIONS
from schemas.results import CONSEQUENCES
from tasks.kit.defaults import limits

FORBIDS, CARE, UNDECIDED, STATED, PASSED, NOT_MEASURED = CONSEQUENCES
USE, WITH_CARE, DO_NOT_USE, NOT_ENOUGH = RECOMMENDATIONS
CORE = ("bias", "discernment", "agreement")
"""Nothing is recommended without one of these gates."""
ESSENTIAL = ("position", "validity")
"""While one of these gates is inconclusive, the data are not enough for a recommendation."""


def is_unexplained_drift() -> pl.Expr:
    """Tell whether a gate is drift without a suspected change and without a lack of data.

    More questions decide it if it is inconclusive; a suspicion is confirmed by the next wave.
    """
    return (pl.col("gate") == "drift") & pl.col("changed").is_null() & pl.col("why").is_null()


def consequence() -> pl.Expr:
    """Say what a gate means: it forbids or limits the use, leaves it undecided, or is stated."""
    fails = pl.col("verdict") == "fail"
    open_ = pl.col("verdict") == "inconclusive"
    nothing = pl.col("value").is_null() & (pl.col("clusters").fill_null(0) == 0)
    return (
        pl.when(open_ & pl.col("gate").is_in(ESSENTIAL))
        .then(pl.lit(UNDECIDED))
        .when(open_ & nothing)
        .then(pl.lit(NOT_MEASURED))
        .when(fails & pl.col("gate").is_in(limits().disqualifying))
        .then(pl.lit(FORBIDS))
        .when(open_ & is_unexplained_drift())
        .then(pl.lit(STATED))
        .when(fails | open_)
        .then(pl.lit(CARE))
        .when(pl.col("sham_shift").is_not_null())
        .then(pl.lit(STATED))
        .otherwise(pl.lit(PASSED))
    )


def weight() -> pl.Expr:
    """Order gates: disqualifying ones first, as the threshold lists them, what is stated last."""
    first = list(limits().disqualifying)
    return (
        pl.when(pl.col("consequence") == FORBIDS)
        .then(pl.col("gate").replace_strict(first, range(len(first)), default=len(first)))
        .when(pl.col("consequence") == STATED)
        .then(len(first) + 2)
        .otherwise(len(first) + 1)
    )
