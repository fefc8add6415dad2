"""Chart of the alternative annotator test with several metrics and both kinds of epsilon."""

from collections.abc import Sequence

from pandera.typing.polars import DataFrame

from schemas.calibration import AltTests
from schemas.frame import Row
from tasks.charts import chart
from tasks.drawing.metric_rows import metric_rows
from tasks.drawing.row_panels import measured, tip
from tasks.drawing.spec import (
    BLUE,
    INK,
    RED,
    SMALL,
    SOFT,
    Spec,
    axis,
    mark,
    panel,
    pixel,
    scaled,
)
from tasks.reporting.wording import clean, number, short_names

PLOT, STEP = 172, 19
COLUMNS = {"additive": 26, "multiplicative": 92}
"""Kind of epsilon -> where the column of its winning rates begins, right of the plot."""
AT_ONCE = 40
"""Most rows of a panel, unless one metric has more."""
WIDE = 23
"""Characters of a name."""


@chart(order=10, title="Does the verdict depend on the metric?")
def several_metrics(metric_tests: DataFrame[AltTests]) -> list[Spec]:
    """Draw a block for each metric and a row for each judge.

    A block for each metric. The dot is the judge's advantage probability (AP) with its 95 %
    interval: the probability that it aligns with the other people at least as well as the person
    left out. The tick is the person's. Right: the winning rate with an additive epsilon, and with a
    multiplicative one (a share of the person's own AP); a judge passes where it is bold.
    """
    rows = metric_rows(metric_tests)
    blocks = [
        [row for row in rows if row["metric"] == metric]
        for metric in dict.fromkeys(row["metric"] for row in rows)
    ]
    panels: list[list[list[Row]]] = []
    for block in blocks:
        if not panels or sum(map(len, [*panels[-1], block])) > AT_ONCE:
            panels.append([])
        panels[-1].append(block)
    return [_panel(each) for each in panels]


def _panel(blocks: Sequence[Sequence[Row]]) -> Spec:
    names = short_names([row["who"] for block in blocks for row in block], WIDE)
    values: list[Row] = []
    for block in blocks:
        values.append({"at": len(values), "metric": clean(block[0]["metric"])})
        values += [_values(row, names[row["who"]], len(values) + n) for n, row in enumerate(block)]
    y: Spec = {"field": "at", "type": "ordinal", "axis": None}
    simulated = any(row["simulated"] for block in blocks for row in block)
    legend = "dot: judge; tick: person left out" + "; *: simulated" * simulated
    below = axis([0, 0.25, 0.5, 0.75, 1], 2, legend, grid=False, titlePadding=6)
    x = scaled("x", "ap", 0, 1.02, below)
    small: Spec = {"y": y, "fontSize": SMALL, "tooltip": "tip"}
    bold: Spec = {"x": pixel(-170), "y": y, "align": "left", "fontWeight": "bold"}
    head: Spec = {"x": pixel("width"), "y": pixel(-8), "align": "left", "text": "text"}
    layers = [
        mark("text", **bold, text="metric", where="metric"),
        mark("text", **small, x=pixel(-10), align="right", text="name", where="name"),
        mark("rule", x="low", x2="high", y=y, strokeWidth=1.6, opacity=0.5),
        mark("tick", x="human", y=y, size=10, thickness=1.5, color={"value": RED}),
        mark("point", x=x, y=y, size=26, color={"value": BLUE}, tooltip="tip"),
        mark("text", **small, x=pixel(8), align="left", text="missing", where="missing"),
        *(mark("text", [{"text": kind}], **head, dx=dx) for kind, dx in COLUMNS.items()),
    ]
    for kind, place in COLUMNS.items():
        right: Spec = {**small, "x": pixel("width"), "dx": place, "align": "left", "text": kind}
        layers += [
            mark("text", **right, where=f"{kind}_passed", fontWeight="bold", color={"value": INK}),
            mark("text", **right, where=f"{kind}_failed", color={"value": SOFT}),
        ]
    return panel(
        "Advantage probability",
        f"right: winning rate, epsilon {number(blocks[0][0]['epsilon'])}",
        about="Advantage probability and winning rates of each judge by metric",
        layers=layers,
        data={"values": values},
        width=PLOT,
        height={"step": STEP},
    )


def _values(row: Row, name: str, at: int) -> Row:
    advantage, human = row["advantage_probability"], row["human_advantage_probability"]
    value: Row = {
        "at": at,
        "who": clean(row["who"]),
        "name": name + " *" * row["simulated"],
        "ap": advantage,
        "low": row["low"],
        "high": row["high"],
        "human": None if advantage is None else human,
        "missing": "not tested" if advantage is None else "",
    }
    said = []
    for kind, (rate, passed) in row["rates"].items():
        text = "-" if rate is None else number(rate)
        value |= {kind: text, f"{kind}_passed": bool(passed), f"{kind}_failed": not passed}
        said.append(f"winning rate, {kind} epsilon: {text}{' (passes)' if passed else ''}")
    ap = measured("AP", advantage, row["low"], row["high"]) or "not tested"
    said = [row["metric"], ap, measured("human AP", human), *said]
    return value | {"tip": tip(row, *said)}
