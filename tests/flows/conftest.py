"""A Prefect server for the session, and the command line as a user types it."""

import asyncio
import fcntl
import gc
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache, lru_cache
from pathlib import Path
from socket import create_server, socket
from threading import Thread
from types import SimpleNamespace
from typing import Any, NoReturn

import prefect.context
import pytest
from aiohttp import web
from child_processes import PYTHONPATH
from click.testing import CliRunner
from emulated_provider import Behaviour, EmulatedProvider
from kept_worker import EMULATED_KEY, Workers
from prefect.logging.handlers import APILogWorker
from waiting import PATIENCE_SECONDS

import flows.cli.audit
import flows.running.processes
from flows import studies
from flows.cli.main import main
from flows.cli.printing.live import Printer
from flows.serving.access import Access
from flows.serving.server import Server
from tasks.datasets import DATASETS
from tasks.kit import code_digest, user_folder
from tasks.kit.catalogue import Catalogue
from tasks.kit.exit_codes import ExitCode
from tasks.metrics import METRICS
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, PROVIDERS
from tasks.statistics import STATISTICS
from warehouse.store import Warehouse

Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]

CATALOGUES: list[Catalogue[Any]] = [
    PROVIDERS,
    JUDGES,
    PROMPTS,
    DATASETS,
    PERTURBATIONS,
    STATISTICS,
    METRICS,
    studies.STUDIES,
]
AT_START = dict(os.environ)
"""The environment before a test runs a command in this process, which sets variables in it."""

UNUSED_SERVICES = ("EVENT_PERSISTER", "TRIGGERS")
"""Parts of the session's server that keep events and react to them: a third of its work."""


@pytest.fixture(scope="module", autouse=True)
def _copied(copied_warehouses: None) -> None:
    """Copy new warehouses."""


@pytest.fixture(autouse=True)
def _light(request: pytest.FixtureRequest) -> None:
    """Keep files open that are only read; draw charts for tests with the mark ``charts``."""
    request.getfixturevalue("kept_reader")
    if not request.node.get_closest_marker("charts"):
        request.getfixturevalue("no_charts")


