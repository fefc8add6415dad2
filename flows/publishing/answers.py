"""The answer of a run in the Prefect UI: whom to use, the findings, where everything is."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact

from flows.publishing.served_files import link_to
from flows.results.calibration import Calibrated
from flows.running.run_row import one_line
from flows.studies import Study
from schemas.results import CHANGED
from tasks.gates.recommendations import of_wave
from tasks.reporting.advice import (
    advice,
    by_recommendation,
    did_change,
    literal,
    not_measured,
    policy,
)
from tasks.reporting.calibration_answer import calibration_advice, calibration_policy
from tasks.reporting.calibration_report import tested
from tasks.reporting.rows import Judged
from tasks.reporting.wording import clean, interval, marked, number, shorten
from tasks.results import Conclusions
from warehouse.path_checks import option_for

LONGEST_DESCRIPTION = 300
FINDINGS = ("judge", "perturbation", "shift", "over control", "finding")
TESTS = ("judge", "winning rate", "advantage probability", "verdict")


def place_of(report: Path) -> str:
    """Say where a report is: a link if the server of this run serves it."""
    link = link_to(report)
    return f"[Open the newest report of the study]({link})" if link else f"Report: `{report}`"


def study_answer(
    study: Study, concluded: Conclusions, happened: str, place: str, warehouse: Path
) -> dict[str, str]:
    """Return the artifact of a study: whether to use each judge, and the findings."""
    concluded = concluded.in_mode(study.mode)
    recommended, findings = concluded.recommendations, concluded.findings
    advised = advice(recommended, study.wave)
    lines = "\n".join(line.typeset().markdown() for line in advised)
    option = option_for(warehouse)
    missing = not_measured(recommended, shlex.join([study.name, *option]))
    limits = policy(study.thresholds, recommended, study.detects_at)
    notes = [missing, limits] if advised else []
    drifts = concluded.drifts
    changed = "" if drifts.is_empty() else did_change(drifts, of_wave(concluded.gates, study.wave))
    words = ["voirdire", "show", study.name, "--changed", *option]
    replies = f"Replies before and after: `{shlex.join(words)}`"
    moved = drifts["state"].is_in(CHANGED).any()
    sections = {
        "Which judge to use": [lines, *notes],
        "Drift": [literal(changed), replies if moved else ""],
        "Findings": [] if findings.is_empty() else [findings_table(findings)],
        "This run": [literal(happened)],
    }
    return _artifact(sections, by_recommendation(advised), place, warehouse)


def calibration_answer(
    found: Calibrated, happened: str, place: str, warehouse: Path
) -> dict[str, str]:
    """Return the artifact of a calibration: which judges may replace people."""
    advised = calibration_advice(found.tests, found.comparison)
    rows = tested(found.tests)
    sections = {
        "Which judges may replace people": [
            "\n".join(line.typeset().markdown() for line in advised),
            calibration_policy(tested=bool(rows)),
            _table(TESTS, map(_tested, rows)) if rows else "",
        ],
        "This run": [literal(happened)],
    }
    return _artifact(sections, by_recommendation(advised), place, warehouse)


def _artifact(
    sections: Mapping[str, Sequence[str]], summary: str, place: str, warehouse: Path
) -> dict[str, str]:
    """Return the arguments of the artifact ``answer``; its card shows the summary."""
    parts = [
        part
        for title, texts in sections.items()
        if any(texts)
        for part in (f"## {title}", *filter(None, texts))
    ]
    return {
        "key": "answer",
        "markdown": "\n\n".join(filter(None, [*parts, place, f"Warehouse: `{warehouse}`"])),
        "description": f"{literal(clean(shorten(summary, LONGEST_DESCRIPTION)))} {place}".rstrip(),
    }


def show_answer(answer: Mapping[str, str]) -> None:
    """Show an answer in the Prefect UI; all results are saved, so a failure is only logged."""
    try:
        create_markdown_artifact(**answer)
    except Exception as error:  # noqa: BLE001 - whatever the reason, the run goes on
        get_run_logger().warning(f"The answer in the Prefect UI was not written: {one_line(error)}")


def findings_table(findings: pl.DataFrame) -> str:
    """Return the findings as a table in Markdown."""
    rows = findings.sort("judge", "perturbation", nulls_last=True).to_dicts()
    return _table(FINDINGS, map(_cells, rows))


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = ([literal(clean(text)) for text in row] for row in rows)
    lines = [columns, ["---"] * len(columns), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _tested(row: Judged) -> tuple[str, ...]:
    rate, advantage = (" ".join(filter(None, text)) for text in row.texts[:2])
    verdict = ": ".join(filter(None, row.finding))
    return (marked(row.judge, simulated=row.simulated), rate, advantage, verdict)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        marked(row["judge"], simulated=row["simulated"]),
        row["perturbation"] or row["kind"] or "",
        _estimate(row["estimate"], row["low"], row["high"]),
        _estimate(row["control"], row["control_low"], row["control_high"]),
        row["finding"] or row["reason"] or "",
    )


def _estimate(value: float | None, low: float | None, high: float | None) -> str:
    return "" if value is None else f"{number(value)} {interval(low, high)}"
