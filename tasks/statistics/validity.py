"""How many ballots became valid votes, and what became of the others."""

from collections.abc import Iterator

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Estimates
from tasks.statistics import statistic
from tasks.statistics._cells import portions
from tasks.statistics._groups import grouped

NEEDED = pl.col("planned") - pl.col("stopped")
OUTCOMES = {
    "valid_rate": pl.col("voted") - pl.col("invalid") - pl.col("abstain") - pl.col("ambiguous"),
    "invalid_rate": pl.col("invalid"),
    "abstain_rate": pl.col("abstain"),
    "ambiguous_rate": pl.col("ambiguous"),
    "missing_rate": NEEDED - pl.col("voted"),
    "cached_rate": pl.col("cached"),
}
SAVED = "saved_rate"
COUNTS = (
    "planned", "stopped", "voted", "invalid", "abstain", "ambiguous", "cached", "known"
)  # fmt: skip


@statistic(source="methods.md, section 0", gives=(*OUTCOMES, SAVED))
def validity(tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Measure the shares of needed ballots that are valid, invalid, abstained, ambiguous, missing.

    Parameters
    ----------
    tallies
        One row per pair and judge.

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
    pairs = tallies.select(
        "dataset", "judge", "prompt", "wave", "perturbation", "kind", "cluster", "simulated",
        *COUNTS, mode=pl.lit("any"), votes=pl.col("planned"),
    )  # fmt: skip
    nothing = pl.lit(None, dtype=tallies.schema["perturbation"])
    judge = pairs.with_columns(
        perturbation=nothing, kind=pl.lit(None, dtype=tallies.schema["kind"])
    )
    cells = pairs.filter(pl.col("perturbation").is_not_null())
    return Estimates.draft(pl.concat(row for part in (judge, cells) for row in _rates(part)))


def _rates(pairs: pl.DataFrame) -> Iterator[DataFrame[Estimates]]:
    groups = grouped(pairs)
    known = {"cached_rate": pl.col("known")}
    for name, hits in OUTCOMES.items():
        den = known.get(name, NEEDED)
        yield portions(name, pairs.with_columns(num=hits, den=den, dropped=NEEDED - den), groups)
    saved = pairs.with_columns(num=pl.col("stopped"), den=pl.col("planned"), dropped=pl.lit(0))
    yield portions(SAVED, saved, groups)
