"""The members of the jury on the unperturbed pairs, and what each of them says of a pair."""

import polars as pl

from tasks.statistics._cells import stopped_early
from tasks.statistics._once import once
from tasks.statistics._position import ORDERS

ALL = "jury/all"
JURY = ["dataset", "prompt", "wave"]
ITEM = [*JURY, "sample", "cluster"]
NAMES = (*ITEM, "judge", "label")


@once
def jurors(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the score of each member on each control pair, and by order, of juries of two or more.

    Members are the judges that are no person and no formula and have a score; where all are
    simulated, all. Adds ``members``, how many the jury has; ``label`` is that of the pair, whoever
    was asked about it, and ``simulated`` is no longer null.
    """
    scored = _scores(tallies).with_columns(pl.col("simulated").fill_null(value=False))
    told = pl.col("score").is_not_null()
    speaking = scored.group_by(*JURY, "judge").agg(
        formula=pl.col("simulated").any(), speaks=told.any()
    )
    members = (
        speaking.filter("speaks")
        .filter(~pl.col("formula") | pl.col("formula").all().over(JURY))
        .with_columns(members=pl.len().over(JURY))
        .filter(pl.col("members") > 1)
        .select(*JURY, "judge", "members")
    )
    return scored.join(members, on=[*JURY, "judge"], maintain_order="left").with_columns(
        pl.col("label").drop_nulls().first().over(ITEM)
    )


def _scores(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the score of each judge that is no person on each control pair, and by order."""
    means = []
    for order in ORDERS:
        anchor, tie, target = (
            pl.col(f"{side}_{order}").cast(pl.Int64) for side in ("anchor", "tie", "target")
        )
        votes = anchor + tie + target
        mean = pl.when(votes > 0).then((target - anchor) / votes)
        first = pl.when(stopped_early()).then(pl.col(f"once_{order}")).otherwise(mean)
        means.append(((first + 1) / 2).alias(f"score_{order}"))
    return (
        tallies.filter(pl.col("arm") == "control", ~pl.col("human").fill_null(value=False))
        .with_columns(*means, *(pl.col(name).cast(pl.String) for name in NAMES))
        .with_columns(score=(pl.col("score_12") + pl.col("score_21")) / 2)
    )
