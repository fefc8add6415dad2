"""Publish a run's results: a report file and Prefect artifacts."""

import asyncio
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pandera.typing.polars import DataFrame
from prefect import get_run_logger
from prefect.artifacts import acreate_image_artifact, acreate_markdown_artifact

from flows.publishing.answers import place_of, study_answer
from flows.publishing.pages import render_page, report_path
from flows.publishing.report_files import write_report_file
from flows.publishing.served_files import link_to
from flows.results.result_stages import write_report
from flows.results.study_results import StudyResults
from flows.running.run_row import RunRow
from flows.serving.prefect_reporting import MESSAGE_SECONDS
from schemas.curation import PerturbedAnswers
from tasks.charts import charts_of
from tasks.drawing.render import stacked_svg
from tasks.kit.stage import oldest_kept
from tasks.progress import step
from tasks.reporting.advice import advice, literal
from tasks.results import Conclusions
from warehouse.atomic_files import write_private


async def publish(
    run: RunRow,
    found: StudyResults,
    perturbed: DataFrame[PerturbedAnswers],
    saved: Callable[[], object],
) -> None:
    """Write the report beside the warehouse, and show the answer in the Prefect UI.

    ``saved`` returns when the results are in the warehouse, or raises why they are not. If they
    are, the run reports what cannot be written, whatever the reason, and goes on.
    """
    name = run.study.name
    path = report_path(run.warehouse.path, name)
    step("writing the report")
    try:
        page = render_page(
            run.columns(),
            run.warehouse,
            found.concluded,
            found.voters,
            perturbed=perturbed,
            saved=saved,
            render=write_report,
        )
        write_report_file(path, page)
    except Exception as error:  # noqa: BLE001 - see above
        saved()
        run.counts.not_written(f"report {path}", error, f"`voirdire report {name}` writes it")
    step("writing to the Prefect UI")
    try:
        await _show_in_ui(run, found.concluded, path)
    except Exception as error:  # noqa: BLE001 - see above
        run.counts.not_written(
            "answer in the Prefect UI", error, f"`voirdire report {name}` has it"
        )


async def _show_in_ui(run: RunRow, concluded: Conclusions, report: Path) -> None:
    """Log the answer; make artifacts of it, with a link to the report, and of the pictures."""
    concluded = concluded.in_mode(run.study.mode)
    for line in advice(concluded.recommendations, run.study.wave):
        get_run_logger().info("%s", line.text())
    pictures = await asyncio.to_thread(_draw, run, concluded, report) if link_to(report) else {}
    happened, place = f"{run.counts.summary()}.", place_of(report)
    async with asyncio.timeout(MESSAGE_SECONDS):
        for key, (title, address) in pictures.items():
            await acreate_image_artifact(address, key=key, description=title)
        await acreate_markdown_artifact(
            **study_answer(run.study, concluded, happened, place, run.warehouse.path)
        )


def _draw(run: RunRow, concluded: Conclusions, report: Path) -> dict[str, tuple[str, str]]:
    """Write the charts of the report as pictures of this run: key -> (title, address).

    Pictures of runs that ended long ago are deleted.
    """
    folder = report.parent / "pictures"
    for old in folder.glob("*"):
        # Another run may delete it at the same time.
        with suppress(FileNotFoundError):
            if old.stat().st_mtime < oldest_kept():
                shutil.rmtree(old)
    frames = concluded.drawn()
    drawn = {}
    for chart in charts_of(*frames):
        if panels := chart(**frames):
            key = chart.name.replace("_", "-")
            file = folder / run.run / f"{key}.svg"
            write_private(file, stacked_svg(panels).encode())
            if address := link_to(file):
                drawn[key] = (literal(chart.title), address)
    return drawn
