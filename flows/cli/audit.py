"""Run an audit in this process: server, worker and imports start concurrently."""

import asyncio
import gc
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from rich.console import Console

from flows.running.processes import leave, run_aside
from flows.running.readiness import not_ready, not_ready_line
from flows.serving.access import Access
from flows.serving.server import SETTINGS, Server, find_server, new_auth, require_answer
from flows.studies import STUDIES, Study, make_study
from tasks.engine.caller import caller
from tasks.engine.local_model import begin
from tasks.kit.memory import share_one_heap
from tasks.providers import provider_of
from warehouse.peek import CompletedRun, completed_run, default_path

QUIET = {
    # Our own table and bars are on the screen; the log is in the Prefect UI.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    # We report a lost server once, in a message of our own.
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_CLIENT_MAX_RETRIES": "2",
    # One that is frozen answers no request: with the default of 60 s a run waits for many minutes.
    "PREFECT_API_REQUEST_TIMEOUT": "15",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    **SETTINGS,
}

SECONDS_TO_TELL_THE_END = 20.0
"""So long the Prefect server may take to take note of a run that has ended."""

SECONDS_BETWEEN_LOOKS = 0.2
LONGEST_CAUSE = 200
SECONDS_AFTER_AN_INTERRUPT = 0.2
"""For the server to end in order: what is to be kept is in the warehouse and the journal."""

CONSOLE = Console()
RESULTS = """
    select * from mart.bias where study = ?
    order by judge, dataset, prompt, wave, kind = 'position', kind desc, perturbation
"""


def audit_here(
    name: str,
    changes: dict[str, Any],
    warehouse: Path | None,
    *,
    confirmed: bool = False,
    server: str | None = None,
) -> int:
    """Run a study, show its results and return the exit code.

    Ask first if it is dear, unless that is ``confirmed``.
    """
    share_one_heap()
    study = make_study(name, changes)
    path = Path(warehouse or default_path()).absolute()
    dated = study.at(datetime.now(UTC))
    code = DONE
    if last := completed_run(path, study.name, dated.fingerprint()):
        _reuse_results(last, dated, path)
    else:
        asked = _askable(study, path)
        if not confirmed and any(not provider_of(judge).simulated for judge in asked):
            from flows.cli.plan import confirm_spending

            confirm_spending(study.model_copy(update={"judges": asked}), warehouse)
        code = _audit(study, path, server)
    # To collect thousands of classes before they are thrown away takes a second.
    gc.freeze()
    gc.disable()
    return code


def _askable(study: Study, path: Path) -> list[str]:
    """Return the judges that can be asked; say who cannot, and why.

    Raises
    ------
    ValueError
        If none can, and no warehouse is there whose votes could serve.
    """
    hindered = not_ready(study)
    if not hindered:
        return study.judges
    why = not_ready_line(hindered)
    asked = [judge for judge in study.judges if judge not in hindered]
    if not asked and not path.is_file():
        from flows.running.run_row import record_failure
        from warehouse.store import Warehouse

        error = ValueError(f"no judge can be asked. {why}. Nothing was asked.")
        record_failure(_row(study), Warehouse(path), error)
        raise error
    _show_line(f"Not asked, which leaves gaps where no earlier vote serves: {why}.")
    return asked


def _row(study: Study) -> dict[str, Any]:
    """Return the row of a run that ends before its flow begins."""
    from flows.running.run_row import first_row

    now = datetime.now(UTC)
    return first_row("audit", str(uuid4()), study.at(now), now)


def _reuse_results(last: CompletedRun, study: Study, path: Path) -> None:
    from flows.results.up_to_date import restore_report, reuse_results
    from warehouse.store import Warehouse

    store = Warehouse(path)
    message = reuse_results(last, study, store)
    _show(study, path, message)
    _show_place("report:", restore_report(study, store))


def _audit(study: Study, path: Path, named: str | None) -> int:
    os.environ.update({k: os.environ.get(k, v) for k, v in QUIET.items()})
    # Prefect's handler would print what it could not send.
    logging.raiseExceptions = False
    access = find_server(named)
    server = None if access else Server(auth=new_auth())
    # Importing litellm takes seconds, as may loading a model: begin now.
    worker = caller()
    if not all(provider_of(judge).simulated for judge in study.judges):
        worker.load_litellm()
    begin(study.judges)
    sent = True
    try:
        code, sent = _run(study, path, access, server)
    except KeyboardInterrupt:
        sent = False
        raise
    finally:
        if server:
            # One that takes nothing more has nothing to end in order.
            server.stop() if sent else server.stop(SECONDS_AFTER_AN_INTERRUPT)
    if not sent:
        # Prefect would try for minutes to tell a server that is gone.
        leave(code)
    return code


def _run(
    study: Study, path: Path, access: Access | None, server: Server | None
) -> tuple[int, bool]:
    """Return the exit code, and whether the Prefect server took all that it was sent."""
    from flows.cli.terminal import ballot_bars

    if used := server.access if server else access:
        used.put_into_environment()
    where = f"the Prefect server at {access.url}" if access else "a Prefect server of its own"
    with CONSOLE.status(f"Starting study {study.name} with {where}"):
        # Collecting while thousands of classes are made takes a quarter of a second.
        gc.disable()
        import flows.audit
        from flows.running import progress
        from flows.running.gaps import GAPS
        from flows.running.run_row import failure_recorded, require_free
        from tasks.curate import import_dataset
        from warehouse.store import Warehouse

        gc.freeze()
        gc.enable()
        # Reading both first: a file that cannot be used is said before a flow run exists.
        with failure_recorded(lambda: _row(study), Warehouse(path)):
            import_dataset(study.dataset, study.folder, study.limit)
            require_free(study.name, Warehouse(path))
            if server:
                server.wait(_show_line)
            elif access:
                require_answer(access)
    with ballot_bars(CONSOLE) as listen, progress.shown_by(listen, _show_line):
        state, sent = run_aside(lambda: _state_of(flows.audit.audit, study, path, where))
    # Imported while the judges were asked.
    from flows.publishing.pages import report_path

    missing = Warehouse(path).query(LAST_ERROR, [study.name]).item()
    # What is missing stands on the last line.
    _show(study, path, state.message.replace(f" ({missing})", ""))
    if access:
        _show_place("Prefect:", access.url)
    report = report_path(path, study.name)
    if report.is_file():
        _show_place("report:", report)
    gaps = state.name == GAPS
    if missing:
        _show_line(f"{'Completed with gaps' if gaps else 'Completed'}: {missing}.")
    return WITH_GAPS if gaps else DONE, sent


