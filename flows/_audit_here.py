"""An audit in this process: server, caller and imports start side by side."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flows._server import SETTINGS, Server, find_server
from flows.studies import Study, make_study
from tasks.providers import provider_of
from tasks.providers._caller import caller
from warehouse.peek import default_path, done_before

QUIET = {
    # Our own table and bars are on the screen; the log is in the Prefect UI.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    **SETTINGS,
}


RESULTS = """
    select * from mart.bias where study = ? order by judge, kind desc, perturbation
"""


def audit_here(
    name: str, changes: dict[str, Any], warehouse: Path | None, *, confirmed: bool = False
) -> None:
    """Run a study and show its results; ask first if it is dear, unless that is ``confirmed``."""
    study = make_study(name, changes)
    study.require_keys()
    if not confirmed and any(not provider_of(judge).simulated for judge in study.judges):
        from flows._plan import confirm_spending

        confirm_spending(study, warehouse)
    path = Path(warehouse or default_path()).absolute()
    os.environ.update({k: os.environ.get(k, v) for k, v in QUIET.items()})
    url = find_server()
    server = None if url else Server()
    # Importing litellm takes seconds: begin now, unless there is nothing to ask.
    if not done_before(path, study.at(datetime.now(UTC)).fingerprint()):
        caller()
    try:
        _run(study, path, url, server)
    finally:
        if server:
            server.stop()


def _run(study: Study, path: Path, url: str | None, server: Server | None) -> None:
    from rich.console import Console

    from flows._terminal import LEGEND, ballot_bars, result_table

    os.environ["PREFECT_API_URL"] = url or (server.url if server else "")
    console = Console()
    where = f"the Prefect server at {url}" if url else "a Prefect server of its own"
    with console.status(f"Starting study {study.name} with {where}"):
        import flows.audit
        from flows import _progress
        from flows._pages import report_path
        from tasks.curate import import_dataset
        from warehouse.store import Warehouse

        # Reading both first: a file that cannot be used is said before a flow run exists.
        import_dataset(study.dataset, study.folder, study.limit)
        Warehouse(path).query("select 1")
        if server:
            server.wait()
    with ballot_bars(console) as listen:
        _progress.listeners.append(listen)
        state = asyncio.run(_state_of(flows.audit.audit, study, path))
        _progress.listeners.remove(listen)
    rows = Warehouse(path).query(RESULTS, [study.name])
    console.print(result_table(rows.to_dicts(), f"Study {study.name}"))
    if any(row["finding"] == "inconclusive" for row in rows.to_dicts()):
        hint = f"Inconclusive: `voirdire plan {study.name}` says what this design can see."
        console.print(LEGEND + " " + hint, style="dim", markup=False)
    else:
        console.print(LEGEND, style="dim", markup=False)
    console.print(f"\n{state.message}", markup=False, highlight=False)
    console.print(f"warehouse: {path}", markup=False, highlight=False, soft_wrap=True)
    if url:
        console.print(f"Prefect:   {url}", markup=False, highlight=False, soft_wrap=True)
    report = report_path(path, study.name)
    console.print(f"report:    {report}", markup=False, highlight=False, soft_wrap=True)


async def _state_of(flow: Any, study: Study, path: Path) -> Any:
    """Run the flow; a failure of the run is raised here."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogHandler

    try:
        state = await flow(study, str(path), return_state=True)
    finally:
        # Both go to the server in the background, and the server may be ours to stop.
        await APILogHandler.aflush()
        await asyncio.to_thread(EventsWorker.drain_all, timeout=5)
    await state.aresult(raise_on_failure=True)
    return state
