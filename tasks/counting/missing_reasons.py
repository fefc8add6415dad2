"""Reasons why an estimate or its interval is missing.

A statistic declares its own (``@statistic``); here are the reasons that several share.
"""

from collections.abc import Mapping

import polars as pl

from tasks.inference.intervals import EMPTY
from tasks.inference.linearised_errors import why_not_enough

START = EMPTY.split(":", maxsplit=1)[0]
SCORE = "; a score needs a valid vote in each order (in mode paper: in either order)"
CHANGEABLE = (
    "no sample has verdicts in both arms and a control verdict that the perturbation could change"
)
CHANGEABLE_IN_ALL_ARMS = (
    "no sample has verdicts in all three arms and a control or sham verdict that could change"
)
NO_SHIFT = (
    f"no sample has a score in the experimental arm and in the arm it is compared with{SCORE}"
)
NO_SHIFT_OVER_SHAM = f"no sample has a score in the experimental arm and in the sham{SCORE}"
NO_SHIFT_OF_SHAM = f"no sample has a score in the sham and in control{SCORE}"
NO_SCORES_OF_MEMBERS = "no item with a label has every member's score in both orders"
NO_VALID_VOTE = "no vote is valid"
NO_REPEAT_IN_BOTH_ORDERS = "no pair has valid votes with the same repeat number in both orders"
NO_SLOT_PREFERRED = "no valid vote prefers a slot: all are ties, or there are none"
NO_LABELS_OF_BOTH = "no item has labels of both annotators"
NO_LABELS_OF_TWO = "no item has labels of two annotators (for Fleiss' kappa: of all)"
ALL_TIED = "on every item, one of the two says tie"
NO_CONTEST = "no contest of these models has a valid vote in each order"
NO_RATING = "no rating is readable"
NONE: Mapping[str, str] = {}


def explained(
    rows: pl.DataFrame,
    missing: Mapping[str, str],
    no_interval: Mapping[str, str] = NONE,
    **columns: pl.Expr,
) -> pl.DataFrame:
    """Give the reason for an empty denominator or a missing interval in each row.

    ``missing`` says by statistic what there is none of if its denominator is empty, and
    ``no_interval`` why it never has an interval. ``too_few`` says why a row has too few clusters
    for a conclusion; null if it has enough. Further columns are made in the same query.
    """
    name = pl.col("statistic").cast(pl.String)
    reasons = {statistic: f"{START}: {why}" for statistic, why in missing.items()}
    lacking = name.replace_strict(reasons, default=EMPTY, return_dtype=pl.String)
    without = name.replace_strict(no_interval, default=None, return_dtype=pl.String)
    unbounded = pl.col("estimate").is_not_null() & pl.col("low").is_null()
    reason = (
        pl.when(pl.col("reason") == EMPTY)
        .then(lacking)
        .otherwise(pl.coalesce("reason", pl.when(unbounded).then(without)))
    )
    return rows.with_columns(reason=reason, too_few=why_not_enough(), **columns)
