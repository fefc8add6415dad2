"""Validity: how many ballots became valid votes, and the outcomes of the others."""

from collections.abc import Iterator

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.keys import JUDGE
from schemas.results import Estimates
from tasks.counting.cells import portions
from tasks.inference.cluster_sums import Groups, grouped
from tasks.statistics import statistic

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
COUNTS = ("planned", "stopped", "voted", "invalid", "abstain", "ambiguous", "cached", "known")


@statistic(source="methods.md, section 0", gives=(*OUTCOMES, SAVED), family="validity")
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
        earlier run, among ballots where that is known; ``saved_rate`` the share of planned ballots
        that a stopping rule made unnecessary.

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
    cells = _ballots(tallies).filter(pl.col("perturbation").is_not_null())
    parts = _of_judges(tallies), _condensed(cells)
    return Estimates.draft(pl.concat(row for part in parts for row in _rates(*part)))


def of_judges(tallies: DataFrame[Tallies], name: str) -> DataFrame[Estimates]:
    """Measure the share of one outcome among all needed ballots of each judge."""
    return _rate(name, *_of_judges(tallies))


def _ballots(tallies: pl.DataFrame) -> pl.DataFrame:
    # A ballot's outcome does not depend on the mode.
    return tallies.select(
        *JUDGE,
        "perturbation",
        "kind",
        "cluster",
        "simulated",
        *COUNTS,
        mode=pl.lit("any"),
        votes=pl.col("planned"),
    )


def _of_judges(tallies: pl.DataFrame) -> tuple[pl.DataFrame, Groups]:
    nothing = (pl.lit(None, tallies.schema[name]).alias(name) for name in ("perturbation", "kind"))
    return _condensed(_ballots(tallies).with_columns(nothing))


def _condensed(pairs: pl.DataFrame) -> tuple[pl.DataFrame, Groups]:
    return grouped(pairs).condensed(pairs.select(COUNTS))


def _rate(name: str, pairs: pl.DataFrame, groups: Groups) -> DataFrame[Estimates]:
    den = pl.col("known") if name == "cached_rate" else NEEDED
    items = pairs.with_columns(num=OUTCOMES[name], den=den, dropped=NEEDED - den)
    return portions(name, items, groups)


def _rates(pairs: pl.DataFrame, groups: Groups) -> Iterator[DataFrame[Estimates]]:
    for name in OUTCOMES:
        yield _rate(name, pairs, groups)
    saved = pairs.with_columns(num=pl.col("stopped"), den=pl.col("planned"), dropped=pl.lit(0))
    yield portions(SAVED, saved, groups)
