"""The results of an audit: from its vote log to the warehouse, the report and the Prefect UI."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from pandera.typing.polars import DataFrame
from prefect import get_run_logger

from flows.publishing.artifacts import publish
from flows.results.drift import drift_line
from flows.results.result_stages import CACHED_RESULT_STEPS, measure_wave
from flows.results.study_results import results_of_study
from flows.running.run_row import RunRow
from schemas.calibration import Ratings
from schemas.curation import PerturbedAnswers
from schemas.judging import Pairs, StudyPairs, VoteLog
from tasks.drawing import render
from tasks.reporting.page import panels_of


async def save_results(
    row: RunRow,
    pairs: DataFrame[Pairs],
    vote_log: DataFrame[VoteLog],
    ratings: DataFrame[Ratings],
    perturbed: DataFrame[PerturbedAnswers],
) -> None:
    """Replace the results of the study by new ones from its votes and ratings, and publish them."""
    with render.drawing_aside() as draw, ThreadPoolExecutor(1) as thread:
        found = results_of_study(
            row.study,
            vote_log,
            (pairs, VoteLog.of(vote_log.filter("human"))),
            row.warehouse,
            ratings=ratings,
            steps=CACHED_RESULT_STEPS,
            measure_wave=measure_wave,
        )
        draw(panels_of(**found.concluded.in_mode(row.study.mode).drawn()))
        if drifted := drift_line(found.concluded.drifts, row.study.wave):
            get_run_logger().warning(drifted)
        # The report is prepared meanwhile.
        saving = thread.submit(
            copy_context().run,
            row.save,
            (StudyPairs, pairs),
            (VoteLog, vote_log),
            (Ratings, ratings),
            *found.tables(),
        )
        await publish(row, found, perturbed, saving.result)
