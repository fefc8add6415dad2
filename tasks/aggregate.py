"""Aggregate: the vote log, counts of its votes, and the estimates of all statistics."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial

import duckdb
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.arrow import fetch, lend
from schemas.calibration import Ratings
from schemas.curation import Known
from schemas.judging import (
    LAST_REPEAT,
    SIDES,
    Ballots,
    Judges,
    Pairs,
    Tallies,
    VoteLog,
    Votes,
    tallies_query,
)
from schemas.results import Estimates
from tasks.conclusions.exclusions import with_exclusions
from tasks.conclusions.worst_cases import rating_worst_cases, worst_cases
from tasks.judging.sequential_stopping import KEY, PAIR
from tasks.kit.defaults import DEFAULTS, Thresholds, limited_by
from tasks.progress import step
from tasks.statistics import STATISTICS, with_floors

AT_ONCE = 3
"""Threads that compute statistics: Polars computes while another thread runs Python."""

MANY_ROWS = 50_000
"""More rows than this are counted by several threads."""

NAMES = (
    "dataset",
    "judge",
    "prompt",
    "wave",
    "sample",
    "cluster",
    "perturbation",
    "anchor_author",
    "target_author",
    "category",
)
"""Columns of a vote log with any number of values, which ``tallies.sql`` only groups and copies."""

MARKUP = r"(?m)^\s*(?:#{1,6}\s|[-*+]\s|\d+[.)]\s|\||```)|\*\*[^*\n]+\*\*|\p{Extended_Pictographic}"
"""A heading, list item, table row, code block, bold text or emoji."""
PATTERNS = {
    "header": r"(?m)^\s*#{1,6}\s",
    "list": r"(?m)^\s*(?:[-*+]|\d+[.)])\s",
    "bold": r"\*\*[^*\n]+\*\*",
    "markup": MARKUP,
}
"""Patterns counted in each answer: some kinds of markup, and all markup together."""


def log_votes(
    pairs: DataFrame[Pairs],
    ballots: DataFrame[Ballots],
    judges: DataFrame[Judges],
    votes: DataFrame[Votes],
    *,
    waiting: pl.Series,
    stops: pl.DataFrame,
    categories: pl.DataFrame | None = None,
    known: DataFrame[Known] | None = None,
) -> DataFrame[VoteLog]:
    """Join each ballot with its pair and its vote; those not in ``waiting`` were cast before.

    ``stops`` says which ballots were not needed, see ``mark_stops``. Repeats of a replicate are
    renumbered from 0. ``categories`` has the ``category`` of each ``question_id``;
    ``known`` holds what the dataset says of each control pair: authors, label, score of people.
    """
    cast = pl.col("choice").is_not_null()
    log = (
        ballots.join(pairs.select(pl.exclude("question", *SIDES), *text_sizes()), on="pair_id")
        .join(judges.select("judge", "simulated"), on="judge")
        .join(votes.select("ballot_id", "choice"), on="ballot_id", how="left")
        .join(stops.select(*KEY, "stopped"), on=KEY)
        .with_columns(
            cached=cast & ~pl.col("ballot_id").is_in(waiting.implode()),
            human=pl.lit(value=False),
            repeat=pl.when(pl.col("arm") == "replicate")
            .then(pl.col("repeat") - pl.col("repeat").min().over(PAIR))
            .otherwise(pl.col("repeat")),
        )
    )
    if categories is not None:
        named = categories.select("category", cluster="question_id")
        log = log.join(named, on="cluster", how="left")
    if known is not None:
        control = pl.col("arm").cast(pl.String) == "control"
        perturbed = pl.col("arm").cast(pl.String) == "experimental"
        flawed = perturbed & (pl.col("kind").cast(pl.String) == "detract")
        log = log.join(known.drop("category"), on="sample", how="left").with_columns(
            # People and authors know the original answers alone. The correct verdict stays the
            # correct one, unless the perturbation makes the target worse.
            pl.when(control).then(
                pl.col("anchor_author", "target_author", "human_score", "label_chance")
            ),
            pl.when(~flawed).then("label").alias("label"),
        )
    return VoteLog.of(log)


def text_sizes() -> list[pl.Expr]:
    """Return expressions for the length and the markup counts of a pair's texts."""
    texts = [(side, pl.col(side).str) for side in SIDES]
    return [
        *(text.len_chars().cast(pl.Int64).alias(f"{side}_length") for side, text in texts),
        *(
            text.count_matches(pattern).cast(pl.Int64).alias(f"{side}_{kind}")
            for kind, pattern in PATTERNS.items()
            for side, text in texts
        ),
    ]


