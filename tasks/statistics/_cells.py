"""From items to one estimate per cell: reduce to cluster sums, then all intervals at once."""

from collections.abc import Callable

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.statistics import _intervals
from tasks.statistics._bootstrap import with_bounds
from tasks.statistics._intervals import LEVEL, moments

CELL = ("dataset", "judge", "prompt", "wave", "mode", "perturbation")
PART = (*CELL, "subgroup")
Solve = Callable[[pl.DataFrame], pl.DataFrame]


def stopped_early() -> pl.Expr:
    """Tell whether some votes of a judge were left out because others made them needless.

    Then votes beyond the first in each order are no random sample of the judge's votes.
    """
    return (pl.col("stopped") > 0).any().over("dataset", "judge", "prompt", "wave")


def shares(name: str, items: pl.DataFrame) -> DataFrame[Estimates]:
    """Return, per cell, the share of counted items that are hits, by cluster-adjusted Wilson.

    ``items`` has the cell's columns, ``cluster, kind, votes, simulated``, and ``counted`` (in the
    denominator), ``hit`` (in the numerator), ``dropped`` (cannot be told).
    """
    return portions(
        name,
        items.with_columns(
            num=(pl.col("counted") & pl.col("hit")).fill_null(value=False),
            den=pl.col("counted").fill_null(value=False),
        ),
    )


def portions(name: str, items: pl.DataFrame) -> DataFrame[Estimates]:
    """Return, per cell, ``sum num / sum den`` of counts by cluster-adjusted Wilson.

    ``items`` has the columns of :func:`shares` but, instead of ``counted`` and ``hit``, ``den``, a
    number of things counted, ``num``, how many of them are hits; ``dropped`` may be a number too.
    """
    return _estimates(
        name, items.with_columns(counted=pl.col("den")), _intervals.proportions, hits=True
    )


def weighted_shares(name: str, items: pl.DataFrame) -> DataFrame[Estimates]:
    """Return, per cell, the proportion ``sum num / sum den`` by cluster-adjusted Wilson.

    ``items`` has the columns of :func:`shares` without ``hit``, and ``0 <= num <= den``, where
    ``num`` may be an average.
    """

    def solve(found: pl.DataFrame) -> pl.DataFrame:
        return _intervals.proportions(found, whole=False)

    return _estimates(name, _zero_unless_counted(items, "num", "den"), solve)


def ratios(name: str, items: pl.DataFrame) -> DataFrame[Estimates]:
    """Return, per cell, ``sum num / sum den`` by cluster linearisation.

    ``items`` has the columns of :func:`shares` without ``hit`` (``counted`` may be a number), and
    ``num``, ``den``, and ``minuend`` and ``subtrahend``, shares of ``den`` whose difference is
    ``num``: the ratio lies in [-1, 1], and its interval is cut to that.
    """

    def solve(found: pl.DataFrame) -> pl.DataFrame:
        return _intervals.ratios(found).with_columns(pl.col("low", "high").clip(-1.0, 1.0))

    return _estimates(name, _zero_unless_counted(items, "num", "den", *PARTS), solve)


PARTS = ("minuend", "subtrahend")


def _zero_unless_counted(items: pl.DataFrame, *names: str) -> pl.DataFrame:
    counted = pl.col("counted").cast(pl.Int64) > 0
    return items.with_columns(pl.when(counted).then(pl.col(*names)).otherwise(0.0))


def _estimates(
    name: str, items: pl.DataFrame, solve: Solve, *, hits: bool = False
) -> DataFrame[Estimates]:
    if items.is_empty():
        return Estimates.empty()
    if "subgroup" not in items.columns:
        items = items.with_columns(subgroup=pl.lit(""))
    sums = ("num", "den", *(part for part in PARTS if part in items.columns))
    of_cluster = items.group_by(*PART, "cluster", maintain_order=True).agg(
        pl.col(*sums).cast(pl.Float64).sum(),
        pl.col("counted", "dropped").cast(pl.Int64).sum(),
        pl.col("votes").max(),
        pl.col("kind", "simulated").first(),
    )
    cells = of_cluster.group_by(PART, maintain_order=True).agg(
        *moments(sums),
        pl.col("counted", "dropped").sum(),
        pl.col("kind", "simulated").first(),
        votes_per_pair=pl.col("votes").mode().max(),
    )
    cells = with_bounds(cells, of_cluster, PART)
    found = pl.concat([cells, solve(cells)], how="horizontal")
    return Estimates.draft(
        found.with_columns(
            statistic=pl.lit(name),
            level=pl.when(pl.any_horizontal(pl.col("low", "boot_low").is_not_null())).then(LEVEL),
            hits=pl.col("num").round().cast(pl.Int64) if hits else None,
            n=pl.col("counted"),
        )
    )
