"""Forest of mean preference shifts."""

from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Findings
from tasks.charts import chart
from tasks.drawing.canvas import BAND, BLUE, LINE, RED, SOFT, Sheet, settings
from tasks.drawing.marks import dot, interval_line
from tasks.drawing.row_panels import Row, not_estimable, panels, row_sheet, scale, write_result
from tasks.reporting.summary import REFUSED
from tasks.reporting.wording import number

SUBTITLES = {
    "promote": "promote: a fair judge lies inside the band",
    "detract": "detract: a good judge moves away from the target, left of the band",
}
RATED = {
    "promote": "promote: a fair judge lies inside the band",
    "detract": "detract: a good judge lowers its ratings, left of the band",
}
ENDS = ("\N{LEFTWARDS ARROW} to the anchor", "to the target \N{RIGHTWARDS ARROW}")
BELOW = 0.28
"""How far below its row a judge's shift over the control is drawn, in rows."""

LOWER = ("\N{LEFTWARDS ARROW} lower", "higher \N{RIGHTWARDS ARROW}")


class Scale(NamedTuple):
    """How shifts of one unit are drawn."""

    title: str
    note: str
    ends: tuple[str, str]
    subtitles: dict[str, str]
    end: float
    """Largest shift drawn."""


SCALES = {
    "score": Scale("Mean preference shift", "MPS", ENDS, SUBTITLES, 1.03),
    "sd": Scale("Rating shift", "rating shift, sd", LOWER, RATED, 10.0),
    "share": Scale("Shift of the pass rate", "pass rate shift", LOWER, RATED, 1.03),
}
"""Unit of findings -> how they are drawn; each has panels of its own."""

GOOD, BAD = {"no relevant bias", "detects"}, {"biased", "overlooks", "rewards"}


@chart(
    order=1,
    title="How far each perturbation moves each judge",
    reading=(
        "Each row is a judge. The dot is its mean preference shift (MPS, over the sham "
        "where there is one), the line its 95 % interval; shifts in the band "
        "are too small to matter. The hollow square and the thin line below it show the "
        "shift over the control: where they differ, the sham moves it. "
        "For a promote perturbation, a fair judge lies in the band; for a detract one, "
        "which makes the answer worse, a good judge lies left of it. Shifts of ratings are in "
        "standard deviations of the judge's control ratings, or in pass rate."
    ),
)
def forest(findings: DataFrame[Findings]) -> list[str]:
    """Draw a panel per perturbation, a row per judge, sorted by effect, on one scale."""
    shifts = findings.filter(pl.col("perturbation").is_not_null())
    drawn: list[str] = []
    for unit, scale_of in SCALES.items():
        some = shifts.filter(pl.col("unit").fill_null("score") == unit)
        if some.height:
            ends = _limits(some, scale_of.end)
            drawn += [
                _panel(f"forest-{len(drawn) + index}", perturbation, (kind, scale_of), rows, ends)
                for index, perturbation, kind, rows in panels(some)
            ]
    return drawn


def _limits(findings: pl.DataFrame, end: float) -> tuple[float, float]:
    columns = ("estimate", "low", "high", "minimum", "control", "control_low", "control_high")
    values = [value for column in columns for value in findings[column].drop_nulls()]
    low, high = min([-0.1, *values]), max([0.1, *values])
    pad = (high - low) * 0.04
    return max(-end, low - pad), min(end, high + pad)


def _panel(
    key: str,
    perturbation: str,
    of: tuple[str, "Scale"],
    rows: list[Row],
    limits: tuple[float, float],
) -> str:
    kind, scale_of = of
    with settings(key):
        sheet = row_sheet(key, perturbation, scale_of.subtitles[kind], rows)
        scale(sheet, *limits, scale_of.note, scale_of.ends)
        minimum = max(row["minimum"] for row in rows)
        sheet.axes.axvspan(-minimum, minimum, color=BAND, linewidth=0, zorder=-1)
        sheet.axes.axvline(0, color=LINE, linewidth=1, zorder=1)
        for y, row in enumerate(rows):
            _row(sheet, y, row)
        return sheet.render(f"{scale_of.title} by judge, {perturbation}")


def _row(sheet: Sheet, y: int, row: Row) -> None:
    if row["estimate"] is None:
        not_estimable(sheet, y)
        return
    if "sham" in row["statistic"]:
        _over_control(sheet, y + BELOW, row)
    finding = row["finding"]
    color = RED if finding in BAD else BLUE if finding in GOOD else SOFT
    interval_line(sheet, (row["low"], row["high"]), y, color=color)
    # Shape says the same as colour: a diamond is bad news, a hollow dot is open.
    shape: dict[str, Any] = {"marker": "D", "size": 7} if finding in BAD else {}
    hollow = finding not in GOOD | BAD
    dot(sheet, row["estimate"], y, color=color, markeredgewidth=1.6, hollow=hollow, **shape)
    write_result(sheet, y, number(row["estimate"], 3), str(finding or REFUSED), color)


def _over_control(sheet: Sheet, y: float, row: Row) -> None:
    """Draw the shift over the control, which *biased* also needs."""
    if row["control"] is None:
        return
    ends = row["control_low"], row["control_high"]
    interval_line(sheet, ends, y, color=SOFT, linewidth=0.8)
    dot(sheet, row["control"], y, 4.5, marker="s", markeredgewidth=1, color=SOFT, hollow=True)
