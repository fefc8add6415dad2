"""Chart of each judge against each annotator, and which annotators it may replace."""

import math
from collections.abc import Sequence

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Advantages
from schemas.frame import Row
from tasks.charts import chart
from tasks.charts.position_plane import spread
from tasks.drawing.row_panels import measured
from tasks.drawing.spec import (
    BAND,
    LINE,
    PAPER,
    SMALL,
    SOFT,
    Spec,
    axis,
    by_name,
    by_tone,
    mark,
    note,
    panel,
    pixel,
    scaled,
)
from tasks.reporting.wording import clean, clip, count, marked, number, p_value, with_who

PLOT = 320
MOST = 12
"""Maximum number of judges; those with the highest advantage probability are drawn."""
NAMED = 8
"""Maximum number of annotators who are labelled by name."""
CROWD = 20
"""Maximum number of annotators with intervals, which would hide the dots of more."""


@chart(order=13, title="Which annotators may a judge replace?")
def advantage_plane(advantages: DataFrame[Advantages]) -> list[Spec]:
    """Draw a panel per judge, the highest advantage first.

    A panel per judge, a dot per annotator left out. Horizontal: how often the annotator aligns with
    the others at least as well as the judge. Vertical: how often the judge aligns at least as well
    as the annotator, with a 95 % interval. On the diagonal both align equally well; on the shaded
    side the judge is worse by less than epsilon. Filled dot: the judge may replace the annotator
    (the test rejects that it is worse by epsilon). Hollow diamond: the test does not reject, even
    if the mark lies on the shaded side.
    """
    tested = with_who(advantages.filter("asked", pl.col("rejected").is_not_null()))
    means = tested.group_by("who").agg(mean=pl.col("advantage_probability").mean())
    best = means.sort(-pl.col("mean"), "who").head(MOST)["who"]
    return [
        _panel(tested.filter(pl.col("who") == who).sort("annotator").to_dicts()) for who in best
    ]


def _panel(rows: Sequence[Row]) -> Spec:
    first, least = rows[0], _least(rows)
    replaced = sum(bool(row["rejected"]) for row in rows)
    under = f"filled: {replaced} of {len(rows)} may be replaced; "
    under += f"{first['epsilon_kind']} epsilon {number(first['epsilon'])}"
    dot: Spec = {"filled": False, "strokeWidth": 1.5, "size": 44, "tooltip": "tip"}
    dot["fill"] = by_tone(bad=PAPER)
    shape = by_name("tone", {"good": "circle", "bad": "diamond", "open": "circle"})
    crowd: list[Spec] = []
    if len(rows) <= CROWD:
        crowd.append(mark("rule", x="x", y="low", y2="high", **THIN, color=by_tone()))
    if len(rows) <= NAMED:
        leader: Spec = {"strokeWidth": 0.7, "color": {"value": LINE}, "x2Offset": 8}
        beside: Spec = {"fontSize": SMALL, "color": {"value": SOFT}, "dx": 11, "align": "left"}
        crowd += [
            mark("rule", x="x", y="y", x2=pixel("width"), y2="label", **leader),
            mark("text", x=pixel("width"), y="label", text="name", tooltip="tip", **beside),
        ]
    return panel(
        marked(clip(clean(first["who"]), 40), simulated=first["simulated"]),
        under,
        about=f"Advantage probabilities of {first['who']} and of each annotator",
        layers=[
            *_frame(first, least),
            *crowd,
            mark("point", x="x", y="y", **dot, color=by_tone(), shape=shape),
        ],
        data={"values": _values(rows, least)},
        width=PLOT,
        height=PLOT,
        usermeta={"judge": clean(first["who"])},
    )


THIN: Spec = {"strokeWidth": 1.1, "opacity": 0.5}


def _least(rows: Sequence[Row]) -> float:
    values = [
        row[name]
        for row in rows
        for name in ("advantage_probability", "human_advantage_probability", "low")
        if row[name] is not None
    ]
    return float(max(0.0, math.floor((min(values) - 0.02) * 10) / 10))


def _frame(first: Row, least: float) -> list[Spec]:
    """Draw the regions: where the judge is worse by less than epsilon, and the diagonal."""
    epsilon, additive = first["epsilon"], first["epsilon_kind"] == "additive"
    step = 0.1 if least >= 0.5 else 0.2
    ticks = [round(1 - step * at, 9) for at in range(int((1 - least) / step + 1e-9) + 1)]
    aligns = "aligns at least as well"
    x = scaled("x", "x", least, 1, axis(ticks, 1, f"the annotator {aligns}", grid=False))
    y = scaled("y", "y", least, 1, axis(ticks, 1, f"the judge {aligns}", grid=False))
    # The edge enters the plot at its lower side.
    start = least + epsilon if additive else least / max(1 - epsilon, 1e-9)
    edge = [(start, least), (1.0, 1 - epsilon)] if start < 1 else [(1.0, least)]
    corner = [{"x": end, "y": y, "top": 1} for end, y in [(least, least), *edge]]
    line = [{"x": end, "y": y} for end, y in edge]
    diagonal = [{"x": end, "y": end} for end in (least, 1.0)]
    end: Spec = {"x": pixel("width"), "y": pixel("height"), "align": "right"}
    return [
        mark("area", corner, x=x, y=y, y2="top", color={"value": BAND}),
        mark("line", line, x=x, y=y, strokeWidth=1.2, color={"value": SOFT}),
        mark("line", diagonal, x=x, y=y, strokeDash=[4, 3], strokeWidth=1, color={"value": LINE}),
        note("replaceable", x=pixel(8), y=pixel(12), align="left"),
        note("not replaceable", **end, dx=-6, dy=-12),
    ]


def _values(rows: Sequence[Row], least: float) -> list[Row]:
    """Return a row per annotator; names stand right of the plot, as high as their dots can."""
    ordered = sorted(rows, key=lambda r: (-r["advantage_probability"], r["annotator"]))
    wanted = [PLOT * (row["advantage_probability"] - least) / (1 - least) for row in ordered]
    gap = min(18, (PLOT - 18) / max(1, len(rows) - 1))
    heights = spread(wanted, gap, 9, PLOT - 9)
    return [
        _value(r, h / PLOT * (1 - least) + least) for r, h in zip(ordered, heights, strict=True)
    ]


def _value(row: Row, label: float) -> Row:
    said = "may be replaced" if row["rejected"] else "not shown to be replaceable"
    lines = (
        clean(row["annotator"]),
        measured("the judge", row["advantage_probability"], row["low"], row["high"]),
        measured("the annotator", row["human_advantage_probability"]),
        f"adjusted p {p_value(row['p_adjusted'])}; {said}",
        f"n {count(row['n'], 'instance')}",
    )
    return {
        "x": row["human_advantage_probability"],
        "y": row["advantage_probability"],
        "low": row["low"],
        "high": row["high"],
        "label": label,
        "name": clip(clean(row["annotator"]), 11),
        "tone": "good" if row["rejected"] else "bad",
        "tip": "\n".join(line for line in lines if line),
    }
