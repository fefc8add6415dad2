"""Findings about the jury of all judges, by the rules for a single judge."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import JuryFindings, PanelMembers
from schemas.keys import JUDGE, PANEL
from schemas.results import Estimates
from tasks.conclude import cells_with_findings
from tasks.counting.primary_endpoint import primary
from tasks.kit.defaults import DETECTS_AT, limits

FAMILY = (*JUDGE, "mode")
PREFIX = "jury_"
ADJUSTMENT = "Benjamini-Hochberg, the jury's perturbations"
PRICES = (
    dict.fromkeys(JUDGE, pl.String) | {"votes": pl.Int64, "priced": pl.Int64} | {"usd": pl.Float64}
)
"""Columns of what the votes of each judge cost: votes, those with a known price, and their sum."""


def jury_findings(
    estimates: DataFrame[Estimates],
    detects_at: float = DETECTS_AT,
    costs: pl.DataFrame | None = None,
) -> DataFrame[JuryFindings]:
    """Conclude on the jury as on a judge (:func:`tasks.conclude.conclude`).

    A jury has no log-odds, and is not asked whether its shifts are mixed. It follows from its
    members, so Benjamini-Hochberg is over the jury's own perturbations. Without one of its members
    only its shift is given, beside that member's own. ``costs`` come from :func:`jury_costs`.
    """
    ours = estimates.filter(
        pl.col("statistic").str.starts_with(PREFIX), pl.col("perturbation").is_not_null()
    ).with_columns(pl.col("statistic").str.strip_prefix(PREFIX))
    whole = ours.filter(pl.col("subgroup") == "")
    families = [
        cells_with_findings(rows, detects_at)
        for rows in whole.partition_by(FAMILY)
        if rows["statistic"].is_in(["mps", "mps_sham"]).any()
    ]
    if not families:
        return JuryFindings.empty()
    cells = pl.concat(families, how="diagonal_relaxed")
    concluded = cells.with_columns(
        adjustment=pl.when(pl.col("p_adjusted").is_not_null()).then(pl.lit(ADJUSTMENT)),
        finding=pl.when(pl.col("refused").is_null()).then("word"),
        reason=pl.coalesce("refused", "note"),
    )
    both = pl.concat([concluded, _without_each(ours, estimates)], how="diagonal_relaxed")
    both = both.join(
        _unmeasured(ours), on=[*FAMILY, "perturbation", "left_out"], how="left", nulls_equal=True
    ).with_columns(reason=pl.coalesce("why", "reason"))
    if costs is not None:
        both = both.join(costs, on=[*PANEL, "left_out"], how="left", nulls_equal=True)
    return JuryFindings.of(
        both.with_columns(statistic=pl.lit(PREFIX) + pl.col("statistic"), shift="estimate")
    )


def _unmeasured(ours: pl.DataFrame) -> pl.DataFrame:
    """Return why the jury's shift over the control has no estimate or interval, if it has none."""
    shifts = ours.filter(pl.col("statistic") == "mps", pl.col("reason").is_not_null())
    left_out = pl.col("subgroup").replace("", None)
    return shifts.select(*FAMILY, "perturbation", left_out=left_out, why="reason")


def jury_costs(members: DataFrame[PanelMembers], prices: pl.DataFrame) -> pl.DataFrame:
    """Return what a verdict of the jury costs, of all jurors and without each (``left_out``).

    A juror's vote costs the mean of its votes; the sum is null if a price is unknown.
    """
    known = pl.col("votes") == pl.col("priced")
    each = pl.col("votes_per_pair") * pl.when(known).then(pl.col("usd") / pl.col("votes"))
    jurors = members.filter("juror").join(prices, on=JUDGE, how="left")
    jurors = jurors.select(*PANEL, "judge", cost=each)
    everyone = pl.lit(None, pl.String).alias("left_out")
    juries = pl.concat([jurors.select(*PANEL, left_out="judge"), jurors.select(*PANEL, everyone)])
    total = pl.when(pl.col("cost").is_not_null().all()).then(pl.col("cost").sum())
    return (
        jurors.join(juries.unique(), on=PANEL)
        .filter(pl.col("judge").ne_missing(pl.col("left_out")))
        .group_by(*PANEL, "left_out")
        .agg(cost_usd=total)
    )


def _without_each(ours: pl.DataFrame, estimates: pl.DataFrame) -> pl.DataFrame:
    """Return the shift of the jury without each member, and that member's own."""
    reduced = primary(
        ours.filter(pl.col("subgroup") != "").rename({"subgroup": "left_out"}),
        (*FAMILY, "perturbation", "left_out"),
    )
    cell = [name for name in (*FAMILY, "perturbation") if name != "judge"]
    alone = primary(estimates.filter(pl.col("subgroup") == ""), (*FAMILY, "perturbation"))
    members = alone.select(*cell, left_out="judge", member_shift="estimate")
    return reduced.join(members, on=[*cell, "left_out"], how="left").with_columns(
        p_value=pl.lit(None, pl.Float64),
        minimum=pl.lit(limits().minimum_shift),
        reason=pl.lit(None, pl.String),
    )
