"""A study without anything new to ask: its results are reused, and no flow runs."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from flows.results.vote_summary import probed_line
from flows.running.gaps import SAVED_AT
from flows.running.run_row import one_line, row_without_calls
from flows.studies import Study
from tasks.kit.printable import several, thousands
from warehouse.path_checks import CompletedRun
from warehouse.store import Warehouse

OUTDATED = """
    select distinct study, flow = 'measure' as filed
    from estimates as e join runs using (run, study)
    where e.saved_at < (select upgraded_at from meta) and flow <> 'calibrate'
    order by study
"""
"""Studies measured before the file was upgraded, whose results may lack what is newer."""
UNREAD = "select count(distinct ballot_id) as replies from mart.invalid_replies where study = ?"


def outdated_line(warehouse: Warehouse) -> str:
    """Name the studies that must be measured again, and the command; empty if there is none."""
    studies = warehouse.query(OUTDATED).rows()
    if not studies:
        return ""
    steps = [
        f"`voirdire measure VOTES --warehouse {warehouse.path}` on the file of {study}"
        if filed
        else f"`voirdire remeasure {study}`"
        for study, filed in studies
    ]
    return (
        "An earlier version saved results here, so some marts may lack rows or values of them. "
        f"Run {'; '.join(steps)}."
    )


def reuse_results(last: CompletedRun, study: Study, warehouse: Warehouse) -> str:
    """Record a run that finds nothing to do; return what to say about it."""
    row = row_without_calls("audit", study, planned=last.planned, from_warehouse=last.cast)
    warehouse.start_run({**row, "state": "completed", "ended_at": row["started_at"]})
    spared = last.planned - last.cast
    not_needed = f", {thousands(spared)} not needed" if spared else ""
    if spared and (alike := probed_line(warehouse, study.name)):
        not_needed += f" ({alike})"
    unread = int(warehouse.query(UNREAD, [study.name])["replies"].item())
    if unread:
        replies = several(unread, "reply", "replies")
        not_needed += f", {replies} without a verdict (none of them new)"
    return (
        f"{several(last.planned, 'ballot')}: {thousands(last.cast)} from the warehouse, 0 cast, 0 "
        f"without a reply{not_needed}. Nothing has changed since {last.ended_at:%Y-%m-%d %H:%M} "
        "UTC, so the earlier results are shown."
    )


def restore_report(study: str, warehouse: Warehouse) -> Path:
    """Return the path of the report; write it if it is missing or older than the results."""
    # Importing the drawing library takes a second.
    from flows.publishing.pages import report_path, stored_page
    from flows.publishing.report_files import write_report_file

    path = report_path(warehouse.path, study)
    saved_at: datetime | None = warehouse.query(SAVED_AT, [study]).item()
    since = saved_at.timestamp() if saved_at else 0.0
    if not path.is_file() or path.stat().st_mtime < since:
        write_report_file(path, stored_page(warehouse, study).page)
    return path


def renew_report(study: str, warehouse: Warehouse, warn: Callable[[str], object]) -> Path:
    """Restore the report; if it cannot be written, warn: the results are saved already."""
    from flows.publishing.pages import report_path

    try:
        return restore_report(study, warehouse)
    except OSError as error:
        report = report_path(warehouse.path, study)
        why = f"report {report} was not written: {one_line(error)}"
        warn(f"Warning: the {why} (`voirdire report {study}` writes it).")
        return report