@cache
def _engine(*, many: bool) -> duckdb.DuckDBPyConnection:
    """Return an empty database in memory, which takes 15 ms to make; few rows need one thread."""
    return duckdb.connect(config={} if many else {"threads": 1})


def count_votes(vote_log: DataFrame[VoteLog]) -> DataFrame[Tallies]:
    """Count the votes of each pair (``schemas/tallies.sql``).

    Raise ValueError if a repeat is above 126: a set of repeats is an integer, with a bit for each.
    """
    return Tallies.of(count_coded(vote_log))


def count_coded(vote_log: DataFrame[VoteLog]) -> DataFrame[Tallies]:
    """Count votes like :func:`count_votes`, without validation and with ``NAMES`` as categories.

    DuckDB groups their integers, and statistics need not hash millions of texts again.
    """
    if vote_log.is_empty():
        return Tallies.empty()
    last = vote_log.select(pl.col("repeat").max().fill_null(0)).item()
    if last > LAST_REPEAT:
        raise ValueError(
            f"repeat {last} is too high: a pair has at most {LAST_REPEAT + 1} "
            f"votes in each order, numbered 0 to {LAST_REPEAT}. Number the repeats of each pair "
            "from 0, or leave some out."
        )
    codes = pl.col(NAMES).cast(pl.Categorical).to_physical()
    with _engine(many=vote_log.height > MANY_ROWS).cursor() as connection:
        lend(connection, "vote_log", vote_log.with_columns(codes, study=pl.lit("")))
        connection.execute("set variable study = ''")
        counted = fetch(connection, tallies_query(last))
    return Tallies.coded(counted.with_columns(pl.col(NAMES).cat.to(pl.Categorical)))


def measure_all(
    thresholds: Thresholds = DEFAULTS, *, only: Collection[str] = (), **frames: pl.DataFrame
) -> DataFrame[Estimates]:
    """Compute all statistics in one task, as separate tasks would each digest all frames.

    Without ``ratings``, statistics of ratings have no rows. ``only`` are the statistics to compute,
    if not all; worst cases of lost votes go with ``attrition``.
    """
    frames.setdefault("ratings", Ratings.empty())
    # Those that take longest first: worst cases of votes, models compared with each other, and
    # those that read most rows. Else one of them runs last, and alone.
    names = sorted(only or STATISTICS, key=lambda name: _turn(STATISTICS[name].reads, frames))
    worst = [partial(_worst_cases, frames)] if "attrition" in names else []
    turns = [f"{number} of {len(names)}" for number in range(1, len(names) + 1)]
    drafts = [partial(_draft, *each, frames) for each in zip(names, turns, strict=True)]
    with limited_by(thresholds):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            parts = [pool.submit(copy_context().run, job) for job in [*worst, *drafts]]
        rows = pl.concat([part.result() for part in [*parts[len(worst) :], *parts[: len(worst)]]])
        return Estimates.of(with_exclusions(with_floors(rows)))


def _turn(reads: Sequence[str], frames: Mapping[str, pl.DataFrame]) -> tuple[bool, int]:
    rows = sum(frames[frame].height for frame in reads if frame in frames)
    return "contests" not in reads, -rows


def _draft(name: str, turn: str, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    step(f"measuring: {name} ({turn} statistics)")
    with STATISTICS.running(name):
        rows = STATISTICS[name].draft(**frames)
        if name in STATISTICS.own:
            # All rows are validated together, where nobody knows whose they are.
            Estimates.of(with_floors(rows))
        return rows


def _worst_cases(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    compared = {"tallies", "shifts"} <= {*frames}
    cases = [worst_cases(frames["tallies"], frames["shifts"])] if compared else []
    return pl.concat([*cases, rating_worst_cases(frames["ratings"])])
