"""Chart of changes between waves: quiet, suspect or alert."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.frame import Row
from schemas.keys import SERIES
from schemas.results import MEASURES, Drifts, Gates
from tasks.charts import chart
from tasks.drawing.names import Name
from tasks.drawing.row_panels import PLOT, STEP, Y, measured, row_texts, sizes, tip, values_of
from tasks.drawing.spec import (
    BLUE,
    FAINT,
    LINE,
    PAPER,
    RED,
    Spec,
    as_it_is,
    mark,
    note,
    panel,
    pixel,
    scaled,
)
from tasks.reporting.wording import clean, clip, listing, marked, number, with_who

NIGHTS = 30
"""Maximum number of waves in a chart; the last ones are shown."""

STATE_MARKS: dict[str, Spec] = {
    "quiet": {"color": LINE, "fill": PAPER, "shape": "circle", "size": 16},
    "suspect": {"color": BLUE, "fill": PAPER, "shape": "circle", "size": 48},
    "alert": {"color": RED, "fill": RED, "shape": "diamond", "size": 64},
    "not measured": {"color": FAINT, "fill": PAPER, "shape": "stroke", "size": 24},
}
"""State of a change -> its mark."""
TONES = {"alert": "bad", "suspect": "good"}


ANSWERS = {
    "pass": "no relevant change",
    "fail": "changed",
    "inconclusive": "no change shown, none excluded",
}
"""Verdict of the gate -> whether the judge changed."""
SUSPECTED = ANSWERS | {"inconclusive": "may have changed"}
"""The same if a change is suspected."""

LINE_HEIGHT = 14
"""Height of a line, in pixels."""
BESIDE = 16
"""Characters that fit side by side below the plot on a phone."""


MINUTE = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[+-]\d\d:\d\d")
"""What {minute} in the name of a wave becomes."""


@chart(order=6, title="Has a judge changed?")
def drift_strip(drifts: DataFrame[Drifts], gates: DataFrame[Gates]) -> list[Spec]:
    """Draw a panel per judge, a row per measure and perturbation, a mark per wave.

    A panel per judge, with the verdict of its gate, and a column per wave. Small ring: no alert
    (quiet); only an interval within the limit excludes a change. Large ring: suspected change.
    Filled diamond: alert, a suspected change that the next wave confirmed. Dash: not measured. All
    cells of this study share a budget of false alerts, by default one in 90 waves; each study has
    its own. An alert starts a new baseline (vertical line). On the right: the change from the
    baseline to the last wave, with its 95 % interval.
    """
    # By wave, so that the last one stays.
    known = gates.filter(gate="drift").sort("wave").to_dicts()
    verdicts = {tuple(row[column] for column in SERIES): row for row in known}
    named = with_who(drifts.with_columns(label=pl.col("wave")).with_columns(wave=pl.lit("")))
    judges = named.sort("who").partition_by("who", maintain_order=True)
    return [_panel(rows, verdicts) for rows in judges]


def _panel(found: pl.DataFrame, verdicts: Mapping[tuple[str, ...], Row]) -> Spec:
    waves = sorted(found["label"].unique())[-NIGHTS:]
    shown = found.filter(pl.col("label").is_in(waves))
    order = pl.col("measure").replace_strict({name: n for n, name in enumerate(MEASURES)})
    cells = shown.sort(order, "perturbation", "label", nulls_last=True).partition_by(
        "measure", "perturbation", maintain_order=True
    )
    rows = [_row(cell.to_dicts(), waves[-1]) for cell in cells]
    judge = tuple(found[column][0] for column in SERIES)
    who, simulated = found["who"][0], bool(found["simulated"].any())
    alerts = shown.filter(state="alert")["label"].unique().sort()
    bases = [{"at": waves.index(wave)} for wave in alerts]
    marks = [_mark(row, waves) for cell in cells for row in cell.to_dicts()]
    title = "wave" if len(waves) > 1 else f"wave {_wave(waves[0])}"
    # Below the names of the first and the last wave.
    padding = 6 if len(waves) == 1 else 6 + LINE_HEIGHT * (2 if _is_stacked(waves) else 1)
    bare: Spec = {"labels": False, "grid": False, "title": title, "titlePadding": padding}
    last = len(waves) - 1
    # Few waves lie far apart: the first and the last mark stay above their names at both ends.
    beyond = min(0.7, 0.07 * last or 0.7)
    x = scaled("x", "at", -beyond, last + beyond, {"values": list(range(len(waves))), **bare})
    # Values as they are: colours use the same scale as the texts.
    looks = {name: as_it_is(name) for name in STATE_MARKS["quiet"]}
    upright = {"y": pixel(0), "y2": pixel("height"), "strokeWidth": 1, "opacity": 0.5}
    return panel(
        marked(clip(clean(who), 32), simulated=simulated),
        _verdict(verdicts.get(judge), found),
        _subtitle(found, waves),
        about=f"Changes of {who} from wave to wave",
        layers=[
            mark("rule", bases, x=x, **upright, color={"value": RED}),
            *row_texts(rows),
            *(_ends(waves) if len(waves) > 1 else []),
            mark("point", marks, x=x, y=Y, filled=False, strokeWidth=1.8, tooltip="tip", **looks),
        ],
        data={"values": rows},
        width=PLOT,
        height={"step": STEP},
        usermeta={"judge": clean(who)},
    )


def _name(row: Row) -> Name:
    upper, lower = MEASURES[row["measure"]], clean(row["perturbation"] or "")
    return Name(upper, clip(lower, 23), f"{upper} {lower}".strip())


def _verdict(gate: Row | None, found: pl.DataFrame) -> str:
    """Say whether the judge changed: the verdict of the gate drift, and what it rests on."""
    if gate is None:
        return ""
    rows = found.filter(pl.col("label") == gate["wave"])
    is_suspected = not rows.filter(state="suspect").is_empty()
    answer = ANSWERS[gate["verdict"]] if not is_suspected else SUSPECTED[gate["verdict"]]
    numbers = (("estimate", "value"), ("low", "low"), ("high", "high"))
    same = (pl.col(column).eq_missing(pl.lit(gate[name], pl.Float64)) for column, name in numbers)
    decided = rows.filter(*same).to_dicts()
    what = _name(decided[0]).whole if len(decided) == 1 else ""
    change = measured("", gate["value"], gate["low"], gate["high"]).strip()
    limit = f"; limit {number(gate['tolerance'])}" if change and gate["tolerance"] else ""
    why = f" ({f'{what} {change}'.strip()}{limit})" if change else ""
    after = (
        f" after {_minutes(clean(gate['earlier_change']))}" if gate.get("earlier_change") else ""
    )
    wave = _wave(gate["wave"])
    return f"{answer}{after}: gate of {wave}: {gate['verdict']}{why}"


def _wave(wave: str) -> str:
    """Return the name of a wave as it fits below the plot."""
    return clip(_minutes(clean(wave)), 16)


def _minutes(text: str) -> str:
    """Write a day and minute without its zone, as ends of names tell waves apart."""
    return MINUTE.sub(r"\1 \2", text)


def _subtitle(found: pl.DataFrame, waves: Sequence[str]) -> str:
    total = found["label"].n_unique()
    many = f"waves compared: {total}"
    if total > len(waves):
        many = f"the last {len(waves)} of {total} waves"
    last = found.filter(pl.col("label") == waves[-1])
    since = listing([_wave(base) for base in last["base"].unique().sort()])
    against = f"{_wave(waves[-1])} is compared with {since}"
    level: Any = found["level"].max()
    return f"{against}; {many}; significance level {number(level, 3)} per wave"


def _is_stacked(waves: Sequence[str]) -> bool:
    """Tell whether the names of both ends do not fit side by side in a narrow plot."""
    return sum(len(_wave(wave)) for wave in (waves[0], waves[-1])) > BESIDE


def _ends(waves: Sequence[str]) -> list[Spec]:
    below = 16 + LINE_HEIGHT if _is_stacked(waves) else 16
    sides = [
        (pixel(0), "left", waves[0], 16),
        (pixel("width"), "right", waves[-1], below),
    ]
    return [
        note(_wave(wave), x=x, align=side, y=pixel("height"), dy=dy) for x, side, wave, dy in sides
    ]


def _row(marks: Sequence[Row], last_wave: str) -> Row:
    """Return a measure with its change from the baseline to the last wave."""
    name = _name(marks[0])
    row = {**marks[-1], "name": name, "who": name.whole}
    if row["label"] != last_wave:
        return values_of(row, "", "not asked", tone="open")
    text = measured("", row["estimate"], row["low"], row["high"]).strip()
    return values_of(row, text, row["state"], *_said(row), tone=TONES.get(row["state"], "open"))


def _mark(row: Row, waves: Sequence[str]) -> Row:
    name = _name(row)
    shown = tip({**row, "who": f"{name.whole}, wave {row['label']}"}, *_said(row))
    at = {"row": name.row, "at": waves.index(row["label"])}
    return {**at, "state": row["state"], "tip": shown, **STATE_MARKS[row["state"]]}


def _said(row: Row) -> tuple[str, ...]:
    change = measured("change", row["estimate"], row["low"], row["high"])
    return change or "change not measured", sizes(row), row["state"]
