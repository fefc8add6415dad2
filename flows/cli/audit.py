"""Run an audit in this process: server, worker and imports start concurrently."""

import asyncio
import gc
import logging
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple
from uuid import uuid4

from flows.cli.completion import DEFAULT_STUDY
from flows.cli.printing.live import Printer, View
from flows.running.processes import exit_now, run_in_thread
from flows.running.readiness import again_line, not_ready, not_ready_line, unnamed_line
from flows.serving.access import Access, new_auth
from flows.serving.local_models import start_servers
from flows.serving.server import SETTINGS, Server, find_server, require_answer
from flows.studies import STUDIES, Study, make_study
from tasks.engine.worker_client import shared_worker
from tasks.kit.command_line import given_options
from tasks.kit.exit_codes import ExitCode
from tasks.kit.memory import share_one_heap
from tasks.progress import current_status, step
from tasks.providers import provider_of
from warehouse.path_checks import completed_run, default_path

QUIET = {
    # The terminal shows our own table and progress bars; the log is in the Prefect UI.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    # We report a lost server once, in a message of our own.
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_CLIENT_MAX_RETRIES": "2",
    # With the default of 60 s, a run would wait many minutes for a frozen server.
    "PREFECT_API_REQUEST_TIMEOUT": "15",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    **SETTINGS,
}

SECONDS_TO_START = 60.0
"""How long a run waits for a busy Prefect server."""

SECONDS_TO_RECORD_THE_END = 20.0
"""How long the Prefect server may take to record that a run has ended."""

POLLING_SECONDS = 0.2
LONGEST_CAUSE = 200
SECONDS_AFTER_AN_INTERRUPT = 0.2
"""How long the server may take to stop: all results are in the warehouse and the journal."""

CONSOLE = Printer()


def audit_here(
    name: str | None,
    changes: dict[str, Any],
    warehouse: Path | None,
    *,
    confirmed: bool = False,
    server: str | None = None,
    view: View,
) -> int:
    """Run a study, by default quick, show its results and return the exit code.

    Ask for confirmation before an expensive study, unless ``confirmed``.
    """
    share_one_heap()
    is_default, name = name is None, name or DEFAULT_STUDY
    path = Path(warehouse or default_path()).absolute()
    saved = None
    if name not in STUDIES:
        from flows.publishing.pages import saved_study

        saved = saved_study(name, path)
    study = make_study(name, changes, base=saved, called=given_options())
    first = unnamed_line(DEFAULT_STUDY, changes, path) if is_default and changes else ""
    if saved:
        from flows.publishing.pages import require_data

        require_data(study, saved, path, "audit")
    dated = study.at(datetime.now(UTC))
    code: int = ExitCode.DONE
    if last := completed_run(path, study.name, dated.fingerprint):
        from flows.results.up_to_date import restore_report, reuse_results
        from warehouse.store import Warehouse

        if first:
            current_status().tell(first)
        message = reuse_results(last, dated, Warehouse(path))
        restore_report(dated.name, Warehouse(path))
        results = _results_of(dated, path)
        view.close()
        _show(dated, path, results, [message])
    else:
        asked, warned = _askable(study, path), False
        if not confirmed and any(not provider_of(judge).simulated for judge in asked):
            from flows.cli.plan import confirm_spending

            warned = confirm_spending(
                study.model_copy(update={"judges": asked}), warehouse, view.paused
            )
        code = _audit(study, path, server, view, first=first, warned=warned)
    # Garbage collection of thousands of classes at exit takes a second.
    gc.freeze()
    gc.disable()
    return code


