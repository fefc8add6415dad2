"""Chart of advantage probabilities of judges and annotators."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Advantages, AltTests
from tasks.charts import chart
from tasks.drawing.canvas import INK, LINE, SOFT, Sheet, names, settings
from tasks.drawing.marks import dot, interval_line
from tasks.drawing.row_panels import Row, not_estimable, row_sheet, scale, write_result
from tasks.reporting.wording import number, with_who


@chart(
    order=12,
    title="How often does a judge align as well as a person?",
    reading=(
        "The dot is the advantage probability (AP): the chance, averaged over annotators, "
        "that the judge aligns with the others' labels at least as well as the annotator "
        "left out. The line is its 95 % interval over new items. The diamond is the "
        "chance that the annotator aligns at least as well as the judge. Small grey dots "
        "are single annotators. AP ranks judges; the winning rate decides whether a judge "
        "may replace people."
    ),
)
def advantages(alt_tests: DataFrame[AltTests], advantages: DataFrame[Advantages]) -> list[str]:
    """Draw a row per judge, the highest first."""
    named = with_who(alt_tests.filter("asked"))
    if named.is_empty():
        return []
    known = names(named.to_dicts())
    each = with_who(advantages.filter("asked", pl.col("rejected").is_not_null()))
    own = each.group_by("who").agg("advantage_probability")
    dots = dict(own.iter_rows())
    ordered = named.sort(-pl.col("advantage_probability"), "who", nulls_last=True).to_dicts()
    rows: list[Row] = [
        {**row, "name": known[row["who"]], "dots": dots.get(row["who"], [])} for row in ordered
    ]
    shown_values = [
        v
        for row in rows
        for v in (row["low"], row["human_advantage_probability"], *row["dots"])
        if v is not None
    ]
    low = max(-0.03, min([0.5, *shown_values]) - 0.05)
    with settings("advantages"):
        sheet = row_sheet("advantages", "Advantage probability", _subtitle(rows), rows)
        scale(sheet, low, 1.02, "AP", ("aligns worse", "as well"))
        for y, row in enumerate(rows):
            _row(sheet, y, row)
        return [sheet.render("Advantage probability of each judge with its interval")]


def _subtitle(rows: list[Row]) -> str:
    return f"metric {rows[0]['metric']}; diamond: AP of people against the judge; grey: each person"


def _row(sheet: Sheet, y: int, row: Row) -> None:
    mean, low, high = row["advantage_probability"], row["low"], row["high"]
    if mean is None:
        not_estimable(sheet, y)
        return
    for value in row["dots"]:
        dot(sheet, value, y + 0.22, 3.5, color=LINE, alpha=0.7, zorder=2)
    interval_line(sheet, (low, high), y)
    human = row["human_advantage_probability"]
    dot(sheet, human, y, 6, marker="D", color=SOFT, markeredgewidth=1.4, hollow=True)
    dot(sheet, mean, y, zorder=4)
    write_result(sheet, y, number(mean), f"human {number(human)}", INK)
