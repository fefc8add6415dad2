"""Ranks of judges with their intervals and tiers."""

import math
from collections import Counter

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.charts import chart
from tasks.drawing.canvas import Sheet, settings
from tasks.drawing.marks import dot, interval_line
from tasks.drawing.row_panels import Row, not_estimable, panels, row_sheet, scale, write_result
from tasks.panels.rankings import tiers
from tasks.reporting.wording import CELL, clip, number

SUBTITLES = {
    "promote": "promote: rank 1 is the judge moved least, in either direction",
    "detract": "detract: rank 1 is the judge that moves furthest away from the flawed answer",
}
MOST_TICKS = 8


@chart(
    order=4,
    title="Ranking of the judges and its uncertainty",
    reading=(
        "The dot is a judge's rank on the samples that all ranked judges share; the line "
        "is its 95 % interval. Judges that share a letter do not differ significantly on "
        "these samples (Holm, .05). The section 'Which judges differ' compares two judges "
        "on all samples that they share, so its results can differ. A rank with a long "
        "line is uncertain, and the order of judges that share a letter is noise."
    ),
)
def ranks(estimates: DataFrame[Estimates]) -> list[str]:
    """Draw a panel per perturbation, a row per judge, the best first."""
    found = _with_tiers(estimates)
    if found["estimate"].count() == 0:
        return []
    return [
        _panel(f"ranks-{index}", perturbation, kind, rows)
        for index, perturbation, kind, rows in panels(found)
    ]


def _with_tiers(estimates: DataFrame[Estimates]) -> pl.DataFrame:
    """Return the ranks, each with the letters of its tiers."""
    ranked = estimates.filter(pl.col("statistic") == "rank", pl.col("kind").is_not_null())
    return ranked.join(tiers(estimates), on=[*CELL, "mode", "perturbation"], how="left")


def _panel(key: str, perturbation: str, kind: str, rows: list[Row]) -> str:
    rows = sorted(rows, key=lambda row: (row["estimate"] is None, row["estimate"] or 0.0))
    last = max(2, _together(rows))
    with settings(key):
        sheet = row_sheet(key, perturbation, SUBTITLES[kind], rows)
        scale(sheet, 0.6, last + 0.4, "rank", ("best", "worst"))
        step = math.ceil(last / MOST_TICKS)
        ticks = range(1, last + 1, step)
        sheet.axes.set_xticks(list(ticks), [str(t) for t in ticks])
        for y, row in enumerate(rows):
            _row(sheet, y, row)
        return sheet.render(f"Rank of each judge with its interval, {perturbation}")


def _together(rows: list[Row]) -> int:
    """Return how many judges are ranked against each other: those of one wave."""
    asked = Counter(
        tuple(row[c] for c in ("dataset", "wave")) for row in rows if row["estimate"] is not None
    )
    return max(asked.values(), default=0)


def _row(sheet: Sheet, y: int, row: Row) -> None:
    rank, low, high = row["estimate"], row["low"], row["high"]
    if rank is None:
        not_estimable(sheet, y)
        return
    known = low is not None and high is not None
    interval_line(sheet, (low, high), y)
    dot(sheet, rank, y)
    below = f"{_plain(low)} to {_plain(high)}" if known else "no interval"
    tier = f", tier {row['tier']}" if row["tier"] else ""
    write_result(sheet, y, clip(f"{_plain(rank)}{tier}", 13), below)


def _plain(rank: float) -> str:
    """Write a rank: ``2``, or ``2.5`` where two share it."""
    rounded = round(rank, 1)
    return str(int(rounded)) if rounded == int(rounded) else number(rounded, 1)
