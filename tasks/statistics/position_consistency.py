"""Position consistency, primacy, recency and preference fairness."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import VALID, VoteLog
from schemas.results import Estimates
from tasks.statistics import statistic
from tasks.statistics._cells import ratios, shares, stopped_early

SAME_BALLOT = (
    "dataset", "judge", "prompt", "wave", "sample", "arm", "perturbation", "repeat"
)  # fmt: skip


@statistic(
    source="arXiv:2406.07791, section 3; methods.md, section 5",
    gives=("position_consistency", "primacy", "recency", "preference_fairness"),
)
def position_consistency(vote_log: DataFrame[VoteLog]) -> DataFrame[Estimates]:
    """Measure how often both orders of a pair get the same verdict, and which slot wins if not.

    Votes of equal repeat in the two orders are matched; n valid matches. Consistent: the same
    answer preferred, or two ties. Primacy: inconsistent with a vote ``first``; recency:
    inconsistent with a vote ``second``. ``preference_fairness = (recency - primacy) / n``.

    Parameters
    ----------
    vote_log
        One row per ballot.

    Returns
    -------
    Estimates
        Four rows per cell: shares in [0, 1], fairness in [-1, 1] (-1 always the first slot).
        ``perturbation`` null is the control arm, else the experimental arm.

    Notes
    -----
    A match with a vote that is not valid is dropped and counted, unlike in Shi et al., who call it
    consistent. A vote whose other order was never asked about, as random positions leave some, is
    left alone. Where votes were asked one after another, the first in each order count: it is the
    undecided pairs that are asked again. Conflict that is only noise is not told from position
    bias here.

    References
    ----------
    Shi et al. (2024), Judging the Judges, arXiv:2406.07791.

    Examples
    --------
    (first, second) names the same answer twice: consistent. (first, first) is primacy,
    (second, tie) recency: consistency 1/3, fairness 0.
    """
    matches = _match(vote_log)
    ab, ba = pl.col("choice"), pl.col("choice_swapped")
    same = ((ab == "tie") & (ba == "tie")) | ((ab != ba) & (ab != "tie") & (ba != "tie"))
    told = ab.is_in(VALID) & ba.is_in(VALID)
    told = told.fill_null(value=False)
    both = pl.col("orders") == 2
    named = {slot: (ab == slot) | (ba == slot) for slot in ("first", "second")}
    hits = {
        "position_consistency": same,
        "primacy": ~same & named["first"],
        "recency": ~same & named["second"],
    }
    items = matches.with_columns(counted=both & told, dropped=both & ~told)
    rows = [
        shares(name, items.with_columns(hit=hit.fill_null(value=False)))
        for name, hit in hits.items()
    ]
    parts = {
        "minuend": hits["recency"].cast(pl.Float64),
        "subtrahend": hits["primacy"].cast(pl.Float64),
    }
    fairness = items.with_columns(**parts, den=pl.lit(1.0)).with_columns(
        num=pl.col("minuend") - pl.col("subtrahend")
    )
    return Estimates.of(pl.concat([*rows, ratios("preference_fairness", fairness)]))


def _match(vote_log: DataFrame[VoteLog]) -> pl.DataFrame:
    """Lay the vote of each order beside that of the other with the same repeat."""
    anchor_first = pl.col("shown_first") == "anchor"
    return (
        vote_log.with_columns(votes=pl.len().over(*SAME_BALLOT[:-1]))
        .filter(pl.col("arm") != "sham", ~stopped_early() | (pl.col("repeat") == 0))
        .group_by(SAME_BALLOT, maintain_order=True)
        .agg(
            pl.col("cluster", "kind", "simulated", "votes").first(),
            orders=pl.len(),
            choice=pl.col("choice").filter(anchor_first).first(),
            choice_swapped=pl.col("choice").filter(~anchor_first).first(),
        )
        .with_columns(mode=pl.lit("any"))
    )
