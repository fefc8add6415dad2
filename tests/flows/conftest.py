"""A Prefect server for the session, and the command line as a user types it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flows._server import Server

Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server with a database of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_HOME", str(tmp_path_factory.mktemp("prefect")))
        server = Server()
        server.wait()
        yield server.url
        server.stop()


@pytest.fixture
def environment(server: str, tmp_path: Path) -> dict[str, str]:
    """What a command runs in: the session's server, this test's caches and warehouse."""
    keyless = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    return {
        **keyless,
        "PREFECT_API_URL": server,
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "VOIRDIRE_WAREHOUSE": str(tmp_path / "voirdire.duckdb"),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }


@pytest.fixture
def voirdire(environment: dict[str, str], tmp_path: Path) -> Voirdire:
    """Run the command line in a process of its own, in an empty folder."""

    def run(*words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "flows.cli", *words],
            cwd=tmp_path,
            env={**environment, **more},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run
