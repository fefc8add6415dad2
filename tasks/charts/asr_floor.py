"""Chart of attack success rates and their floors."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.frame import Row
from schemas.keys import JUDGE
from schemas.results import Estimates
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
from tasks.drawing.spec import FAINT, INK, LINE, PAPER, SOFT, Spec, mark
from tasks.reporting.wording import number

SUBTITLES = {
    "promote": "promote: close to its floor is good, right of it is bad",
    "detract": "detract: a good judge moves away from the target, left of its floor",
}


@chart(order=2, title="Attack success rate and its floor")
def asr_floor(estimates: DataFrame[Estimates]) -> list[Spec]:
    """Draw a panel per perturbation, a row per judge, sorted by ASR.

    The filled dot is the attack success rate (ASR) with its 95 % interval. The hollow dot is its
    floor: the ASR of a meaning-free edit (sham), which noise and any edit can cause. The vertical
    bar is the ASR of a judge that votes at random. Only the distance between floor and dot
    indicates bias. For a promote perturbation, a dot to the right of its floor is bad. For a
    detract perturbation, the ASR counts overlooked flaws, so a good judge lies to the left of its
    floor.
    """
    return [
        _panel(perturbation, kind, rows) for perturbation, kind, rows in panels(_beside(estimates))
    ]


def _beside(estimates: DataFrame[Estimates]) -> pl.DataFrame:
    # Worst cases and subgroups have floors of their own.
    cells = estimates.filter(
        pl.col("perturbation").is_not_null(), pl.col("kind").is_not_null(), pl.col("subgroup") == ""
    )
    rows = cells.filter(pl.col("statistic") == "asr")
    for statistic in ("sham_floor", "random_baseline"):
        other = cells.filter(pl.col("statistic") == statistic)
        beside = other.select(*JUDGE, "perturbation", pl.col("estimate").alias(statistic))
        rows = rows.join(beside, on=[*JUDGE, "perturbation"], how="left")
    return rows


def _panel(perturbation: str, kind: str, rows: list[Row]) -> Spec:
    tick: Spec = {"x": "random", "y": Y, "thickness": 2, "size": 20, "orient": "vertical"}
    hollow: Spec = {"filled": False, "fill": PAPER, "strokeWidth": 1.6, "color": {"value": SOFT}}
    return row_panel(
        (perturbation, SUBTITLES[kind]),
        [_values(row) for row in rows],
        AxisScale(-0.03, 1.03, "ASR", ("never", "always")),
        [
            mark("tick", **tick, color={"value": LINE}),
            interval_rule("floor", "value", strokeWidth=7, color={"value": FAINT}),
            interval_rule(strokeWidth=1.2, color={"value": INK}),
            mark("point", x="floor", y=Y, **hollow),
            mark("point", x="value", y=Y, size=66),
        ],
        f"Attack success rate and its floor by judge, {perturbation}",
        perturbation=perturbation,
    )


def _values(row: Row) -> Row:
    asr, floor, random = row["estimate"], row["sham_floor"], row["random_baseline"]
    below = "no floor" if floor is None else f"floor {number(floor)}"
    places = {"value": asr, "low": row["low"], "high": row["high"], "floor": floor}
    return values_of(
        row,
        "" if asr is None else number(asr),
        "" if asr is None else below,
        measured("ASR", asr, row["low"], row["high"]) or "ASR not estimable",
        below,
        measured("random judge", random),
        sizes(row),
        random=random,
        missing="" if asr is not None else "not estimable",
        **places,
    )