def _askable(study: Study, path: Path) -> list[str]:
    """Return the judges that can be asked; print which cannot, and why.

    Raise ValueError if no judge can be asked, and the warehouse has no votes of them.
    """
    unavailable = not_ready(study)
    if not unavailable:
        return study.judges
    why = not_ready_line(unavailable)
    asked = [judge for judge in study.judges if judge not in unavailable]
    if not asked:
        from flows.running.run_row import record_failure
        from warehouse.store import Warehouse

        known = Warehouse(path).query(VOTED, {"judges": study.judges}) if path.is_file() else None
        if known is None or not known["voted"].item():
            none = "" if known is None else ", and no earlier vote exists"
            error = ValueError(
                f"no judge can be asked{none}. {why}. Nothing was asked. Correct this, or choose "
                "other judges with --judge."
            )
            record_failure(_row(study), Warehouse(path), error)
            raise error
    current_status().tell(f"Not asked, which leaves gaps where there is no earlier vote: {why}.")
    return asked


def _row(study: Study) -> dict[str, Any]:
    """Return the row for a run that fails before its flow starts."""
    from flows.running.run_row import first_row

    now = datetime.now(UTC)
    return first_row("audit", str(uuid4()), study.at(now), now)


def _audit(
    study: Study, path: Path, server_url: str | None, view: View, *, first: str, warned: bool
) -> int:
    os.environ.update({k: os.environ.get(k, v) for k, v in QUIET.items()})
    # Prefect's log handler would print records that it could not send.
    logging.raiseExceptions = False
    access = find_server(server_url)
    server = None if access else Server(auth=new_auth())
    # Importing litellm takes seconds, as may loading a model: begin now.
    worker = shared_worker()
    if not _only_simulated(study):
        worker.load_litellm()
    start_servers(study.judges)
    sent = True
    try:
        state, sent = _run(study, path, access, server, first=first, warned=warned)
        if server and sent:
            server.begin_to_stop()
        step("reading results")
        results = _results_of(study, path)
        view.close()
        code = _show_run(study, path, state, results, access)
    except KeyboardInterrupt:
        sent = False
        raise
    finally:
        if server:
            # A server that no longer answers needs no orderly stop.
            server.stop() if sent else server.stop(SECONDS_AFTER_AN_INTERRUPT)
    if not sent:
        # Prefect would try for minutes to reach a server that is gone.
        exit_now(code)
    return code


def _only_simulated(study: Study) -> bool:
    return all(provider_of(judge).simulated for judge in study.judges)


def _run(
    study: Study,
    path: Path,
    access: Access | None,
    server: Server | None,
    *,
    first: str,
    warned: bool,
) -> tuple[Any, bool]:
    """Return the state of the run, and whether the Prefect server received everything.

    Say ``first``, and what cannot be computed from the data, unless it was ``warned``.
    """
    if used := server.access if server else access:
        used.put_into_environment()
    where = f"the Prefect server at {access.url}" if access else "a temporary Prefect server"
    status = current_status()
    # Garbage collection while thousands of classes are created takes a quarter of a second.
    gc.disable()
    import flows.audit
    from flows.results.preparation import prepare_results
    from flows.running.ballots import limit_line, read_dataset
    from flows.running.gaps import less_shown_line
    from flows.running.run_row import failure_recorded, require_free
    from tasks.curate import cannot_compute
    from warehouse.store import Warehouse

    gc.freeze()
    gc.enable()
    # Read both first, so that an unusable file is reported before a flow run exists.
    with failure_recorded(lambda: _row(study), Warehouse(path)):
        found = read_dataset(study)
        require_free(study.name, Warehouse(path))
        for line in (first, "" if warned else cannot_compute(study.dataset, found)):
            if line:
                status.tell(line)
        if others := study.not_reworded():
            status.tell(f"--reworded: {', '.join(others)} not asked in other words (no variants).")
        size = found[0].height
        for line in (limit_line(study, size), less_shown_line(study, size, Warehouse(path))):
            if line:
                status.tell(line)
        if server:
            status.step = f"waiting for {where}"
            if _only_simulated(study):
                # Simulated judges need the processors when they are asked, providers do not.
                prepare_results()
            server.wait(status.tell)
        elif access:
            require_answer(access, status.tell)
    return run_in_thread(lambda: _state_of(flows.audit.audit, study, path, where))


