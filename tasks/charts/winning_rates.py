"""Chart of winning rates by epsilon."""

from collections.abc import Sequence

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import AltTests
from schemas.frame import Row
from tasks.charts import chart
from tasks.charts.position_plane import spread
from tasks.drawing.row_panels import tip
from tasks.drawing.spec import (
    BAND,
    BLUE,
    FAINT,
    GREEN,
    LINE,
    OLIVE,
    PURPLE,
    RED,
    SMALL,
    SOFT,
    Spec,
    axis,
    by_name,
    mark,
    panel,
    pixel,
    scaled,
)
from tasks.kit.defaults import calibration_limits
from tasks.reporting.wording import clean, count, number, short_names, with_who

PLOT, WIDE, GAP = 246, 18, 46
AT_ONCE = 6
"""Maximum number of lines in a panel."""
COLOURS = (BLUE, RED, GREEN, PURPLE, SOFT, OLIVE)
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")


@chart(order=11, title="How much worse than people may a judge be?")
def winning_rates(alt_tests: DataFrame[AltTests]) -> list[Spec]:
    """Draw a line per judge, the best first, so many in a panel.

    Each line is a judge: the share of annotators whom it may replace (winning rate), for each
    epsilon. It passes where its line is in the shaded area, which begins at the limit above the
    panel. The dotted line is the chosen epsilon. The label shows the judge's advantage probability
    (AP), the probability that it aligns with the others at least as well as a person, and the
    person's; neither depends on epsilon.
    """
    tested = with_who(alt_tests.filter(pl.col("winning_rate").is_not_null()))
    judges = tested.filter("asked").sort(-pl.col("advantage_probability"), "who").to_dicts()
    points = tested.sort("epsilon").partition_by("who", as_dict=True)
    known = short_names([row["who"] for row in judges], WIDE)
    return [
        _panel(
            [
                {**row, "name": known[row["who"]], "points": points[row["who"],].to_dicts()}
                for row in judges[start : start + AT_ONCE]
            ]
        )
        for start in range(0, len(judges), AT_ONCE)
    ]


def _panel(judges: Sequence[Row]) -> Spec:
    up = max(210, GAP * len(judges))
    least = calibration_limits().least_winning_rate
    widest = max(0.3, *(point["epsilon"] for row in judges for point in row["points"]))
    values = [value for place, row in enumerate(judges) for value in _points(place, row, judges)]
    labels = _names(judges, up)
    own = {clean(row["who"]): colour for row, colour in zip(judges, COLOURS, strict=False)}
    color = by_name("who", dict(own))
    shape = by_name("who", {clean(row["who"]): s for row, s in zip(judges, SHAPES, strict=False)})
    step = 0.1 if widest <= 0.6 else 0.2
    across = [round(tick * step, 9) for tick in range(int(widest / step + 1e-9) + 1)]
    about = f"{judges[0]['epsilon_kind']} epsilon"
    below = axis(across, 1, about, grid=True, gridColor=FAINT, titlePadding=6)
    x = scaled("x", "epsilon", -0.004, widest + 0.004, below)
    y = scaled("y", "rate", -0.03, 1.03, axis([0, 0.25, 0.5, 0.75, 1], 2, grid=False))
    wide: Spec = {"x": pixel(0), "x2": pixel("width")}
    band: Spec = {"color": {"value": BAND}}
    beside: Spec = {"x": pixel("width"), "tooltip": "tip", "align": "left", "y": "label"}
    small: Spec = {**beside, "fontSize": SMALL, "color": {"value": SOFT}}
    dotted: Spec = {"strokeWidth": 1, "strokeDash": [2, 3], "color": {"value": SOFT}}
    leader: Spec = {"strokeWidth": 0.9, "opacity": 0.6, "color": color}
    leader |= {"x": pixel("width"), "x2": pixel("width"), "xOffset": 3, "x2Offset": 44}
    symbol: Spec = {"x": pixel("width"), "xOffset": 52, "yOffset": -9}
    return panel(
        "Winning rate",
        f"passes at {number(least)}; dotted: chosen epsilon",
        about="Winning rate of each judge over epsilon",
        layers=[
            mark("rect", [{"from": least, "to": 1.03}], **wide, y="from", y2="to", **band),
            mark("rule", [{"at": least}], **wide, y="at", strokeWidth=1, color={"value": LINE}),
            mark("rule", [{"at": judges[0]["epsilon"]}], x="at", **dotted),
            mark("line", x=x, y=y, color=color, strokeWidth=1.6),
            mark("point", x=x, y=y, color=color, shape=shape, size=30, tooltip="tip"),
            mark("rule", labels, y="end", y2="label", **leader),
            mark("point", labels, **symbol, y="label", color=color, shape=shape),
            mark("text", labels, **beside, dx=62, dy=-9, text="name"),
            mark("text", labels, **small, dx=47, dy=7, text="below"),
        ],
        data={"values": values},
        width=PLOT,
        height=up,
    )


def _points(place: int, row: Row, judges: Sequence[Row]) -> list[Row]:
    # Lines that coincide lie beside each other.
    aside = (place - (len(judges) - 1) / 2) * 0.007
    return [
        {
            "who": clean(row["who"]),
            "epsilon": point["epsilon"],
            "rate": point["winning_rate"] + aside,
            "tip": tip(
                row,
                f"epsilon {number(point['epsilon'])}",
                f"winning rate {number(point['winning_rate'])}",
                f"n {count(point['n'], 'instance')}",
                count(point["annotators"], "person", "people"),
            ),
        }
        for point in row["points"]
    ]


def _names(judges: Sequence[Row], up: float) -> list[Row]:
    """Return names and advantage probabilities, apart from each other beside the lines' ends."""
    ends = [float(row["points"][-1]["winning_rate"]) for row in judges]
    order = sorted(range(len(judges)), key=lambda at: -ends[at])
    wanted = [up * (ends[at] + 0.03) / 1.06 for at in order]
    heights = spread(wanted, GAP, GAP / 2, up - GAP / 2)
    labels = []
    for at, height in zip(order, heights, strict=True):
        row = judges[at]
        ap, human = row["advantage_probability"], row["human_advantage_probability"]
        suffix = ", simulated" if row["simulated"] else ""
        below = f"AP {_rate(ap)}, human {_rate(human)}"
        label = height * 1.06 / up - 0.03
        labels.append(
            {
                "who": clean(row["who"]),
                "name": row["name"],
                "below": below + suffix,
                "end": ends[at],
                "label": label,
                "tip": tip(row, below),
            }
        )
    return labels


def _rate(value: float | None) -> str:
    return "none" if value is None else number(value)
