"""How many ballots became valid votes, and what became of the others."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import VALID, VoteLog
from schemas.results import Estimates
from tasks.statistics import statistic
from tasks.statistics._cells import shares

OUTCOMES = {
    "valid_rate": pl.col("choice").is_in(VALID),
    "invalid_rate": pl.col("choice") == "invalid",
    "abstain_rate": pl.col("choice") == "abstain",
    "ambiguous_rate": pl.col("choice") == "ambiguous",
    "missing_rate": pl.col("choice").is_null(),
    "cached_rate": pl.col("cached"),
}
SAVED = "saved_rate"


@statistic(source="methods.md, section 0", gives=(*OUTCOMES, SAVED))
def validity(vote_log: DataFrame[VoteLog]) -> DataFrame[Estimates]:
    """Measure the shares of needed ballots that are valid, invalid, abstained, ambiguous, missing.

    Parameters
    ----------
    vote_log
        One row per planned ballot; ``choice`` is null where none was cast, ``stopped`` is not null
        where none was needed.

    Returns
    -------
    Estimates
        Seven rows per cell, n the ballots needed. ``perturbation`` null is the whole judge, else
        the experimental and sham arms of that perturbation. ``cached_rate`` is the share cast in an
        earlier run, of the ballots of which that is known; ``saved_rate`` that of all planned
        ballots which a stopping rule made needless.

    Notes
    -----
    The five outcomes sum to 1.

    References
    ----------
    methods.md, sections 0 and 3 (cluster-adjusted Wilson).

    Examples
    --------
    Of four ballots, choices first, tie, invalid and none: valid .5, invalid .25, missing .25.
    """
    # The mode plays no part in what becomes of a ballot.
    log = vote_log.with_columns(mode=pl.lit("any"), votes=_votes_per_pair())
    nothing = pl.lit(None, dtype=pl.String)
    judge = log.with_columns(perturbation=nothing, kind=nothing)
    planned = pl.concat([judge, log.filter(pl.col("perturbation").is_not_null())])
    ballots = planned.filter(pl.col("stopped").is_null())
    known = {"cached_rate": pl.col("cached").is_not_null()}
    rows = [
        shares(
            name,
            ballots.with_columns(
                hit=hit.fill_null(value=False), counted=known.get(name, pl.lit(value=True))
            ).with_columns(dropped=~pl.col("counted")),
        )
        for name, hit in OUTCOMES.items()
    ]
    saved = planned.with_columns(
        hit=pl.col("stopped").is_not_null(), counted=pl.lit(value=True), dropped=pl.lit(value=False)
    )
    rows.append(shares(SAVED, saved))
    return Estimates.of(pl.concat(rows))


def _votes_per_pair() -> pl.Expr:
    pair = ("dataset", "judge", "prompt", "wave", "sample", "arm", "perturbation")
    return pl.len().over(pair)
