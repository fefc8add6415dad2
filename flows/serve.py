"""Studies, remeasuring and calibrating as deployments: python -m flows.serve, or voirdire serve."""

import os
import subprocess
import sys
import time
from pathlib import Path

import click

from flows._server import DEFAULT, ENDS_WITH_US, SETTINGS, find_server
from warehouse.peek import VARIABLE

PROGRAM = f"""{ENDS_WITH_US}
import runpy
sys.argv = ["prefect", "server", "start", "--host", "127.0.0.1"]
runpy.run_module("prefect", run_name="__main__")
"""


def serve_studies(warehouse: Path | None = None) -> None:
    """Serve all studies, one run at a time, with a Prefect server if none is running."""
    if warehouse:
        os.environ[VARIABLE] = str(warehouse.absolute())
    os.environ.update({k: os.environ.get(k, v) for k, v in SETTINGS.items()})
    os.environ.setdefault("PREFECT_WORKER_QUERY_SECONDS", "2")
    url = find_server()
    server = None if url else _start_server()
    os.environ["PREFECT_API_URL"] = url or DEFAULT
    click.echo(f"Prefect UI: {os.environ['PREFECT_API_URL'].removesuffix('/api')}/deployments")
    try:
        _serve()
    finally:
        if server:
            server.terminate()
            server.wait(timeout=20)


def _start_server() -> "subprocess.Popen[bytes]":
    server = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # A Ctrl-C is for the runner, which has schedules to pause before its server ends.
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while not find_server():
        if server.poll() is not None or time.monotonic() > until:
            raise RuntimeError("the Prefect server did not start. Try `prefect server start`.")
        time.sleep(0.3)
    return server


def _serve() -> None:
    from prefect import serve
    from prefect.deployments.runner import RunnerDeployment
    from prefect.types.entrypoint import EntrypointType

    from flows.audit import audit
    from flows.calibrate import calibrate
    from flows.remeasure import remeasure
    from flows.studies import STUDIES

    serve(
        *(
            RunnerDeployment.from_flow(
                audit,
                name=name,
                description=file.about,
                cron=file.cron,
                parameters={"study": file.study.model_dump()},
                tags=["voirdire"],
                entrypoint_type=EntrypointType.MODULE_PATH,
            )
            for name, file in STUDIES.items()
        ),
        RunnerDeployment.from_flow(
            remeasure,
            name="remeasure",
            description="A study's results again, from its saved votes; asks nobody.",
            tags=["voirdire"],
            entrypoint_type=EntrypointType.MODULE_PATH,
        ),
        RunnerDeployment.from_flow(
            calibrate,
            name="calibrate",
            description="May a judge replace people? From files of labels, or a study's votes.",
            tags=["voirdire"],
            entrypoint_type=EntrypointType.MODULE_PATH,
        ),
        limit=1,
    )


if __name__ == "__main__":
    serve_studies()
