"""Results under several metrics, a row for each metric and judge: for tables and the chart."""

from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import KINDS_OF_EPSILON, AltTests
from tasks.reporting.wording import with_who


def metric_rows(metric_tests: DataFrame[AltTests]) -> list[dict[str, Any]]:
    """Return a row per metric and judge, at the epsilon that was asked for.

    Its ``rates`` are, by kind of epsilon, the winning rate and whether the judge passes (null if it
    was not tested); all else is the same for each. Judges are in the order of their mean advantage
    probability, the best first, under every metric.
    """
    asked = with_who(metric_tests.filter("asked"))
    mean = pl.col("advantage_probability").mean().over("dataset", "who")
    ordered = asked.with_columns(mean=mean).sort(
        "metric", "dataset", -pl.col("mean"), "who", nulls_last=True
    )
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in ordered.to_dicts():
        rates = dict.fromkeys(KINDS_OF_EPSILON, (None, None))
        key = row["metric"], row["dataset"], row["who"]
        found = rows.setdefault(key, {**row, "rates": rates})
        found["rates"][row["epsilon_kind"]] = row["winning_rate"], row["passed"]
    return list(rows.values())