def _show_run(
    study: Study, path: Path, state: Any, results: "PrintedAudit", access: Access | None
) -> int:
    """Print the results of a run; return the exit code."""
    from flows.running.gaps import GAPS
    from flows.studies.repeated import audit_again

    gaps = state.name == GAPS
    # The next line says what is missing.
    notes = [state.message.replace(f" ({results.missing})", "")]
    if results.missing:
        notes.append(f"{'Completed with gaps' if gaps else 'Completed'}: {results.missing}.")
    if results.newer:
        notes.append(
            f"These results of wave {study.wave!r} replace those of newer waves "
            f"({', '.join(results.newer)}), also in the report, in SQL and for the gate. "
            f"`{audit_again(path, study.name, results.newer[-1])}` measures the newest again, and "
            "asks no judge."
        )
    if access:
        run = state.state_details.flow_run_id
        notes.append(f"Prefect: {access.url.removesuffix('/api')}/runs/flow-run/{run}")
    _show(study, path, results, notes, gaps=gaps)
    return ExitCode.WITH_GAPS if gaps else ExitCode.DONE


VOTED = """
    select exists(from votes join ballots using (ballot_id) where judge in $judges) as voted
"""
"""Whether there are votes of a judge of the study."""

LAST_ERROR = """
    select error from runs where study = ? and flow = 'audit' order by started_at desc limit 1
"""
"""What is missing according to the last run."""

NEWEST = """
    select run, error from runs where study = ? and flow = 'audit' and started_at >= ?
    order by started_at desc limit 1
"""

FILLED = """
    select any_value(columns(* exclude (study, human))), bool_or(human) as human,
        bool_or(judge in (anchor_author, target_author)) as own_author
    from vote_log where study = ?
"""
"""One row with a value of each column of the vote log that has one, and `own_author`."""


class PrintedAudit(NamedTuple):
    """What an audit prints, as it is in the warehouse."""

    rows: list[dict[str, Any]]
    recommended: Any
    filled: Any
    at_hand: dict[str, Any]
    """The row of ``AT_HAND``."""
    missing: str | None
    """What is missing according to the last run."""
    newer: list[str]
    """Waves that began after the one that was measured, the newest last."""


def _results_of(study: Study, path: Path) -> PrintedAudit:
    """Read what is printed, in one visit of the warehouse; import what prints it."""
    from flows.cli.printing.ranking_table import BIAS
    from flows.publishing.evidence import AT_HAND
    from flows.publishing.gate import RECOMMENDED
    from warehouse.evidence.selection import NEWER
    from warehouse.store import Warehouse

    found, at_hand, newer, recommended, filled, error = Warehouse(path).query_all(
        (BIAS, {"study": study.name}),
        *((query, {"study": study.name, "wave": study.wave}) for query in (AT_HAND, NEWER)),
        *((query, [study.name]) for query in (RECOMMENDED, FILLED, LAST_ERROR)),
    )
    missing, waves = None if error.is_empty() else error.item(), newer["wave"].to_list()
    return PrintedAudit(
        found.to_dicts(), recommended, filled, at_hand.row(0, named=True), missing, waves
    )


