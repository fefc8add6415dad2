"""Chart of changes between waves: quiet, suspect or alert."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Drifts
from tasks.charts import chart
from tasks.drawing.canvas import BLUE, FAINT, LINE, RED, SMALL, SOFT, Name, Sheet, settings
from tasks.drawing.row_panels import NAMES, RIGHT, Row, row_sheet, write_result
from tasks.reporting.wording import clean, clip, number, with_who

NIGHTS = 30
"""Maximum number of waves in a chart; the last ones are shown."""

NAMED = {
    "mps_drift": "shift",
    "dasr_drift": "dASR",
    "position_drift": "position gap",
    "agreement_drift": "agreement",
    "verdict_drift": "verdicts",
    "text_drift": "texts",
    "token_drift": "first tokens",
}
MARKS: dict[str, dict[str, Any]] = {
    "quiet": {"marker": "o", "markersize": 4, "color": LINE, "markerfacecolor": "white"},
    "suspect": {
        "marker": "o",
        "markersize": 7,
        "color": BLUE,
        "markerfacecolor": "white",
        "markeredgewidth": 1.8,
    },
    "alert": {"marker": "D", "markersize": 8, "color": RED},
    "not measured": {"marker": "_", "markersize": 5, "color": FAINT},
}
COLOURS = {"alert": RED, "suspect": BLUE}


@chart(
    order=6,
    title="Has a judge changed?",
    reading=(
        "A panel per judge, a column per wave. Small ring: no significant change (quiet). "
        "Large ring: suspected change. Filled diamond: alert, a suspected change that the "
        "next wave confirmed. Dash: not measured. All cells of this study share a budget "
        "of false alerts, by default one in 90 waves; each study has its own. An alert "
        "starts a new baseline (vertical line). The number on the right is the change "
        "from the baseline to the last wave."
    ),
)
def drift_strip(drifts: DataFrame[Drifts]) -> list[str]:
    """Draw a panel per judge, a row per measure and perturbation, a mark per wave."""
    named = with_who(drifts.with_columns(label=pl.col("wave")).with_columns(wave=pl.lit("")))
    judges = named.sort("who").partition_by("who", maintain_order=True)
    return [_panel(f"drift-{index}", rows) for index, rows in enumerate(judges, 1)]


def _panel(key: str, found: pl.DataFrame) -> str:
    waves = sorted(found["label"].unique())[-NIGHTS:]
    shown = found.filter(pl.col("label").is_in(waves))
    order = pl.col("measure").replace_strict({name: n for n, name in enumerate(NAMED)})
    cells = shown.sort(order, "perturbation", "label", nulls_last=True).partition_by(
        "measure", "perturbation", maintain_order=True
    )
    rows: list[Row] = [
        {"name": _name(cell.row(0, named=True)), "marks": cell.to_dicts()} for cell in cells
    ]
    who, simulated = found["who"][0], bool(found["simulated"].any())
    with settings(key):
        title = clip(clean(who), 32) + (" (simulated)" if simulated else "")
        sheet = row_sheet(key, title, _subtitle(found, waves), rows)
        _columns(sheet, shown, waves)
        for y, row in enumerate(rows):
            _row(sheet, y, row["marks"], waves)
        return sheet.render(f"Changes of {who} from wave to wave")


def _name(row: Row) -> Name:
    upper, lower = NAMED[row["measure"]], clean(row["perturbation"] or "")
    return Name(upper, clip(lower, 23), f"{upper} {lower}".strip())


def _subtitle(found: pl.DataFrame, waves: Sequence[str]) -> str:
    total = found["label"].n_unique()
    many = f"waves compared: {total}"
    if total > len(waves):
        many = f"the last {len(waves)} of {total} waves"
    level: Any = found["level"].max()
    return f"{many}; significance level {number(level, 3)} per wave"


def _columns(sheet: Sheet, shown: pl.DataFrame, waves: Sequence[str]) -> None:
    """Set the limits of x, name its ends, and mark where baselines begin."""
    sheet.axes.set_xlim(-0.7, len(waves) - 0.3)
    sheet.axes.set_xticks(range(len(waves)), [""] * len(waves))
    begun = shown.filter(pl.col("epoch") > 1)["base"].unique()
    for base in begun:
        if base in waves:
            sheet.axes.axvline(waves.index(base), color=RED, linewidth=1, alpha=0.5, zorder=0.5)
    style: dict[str, Any] = {"fontsize": SMALL, "color": SOFT}
    sheet.write(NAMES, 26, clip(clean(waves[0]), 16), **style)
    if len(waves) > 1:
        sheet.write(RIGHT, 26, clip(clean(waves[-1]), 16), ha="right", **style)
    sheet.write((NAMES + RIGHT) / 2, 10, "wave", ha="center", **style)


def _row(sheet: Sheet, y: int, marks: Sequence[Row], waves: Sequence[str]) -> None:
    for mark in marks:
        sheet.axes.plot(
            waves.index(mark["label"]),
            y,
            zorder=3,
            clip_on=False,
            **{"linestyle": "none", **MARKS[mark["state"]]},
        )
    last = next((mark for mark in marks if mark["label"] == waves[-1]), None)
    if last is None:
        write_result(sheet, y, "", "not asked")
        return
    change = last["estimate"]
    text = "none" if change is None else ("+" if change > 0 else "") + number(change)
    write_result(sheet, y, text, last["state"], COLOURS.get(last["state"], SOFT))
