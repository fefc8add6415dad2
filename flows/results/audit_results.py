"""The results of an audit: from its vote log to the warehouse, the report and the Prefect UI."""

from pandera.typing.polars import DataFrame
from prefect import get_run_logger

from flows.publishing.artifacts import publish
from flows.results.drift import drift_line, drift_of
from flows.results.stages import RESULTS, measure_wave
from flows.running.run_row import RunRow
from schemas.curation import PerturbedAnswers
from schemas.judging import Pairs, Shifts, StudyPairs, Verdicts, VoteLog
from schemas.results import Annotations, Drifts, Estimates, Findings
from tasks.judging.people import open_ballots, with_open_ballots
from tasks.results import conclusions_of, results_of


async def save_results(
    row: RunRow,
    pairs: DataFrame[Pairs],
    vote_log: DataFrame[VoteLog],
    perturbed: DataFrame[PerturbedAnswers],
) -> None:
    """Replace the results of the study by those of a vote log, and publish them."""
    study = row.study
    results = results_of(
        vote_log,
        study.mode,
        detects_at=study.detects_at,
        thresholds=study.thresholds,
        steps=RESULTS,
    )
    missing = open_ballots(pairs, VoteLog.of(vote_log.filter("human")))
    findings = with_open_ballots(results.findings, missing)
    drifts = drift_of(study, row.warehouse, measure_wave)
    row.save(
        (StudyPairs, pairs),
        (VoteLog, vote_log),
        (Verdicts, results.verdicts),
        (Shifts, results.shifts),
        (Annotations, results.annotations),
        (Estimates, results.estimates),
        (Findings, findings),
        (Drifts, drifts),
        *conclusions_of(results.estimates, findings, drifts, study.thresholds).tables(),
    )
    if drifted := drift_line(drifts, study.wave):
        get_run_logger().warning(drifted)
    await publish(row, results.estimates, findings, perturbed, drifts)
