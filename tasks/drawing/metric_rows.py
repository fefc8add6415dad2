"""Results under several metrics, a row for each metric and judge: for tables and the chart."""

from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import AltTests
from tasks.reporting.wording import with_who


class MetricRow(NamedTuple):
    """A judge under one metric."""

    metric: str
    who: str
    dataset: str
    epsilon: float
    advantage: float | None
    """Advantage probability, with its interval; the same for every epsilon."""
    low: float | None
    high: float | None
    human: float | None
    """Advantage probability of the person left out."""
    rates: dict[str, tuple[float | None, bool | None]]
    """Kind of epsilon -> winning rate, and whether the judge passes."""
    simulated: bool


def metric_rows(metric_tests: DataFrame[AltTests]) -> list[MetricRow]:
    """Return a row per metric and judge, at the epsilon that was asked for.

    Judges are in the order of their mean advantage probability, the best first, under every metric.
    """
    asked = with_who(metric_tests.filter("asked"))
    if asked.is_empty():
        return []
    mean = pl.col("advantage_probability").mean().over("dataset", "who")
    ordered = asked.with_columns(mean=mean).sort(
        "metric", "dataset", -pl.col("mean"), "who", nulls_last=True
    )
    rows: dict[tuple[str, str, str], MetricRow] = {}
    for row in ordered.to_dicts():
        key = row["metric"], row["dataset"], row["who"]
        found = rows.setdefault(
            key,
            MetricRow(
                row["metric"],
                row["who"],
                row["dataset"],
                row["epsilon"],
                row["advantage_probability"],
                row["low"],
                row["high"],
                row["human_advantage_probability"],
                {},
                bool(row["simulated"]),
            ),
        )
        found.rates[row["epsilon_kind"]] = row["winning_rate"], row["passed"]
    return list(rows.values())
