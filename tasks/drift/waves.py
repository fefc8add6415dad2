"""How judges were asked in each wave: the orders of pairs, and the epoch."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import Waves
from schemas.judging import Tallies
from schemas.keys import JUDGE, SERIES
from schemas.results import Drifts


def waves_of(tallies: DataFrame[Tallies], drifts: DataFrame[Drifts]) -> DataFrame[Waves]:
    """Return the design and the epoch of each judge's waves.

    In a balanced design both orders of each pair are planned equally often, so that an effect of
    the order cancels out within each pair. The wave of a confirmed alert is the baseline of the
    next epoch. Changes since the baseline of an epoch replace changes since the first wave.
    """
    even = (2 * pl.col("planned_12").cast(pl.Int64) == pl.col("planned").cast(pl.Int64)).all()
    designs = tallies.group_by(JUDGE).agg(
        design=pl.when(even).then(pl.lit("balanced")).otherwise(pl.lit("random"))
    )
    later = drifts.select(*JUDGE, epoch=pl.col("epoch") + (pl.col("state") == "alert"))
    bases = drifts.select(*SERIES, "epoch", wave="base").select(later.columns)
    epochs = pl.concat([later, bases]).group_by(JUDGE).agg(pl.col("epoch").max())
    named = designs.with_columns(pl.col(JUDGE).cast(pl.String))
    compared = drifts.select(*JUDGE, since_baseline=pl.lit(value=True)).unique()
    waves = named.join(epochs, on=JUDGE, how="left").join(compared, on=JUDGE, how="left")
    return Waves.of(waves.with_columns(pl.col("since_baseline").fill_null(value=False)))
