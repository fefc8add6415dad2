"""Chart of attack success rates and their floors."""

from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.charts import chart
from tasks.drawing.canvas import FAINT, INK, LINE, SOFT, Sheet, settings
from tasks.drawing.marks import dot, interval_line
from tasks.drawing.row_panels import Row, not_estimable, panels, row_sheet, scale, write_result
from tasks.reporting.wording import CELL, number

SUBTITLES = {
    "promote": "promote: close to its floor is good, right of it is bad",
    "detract": "detract: a good judge moves away from the target, left of its floor",
}


@chart(
    order=2,
    title="Attack success rate and its floor",
    reading=(
        "The filled dot is the attack success rate (ASR) with its 95 % interval. The "
        "hollow dot is its floor: the ASR of a meaning-free edit (sham), which noise "
        "alone can cause. The vertical bar is the ASR of a judge that votes at random. "
        "Only the distance between floor and dot indicates bias. For a promote "
        "perturbation, a dot to the right of its floor is bad. For a detract "
        "perturbation, the ASR counts overlooked flaws, so a good judge lies to the left "
        "of its floor."
    ),
)
def asr_floor(estimates: DataFrame[Estimates]) -> list[str]:
    """Draw a panel per perturbation, a row per judge, sorted by ASR."""
    return [
        _panel(f"asr-{index}", perturbation, kind, rows)
        for index, perturbation, kind, rows in panels(_beside(estimates))
    ]


def _beside(estimates: DataFrame[Estimates]) -> pl.DataFrame:
    """Lay floor and random baseline beside each ASR."""
    # Worst cases and subgroups have floors of their own.
    cells = estimates.filter(
        pl.col("perturbation").is_not_null(), pl.col("kind").is_not_null(), pl.col("subgroup") == ""
    )
    rows = cells.filter(pl.col("statistic") == "asr")
    for statistic in ("sham_floor", "random_baseline"):
        other = cells.filter(pl.col("statistic") == statistic)
        beside = other.select(*CELL, "perturbation", pl.col("estimate").alias(statistic))
        rows = rows.join(beside, on=[*CELL, "perturbation"], how="left")
    return rows


def _panel(key: str, perturbation: str, kind: str, rows: list[Row]) -> str:
    with settings(key):
        sheet = row_sheet(key, perturbation, SUBTITLES[kind], rows)
        scale(sheet, -0.03, 1.03, "ASR", ("never", "always"))
        for y, row in enumerate(rows):
            _row(sheet, y, row)
        return sheet.render(f"Attack success rate and its floor by judge, {perturbation}")


def _row(sheet: Sheet, y: int, row: Row) -> None:
    asr, floor = row["estimate"], row["sham_floor"]
    if row["random_baseline"] is not None:
        sheet.axes.plot(
            [row["random_baseline"]] * 2, [y - 0.27, y + 0.27], color=LINE, linewidth=2, zorder=1
        )
    if asr is None:
        not_estimable(sheet, y)
    elif floor is not None:
        sheet.axes.plot([floor, asr], [y, y], color=FAINT, linewidth=7, zorder=1.5)
    if floor is not None:
        dot(sheet, floor, y, markeredgewidth=1.6, color=SOFT, hollow=True, zorder=2.7)
    if asr is None:
        return
    style: dict[str, Any] = {"linewidth": 1.2, "solid_capstyle": "projecting", "zorder": 2.5}
    interval_line(sheet, (row["low"], row["high"]), y, color=INK, **style)
    dot(sheet, asr, y, 8.5)
    below = "no floor" if floor is None else f"floor {number(floor)}"
    write_result(sheet, y, number(asr), below)
