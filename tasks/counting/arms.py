"""Votes of a sample's arms joined in one row, and the mean difference of their scores."""

from functools import partial

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.keys import SAMPLE
from schemas.results import Estimates
from tasks.counting.cells import ratios, stopped_early, valued
from tasks.counting.order_halves import by_order
from tasks.counting.positions import ORDERS, VOTES, order_score
from tasks.inference.cluster_sums import grouped

ARMS = ("control", "experimental", "sham")
"""Arms of a shift."""
CELL = ("perturbation", "kind", "cluster", "simulated")
LOST = pl.col("voted") - pl.sum_horizontal(VOTES)
"""Votes that were cast and are not valid: invalid, abstained or ambiguous."""


def beside_control(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the votes of the experimental tallies, with the control votes as ``control_...``.

    Null where the control arm was not asked; ``early`` and ``control_early`` mark judges that were
    asked vote by vote, with early stopping. ``mode`` is ``any``, as counts do not depend on it.
    """
    return _beside(tallies, "control", SAMPLE)


def beside_sham(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the same with the sham votes as ``sham_...``, for samples that have a sham."""
    found = _beside(tallies, "sham", (*SAMPLE, "perturbation"))
    return found.filter(pl.col(f"sham_{VOTES[0]}").is_not_null())


def _beside(tallies: pl.DataFrame, arm: str, key: tuple[str, ...]) -> pl.DataFrame:
    stopped = (tallies["stopped"] > 0).any()
    early = stopped_early() if stopped else pl.lit(value=False)
    wanted = tallies.select(*SAMPLE, *CELL, "arm", "planned", *VOTES, early=early)
    columns = (*VOTES, "early")
    base = wanted.filter(pl.col("arm") == arm).select(*key, pl.col(*columns).name.prefix(f"{arm}_"))
    return (
        wanted.filter(pl.col("arm") == "experimental")
        .select(*SAMPLE, *CELL, *columns, votes=pl.col("planned"))
        .join(base, on=key, how="left", maintain_order="left")
        .with_columns(mode=pl.lit("any"))
    )


def arms_beside(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return each experimental pair with values of its own, its sham's and its control's votes.

    ``ARM_12`` and ``ARM_21`` are the mean scores in that order: 0 is anchor, 1 target, null without
    a valid vote there; with early stopping the score of the first vote, as in all means of scores.
    ``ARM_voted`` are the votes cast and ``ARM_lost`` those that are invalid; null where the arm was
    not asked.
    """
    scores = {order: order_score(order) for order in ORDERS}
    values = {**scores, "voted": pl.col("voted"), "lost": LOST}
    wanted = tallies.select(*SAMPLE, "perturbation", "arm", **values)
    planted = [*SAMPLE, "perturbation"]
    arms = {
        arm: wanted.filter(pl.col("arm") == arm).select(
            *(SAMPLE if arm == "control" else planted),
            *(pl.col(name).alias(f"{arm}_{name}") for name in values),
        )
        for arm in ("experimental", "sham", "control")
    }
    return (
        arms["experimental"]
        .join(arms["sham"], on=planted, how="left", maintain_order="left")
        .join(arms["control"], on=SAMPLE, how="left", maintain_order="left")
    )


def mean_shift(
    name: str, shifts: pl.DataFrame, base: str, *, arm: str = "experimental_score"
) -> DataFrame[Estimates]:
    """Return the mean of ``arm - base`` in each cell.

    For judges that saw every pair in one order it is the mean of both halves.
    """
    # Shifts of a jury have no order: its members may have seen different ones.
    shown_first = pl.col("shown_first") if "shown_first" in shifts.columns else pl.lit(None)
    items = shifts.with_columns(half=(shown_first == "anchor").cast(pl.Boolean))
    items = valued(items, pl.col(arm) - pl.col(base))
    return by_order(items, partial(ratios, name), grouped(shifts))
