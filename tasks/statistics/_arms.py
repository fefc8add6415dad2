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
    return _beside(tallies, "control", GROUP)


@once
def beside_sham(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the same with the votes of the sham as ``sham_...``; only samples that have one."""
    found = _beside(tallies, "sham", (*GROUP, "perturbation"))
    return found.filter(pl.col(f"sham_{VOTES[0]}").is_not_null())


def _beside(tallies: pl.DataFrame, arm: str, key: tuple[str, ...]) -> pl.DataFrame:
    stopped = (tallies["stopped"] > 0).any()
    early = stopped_early() if stopped else pl.lit(value=False)
    wanted = tallies.select(*GROUP, *CELL, "arm", "planned", *VOTES, early=early)
    columns = (*VOTES, "early")
    base = wanted.filter(pl.col("arm") == arm).select(*key, pl.col(*columns).name.prefix(f"{arm}_"))
    return (
        wanted.filter(pl.col("arm") == "experimental")
        .select(*GROUP, *CELL, *columns, votes=pl.col("planned"))
        .join(base, on=key, how="left", maintain_order="left")
        .with_columns(mode=pl.lit("any"))
    )
