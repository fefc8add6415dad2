"""Forest of mean preference shifts."""

from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.frame import Row
from schemas.keys import JUDGE
from schemas.results import Estimates, Findings
from tasks.charts import chart
from tasks.drawing.row_panels import (
    AxisScale,
    Y,
    interval_rule,
    measured,
    panels,
    row_panel,
    sizes,
    values_of,
)
from tasks.drawing.spec import LINE, PAPER, SOFT, Spec, by_name, by_tone, mark, pixel
from tasks.gates.scorecard import FAILS, PASSES
from tasks.pointwise.endpoints import labelled
from tasks.reporting.summary import REFUSED
from tasks.reporting.wording import number

SUBTITLES = {
    "promote": "promote: a fair judge lies inside the band",
    "detract": "detract: a good judge moves away from the target, left of the band",
}
RATED = SUBTITLES | {"detract": "detract: a good judge lowers its ratings, left of the band"}
ENDS = ("\N{LEFTWARDS ARROW} anchor", "target \N{RIGHTWARDS ARROW}")
BELOW = 10
"""How far below its row a judge's shift over the control is drawn, in pixels."""

LOWER = ("\N{LEFTWARDS ARROW} lower", "higher \N{RIGHTWARDS ARROW}")


class ShiftUnit(NamedTuple):
    """How shifts of one unit are drawn."""

    title: str
    note: str
    ends: tuple[str, str]
    subtitles: dict[str, str]
    end: float
    """Largest shift drawn."""


SCALES = {
    "score": ShiftUnit("Mean preference shift", "MPS", ENDS, SUBTITLES, 1.03),
    "sd": ShiftUnit("Rating shift", "rating shift, sd", LOWER, RATED, 10.0),
    "share": ShiftUnit("Shift of the pass rate", "pass rate shift", LOWER, RATED, 1.03),
    "labels": ShiftUnit(
        "Shift of the share of labels", "shift of the share of labels", LOWER, RATED, 1.03
    ),
}
"""Unit of findings -> how they are drawn; each has panels of its own."""


@chart(order=1, title="How far each perturbation moves each judge")
def forest(findings: DataFrame[Findings], estimates: DataFrame[Estimates]) -> list[Spec]:
    """Draw a panel per perturbation, a row per judge, sorted by effect, on one scale.

    Each row is a judge. The dot is its shift (over the sham where there is one), the line its 95 %
    interval; shifts in the band are too small to matter. The hollow square and thin line below show
    the shift over the control: where they differ, the sham moves it. For a promote perturbation, a
    fair judge lies in the band; for a detract one, which makes the answer worse, a good judge lies
    left of it. Shifts are mean preference shifts (MPS); for ratings standard deviations in control,
    pass rates or shares of labels.
    """
    of = [*JUDGE, "mode", "perturbation", "statistic"]
    beside = estimates.filter(pl.col("subgroup") == "").select(*of, "n", "clusters").unique(of)
    shifts = findings.filter(pl.col("perturbation").is_not_null()).join(beside, on=of, how="left")
    prompt = pl.col("prompt").cast(pl.String)
    of_labels = (pl.col("unit") == "share") & prompt.is_in([*labelled(estimates)])
    known = pl.col("unit").cast(pl.String).fill_null("score")
    shifts = shifts.with_columns(unit=pl.when(of_labels).then(pl.lit("labels")).otherwise(known))
    drawn = []
    for unit, scale_of in SCALES.items():
        some = shifts.filter(pl.col("unit") == unit)
        if some.height:
            ends = _limits(some, scale_of.end)
            drawn += [
                _panel(perturbation, scale_of.subtitles[kind], scale_of, rows, ends)
                for perturbation, kind, rows in panels(some)
            ]
    return drawn


def _limits(findings: pl.DataFrame, end: float) -> tuple[float, float]:
    columns = ("estimate", "low", "high", "minimum", "control", "control_low", "control_high")
    values = [value for column in columns for value in findings[column].drop_nulls()]
    low, high = min([-0.1, *values]), max([0.1, *values])
    pad = (high - low) * 0.04
    return max(-end, low - pad), min(end, high + pad)


def _panel(
    perturbation: str, subtitle: str, unit: ShiftUnit, rows: list[Row], limits: tuple[float, float]
) -> Spec:
    minimum = max(row["minimum"] for row in rows)
    tall: Spec = {"y": pixel(0), "y2": pixel("height")}
    # Shape says the same as colour: a diamond is bad news, a hollow dot is open.
    shape = by_name("tone", {"good": "circle", "bad": "diamond", "open": "circle"})
    fill = by_tone(open=PAPER)
    outlined: Spec = {"filled": False, "strokeWidth": 1.6}
    thin: Spec = {"color": {"value": SOFT}, "yOffset": BELOW, "y2Offset": BELOW}
    square: Spec = {"shape": "square", "filled": False, "size": 22, "fill": PAPER}
    return row_panel(
        (perturbation, subtitle),
        [_values(row, unit) for row in rows],
        AxisScale(*limits, unit.note, unit.ends),
        [
            mark("rect", [{"from": -minimum, "to": minimum}], x="from", x2="to", **tall),
            mark("rule", [{"at": 0}], x="at", **tall, strokeWidth=1, color={"value": LINE}),
            interval_rule("control_low", "control_high", strokeWidth=0.8, **thin),
            mark("point", x="control", y=Y, **square, strokeWidth=1, **thin),
            interval_rule(color=by_tone()),
            mark("point", x="value", y=Y, shape=shape, fill=fill, color=by_tone(), **outlined),
        ],
        f"{unit.title} by judge, {perturbation}",
        perturbation=perturbation,
    )


def _values(row: Row, unit: ShiftUnit) -> Row:
    finding, shift = row["finding"], row["estimate"]
    said = str(finding or REFUSED)
    if shift is None:
        return values_of(row, "", "", said, tone="open", missing="not estimable")
    control = {"control": None, "control_low": None, "control_high": None}
    if "sham" in row["statistic"]:
        # Where the control is the endpoint, its mark would be the same one twice.
        control = {name: row[name] for name in control}
    return values_of(
        row,
        number(shift),
        said,
        measured(unit.note, shift, row["low"], row["high"]),
        measured("over the control", *control.values()),
        sizes(row),
        said,
        tone="good" if finding in PASSES else "bad" if finding in FAILS else "open",
        value=shift,
        low=row["low"],
        high=row["high"],
        **control,
    )
