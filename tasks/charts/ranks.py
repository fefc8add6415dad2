"""Ranks of judges with their intervals and tiers."""

import math
from itertools import groupby

from pandera.typing.polars import DataFrame

from schemas.conclusions import Rankings
from schemas.frame import Row
from tasks.charts import chart
from tasks.drawing.row_panels import (
    AxisScale,
    Y,
    interval_rule,
    panels,
    row_panel,
    sizes,
    values_of,
)
from tasks.drawing.spec import Spec, mark
from tasks.reporting.wording import clean, clip, number, shorten

SUBTITLES = {
    "promote": "promote: rank 1 is the judge moved least, in either direction",
    "detract": "detract: rank 1 is the judge that moves furthest away from the flawed answer",
}
MOST_TICKS = 8
REASON_WIDTH = 40
"""Most characters of a reason in the plot; hovering shows it whole."""


@chart(order=4, title="Ranking of the judges and its uncertainty")
def ranks(rankings: DataFrame[Rankings]) -> list[Spec]:
    """Draw a panel per perturbation and quantity, a row per judge, the best first.

    The dot is a judge's rank on the samples that all ranked judges share; the line is its 95 %
    interval. Judges that share a letter do not differ significantly on these samples (Holm, .05).
    The section 'Which judges differ' compares two judges on all samples that they share, so its
    results can differ. A rank with a long line is uncertain, and the order of judges that share a
    letter may be noise. Letters can be out of order: judges moved equally far in opposite
    directions can differ significantly.
    """
    if rankings["rank"].count() == 0:
        return []
    found = rankings.rename({"rank": "estimate"})
    several = found["quantity"].n_unique() > 1
    return [
        _panel(perturbation, kind, str(quantity) if several else "", list(same))
        for perturbation, kind, rows in panels(found)
        for quantity, same in groupby(
            sorted(rows, key=lambda row: row["quantity"] or ""), lambda row: row["quantity"] or ""
        )
    ]


def _panel(perturbation: str, kind: str, quantity: str, rows: list[Row]) -> Spec:
    rows = sorted(rows, key=lambda row: (row["estimate"] is None, row["estimate"] or 0.0))
    last = _last(rows)
    ticks = tuple(range(1, last + 1, math.ceil(last / MOST_TICKS)))
    return row_panel(
        (f"{perturbation}, {quantity}" if quantity else perturbation, SUBTITLES[kind]),
        [_values(row) for row in rows],
        AxisScale(0.6, last + 0.4, "rank", ("best", "worst"), ticks, 0),
        [interval_rule(), mark("point", x="value", y=Y)],
        f"Rank of each judge with its interval, {perturbation}" + (quantity and f", {quantity}"),
        perturbation=perturbation,
    )


def _last(rows: list[Row]) -> int:
    """Return the last rank shown, as a dot or as the end of an interval; at least 2."""
    known = [row for row in rows if row["estimate"] is not None]
    ends = [float(row[end]) for row in known for end in ("estimate", "high")]
    return max(2, math.ceil(max(ends, default=0.0)))


def _values(row: Row) -> Row:
    rank, low, high = row["estimate"], row["low"], row["high"]
    if rank is None:
        why = row["reason"] or ""
        said = f"rank not estimable{why and ': '}{why}"
        short = shorten(clean(why).partition(": ")[0], REASON_WIDTH)
        return values_of(row, "", "", said, missing="not estimable", why=short)
    below = f"{_plain(low)} to {_plain(high)}"
    tier = f", tier {row['tier']}" if row["tier"] else ""
    text = f"{_plain(rank)}{tier}"
    said = f"rank {text}; {below}"
    places = {"value": rank, "low": low, "high": high}
    return values_of(row, clip(text, 13), below, said, sizes(row), **places)


def _plain(rank: float) -> str:
    """Write a rank: ``2``, or ``2.5`` where two share it."""
    return number(rank, 1).removesuffix(".0")
