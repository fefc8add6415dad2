"""Chart of the alternative annotator test with several metrics and both kinds of epsilon."""

from collections.abc import Sequence
from typing import Any

from pandera.typing.polars import DataFrame

from schemas.calibration import KINDS_OF_EPSILON, AltTests
from tasks.charts import chart
from tasks.drawing.canvas import BLUE, FAINT, INK, RED, SMALL, SOFT, Sheet, settings
from tasks.drawing.metric_rows import MetricRow, metric_rows
from tasks.reporting.wording import number, short_names

LEFT, PLOT, HEAD, FOOT = 172, 172, 54, 40
ROW, TITLE = 19, 1.5
"""Height of a row in pixels, and of a metric's title in rows."""
COLUMNS = {"additive": 370, "multiplicative": 436}
"""Kind of epsilon -> where the column of its winning rates begins."""
AT_ONCE = 40
"""Most rows of a panel, unless one metric has more."""
WIDE = 23
"""Characters of a name."""


@chart(
    order=10,
    title="Does the verdict depend on the metric?",
    reading=(
        "A block for each metric. The dot is the judge's advantage probability (AP) with its 95 % "
        "interval: the probability that it aligns with the other people at least as well as the "
        "person left out. The tick is the person's. Right: the winning rate with an additive "
        "epsilon, and with a multiplicative one (a share of the person's own AP); a judge passes "
        "where it is bold."
    ),
)
def several_metrics(metric_tests: DataFrame[AltTests]) -> list[str]:
    """Draw a block for each metric and a row for each judge."""
    rows = metric_rows(metric_tests)
    blocks = [
        [row for row in rows if row.metric == metric]
        for metric in dict.fromkeys(row.metric for row in rows)
    ]
    panels: list[list[list[MetricRow]]] = []
    for block in blocks:
        if not panels or sum(map(len, [*panels[-1], block])) > AT_ONCE:
            panels.append([])
        panels[-1].append(block)
    return [_panel(f"metrics-{at}", panel) for at, panel in enumerate(panels, 1)]


def _panel(key: str, blocks: Sequence[Sequence[MetricRow]]) -> str:
    rows = sum(map(len, blocks)) + TITLE * len(blocks)
    epsilon = blocks[0][0].epsilon
    names = short_names([row.who for block in blocks for row in block], WIDE)
    with settings(key):
        sheet = Sheet(key, HEAD + rows * ROW + FOOT, (LEFT, FOOT, PLOT, rows * ROW))
        axes = sheet.axes
        axes.set(xlim=(0, 1.02), ylim=(rows, 0))
        axes.set_yticks([])
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".50", ".75", "1"])
        axes.tick_params(axis="x", length=3)
        _headings(sheet, rows * ROW, epsilon)
        _legend(sheet, simulated=any(row.simulated for block in blocks for row in block))
        y = 0.0
        for block in blocks:
            axes.axhline(y + 0.25, color=FAINT, linewidth=0.6)
            sheet.write(2, y + TITLE / 2 + 0.2, block[0].metric, rows=True, fontweight="bold")
            y += TITLE
            for row in block:
                _draw(sheet, y + 0.5, row, names[row.who])
                y += 1
        return sheet.render("Advantage probability and winning rates of each judge by metric")


def _headings(sheet: Sheet, up: float, epsilon: float) -> None:
    style: dict[str, Any] = {"fontsize": SMALL, "color": SOFT}
    top = FOOT + up
    sheet.write(2, top + 36, "Advantage probability", fontweight="bold")
    about = f"winning rate, epsilon {number(epsilon)}"
    sheet.write(COLUMNS["additive"] - 24, top + 36, about, **style)
    for kind, x in COLUMNS.items():
        sheet.write(x - 24, top + 14, {"additive": "additive", "multiplicative": "relative"}[kind])


def _legend(sheet: Sheet, *, simulated: bool) -> None:
    text = "dot: judge; tick: person left out" + "; *: simulated" * simulated
    sheet.write(LEFT + PLOT / 2, 8, text, ha="center", fontsize=SMALL, color=SOFT)


def _draw(sheet: Sheet, y: float, row: MetricRow, name: str) -> None:
    small: dict[str, Any] = {"fontsize": SMALL, "rows": True}
    sheet.write(LEFT - 10, y, name + " *" * row.simulated, whole=row.who, ha="right", **small)
    axes = sheet.axes
    if row.advantage is None:
        sheet.write(LEFT + 8, y, "not tested", fontstyle="italic", color=SOFT, **small)
    else:
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [y, y], color=BLUE, linewidth=1.6, alpha=0.5)
        if row.human is not None:
            axes.plot([row.human], [y], marker="|", markersize=10, color=RED, linestyle="none")
        axes.plot([row.advantage], [y], marker="o", markersize=5, color=BLUE, linestyle="none")
    for kind in KINDS_OF_EPSILON:
        rate, passed = row.rates.get(kind, (None, None))
        bold = {"fontweight": "bold", "color": INK}
        style: dict[str, Any] = {**small, **(bold if passed else {"color": SOFT})}
        sheet.write(COLUMNS[kind], y, "-" if rate is None else number(rate), **style)
