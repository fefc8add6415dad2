"""A Prefect server for the session, and the command line as a user types it."""

import json
import logging
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.serving.server import Server
from warehouse.store import Warehouse

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


@pytest.fixture(scope="session")
def ask_server(server: str) -> Callable[..., Any]:
    """Ask the server's API; like Prefect's client, again when its database was locked (503)."""

    def ask(path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(server + path, data, {"content-type": "application/json"})
        for _ in range(20):
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    raise
                time.sleep(0.5)
        raise AssertionError(f"{path}: 503 twenty times")

    return ask


@pytest.fixture(scope="session")
def errors_of(ask_server: Callable[..., Any]) -> Callable[[str], list[str]]:
    """Return the messages of a run in Prefect's log that are errors."""

    def errors(run: str) -> list[str]:
        wanted = {"logs": {"flow_run_id": {"any_": [run]}}, "sort": "TIMESTAMP_ASC"}
        lines = ask_server("/logs/filter", wanted)
        assert lines, f"nothing of {run} is in the log"
        return [line["message"] for line in lines if line["level"] >= logging.ERROR]

    return errors


class Emulated:
    """A provider that fails on purpose, as two judges of its own provider file."""

    def __init__(self, base: str, folder: Path) -> None:
        self.base, self._folder = base, folder
        self.provider()

    def provider(self, judge: str = "", **limits: object) -> None:
        """Write the provider's file; ``judge`` is more TOML for the first of its judges."""
        limits = {"concurrency": 8, "timeout_seconds": 2, "pause_seconds": 0.05, **limits}
        lines = [f"{name} = {json.dumps(value)}" for name, value in limits.items()]
        price = "usd_per_million = { prompt = 1, completion = 2 }\nparams = { max_tokens = 20 }"
        tables = [
            f'[judges.{name}]\nmodel = "hosted_vllm/{name}"\n{price}\n{more}'
            for name, more in (("one", judge), ("two", ""))
        ]
        text = "\n".join(["[provider]", f'api_base = "{self.base}"', *lines, *tables])
        (self._folder / "emu.toml").write_text(text)

    def behave(self, **manners: object) -> None:
        """Change how it behaves."""
        self._ask("/manners", manners)

    def stats(self) -> dict[str, Any]:
        """Return what it was asked."""
        return self._ask("/stats")

    def _ask(self, path: str, body: dict[str, object] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base.removesuffix("/v1") + path, data)
        with urllib.request.urlopen(request, timeout=30) as answer:
            told: dict[str, Any] = json.load(answer)
            return told


@pytest.fixture
def emulated(tmp_path: Path, environment: dict[str, str]) -> Iterator[Emulated]:
    """Run the emulator for one test; its judges are known to what runs in ``environment``."""
    folder = tmp_path / "providers"
    folder.mkdir()
    environment["VOIRDIRE_PROVIDERS"] = str(folder)
    with subprocess.Popen(
        [sys.executable, "-m", "tasks.simulation.emulator"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        yield Emulated(process.stdout.readline().strip(), folder)
        process.terminate()


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
def warehouse(environment: dict[str, str]) -> Warehouse:
    """The warehouse of this test."""
    return Warehouse(environment["VOIRDIRE_WAREHOUSE"])


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
