"""The tallies of two arms of a sample side by side."""

import polars as pl

from tasks.statistics._cells import stopped_early
from tasks.statistics._once import once
from tasks.statistics._position import VOTES

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
