"""Validity: how many ballots became valid votes, and the outcomes of the others."""

from collections.abc import Iterator

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.judging import Tallies
from schemas.keys import JUDGE
from schemas.results import Estimates
from tasks.counting.cells import portions
from tasks.inference.cluster_sums import Groups, grouped
from tasks.pointwise.rated_items import BALLOT, IN_ONE_REPLY
from tasks.statistics import Rows, statistic

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
NOT_REWORDED = pl.col("arm").cast(pl.String) != "reworded"
"""Rows of the judge with its prompt, of which another wording is no property."""
ABOUT = (*JUDGE, "perturbation", "kind", "cluster", "simulated")
UNREAD = ("abstain", "ambiguous")
COUNTS = ("planned", "stopped", "voted", "invalid", "abstain", "ambiguous", "cached", "known")


@statistic(
    source="methods.md, section 0",
    gives=(*OUTCOMES, SAVED),
    family="validity",
    rows={name: {"order": "irrelevant"} for name in ("valid_rate", "invalid_rate")},
    missing={
        **dict.fromkeys(OUTCOMES, "no ballot was needed"),
        "cached_rate": "no ballot has a value in column `cached` (whether its vote was cast "
        "before)",
        SAVED: "no ballot was planned",
    },
)
def validity(tallies: DataFrame[Tallies], ratings: DataFrame[Ratings]) -> Rows:
    """Measure the shares of needed ballots that are valid, invalid, abstained, ambiguous, missing.

    Parameters
    ----------
    tallies
        One row per pair and judge.
    ratings
        One row per rating; ratings of single answers are ballots. The criteria that a reply rates
        are one ballot, which is invalid if one of them is.

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
    parts = [_ballots(tallies), _ballots_of(ratings)]
    # Without ratings the texts stay ranked: their common type with a frame of none is plain text.
    there = [part for part in parts if not part.is_empty()]
    asked = pl.concat(there or parts, how="vertical_relaxed")
    cells = asked.filter(pl.col("perturbation").is_not_null())
    return [row for part in (_whole(asked), _condensed(cells)) for row in _rates(*part)]


def of_judges(tallies: DataFrame[Tallies], name: str) -> DataFrame[Estimates]:
    """Measure the share of one outcome among all needed ballots of each judge."""
    return _rate(name, *_whole(_ballots(tallies)))


def _ballots(tallies: pl.DataFrame) -> pl.DataFrame:
    # A ballot's outcome does not depend on the mode.
    return tallies.filter(NOT_REWORDED).select(
        *ABOUT, *COUNTS, mode=pl.lit("any"), votes=pl.col("planned")
    )


def _ballots_of(ratings: pl.DataFrame) -> pl.DataFrame:
    unread = {word: (pl.col("invalid") == word).fill_null(value=False) for word in UNREAD}
    each = ratings.filter(NOT_REWORDED, pl.col("kind") != "verdict").select(
        *BALLOT,
        "cluster",
        "simulated",
        "cached",
        pl.col("perturbation_kind").alias("kind"),
        **unread,
        invalid=pl.col("invalid").is_not_null() & ~pl.any_horizontal(unread.values()),
        parts=IN_ONE_REPLY,
    )
    several = each.filter("parts")
    if several.height:
        replies = several.group_by(BALLOT, maintain_order=True).agg(
            pl.col("cluster", "simulated", "cached", "kind").first(),
            pl.col("invalid", *UNREAD).any(),
        )
        each = pl.concat([each.filter(~pl.col("parts")).drop("parts"), replies], how="diagonal")
    # As narrow as the counts of millions of pairs, which would be widened to these.
    one, none = pl.lit(1, pl.UInt8), pl.lit(0, pl.UInt8)
    invalid, abstain = pl.col("invalid"), pl.col("abstain")
    counts = {
        "planned": one,
        "stopped": none,
        "voted": one,
        "invalid": invalid,
        "abstain": abstain & ~invalid,
        "ambiguous": pl.col("ambiguous") & ~invalid & ~abstain,
        "cached": pl.col("cached").fill_null(value=False),
        "known": pl.col("cached").is_not_null(),
    }
    return each.select(
        *ABOUT,
        *(count.cast(pl.UInt8).alias(name) for name, count in counts.items()),
        mode=pl.lit("any"),
        votes=one,
    )


def _whole(asked: pl.DataFrame) -> tuple[pl.DataFrame, Groups]:
    nothing = (pl.lit(None, asked.schema[name]).alias(name) for name in ("perturbation", "kind"))
    return _condensed(asked.with_columns(nothing))


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
