"""Everything that follows from the votes of a study: computed once, and saved as tables."""

from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from flows.results.drift import drift_in, drift_of, reply_changes_of
from flows.results.vote_summary import voters_in, voters_of_file
from flows.studies import Study
from schemas.calibration import Ratings
from schemas.conclusions import ReplyChanges, Voters
from schemas.frame import Frame
from schemas.judging import Pairs, VoteLog
from tasks.judging.people import open_ballots, with_open_ballots
from tasks.logs.log_reader import Log
from tasks.logs.results import results_of_log
from tasks.progress import step
from tasks.results import (
    RESULT_STEPS,
    Conclusions,
    Results,
    ResultSteps,
    results_of,
    results_of_file,
)
from warehouse.store import Warehouse

PRICES = """
    select p.dataset, b.judge, b.prompt, b.wave,
        count(*) as votes, count(v.cost_usd) as priced, sum(v.cost_usd) as usd
    from votes as v join ballots as b using (ballot_id) join pairs as p using (pair_id)
    group by all
"""
"""What the votes of each judge cost, as ``conclusions_of`` takes it."""


class StudyResults(NamedTuple):
    """What `audit`, `remeasure` and `measure` compute from votes."""

    results: Results
    concluded: Conclusions
    voters: DataFrame[Voters]
    reply_changes: DataFrame[ReplyChanges]
    open_ballots: pl.DataFrame
    """What people have not voted on yet: :func:`tasks.judging.people.open_ballots`."""

    def conclusions(self) -> list[tuple[type[Frame], pl.DataFrame]]:
        """Return each frame that is saved for all judges together, with its model."""
        return [(ReplyChanges, self.reply_changes), (Voters, self.voters), *self.concluded.tables()]

    def tables(self) -> list[tuple[type[Frame], pl.DataFrame]]:
        """Return every frame that is saved, with its model."""
        return [*self.results.tables(), *self.conclusions()]


def results_of_study(
    study: Study,
    votes: Any,
    people: tuple[DataFrame[Pairs], DataFrame[VoteLog]],
    warehouse: Warehouse,
    *,
    ratings: DataFrame[Ratings] | None = None,
    steps: ResultSteps = RESULT_STEPS,
    measure_wave: Callable[..., pl.DataFrame] | None = None,
) -> StudyResults:
    """Return the results of a study whose votes are in the warehouse.

    ``votes`` are the vote log, or what ``steps.count`` takes; ``people`` the pairs that people may
    be shown, and their votes; ``ratings`` the ratings of single answers, if there are any.
    ``measure_wave`` replaces :func:`tasks.drift.alerts.measure_wave` by a cached version.
    """
    limits, (pairs, log) = study.thresholds, people
    results = results_of(
        votes,
        study.mode,
        ratings=ratings,
        detects_at=study.detects_at,
        thresholds=limits,
        steps=steps,
    )
    missing = open_ballots(pairs, log, limits.fewest_questions)
    results = results._replace(findings=with_open_ballots(results.findings, missing))
    step("measuring drift")
    known = pairs["pair_id"] if pairs.height else None
    drifts = drift_of(study, warehouse, measure_wave, pairs=known)
    return StudyResults(
        results,
        results.concluded(drifts, limits, warehouse.query(PRICES)),
        voters_in(log, pairs, warehouse),
        reply_changes_of(study, warehouse),
        missing,
    )


def results_in_log(log: Log, mode: str) -> StudyResults:
    """Return the results of a file of votes, or of another tool's log."""
    results = results_of_log(log, mode) if log.titles else results_of_file(log.votes, mode)
    return StudyResults(
        results,
        results.concluded(drift_in(log.votes, mode)),
        voters_of_file(log.votes),
        ReplyChanges.empty(),
        pl.DataFrame(),
    )
