"""Chart of advantage probabilities of judges and annotators."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Advantages, AltTests
from schemas.frame import Row
from tasks.charts import chart
from tasks.drawing.names import names
from tasks.drawing.row_panels import AxisScale, Y, interval_rule, measured, row_panel, values_of
from tasks.drawing.spec import LINE, PAPER, SOFT, Spec, mark
from tasks.reporting.wording import clean, count, number, with_who

SUBTITLE = "diamond: AP of people against the judge; grey: each person"


@chart(order=12, title="How often does a judge align as well as a person?")
def advantages(alt_tests: DataFrame[AltTests], advantages: DataFrame[Advantages]) -> list[Spec]:
    """Draw a row per judge, the highest first.

    The dot is the advantage probability (AP): the chance, averaged over annotators, that the judge
    aligns with the others' labels at least as well as the annotator left out. The line is its 95 %
    interval over new items. The diamond is the chance that the annotator aligns at least as well as
    the judge. Small grey dots are single annotators. AP ranks judges; the winning rate decides
    whether a judge may replace people.
    """
    named = with_who(alt_tests.filter("asked"))
    if named.is_empty():
        return []
    known = names(named.to_dicts())
    each = with_who(advantages.filter("asked", pl.col("rejected").is_not_null()))
    ordered = named.sort(-pl.col("advantage_probability"), "who", nulls_last=True).to_dicts()
    rows: list[Row] = [{**row, "name": known[row["who"]]} for row in ordered]
    # A judge that was not tested has no place on the scale.
    placed = {row["who"] for row in rows if row["advantage_probability"] is not None}
    single = [
        {
            "row": known[row["who"]].row,
            "who": clean(row["who"]),
            "single": row["advantage_probability"],
        }
        for row in each.to_dicts()
        if row["who"] in placed
    ]
    shown = [row["single"] for row in single] + [
        row[name] for row in rows for name in ("low", "human_advantage_probability")
    ]
    low = max(-0.03, min([0.5, *(value for value in shown if value is not None)]) - 0.05)
    diamond: Spec = {"shape": "diamond", "filled": False, "fill": PAPER, "size": 40}
    return [
        row_panel(
            ("Advantage probability", f"metric {rows[0]['metric']}; {SUBTITLE}"),
            [_values(row) for row in rows],
            AxisScale(low, 1.02, "AP", ("aligns worse", "as well")),
            [
                mark("point", single, x="single", y=Y, yOffset=8, size=14, color={"value": LINE}),
                interval_rule(),
                mark("point", x="human", y=Y, **diamond, strokeWidth=1.4, color={"value": SOFT}),
                mark("point", x="value", y=Y),
            ],
            "Advantage probability of each judge with its interval",
        )
    ]


def _values(row: Row) -> Row:
    mean, human = row["advantage_probability"], row["human_advantage_probability"]
    size = f"n {count(row['n'], 'instance')}, {count(row['annotators'], 'person', 'people')}"
    if mean is None:
        return values_of(row, "", "", size, missing="not estimable")
    beside = f"human {number(human)}"
    ends = row["low"], row["high"]
    places = {"value": mean, "low": ends[0], "high": ends[1], "human": human}
    return values_of(row, number(mean), beside, measured("AP", mean, *ends), beside, size, **places)
