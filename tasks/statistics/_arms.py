"""The tallies of two arms of a sample side by side."""

from collections.abc import Sequence

import polars as pl

GROUP = ("dataset", "judge", "prompt", "wave", "sample")
CELL = ("perturbation", "kind", "cluster", "simulated")


def beside_control(tallies: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return ``columns`` of the experimental tallies, with those of control as ``control_...``.

    Null where the control arm was not asked about. ``mode`` is ``any``: counts have none.
    """
    wanted = tallies.select(*GROUP, *CELL, "arm", "planned", *columns)
    control = wanted.filter(pl.col("arm") == "control").select(
        *GROUP, pl.col(*columns).name.prefix("control_")
    )
    return (
        wanted.filter(pl.col("arm") == "experimental")
        .select(*GROUP, *CELL, *columns, votes=pl.col("planned"))
        .join(control, on=GROUP, how="left", maintain_order="left")
        .with_columns(mode=pl.lit("any"))
    )
