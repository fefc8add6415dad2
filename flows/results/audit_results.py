"""The results of an audit: from its vote log to the warehouse, the report and the Prefect UI."""

from typing import Any

from pandera.typing.polars import DataFrame
from prefect import get_run_logger

from flows.publishing.artifacts import publish
from flows.results.drift import drift_line, drift_of
from flows.running.record import Record
from schemas.curation import PerturbedAnswers
from schemas.judging import Pairs, Shifts, Verdicts, VoteLog
from schemas.results import Annotations, Drifts, Estimates, Findings
from tasks import stages
from tasks.conclude import endpoints
from tasks.judging.people import open_ballots, with_open_ballots


async def save_results(
    record: Record,
    pairs: DataFrame[Pairs],
    vote_log: DataFrame[VoteLog],
    perturbed: DataFrame[PerturbedAnswers],
) -> None:
    """Replace the results of the study by those of a vote log, and publish them."""
    study = record.study
    tallies = stages.count_votes(vote_log)
    verdicts = stages.tally_votes(tallies, study.mode)
    shifts = stages.match_groups(verdicts)
    frames: dict[str, Any] = {
        "tallies": tallies,
        "shifts": shifts,
        "contests": stages.match_models(tallies),
        "annotations": (annotations := stages.annotate(tallies)),
    }
    estimates = stages.measure(**frames)
    missing = open_ballots(pairs, VoteLog.of(vote_log.filter("human")))
    concluded = stages.conclude_findings(endpoints(estimates), study.detects_at)
    findings = with_open_ballots(concluded, missing)
    drifts = drift_of(study, record.warehouse, stages.measure_wave)
    record.save(
        (VoteLog, vote_log),
        (Verdicts, verdicts),
        (Shifts, shifts),
        (Annotations, annotations),
        (Estimates, estimates),
        (Findings, findings),
        (Drifts, drifts),
    )
    if drifted := drift_line(drifts, study.wave):
        get_run_logger().warning(drifted)
    await publish(record, estimates, findings, perturbed, drifts)
