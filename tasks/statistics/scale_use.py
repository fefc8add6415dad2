"""How a judge uses its scale: the most frequent grade, and the ends."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.results import Estimates
from tasks.counting.cells import portions
from tasks.counting.missing_reasons import NO_RATING
from tasks.inference.cluster_sums import PART, join_cells
from tasks.pointwise.rated_items import CONTROL, rated
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, section 6 (scale biases)",
    gives=("modal_share", "ceiling_share", "floor_share"),
    family="pointwise",
    missing=NO_RATING,
)
def scale_use(ratings: DataFrame[Ratings]) -> Rows:
    """Measure the shares of grades that are the most frequent one, the highest and the lowest.

    ``modal_share = max_v #[y = v] / n`` over all valid control ratings; ``ceiling_share`` and
    ``floor_share`` are those at the highest and the lowest grade of the declared scale.

    Parameters
    ----------
    ratings
        One row per rating; grades only.

    Returns
    -------
    Estimates
        Three rows per judge and criterion by cluster-adjusted Wilson; n the valid ratings.
        Without a declared scale the ends are unknown, and only ``modal_share`` is returned.

    Notes
    -----
    Of equally frequent grades the lowest is the mode. ``modal_share`` is about the grade that is
    the mode of these ratings. Its interval takes that grade as given, so where another is nearly as
    frequent it is somewhat too high: nominal 95 % intervals of 142 answers hold the share in 94 %
    of studies (docs/reference/operating-characteristics.md). Ratings at an end of the scale cannot
    move further, which hides biases in that direction.

    References
    ----------
    methods.md, sections 3 and 6.

    Examples
    --------
    Grades 7, 7, 10 and 2 on a scale from 1 to 10: modal share 2/4, ceiling 1/4, floor 0.
    """
    rows = rated(ratings.filter(CONTROL))
    graded = rows if rows.is_empty() else rows.filter("graded")
    if graded.is_empty():
        return []
    key = list(PART)
    # The ends that rated() sees in the data are no declaration.
    declared = _declared(ratings)
    graded = graded.with_columns(mode=pl.lit("any"), votes=pl.lit(1))
    most = (
        graded.drop_nulls("value")
        .group_by(*key, "value")
        .len()
        .sort("len", "value", descending=[True, False])
        .group_by(key, maintain_order=True)
        .agg(modal=pl.col("value").first())
    )
    items = (
        join_cells(graded, most, on=key)
        .join(declared, on=["dataset", "prompt", "subgroup"], how="left", maintain_order="left")
        .with_columns(den=pl.col("value").is_not_null().cast(pl.Int64))
        .with_columns(dropped=1 - pl.col("den"))
    )
    ends = items.filter("declared")
    return [
        _at(name, some, pl.col(grade))
        for name, some, grade in (
            ("modal_share", items, "modal"),
            ("ceiling_share", ends, "highest"),
            ("floor_share", ends, "lowest"),
        )
    ]


def _declared(ratings: pl.DataFrame) -> pl.DataFrame:
    known = pl.col("lowest").is_not_null() & pl.col("highest").is_not_null()
    single = ratings.filter(CONTROL, pl.col("kind") != "verdict").with_columns(
        subgroup=pl.col("criterion").fill_null("")
    )
    cell = ["dataset", "prompt", "subgroup"]
    found = single.group_by(cell).agg(declared=known.all())
    wholes = found.group_by("dataset", "prompt").agg(pl.col("declared").all())
    absent = wholes.with_columns(subgroup=pl.lit("")).join(found, on=cell, how="anti")
    return pl.concat([found, absent.select(found.columns)])


def _at(name: str, items: pl.DataFrame, grade: pl.Expr) -> DataFrame[Estimates]:
    hit = (pl.col("value") - grade).abs() < 1e-9
    return portions(name, items.with_columns(num=hit.fill_null(value=False).cast(pl.Int64)))
