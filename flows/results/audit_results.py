"""The results of an audit: from its vote log to the warehouse, the report and the Prefect UI."""

from pandera.typing.polars import DataFrame
from prefect import get_run_logger

from flows.publishing.artifacts import publish
from flows.results.drift import drift_line, drift_of, reply_changes_of
from flows.results.people import voters_in
from flows.results.stages import RESULTS, measure_wave
from flows.results.vote_summary import PRICES
from flows.running.run_row import RunRow
from schemas.calibration import Ratings
from schemas.conclusions import ReplyChanges, Voters
from schemas.curation import PerturbedAnswers
from schemas.judging import Pairs, Shifts, StudyPairs, Verdicts, VoteLog
from schemas.results import Annotations
from tasks.judging.people import open_ballots, with_open_ballots
from tasks.results import results_of


async def save_results(
    row: RunRow,
    pairs: DataFrame[Pairs],
    vote_log: DataFrame[VoteLog],
    ratings: DataFrame[Ratings],
    perturbed: DataFrame[PerturbedAnswers],
) -> None:
    """Replace the results of the study by those of its votes and ratings, and publish them."""
    study = row.study
    results = results_of(
        vote_log,
        study.mode,
        ratings=ratings,
        detects_at=study.detects_at,
        thresholds=study.thresholds,
        steps=RESULTS,
    )
    fewest = study.thresholds.fewest_questions
    missing = open_ballots(pairs, VoteLog.of(vote_log.filter("human")), fewest)
    results = results._replace(findings=with_open_ballots(results.findings, missing))
    drifts = drift_of(study, row.warehouse, measure_wave)
    concluded = results.concluded(drifts, study.thresholds, row.warehouse.query(PRICES))
    row.save(
        (StudyPairs, pairs),
        (VoteLog, vote_log),
        (Ratings, ratings),
        (Verdicts, results.verdicts),
        (Shifts, results.shifts),
        (Annotations, results.annotations),
        (ReplyChanges, reply_changes_of(study, row.warehouse)),
        (Voters, voters_in(vote_log, pairs, row.warehouse)),
        *concluded.tables(),
    )
    if drifted := drift_line(drifts, study.wave):
        get_run_logger().warning(drifted)
    await publish(row, concluded, perturbed)