def _show(
    study: Study, path: Path, results: PrintedAudit, notes: Sequence[str], *, gaps: bool = False
) -> None:
    """Print recommendations, the table, notes, and three lines: report, warehouse, what next."""
    from flows.cli.printing.answer import next_step, show_advice, show_places
    from flows.cli.printing.ranking_table import show_splits, split_people_without_results
    from flows.cli.printing.tables import print_line
    from flows.cli.printing.terminal import legend, lost_lines, result_table
    from flows.publishing.pages import report_path
    from flows.running.ballots import left_line
    from tasks.gates.recommendations import of_wave
    from tasks.statistics import filled_columns, lacking_line
    from warehouse.store import Warehouse

    (rows, reasons), advised = split_people_without_results(results.rows), results.recommended
    needed = None if advised.is_empty() else of_wave(advised, study.wave)["more_questions"].max()
    show_advice(
        CONSOLE,
        advised,
        study.wave,
        study.thresholds,
        study.name,
        detects_at=study.detects_at,
        left=left_line(study, needed),
    )
    CONSOLE.print(result_table(rows, f"Study {study.name}", CONSOLE))
    hint = ""
    if any(row["finding"] == "inconclusive" for row in rows):
        given = STUDIES[study.name].study if study.name in STUDIES else None
        known = given is None or study == given.model_copy(update={"wave": study.wave})
        plan = f"`voirdire plan {study.name}`" if known else "`voirdire plan` with the same options"
        what = "says which of them more questions would decide, and how many."
        hint = f" Inconclusive findings: {plan} {what}"
    print_line(CONSOLE, legend(rows) + hint, style="dim")
    columns = filled_columns(results.filled)
    # Votes on pairs; a study of single answers has ratings.
    lacking = lacking_line(columns) if "judge" in columns else ""
    for line in filter(None, (*lost_lines(rows), *reasons, lacking)):
        print_line(CONSOLE, line)
    show_splits(CONSOLE, study, Warehouse(path))
    if study.wave:
        from flows.cli.printing.measure_tables import show_changes

        show_changes(CONSOLE, study, Warehouse(path))
    for note in ("", *notes):
        print_line(CONSOLE, note)
    first = "" if any(row["n"] for row in rows) else "correct what the errors say, then "
    following = next_step(study.name, rows, results.at_hand, path, study.wave * bool(results.newer))
    following = first + again_line(study, path) if gaps else following
    show_places(CONSOLE, report_path(path, study.name), path, following)


async def _state_of(flow: Any, study: Study, path: Path, where: str) -> tuple[Any, bool]:
    """Run the flow; return its state, and whether the Prefect server received everything.

    A failure of the run is raised; a failure of the Prefect server alone is only printed.
    """
    import httpx

    from flows.running.run_row import one_line, record_failure
    from flows.serving.prefect_reporting import is_busy, outcomes, send_the_rest
    from warehouse.store import Warehouse

    store, before, began = Warehouse(path), len(outcomes), datetime.now(UTC)
    latest = monotonic() + SECONDS_TO_START
    sent = False

    def newest_run() -> list[tuple[Any, ...]]:
        return store.query(NEWEST, [study.name, began]).rows()

    async def run_once_free() -> Any:
        """Run the flow; try again while the server is too busy to record that it starts."""
        running = asyncio.ensure_future(flow(study, str(path), return_state=True))
        try:
            return await _state_in_time(running, lambda: len(outcomes) > before)
        except httpx.HTTPError as error:
            if not is_busy(error) or monotonic() > latest or newest_run():
                raise
        await asyncio.sleep(POLLING_SECONDS)
        return await run_once_free()

    try:
        state = await run_once_free()
        sent = await send_the_rest()
    except (httpx.HTTPError, OSError, RuntimeError, ValueError) as error:
        newest = newest_run()
        if not newest:
            lost = ConnectionError(
                f"{where} did not start the run: {one_line(error)[:LONGEST_CAUSE]}. "
                "No judge was asked. Check that the server is up, then run again."
            )
            record_failure(_row(study), store, lost)
            raise lost from error
        if len(outcomes) == before:
            # The run itself failed, and the server did not record it.
            raise RuntimeError(newest[0][1] or one_line(error)) from error
        state = outcomes[-1]
        current_status().tell(
            f"The Prefect server did not record the end of this run ({type(error).__name__}). "
            "All results are complete and saved in the warehouse."
        )
    await state.aresult(raise_on_failure=True)
    return state, sent


async def _state_in_time(running: "asyncio.Future[Any]", ended: Callable[[], bool]) -> Any:
    """Return a flow's state.

    Raise TimeoutError if the run has ended and the Prefect server does not record it in time. The
    flow is not cancelled, because that would send the server another message.
    """
    try:
        while not running.done():
            if ended():
                async with asyncio.timeout(SECONDS_TO_RECORD_THE_END):
                    return await asyncio.shield(running)
            await asyncio.wait({running}, timeout=POLLING_SECONDS)
    except asyncio.CancelledError:
        # An interrupt cancels the run, which records it in the warehouse.
        running.cancel()
        await asyncio.wait({running})
        raise
    return running.result()
