"""Judges excluded from tables of attack success, with reasons."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.keys import JUDGE
from schemas.results import Estimates, Exclusions
from tasks.inference.linearised_errors import is_enough
from tasks.kit.defaults import limits
from tasks.statistics import STATISTICS

EXCLUDES = {
    "position_gap": "most_position_gap",
    "tie_rate": "most_ties",
    "invalid_rate": "most_invalid",
}
"""Rate -> the threshold beyond which a judge is excluded."""


def exclude(estimates: DataFrame[Estimates]) -> DataFrame[Exclusions]:
    """Tell for each judge whether it is left out of means of attack success (methods, section 5).

    A judge is excluded if its 95 % interval puts the position gap beyond .15 on either side, or the
    tie rate above .80 (both in the control arm), or the invalid rate above .10 (all ballots). With
    too few questions, or without an interval, a rule is undecided. Exclusion is a policy: balanced
    orders keep the mean preference shift of a positional judge valid, with less power.
    """
    return Exclusions.of(excluded_judges(estimates))


def excluded_judges(estimates: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of :func:`exclude` from unvalidated estimates."""
    most = {rule: getattr(limits(), limit) for rule, limit in EXCLUDES.items()}
    whole = pl.col("perturbation").is_null() & (pl.col("subgroup") == "")
    judged = (
        estimates.filter(pl.col("statistic").cast(pl.String).is_in([*EXCLUDES]) & whole)
        .with_columns(pl.col("statistic").cast(pl.String), bound=_bound())
        .group_by(JUDGE, maintain_order=True)
        .agg(
            pl.col("simulated").max(),
            *(
                pl.col(column).filter(statistic=rule).max().alias(rule + ending)
                for rule in EXCLUDES
                for column, ending in (
                    ("estimate", ""),
                    ("low", "_low"),
                    ("high", "_high"),
                    ("bound", "_bound"),
                )
            ),
        )
    )
    beyond = {rule: pl.col(f"{rule}_bound") > most[rule] for rule in EXCLUDES}
    reasons = pl.concat_str(
        [pl.when(above).then(pl.lit(rule.replace("_", " "))) for rule, above in beyond.items()],
        separator=", ",
        ignore_nulls=True,
    )
    return judged.with_columns(
        *(pl.lit(limit).alias(f"{rule}_limit") for rule, limit in most.items()),
        excluded=beyond["position_gap"] | beyond["tie_rate"] | beyond["invalid_rate"],
        reasons=pl.when(reasons != "").then(reasons),
    )


def with_exclusions(estimates: pl.DataFrame) -> pl.DataFrame:
    """Mark the rows of attack success of judges that are left out of its means."""
    about = [
        name
        for entry in STATISTICS.values()
        for name, row in entry.rows.items()
        if row.get("marks_excluded")
    ]
    out = excluded_judges(estimates).select(*JUDGE, out="excluded")
    marked = estimates.join(out, on=JUDGE, how="left", maintain_order="left")
    concerned = pl.col("statistic").is_in(about)
    return marked.with_columns(excluded=pl.when(concerned).then("out")).drop("out")


def _bound() -> pl.Expr:
    """Return the end of the interval nearer to 0, which for the gap may lie on either side."""
    low, high = pl.col("low"), pl.col("high")
    nearer = pl.when(low > 0).then(low).when(high < 0).then(-high).when(low <= 0).then(0.0)
    size = pl.when(pl.col("statistic") == "position_gap").then(nearer).otherwise(low)
    return pl.when(is_enough()).then(size)


def kept(estimates: DataFrame[Estimates], exclusions: DataFrame[Exclusions]) -> pl.DataFrame:
    """Return the estimates of judges that are not excluded."""
    out = exclusions.filter(pl.col("excluded"))
    return estimates.join(out, on=JUDGE, how="anti")
