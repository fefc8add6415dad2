"""From items to one estimate per cell: reduce to cluster sums, then one interval a cell."""

from collections.abc import Callable

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.statistics._intervals import LEVEL, Interval, Sums, cluster_ratio, cluster_wilson

CELL = ("dataset", "judge", "prompt", "wave", "mode", "perturbation")
Solve = Callable[[pl.DataFrame], Interval]


def stopped_early() -> pl.Expr:
    """Tell whether some votes of a judge were left out because others made them needless.

    Then votes beyond the first in each order are no random sample of the judge's votes.
    """
    return pl.col("stopped").is_not_null().any().over("dataset", "judge", "prompt", "wave")


def shares(name: str, items: pl.DataFrame) -> DataFrame[Estimates]:
    """Return, per cell, the share of counted items that are hits, by cluster-adjusted Wilson.

    ``items`` has the cell's columns, ``cluster, kind, votes, simulated``, and ``counted`` (in the
    denominator), ``hit`` (in the numerator), ``dropped`` (cannot be told).
    """
    counted = items.with_columns(
        num=(pl.col("counted") & pl.col("hit")).cast(pl.Float64),
        den=pl.col("counted").cast(pl.Float64),
    )
    return _estimates(name, counted, _wilson, hits=True)


def weighted_shares(name: str, items: pl.DataFrame) -> DataFrame[Estimates]:
    """Return, per cell, the proportion ``sum num / sum den`` by cluster-adjusted Wilson.

    ``items`` has the columns of :func:`shares` without ``hit``, and ``0 <= num <= den``, where
    ``num`` may be an average.
    """

    def solve(sums: pl.DataFrame) -> Interval:
        num, den = _columns(sums, "num", "den")
        return cluster_wilson(num, den, whole=False)

    return _estimates(name, _zero_unless_counted(items, "num", "den"), solve, hits=False)


def ratios(name: str, items: pl.DataFrame) -> DataFrame[Estimates]:
    """Return, per cell, ``sum num / sum den`` by cluster linearisation.

    ``items`` has the columns of :func:`shares` without ``hit``, and ``num``, ``den``, and
    ``minuend`` and ``subtrahend``, shares of ``den`` whose difference is ``num``: the ratio lies
    in [-1, 1], and its interval is cut to that.
    """

    def solve(sums: pl.DataFrame) -> Interval:
        num, den, minuend, subtrahend = _columns(sums, "num", "den", "minuend", "subtrahend")
        return _within_one(cluster_ratio(num, den, (minuend, subtrahend)))

    parts = ("num", "den", "minuend", "subtrahend")
    return _estimates(name, _zero_unless_counted(items, *parts), solve, hits=False)


def _within_one(result: Interval) -> Interval:
    """Cut an interval to [-1, 1]."""
    if result.low is None or result.high is None:
        return result
    return result._replace(low=max(-1.0, result.low), high=min(1.0, result.high))


def _wilson(sums: pl.DataFrame) -> Interval:
    hits, totals = _columns(sums, "num", "den")
    return cluster_wilson(hits, totals)


def _zero_unless_counted(items: pl.DataFrame, *names: str) -> pl.DataFrame:
    return items.with_columns(pl.when("counted").then(pl.col(*names)).otherwise(0.0))


def _estimates(name: str, items: pl.DataFrame, solve: Solve, *, hits: bool) -> DataFrame[Estimates]:
    sums = items.group_by(*CELL, "cluster", maintain_order=True).agg(
        pl.col("num", "den").sum(),
        *(pl.col(c).sum() for c in ("minuend", "subtrahend") if c in items.columns),
        pl.col("counted", "dropped").sum(),
        pl.col("kind", "simulated").first(),
    )
    votes = items.group_by(CELL).agg(votes_per_pair=pl.col("votes").mode().max())
    rows = [
        _row(name, key, cell, solve, hits=hits)
        for key, cell in sums.partition_by(CELL, as_dict=True, include_key=False).items()
    ]
    if not rows:
        return Estimates.empty()
    frame = pl.DataFrame(rows, schema={**Estimates.dtypes(), "votes_per_pair": pl.Int64})
    frame = frame.drop("votes_per_pair").join(votes, on=CELL, nulls_equal=True)
    return Estimates.of(frame)


def _row(
    name: str, key: tuple[object, ...], cell: pl.DataFrame, solve: Solve, *, hits: bool
) -> dict[str, object]:
    used = cell.filter(pl.col("den") > 0)
    result = solve(used)
    return {
        "statistic": name,
        **dict(zip(CELL, key, strict=True)),
        "kind": cell["kind"][0],
        "simulated": cell["simulated"][0],
        **result._asdict(),
        "level": None if result.low is None else LEVEL,
        "hits": int(used["num"].sum()) if hits else None,
        "n": int(used["counted"].sum()),
        "clusters": used.height,
        "dropped": int(cell["dropped"].sum()),
    }


def _columns(sums: pl.DataFrame, *names: str) -> tuple[Sums, ...]:
    return tuple(sums[name].to_numpy().astype(np.float64) for name in names)
