"""Publish a run's results: a report file and Prefect artifacts."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame
from prefect import get_run_logger
from prefect.artifacts import acreate_image_artifact, acreate_markdown_artifact

from flows.publishing.pages import render_page, report_path, write_page
from flows.publishing.served_files import link_to
from flows.results.stages import write_report
from flows.running.run_row import RunRow
from flows.serving.prefect_reporting import MESSAGE_SECONDS
from schemas.curation import PerturbedAnswers
from tasks.charts import charts_of
from tasks.drawing.render import stacked_svg
from tasks.kit.stage import oldest_kept
from tasks.progress import step
from tasks.reporting.advice import ORDER, Advice, advice, literal, not_measured, policy
from tasks.reporting.wording import clean, interval, listing, number, shorten
from tasks.results import Conclusions
from warehouse.private import write_private

LONGEST_DESCRIPTION = 300
COLUMNS = ("judge", "perturbation", "shift", "over control", "finding")


async def publish(
    run: RunRow,
    concluded: Conclusions,
    perturbed: DataFrame[PerturbedAnswers],
) -> None:
    """Write the report beside the warehouse, and show the answer in the Prefect UI.

    The results are already in the warehouse, so the run reports what cannot be written, whatever
    the reason, and goes on.
    """
    name = run.study.name
    path = report_path(run.warehouse.path, name)
    step("writing the report")
    try:
        page = render_page(
            run.columns(),
            run.warehouse,
            concluded,
            perturbed=perturbed,
            render=write_report,
        )
        write_page(page, path)
    except Exception as error:  # noqa: BLE001 - see above
        run.counts.not_written(f"report {path}", error, f"`voirdire report {name}` writes it")
    step("writing to the Prefect UI")
    try:
        await _show_in_ui(run, concluded, path)
    except Exception as error:  # noqa: BLE001 - see above
        run.counts.not_written(
            "answer in the Prefect UI", error, f"`voirdire report {name}` has it"
        )


async def _show_in_ui(run: RunRow, concluded: Conclusions, report: Path) -> None:
    """Log the answer; make artifacts of it, with a link to the report, and of the pictures."""
    concluded = concluded.in_mode(run.study.mode)
    advised = advice(concluded.recommendations, run.study.wave)
    for line in advised:
        get_run_logger().info("%s", line.text())
    link = link_to(report)
    pictures = await asyncio.to_thread(_draw, run, concluded, report) if link else {}
    async with asyncio.timeout(MESSAGE_SECONDS):
        for key, (title, address) in pictures.items():
            await acreate_image_artifact(address, key=key, description=title)
        place = f"[Open the newest report of the study]({link})" if link else f"Report: `{report}`"
        await acreate_markdown_artifact(
            answer(run, concluded, advised, place),
            key="answer",
            description=f"{summary(advised)} {place}",
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


def answer(run: RunRow, concluded: Conclusions, advised: Sequence[Advice], report: str) -> str:
    """Return whether to use each judge, the findings, and where everything is, as Markdown."""
    recommended = concluded.recommendations
    parts = []
    if advised:
        notes = [not_measured(recommended), policy(run.study.thresholds)]
        lines = "\n".join(line.markdown() for line in advised)
        parts += ["## Which judge to use", lines, *filter(None, notes)]
    if not concluded.findings.is_empty():
        parts += ["## Findings", findings_table(concluded.findings)]
    parts += ["## This run", f"{literal(run.counts.summary())}."]
    return "\n\n".join([*parts, report, f"Warehouse: `{run.warehouse.path}`"])


def summary(advised: Sequence[Advice]) -> str:
    """Say in a line which judges to use; the card of the artifact shows it."""
    groups = {
        each: [
            f"{one.judge} (simulated)" if one.simulated else one.judge
            for one in advised
            if one.recommendation == each
        ]
        for each in ORDER
    }
    said = "; ".join(f"{each}: {listing(names)}" for each, names in groups.items() if names)
    text = f"{said[:1].upper()}{said[1:]}." if said else "No judge has a recommendation."
    return literal(clean(shorten(text, LONGEST_DESCRIPTION)))


def findings_table(findings: pl.DataFrame) -> str:
    """Return the findings as a table in Markdown."""
    rows = findings.sort("judge", "perturbation", nulls_last=True).to_dicts()
    cells = ([literal(clean(text)) for text in _cells(row)] for row in rows)
    lines = [COLUMNS, ("---",) * len(COLUMNS), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['judge']} (simulated)" if row["simulated"] else row["judge"],
        row["perturbation"] or row["kind"] or "",
        _estimate(row["estimate"], row["low"], row["high"]),
        _estimate(row["control"], row["control_low"], row["control_high"]),
        row["finding"] or row["reason"] or "",
    )


def _estimate(value: float | None, low: float | None, high: float | None) -> str:
    return "" if value is None else f"{number(value)} {interval(low, high)}"
