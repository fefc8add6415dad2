"""Pairwise verdicts derived from single ratings."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.keys import JUDGE
from tasks.counting.cells import means
from tasks.kit.defaults import limits
from tasks.pointwise.rated_items import rated, things
from tasks.statistics import Rows, statistic

SAMPLE = [*JUDGE, "subgroup", "sample"]
ROUNDING = 1e-9


@statistic(
    source="methods.md, section 6 (pointwise judges)",
    gives=("derived_preference", "derived_ties"),
    family="pointwise",
    rows={"derived_preference": {"null": 0.5}},
    needs=("side",),
    missing="no sample has valid ratings of its target and its anchor",
)
def derived_preference(ratings: DataFrame[Ratings]) -> Rows:
    """Measure how often a judge rates the target above the anchor, as if it had compared them.

    ``derived_preference = mean_i s(i)``, s = 1, .5 or 0 where the target's mean rating is above the
    anchor's, within the tie band of it, or below; ``derived_ties`` is the share of .5.

    Parameters
    ----------
    ratings
        One row per rating, of targets and of anchors, which only control has.

    Returns
    -------
    Estimates
        Two rows per judge (``perturbation`` null: the unperturbed target) and perturbation (the
        perturbed target against the same anchor), by cluster-adjusted Wilson.

    Notes
    -----
    The tie band (field ``tie_band`` of the thresholds, .1 points) is in points of the scale. A
    sample without a valid rating of either answer is dropped. Such verdicts have no position
    bias, but no answer is seen beside the other.

    References
    ----------
    methods.md, sections 3 and 6.

    Examples
    --------
    Targets 7, 7.05 and 3 against anchors 5, 7 and 4: 1, .5 and 0, so 1/2, and a third are ties.
    """
    sides = pl.col("side").is_not_null()
    rows = rated(ratings.filter(sides)) if (ratings["side"] == "anchor").any() else ratings.clear()
    if rows.is_empty():
        return []
    found = things(rows)
    anchors = found.filter(pl.col("side") == "anchor").select(*SAMPLE, other="score")
    arm = pl.col("arm").cast(pl.String)
    targets = found.filter(pl.col("side") == "target", arm.is_in(["control", "experimental"]))
    ahead = pl.col("score") - pl.col("other")
    tie = ahead.abs() <= limits().tie_band + ROUNDING
    won = pl.when(tie).then(0.5).when(ahead > 0).then(1.0).when(ahead < 0).then(0.0)
    known = ahead.is_not_null()
    items = targets.join(anchors, on=SAMPLE, how="left", maintain_order="left").filter(
        known.any().over(*JUDGE, "subgroup")
    )
    ties = tie.cast(pl.Float64)
    return [means("derived_preference", items, won), means("derived_ties", items, ties)]