DONE, WITH_GAPS = 0, 3
"""Exit codes."""

LAST_ERROR = """
    select error from runs where study = ? and flow = 'audit' order by started_at desc limit 1
"""
"""What the last run says is missing."""

NEWEST = """
    select run, error from runs where study = ? and flow = 'audit' and started_at >= ?
    order by started_at desc limit 1
"""


GATES = """
    select * from mart.scorecard where study = ? and not starts_with(judge, ? || '/')
"""


def _show(study: Study, path: Path, message: str) -> None:
    from flows.cli.terminal import legend, lost_lines, result_table
    from schemas.keys import PEOPLE
    from tasks.reporting.summary import undiscerning
    from warehouse.store import Warehouse

    found, gates = Warehouse(path).query_all((RESULTS, [study.name]), (GATES, [study.name, PEOPLE]))
    rows = found.to_dicts()
    CONSOLE.print(result_table(rows, f"Study {study.name}", CONSOLE))
    hint = ""
    if any(row["finding"] == "inconclusive" for row in rows):
        given = STUDIES[study.name].study if study.name in STUDIES else None
        known = given and study == given.model_copy(update={"wave": study.wave})
        plan = f"`voirdire plan {study.name}`" if known else "`voirdire plan` with the same options"
        hint = f" Inconclusive findings: {plan} shows the effects that this design can detect."
    CONSOLE.print(legend(rows) + hint, style="dim", markup=False)
    for line in (*lost_lines(rows), *undiscerning(gates)):
        _show_line(line)
    _show_changes(study, path)
    _show_line(f"\n{message}")
    _show_place("warehouse:", path)


def _show_changes(study: Study, path: Path) -> None:
    """Say what changed since the first wave, if there are several."""
    import polars as pl

    from schemas.results import Drifts
    from warehouse.store import Warehouse

    if not study.wave:
        return
    drifts = Warehouse(path).read(Drifts, among=pl.DataFrame({"study": [study.name]}))
    if drifts.is_empty():
        _show_line(
            f"Drift cannot be measured yet: {study.wave!r} is the first named wave. Audits without "
            "--wave are not compared."
        )
    else:
        from flows.cli.measure_tables import show_drift

        show_drift(CONSOLE, drifts)


def _show_place(what: str, place: Path | str) -> None:
    CONSOLE.print(f"{what:<10} {place}", markup=False, highlight=False, soft_wrap=True)


def _show_line(text: str) -> None:
    CONSOLE.print(text, markup=False, highlight=False)


async def _state_of(flow: Any, study: Study, path: Path, where: str) -> tuple[Any, bool]:
    """Run the flow; a failure of the run is raised here, one of the Prefect server alone is not.

    Return its state, and whether the server took all that it was sent.
    """
    import httpx

    from flows.running.run_row import one_line, record_failure
    from flows.serving.prefect_reporting import outcomes, send_the_rest
    from warehouse.store import Warehouse

    store, before, began = Warehouse(path), len(outcomes), datetime.now(UTC)
    running = asyncio.ensure_future(flow(study, str(path), return_state=True))
    sent = False
    try:
        state = await _state_in_time(running, lambda: len(outcomes) > before)
        sent = await send_the_rest()
    except (httpx.HTTPError, OSError, RuntimeError, ValueError) as error:
        newest = store.query(NEWEST, [study.name, began]).rows()
        if not newest:
            lost = ConnectionError(
                f"{where} did not let the run begin: {one_line(error)[:LONGEST_CAUSE]}. "
                "Nothing was asked. See whether it runs, and run again."
            )
            record_failure(_row(study), store, lost)
            raise lost from error
        if len(outcomes) == before:
            # The run itself failed, and the server does not know it.
            raise RuntimeError(newest[0][1] or one_line(error)) from error
        state = outcomes[-1]
        _show_line(
            f"The Prefect server did not record the end of this run ({type(error).__name__}). "
            "All results are complete and saved in the warehouse."
        )
    await state.aresult(raise_on_failure=True)
    return state, sent


async def _state_in_time(running: "asyncio.Future[Any]", ended: Callable[[], bool]) -> Any:
    """Return a flow's state.

    Raises
    ------
    TimeoutError
        Where its run has ended, which the Prefect server does not take note of in time. The flow
        goes on trying, as to cancel it would be one more message.
    """
    try:
        while not running.done():
            if ended():
                return await asyncio.wait_for(asyncio.shield(running), SECONDS_TO_TELL_THE_END)
            await asyncio.wait({running}, timeout=SECONDS_BETWEEN_LOOKS)
    except asyncio.CancelledError:
        # Whoever interrupts interrupts the run, which says so in the warehouse.
        running.cancel()
        await asyncio.wait({running})
        raise
    return running.result()
