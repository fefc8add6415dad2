"""Rewording of pointwise prompts: ratings that change when a prompt says the same otherwise."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.keys import JUDGE
from tasks.counting.arms import mean_shift
from tasks.counting.cells import means
from tasks.pointwise.rated_items import TARGET, differences_in_unit, on_scale, rated, things
from tasks.statistics import Rows, statistic
from tasks.statistics.rewording_sensitivity import ARMS, excess

ANSWER = (*JUDGE, "item")


@statistic(
    source="docs/concepts/arms-and-floor.md",
    gives=(
        "rating_rewording_shift",
        "rating_rewording_change",
        "rating_repeat_change",
        "rating_rewording_excess",
    ),
    family="floor",
    unit="points",
    rows={
        "rating_rewording_shift": {"null": 0.0},
        "rating_rewording_excess": {"null": 0.0, "floor": "replicate"},
    },
    missing="no answer has valid ratings in control and when it was asked again",
)
def rating_rewording(ratings: DataFrame[Ratings]) -> Rows:
    """Measure how far ratings move under other words of the same meaning.

    With y_i the rating of answer i in control (a mean of its repeats), y_iv its rating under
    variant v of the prompt and r_i its rating in the replicate:
    ``rating_rewording_shift = mean(y_iv - y_i)``,
    ``rating_rewording_change = mean |y_iv - y_i|``, ``rating_repeat_change = mean |r_i - y_i|``,
    and ``rating_rewording_excess = mean_i (mean_v |y_iv - y_i| - |r_i - y_i|)``.

    Parameters
    ----------
    ratings
        One row per rating; the arms control, reworded and replicate of targets are used. A rubric
        counts as a whole.

    Returns
    -------
    Estimates
        Per judge and prompt with reworded ratings, in points, or in shares for pass and fail. Shift
        and change over all variants and for each (``subgroup``), n answers times variants: by
        cluster linearisation, and cluster-adjusted Wilson on the scale from 0 to 1. The excess by
        cluster linearisation, n answers. ``perturbation`` is null.

    Notes
    -----
    An answer without a valid rating in one of the arms is dropped. A noisy judge also changes
    its ratings when it is asked the same again, so only the excess, and the shift, speak of the
    wording. The shift tells whether a wording is more lenient than the prompt itself.

    References
    ----------
    docs/concepts/arms-and-floor.md.

    Examples
    --------
    Control grades 4, 6, 8; variant one 5, 6, 10, two 4, 5, 8; replicates 4, 7, 8. Shifts 1, 0, 2
    and 0, -1, 0: 1/3. Changes 1, 0, 2 and 0, 1, 0: 2/3. Repeats change by 1/3. Excess by answer
    1/2, 1/2 - 1 and 1: 1/3.
    """
    rows = _asked(ratings)
    if rows.is_empty():
        return []
    reworded, again = (_beside_control(rows, arm) for arm in ("reworded", "replicate"))
    again = again.join(reworded.select(ANSWER).unique(), on=ANSWER, how="semi")
    each = reworded.with_columns(subgroup="variant")
    found = []
    for some in (reworded, each):
        shifts = mean_shift("rating_rewording_shift", some, "control_score", arm="arm_score")
        found += [differences_in_unit(shifts, some), _change("rating_rewording_change", some)]
    beyond = excess("rating_rewording_excess", reworded, again, ANSWER, "change")
    return [
        *found,
        _change("rating_repeat_change", again),
        differences_in_unit(beyond, again),
    ]


def _asked(ratings: pl.DataFrame) -> pl.DataFrame:
    """Return the ratings of targets as a whole in the three arms; empty if none is reworded."""
    arm = pl.col("arm").cast(pl.String)
    if not ratings.select((arm == "reworded").any()).item():
        return ratings.clear()
    rows = rated(ratings.filter(arm.is_in(ARMS) & TARGET))
    return rows if rows.is_empty() else things(rows.filter(pl.col("subgroup") == ""))


def _beside_control(rows: pl.DataFrame, arm: str) -> pl.DataFrame:
    wide = rows.with_columns(pl.col("arm").cast(pl.String), score=on_scale("score"))
    control = wide.filter(arm="control").select(*ANSWER, control_score="score")
    return (
        wide.filter(arm=arm)
        .join(control, on=ANSWER, how="left", maintain_order="left")
        .with_columns(
            arm_score="score",
            change=(pl.col("score") - pl.col("control_score")).abs(),
            variant=pl.col("perturbation").cast(pl.String),
            perturbation=pl.lit(None, pl.String),
            kind=pl.lit(None, pl.String),
        )
    )


def _change(name: str, items: pl.DataFrame) -> pl.DataFrame:
    return differences_in_unit(means(name, items, pl.col("change")), items)