@pytest.fixture(scope="session")
def prefect_home(
    fill_once: Callable[[str, Callable[[Path], Any]], tuple[Path, Any]],
) -> Callable[[Path], str]:
    """Return what makes a folder a home of Prefect with a database, as an earlier server leaves it.

    A server that must make its database takes two to three times as long to start.
    """

    def fill(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PREFECT_HOME", str(folder))
            server = Server()
            server.wait()
            server.stop()

    made, _ = fill_once("prefect-home", fill)

    def home(folder: Path) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        for file in made.glob("prefect.db*"):
            shutil.copy(file, folder)
        return str(folder)

    return home


@pytest.fixture(scope="session")
def server(shared_folder: Path, prefect_home: Callable[[Path], str]) -> Iterator[str]:
    """Address of a server with a database of its own, for all processes of this run.

    The first process that needs it starts it, and at its end waits for the others to end.
    """
    address, own = shared_folder / "server.url", None
    with (
        (shared_folder / "server.starts").open("w") as starts,
        (shared_folder / "server.users").open("w") as users,
    ):
        fcntl.flock(starts, fcntl.LOCK_EX)
        if not address.exists():
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PREFECT_HOME", prefect_home(shared_folder / "server"))
                for service in UNUSED_SERVICES:
                    patch.setenv(f"PREFECT_SERVER_SERVICES_{service}_ENABLED", "false")
                own = Server()
            own.wait()
            address.write_text(own.access.url)
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(starts, fcntl.LOCK_UN)
        yield address.read_text()
        fcntl.flock(users, fcntl.LOCK_UN)
        if own:
            fcntl.flock(starts, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_EX)
            address.unlink()
            own.stop()


@pytest.fixture(scope="session")
def ask_server(server: str) -> Callable[..., Any]:
    """Ask the server's API; like Prefect's client, again when its database was locked (503)."""

    def ask(path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(server + path, data, {"content-type": "application/json"})
        for _ in range(20):
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
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

    key = EMULATED_KEY
    """A key for it, as more environment of a command."""

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

    def behave(self, **behaviour: object) -> None:
        """Change how it behaves."""
        self._ask("/behaviour", behaviour)

    def stats(self) -> dict[str, Any]:
        """Return what it was asked."""
        return self._ask("/stats")

    def _ask(self, path: str, body: dict[str, object] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base.removesuffix("/v1") + path, data)
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            reported: dict[str, Any] = json.load(answer)
            return reported


@pytest.fixture(scope="session")
def emulators() -> Iterator[asyncio.AbstractEventLoop]:
    """Return the loop of a thread in which emulators serve."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="emulators")
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture(scope="session")
def emulated_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[socket, Path]]:
    """Return the socket of the emulated provider and the folder of its file.

    All tests share them, so that a worker that has read the file may serve the next test.
    """
    with create_server(("127.0.0.1", 0)) as listening:
        yield listening, tmp_path_factory.mktemp("providers")


@pytest.fixture
def emulated(
    environment: dict[str, str],
    emulators: asyncio.AbstractEventLoop,
    emulated_place: tuple[socket, Path],
) -> Iterator[Emulated]:
    """Run an emulator for one test; its judges are known to what runs in ``environment``."""
    listening, folder = emulated_place
    environment["VOIRDIRE_PROVIDERS"] = str(folder)

    async def start() -> web.AppRunner:
        app = EmulatedProvider(Behaviour()).app()
        # Who still waits for an answer when the test has ended gets none.
        runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await runner.setup()
        await web.SockSite(runner, listening.dup()).start()
        return runner

    runner = asyncio.run_coroutine_threadsafe(start(), emulators).result(PATIENCE_SECONDS)
    host, port = listening.getsockname()
    yield Emulated(f"http://{host}:{port}/v1", folder)
    asyncio.run_coroutine_threadsafe(runner.cleanup(), emulators).result(PATIENCE_SECONDS)


@pytest.fixture(scope="session")
def environment_in(server: str) -> Callable[[Path], dict[str, str]]:
    """What commands run in: the session's server, caches and a warehouse in a folder."""
    keyless = {k: v for k, v in AT_START.items() if not k.endswith("_API_KEY")}
    return lambda folder: {
        **keyless,
        "PREFECT_API_URL": server,
        "PREFECT_HOME": str(folder / "prefect"),
        "VOIRDIRE_WAREHOUSE": str(folder / "voirdire.duckdb"),
        "PYTHONPATH": PYTHONPATH,
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }


@pytest.fixture
def environment(environment_in: Callable[[Path], dict[str, str]], tmp_path: Path) -> dict[str, str]:
    """What the commands of a test run in."""
    return environment_in(tmp_path)


@pytest.fixture
def made_home(environment: dict[str, str], prefect_home: Callable[[Path], str]) -> None:
    """Spare a server that this test's commands start the making of its database."""
    prefect_home(Path(environment["PREFECT_HOME"]))


@pytest.fixture
def warehouse(environment: dict[str, str]) -> Warehouse:
    """The warehouse of this test."""
    return Warehouse(environment["VOIRDIRE_WAREHOUSE"])


@pytest.fixture
def voirdire_process(environment: dict[str, str], tmp_path: Path) -> Voirdire:
    """Run the command line in a process of its own, in an empty folder."""

    def run(*words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "flows.cli", *words],
            cwd=tmp_path,
            env={**environment, **more},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    return run


@pytest.fixture
def voirdire(
    voirdire_in: Callable[..., Voirdire], environment: dict[str, str], tmp_path: Path
) -> Voirdire:
    """Run the command line in this process, in an empty folder; return what a process would."""
    return voirdire_in(tmp_path, environment)


@pytest.fixture
def stopped(voirdire: Voirdire) -> Voirdire:
    """Run a command in this process, and send the signal ``number`` when ``ready`` returns."""

    def run(
        *words: str, number: signal.Signals, ready: Callable[[], object]
    ) -> "subprocess.CompletedProcess[str]":
        def stop() -> None:
            ready()
            os.kill(os.getpid(), number)

        with ThreadPoolExecutor(1) as aside:
            stopping = aside.submit(stop)
            done = voirdire(*words)
        # If it was never ready, no signal was sent.
        stopping.result()
        return done

    return run


@pytest.fixture(scope="session")
def voirdire_in(here: Callable[..., Any], workers: Workers) -> Callable[..., Voirdire]:
    """Return what runs the command line in this process, in a folder and an environment.

    What commands import is imported once. Prefect's cached results are those of the session: their
    folder is chosen when the stages are imported.
    """

    def there(folder: Path, environment: dict[str, str]) -> Voirdire:
        def run(*words: str, **more: str) -> "subprocess.CompletedProcess[str]":
            wanted = {**environment, **more}
            with here(folder, wanted):
                if words[0] == "audit":
                    workers.keep(wanted)
                done = CliRunner().invoke(main, words, prog_name="voirdire")
            if done.exit_code in {ExitCode.INTERRUPTED, ExitCode.TERMINATED}:
                # As with the process that is stopped, its worker ends, and asks nothing more.
                workers.end()
            if done.exception and not isinstance(done.exception, SystemExit):
                raise done.exception
            return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

        return run

    return there


@pytest.fixture(scope="session")
def here() -> Callable[..., Any]:
    """Return a context in which this process is like a new one, in a folder and an environment."""
    return _process_state


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    """Keep a worker process for audits in this process."""
    workers = Workers()
    yield workers
    workers.end()


def _nothing() -> None:
    """Do nothing."""


def _left(code: int) -> NoReturn:
    raise SystemExit(code)


@contextmanager
def _process_state(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Give this process an environment and a folder, and undo what a command changes."""
    before = dict(os.environ)
    with ExitStack() as last, pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        # In the folder of before, not in this one.
        last.callback(_read_own_entries)
        # Prefect's clients leave connections to the end of the process.
        warnings.simplefilter("ignore", ResourceWarning)
        patch.chdir(folder)
        for module in (flows.cli.audit, flows.running.processes):
            # It ends the process at once.
            patch.setattr(module, "exit_now", _left)
        patch.setattr(logging, "raiseExceptions", logging.raiseExceptions)
        # A process that is about to end need not collect; this one does so below.
        idle = SimpleNamespace(freeze=_nothing, enable=_nothing, disable=_nothing)
        patch.setattr(flows.cli.audit, "gc", idle)
        gc.freeze()
        # litellm, where a test has imported it, reads again what it was given then.
        adapted = {k: v for k, v in before.items() if k.startswith("LITELLM_")}
        os.environ.clear()
        os.environ.update({**adapted, **flows.cli.audit.QUIET, **environment})
        # Its width is what the environment says when it is made.
        patch.setattr(flows.cli.audit, "CONSOLE", Printer())
        usual = prefect.context.GLOBAL_SETTINGS_CONTEXT
        _read_prefect_settings()
        use_server = Access.put_into_environment

        def use(server: Access) -> None:
            """Use a server that a command finds before a new process would import Prefect."""
            use_server(server)
            _read_prefect_settings()

        patch.setattr(Access, "put_into_environment", use)
        try:
            _read_own_entries()
            if user_folder.home().is_dir():
                # A digest holds paths of the user's own files, which another test does not have.
                _forget_digests()
                last.callback(_forget_digests)
                for name, function in _reading(_own_modules()).items():
                    patch.setattr(code_digest, name, function)
            yield
        finally:
            # While the server is known that its lines go to; in a thread, because
            # Playwright's loop, where a browser is open, runs in this one.
            with ThreadPoolExecutor(1) as aside:
                aside.submit(APILogWorker.drain_all, timeout=10).result()
            os.environ.clear()
            os.environ.update(before)
            prefect.context.GLOBAL_SETTINGS_CONTEXT = usual
            gc.collect()


def _read_prefect_settings() -> None:
    """Make Prefect's settings those of the environment."""
    prefect.context.GLOBAL_SETTINGS_CONTEXT = _prefect_settings(
        tuple((k, v) for k, v in os.environ.items() if k.startswith("PREFECT_"))
    )


@lru_cache(maxsize=1)
def _prefect_settings(_: tuple[tuple[str, str], ...]) -> prefect.context.SettingsContext:
    """Return the settings of these variables; Prefect takes 40 ms to read them.

    No test has other sources of settings: `.env`, `prefect.toml` or a profile.
    """
    return prefect.context.root_settings_context()


def _forget_digests() -> None:
    """Compute digests of code anew, as a new process does."""
    for cached in (code_digest.code_digest, code_digest.reachable_digest):
        cached.cache_clear()


def _own_modules() -> tuple[object, ...]:
    """Return the user's own modules and when they changed."""
    files = sorted(user_folder.home().rglob("*.py"))
    return user_folder.home(), *(
        (file, file.stat().st_mtime_ns, file.stat().st_size) for file in files
    )


@lru_cache(maxsize=1)
def _reading(_: tuple[object, ...]) -> dict[str, Callable[..., Any]]:
    """Return what reads imports, and keeps them for commands with the same modules."""
    return {
        name: cache(getattr(code_digest, name).__wrapped__) for name in ("_files_of", "_imported")
    }


def _read_own_entries() -> None:
    """Read the user's own entries anew, as a new process does."""
    for catalogue in CATALOGUES:
        catalogue.read_own()
