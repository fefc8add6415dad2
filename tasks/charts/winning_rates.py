"""Chart of winning rates by epsilon."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import AltTests
from tasks.charts import chart
from tasks.charts.position_plane import spread
from tasks.drawing.canvas import BAND, FAINT, INK, LINE, SMALL, SOFT, Sheet, settings
from tasks.drawing.marks import leader
from tasks.drawing.row_panels import tick_label
from tasks.kit.defaults import calibration_limits
from tasks.reporting.wording import clean, number, short_names, with_who

LEFT, PLOT, FOOT, HEAD = 44, 246, 44, 52
NAMES, WIDE, GAP = 304, 18, 46
AT_ONCE = 6
"""Maximum number of lines in a panel."""
COLOURS = ("#0072b2", "#b64a00", "#007a5a", "#a0528a", "#5b6670", "#8a6d00")
MARKERS = "osD^vP"

Row = dict[str, Any]


@chart(
    order=11,
    title="How much worse than people may a judge be?",
    reading=(
        "Each line is a judge: the share of annotators whom it may replace (winning "
        "rate), for each epsilon. It passes where its line is in the shaded half, at .5 "
        "or above. The dotted line is the chosen epsilon. The label shows the judge's "
        "advantage probability (AP), the probability that it aligns with the others at "
        "least as well as a person, and the person's; neither depends on epsilon."
    ),
)
def winning_rates(alt_tests: DataFrame[AltTests]) -> list[str]:
    """Draw a line per judge, the best first, so many in a panel."""
    tested = with_who(alt_tests.filter(pl.col("winning_rate").is_not_null()))
    judges = tested.filter("asked").sort(-pl.col("advantage_probability"), "who").to_dicts()
    points = tested.sort("epsilon").partition_by("who", as_dict=True)
    known = short_names([row["who"] for row in judges], WIDE)
    return [
        _panel(
            f"winning-{start // AT_ONCE}",
            [
                {**row, "name": known[row["who"]], "points": points[row["who"],]}
                for row in judges[start : start + AT_ONCE]
            ],
        )
        for start in range(0, len(judges), AT_ONCE)
    ]


def _panel(key: str, judges: Sequence[Row]) -> str:
    up = max(210, GAP * len(judges))
    with settings(key):
        sheet = Sheet(key, HEAD + up + FOOT, (LEFT, FOOT, PLOT, up))
        _frame(sheet, judges)
        for place, row in enumerate(judges):
            # Lines that coincide lie beside each other.
            aside = (place - (len(judges) - 1) / 2) * 0.007
            sheet.axes.plot(
                row["points"]["epsilon"].to_list(),
                [rate + aside for rate in row["points"]["winning_rate"]],
                color=COLOURS[place],
                marker=MARKERS[place],
                markersize=5,
                linewidth=1.6,
                clip_on=False,
                zorder=3,
            )
        _names(sheet, judges)
        return sheet.render("Winning rate of each judge over epsilon")


def _frame(sheet: Sheet, judges: Sequence[Row]) -> None:
    axes = sheet.axes
    widest = max(0.3, *(row["points"]["epsilon"].max() for row in judges))
    axes.set(xlim=(-0.004, widest + 0.004), ylim=(-0.03, 1.03))
    least = calibration_limits().least_winning_rate
    axes.axhspan(least, 1.03, color=BAND, linewidth=0, zorder=-1)
    axes.axhline(least, color=LINE, linewidth=1, zorder=1)
    axes.axvline(judges[0]["epsilon"], color=SOFT, linewidth=1, linestyle=":", zorder=1)
    axes.spines["left"].set_visible(True)
    step = 0.1 if widest <= 0.6 else 0.2
    across = [tick * step for tick in range(int(widest / step + 1e-9) + 1)]
    axes.set_xticks(across, [tick_label(tick, 1) for tick in across])
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".50", ".75", "1"])
    axes.grid(visible=True, axis="x", color=FAINT, linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)
    axes.tick_params(length=3)
    style: dict[str, Any] = {"fontsize": SMALL, "color": SOFT}
    sheet.write(LEFT + PLOT / 2, 10, f"{judges[0]['epsilon_kind']} epsilon", ha="center", **style)
    sheet.write(2, FOOT + sheet.plot[3] + 36, "Winning rate", fontweight="bold")
    sheet.write(
        2,
        FOOT + sheet.plot[3] + 18,
        f"passes at {tick_label(least, 1)}; dotted: chosen epsilon",
        **style,
    )


def _names(sheet: Sheet, judges: Sequence[Row]) -> None:
    """Write names and advantage probabilities beside the ends of the lines."""
    up = sheet.plot[3]
    ends = [float(row["points"]["winning_rate"][-1]) for row in judges]
    order = sorted(range(len(judges)), key=lambda at: -ends[at])
    wanted = [FOOT + up * (ends[at] + 0.03) / 1.06 for at in order]
    heights = spread(wanted, GAP, FOOT + GAP / 2, FOOT + up - GAP / 2)
    for at, end, height in zip(order, wanted, heights, strict=True):
        row, colour = judges[at], COLOURS[at]
        ends_at = (LEFT + PLOT + 3, end), (NAMES - 5, height)
        leader(sheet, *ends_at, color=colour, linewidth=0.9, alpha=0.6)
        # Lines may coincide: the name bears its line's mark.
        mark_at = NAMES + 4, height + 9
        mark: dict[str, Any] = {"marker": MARKERS[at], "markersize": 6, "linestyle": "none"}
        leader(sheet, mark_at, color=colour, **mark)
        sheet.write(NAMES + 14, height + 9, row["name"], whole=row["who"], color=INK)
        suffix = ", simulated" if row["simulated"] else ""
        below = f"AP {_rate(row['advantage_probability'])}, "
        below += f"human {_rate(row['human_advantage_probability'])}{suffix}"
        sheet.write(NAMES, height - 7, clean(below), fontsize=SMALL, color=SOFT)


def _rate(value: float | None) -> str:
    return "none" if value is None else number(value)
