"""The tallies of two arms of a sample side by side."""

import polars as pl

from tasks.statistics._cells import stopped_early
from tasks.statistics._once import once
from tasks.statistics._position import ORDERS, VOTES

GROUP = ("dataset", "judge", "prompt", "wave", "sample")
CELL = ("perturbation", "kind", "cluster", "simulated")


@once
def beside_control(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the votes of the experimental tallies, with those of control as ``control_...``.

    Null where the control arm was not asked about; ``early``, and ``control_early``, where votes
    were asked one after another. ``mode`` is ``any``: counts have none.
    """
    stopped = (tallies["stopped"] > 0).any()
    early = stopped_early() if stopped else pl.lit(value=False)
    wanted = tallies.select(*GROUP, *CELL, "arm", "planned", *VOTES, early=early)
    columns = (*VOTES, "early")
    control = wanted.filter(pl.col("arm") == "control").select(
        *GROUP, pl.col(*columns).name.prefix("control_")
    )
    return (
        wanted.filter(pl.col("arm") == "experimental")
        .select(*GROUP, *CELL, *columns, votes=pl.col("planned"))
        .join(control, on=GROUP, how="left", maintain_order="left")
        .with_columns(mode=pl.lit("any"))
    )


@once
def order_scores(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the mean score of each experimental pair's arms in each order, ``ARM_ORDER``.

    0 is anchor, 1 target; null without a valid vote in that arm and order. Where votes were asked
    one after another it is that of the first vote, as in every mean of scores.
    """
    stopped = (tallies["stopped"] > 0).any()
    scored = tallies.select(
        *GROUP, "perturbation", "arm",
        **{f"at_{order}": _order_score(order, stopped=stopped) for order in ORDERS},
    )  # fmt: skip
    arms = {
        arm: scored.filter(pl.col("arm") == arm).select(
            *GROUP,
            *(() if arm == "control" else ("perturbation",)),
            *(pl.col(f"at_{order}").alias(f"{arm}_{order}") for order in ORDERS),
        )
        for arm in ("experimental", "sham", "control")
    }
    planted = [*GROUP, "perturbation"]
    return (
        arms["experimental"]
        .join(arms["sham"], on=planted, how="left", maintain_order="left")
        .join(arms["control"], on=GROUP, how="left", maintain_order="left")
    )


def _order_score(order: str, *, stopped: bool) -> pl.Expr:
    anchor, tie, target = (
        pl.col(f"{side}_{order}").cast(pl.Float64) for side in ("anchor", "tie", "target")
    )
    valid = anchor + tie + target
    mean = (pl.when(valid > 0).then((target - anchor) / valid) + 1) / 2
    once = (pl.col(f"once_{order}") + 1) / 2
    return pl.when(stopped_early()).then(once).otherwise(mean) if stopped else mean
