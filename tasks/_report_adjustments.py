"""The rows of the report's table of all adjustments of one family, as texts."""

from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Findings
from tasks._report_rows import Judged, Text, said
from tasks._words import interval, number, p_value, with_who
from tasks.statistics._quantiles import normal_quantile

PS = ("p_value", "p_adjusted", "p_holm", "p_by")
HALF = float(normal_quantile(0.975))



def adjustment_rows(findings: DataFrame[Findings]) -> list[Judged]:
    """Return per cell each p-value, evidence, the shrunk estimate and the spread of shifts."""
    ordered = with_who(findings).sort(
        pl.col("kind") != "promote", "perturbation", -pl.col("estimate"), "who", nulls_last=True
    )
    return [_adjustment_row(row) for row in ordered.to_dicts()]


def _adjustment_row(row: Row) -> Judged:
    texts = [
        Text(row["perturbation"]),
        said(row, 3),
        *(Text(p_value(row[name])) for name in PS),
        Text("none") if row["e_value"] is None else Text(_evidence(row["e_value"])),
        Text("none" if row["e_rejected"] is None else "yes" if row["e_rejected"] else "no"),
        _shrunk(row),
        _spread(row),
    ]
    return Judged(row["who"], bool(row["simulated"]), texts)


def _evidence(value: float) -> str:
    return number(value, 2) if value < 1000 else f"{value:.0e}"


def _spread(row: Row) -> Text:
    """Write how far the true shifts of samples differ, with its interval."""
    value, low, high = (row[f"shift_spread{end}"] for end in ("", "_low", "_high"))
    if value is None:
        return Text("none", "no votes in both orders to tell it by")
    return Text(number(value, 2), interval(low, high) if low is not None else "")


def _shrunk(row: Row) -> Text:
    """Write the shrunk estimate with its interval."""
    value, error = row["shrunk"], row["shrunk_error"]
    if value is None or error is None:
        return Text("none", "fewer than three judges, or no error")
    return Text(number(value, 3), interval(value - HALF * error, value + HALF * error, 3))
