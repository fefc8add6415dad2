"""Publish a run's results: a report file and Prefect artifacts."""

import asyncio
from pathlib import Path
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame
from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact

from flows.publishing.pages import render_page, report_path, write_page
from flows.results.stages import write_report
from flows.running.run_row import RunRow
from flows.serving.prefect_reporting import MESSAGE_SECONDS
from flows.studies import Study
from schemas.curation import PerturbedAnswers
from tasks.progress import step
from tasks.reporting.advice import advice, literal, not_measured, policy
from tasks.results import Conclusions


async def publish(
    run: RunRow,
    concluded: Conclusions,
    perturbed: DataFrame[PerturbedAnswers],
) -> None:
    """Write the report beside the warehouse and the result table into the Prefect UI.

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
        await asyncio.wait_for(_show_in_ui(run, concluded, path), MESSAGE_SECONDS)
    except Exception as error:  # noqa: BLE001 - see above
        run.counts.not_written("table in the Prefect UI", error, f"`voirdire report {name}` has it")


async def _show_in_ui(run: RunRow, concluded: Conclusions, path: Path) -> None:
    await acreate_table_artifact(
        artifact_rows(concluded.findings),
        key="findings",
        description=f"Mean preference shift, study {run.study.name}",
    )
    places = f"Report: `{path}`\n\nWarehouse: `{run.warehouse.path}`"
    await acreate_markdown_artifact(
        f"{advice_markdown(concluded, run.study)}{literal(run.counts.summary())}.\n\n{places}",
        key="report",
        description=f"Which judge to use, study {run.study.name}",
    )


def advice_markdown(concluded: Conclusions, study: Study) -> str:
    """Return whether to use each judge, and the policy, as Markdown; empty without a judge."""
    recommended = concluded.in_mode(study.mode).recommendations
    lines = [line.markdown() for line in advice(recommended, study.wave)]
    if not lines:
        return ""
    notes = [not_measured(recommended), policy(study.thresholds)]
    listed = "\n".join(lines)
    return "\n\n".join(["## Which judge to use", listed, *filter(None, notes), ""])


def artifact_rows(findings: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of the table artifact: findings with their shift, rounded."""
    shown = findings.select(
        judge=pl.col("judge")
        + pl.when("simulated").then(pl.lit(" (simulated)")).otherwise(pl.lit("")),
        perturbation=pl.coalesce("perturbation", "kind"),
        shift=pl.col("estimate").round(3),
        low=pl.col("low").round(3),
        high=pl.col("high").round(3),
        over_control=pl.col("control").round(3),
        sham_shift=pl.col("sham_shift").round(3),
        detected=pl.col("detected").round(3),
        finding="finding",
        reason="reason",
    )
    return shown.to_dicts()
