"""Which server a command uses: one that is named, or the user's own; and what is said of others."""

import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from child_processes import PYTHONPATH

from flows.running.processes import identity
from flows.serving import access
from flows.serving import server as prefect_server
from flows.serving.access import Access, own_server, stored, stored_auth
from flows.serving.deployments import merge
from flows.serving.server import (
    Problem,
    Server,
    asks_for_authentication,
    find_server,
    require_answer,
)

AUTH = "voirdire:secret"
OWN = Access("http://127.0.0.1:4200/api", AUTH)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    for variable in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", access.CERTIFICATES):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def somebody() -> Iterator[str]:
    """Address of a server that asks for ``AUTH``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers.get("Authorization") == "Basic dm9pcmRpcmU6c2VjcmV0"
            self.send_response(200 if known else 401)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_users_own_server_is_found_while_it_runs() -> None:
    assert find_server() is None
    with stored(OWN, os.getpid()):
        assert own_server() == (OWN, os.getpid())
        assert find_server() == OWN
        assert find_server("http://other:1/") == Access("http://other:1/api", None)
    assert find_server() is None


def test_a_named_server_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://named:1/api")
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "a:b")
    with stored(OWN, os.getpid()):
        assert find_server() == Access("http://named:1/api", "a:b")
    with pytest.raises(ValueError, match="not the address of a Prefect server"):
        find_server("file:///etc/passwd")


def test_a_server_whose_process_is_gone_is_not_found() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        with stored(OWN, process.pid):
            assert own_server() == (OWN, process.pid)
            process.kill()
            process.wait()
            # Another program may have its port by now, and would receive the string.
            assert own_server() is None
        assert identity(process.pid) is None


def test_a_later_process_of_the_same_number_is_another(tmp_path: Path) -> None:
    with stored(OWN, os.getpid()):
        place = tmp_path / "voirdire" / "server.json"
        place.write_text(json.dumps({**json.loads(place.read_text()), "is": "earlier/1"}))
        assert own_server() is None


@pytest.mark.parametrize("place", ["server.json", "."])
def test_a_file_that_others_may_write_is_not_believed(tmp_path: Path, place: str) -> None:
    with stored(OWN, os.getpid()):
        (tmp_path / "voirdire" / place).chmod(0o777)
        assert own_server() is None
        (tmp_path / "voirdire" / place).chmod(0o700)


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    with stored(OWN, os.getpid()):
        place = tmp_path / "voirdire" / "server.json"
        place.rename(tmp_path / "elsewhere")
        place.symlink_to(tmp_path / "elsewhere")
        assert own_server() is None


def test_the_string_is_generated_once_and_kept_private(tmp_path: Path) -> None:
    first = stored_auth()
    assert stored_auth() == first
    assert (tmp_path / "voirdire" / "auth").stat().st_mode & 0o777 == 0o600
    (tmp_path / "voirdire" / "auth").chmod(0o644)
    # Others may have read it.
    assert stored_auth() != first


def test_prefects_clients_of_a_server_here_load_one_certificate(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ})
    OWN.put_into_environment()
    authority = os.environ[access.CERTIFICATES]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority)
    assert len(context.get_ca_certs()) == 1
    Access("https://prefect.example/api").put_into_environment()
    assert access.CERTIFICATES not in os.environ
    Access("http://prefect.example/api").put_into_environment()
    # It may answer with an address that has TLS.
    assert access.CERTIFICATES not in os.environ
    os.environ[access.CERTIFICATES] = str(tmp_path / "the user's own")
    for each in (OWN, Access("https://prefect.example/api")):
        each.put_into_environment()
        assert os.environ[access.CERTIFICATES] == str(tmp_path / "the user's own")


def test_a_server_lets_in_whoever_knows_its_string(somebody: str) -> None:
    access = find_server(somebody)
    assert access
    assert asks_for_authentication(access)
    with pytest.raises(ValueError, match="set PREFECT_API_AUTH_STRING to its string"):
        require_answer(access)
    require_answer(access._replace(auth=AUTH))


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_reported_in_time_with_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefect_server, "ANSWER_SECONDS", 2)
    monkeypatch.setattr(prefect_server, "BUSY_SECONDS", 3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/api"
        with pytest.raises(ValueError, match=r"cannot be used: .*Connection refused"):
            require_answer(Access(url))
        silent.listen()
        with pytest.raises(ValueError, match="cannot be used: timed out"):
            require_answer(Access(url))


class Clock:
    """Time as it passes for who waits for a server that never answers."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def unanswered(self, _: Access, seconds: float) -> Problem:
        # At worst connecting takes that long, and then reading.
        self.now += 2 * seconds
        return Problem("timed out", busy=True)


def test_within_20_seconds_a_silent_server_is_reported_and_after_a_minute_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = Clock()
    said: list[tuple[float, str]] = []
    monkeypatch.setattr(prefect_server, "time", waiting)
    monkeypatch.setattr(prefect_server, "_problem", waiting.unanswered)
    with pytest.raises(ValueError, match="cannot be used: timed out"):
        require_answer(OWN, lambda line: said.append((waiting.now, line)))
    ((when, line),) = said
    assert line == f"Waiting for the Prefect server at {OWN.url}, which does not answer yet."
    assert 10 < when < 20
    assert 50 < waiting.now < 80


def test_a_silent_server_is_used_as_soon_as_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Clock()

    def busy_at_first(access: Access, seconds: float) -> Problem | None:
        return waiting.unanswered(access, seconds) if waiting.now < 40 else None

    monkeypatch.setattr(prefect_server, "time", waiting)
    monkeypatch.setattr(prefect_server, "_problem", busy_at_first)
    require_answer(OWN)
    assert waiting.now >= 40


def test_within_20_seconds_it_is_reported_what_our_own_server_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, said = subprocess.Popen, []
    stuck = [sys.executable, "-uc", "import time; print('no space left'); time.sleep(60)"]
    monkeypatch.setattr(prefect_server.subprocess, "Popen", lambda _, **how: start(stuck, **how))
    heard = threading.Event()
    server = Server(listener=lambda _: heard.set())
    assert heard.wait(30)
    waiting = Clock()
    monkeypatch.setattr(prefect_server, "time", waiting)
    monkeypatch.setattr(prefect_server, "_problem", waiting.unanswered)

    def say(text: str) -> None:
        said.append((waiting.now, text))
        if len(said) == 1:
            # After the message, it goes on waiting.
            server._process.kill()

    with pytest.raises(
        RuntimeError,
        match=r"(?s)failed to start .*no space left\. Correct this, or give a running server",
    ):
        server.wait(say)
    (when, text), *_ = said
    assert 10 < when < 20
    assert text.endswith("Its output so far: no space left")


@pytest.fixture
def command(voirdire_in: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Return what runs a command in this process, without a server of the session's."""

    def run(*words: str, **more: str) -> Any:
        home = {"PREFECT_HOME": str(tmp_path), "PYTHONPATH": PYTHONPATH, "COLUMNS": "200"}
        return voirdire_in(tmp_path, {**os.environ, **home})(*words, **more)

    return run


def _free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.mark.slow
@pytest.mark.parametrize("words", [("audit", "--limit", "2"), ("serve", "--port", "{port}")])
def test_commands_tell_that_their_server_does_not_answer(
    words: tuple[str, ...], command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    start, waiting = subprocess.Popen, Clock()
    stuck = [sys.executable, "-c", "import time; time.sleep(60)"]
    servers: list[subprocess.Popen[bytes]] = []

    def started(words: list[str], **how: Any) -> "subprocess.Popen[bytes]":
        if "flows.serving.guarded_server" not in words:
            return start(words, **how)
        servers.append(start(stuck, **how))
        return servers[-1]

    def unanswered(access: Access, seconds: float) -> Problem:
        if waiting.now > 90:
            servers[-1].kill()
        return waiting.unanswered(access, seconds)

    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr(prefect_server, "time", waiting)
    monkeypatch.setattr(prefect_server, "_problem", unanswered)
    done = command(*(word.format(port=_free_port()) for word in words))
    assert done.returncode == 2
    # At first it only starts; what it wrote, if anything, follows.
    waits = r"Waiting for the Prefect server, which is starting \(\d+ s so far\)\."
    long = r"The Prefect server has not answered for \d+ s\."
    assert re.search(f"{waits}.*{long}.*failed to start", done.stderr, re.DOTALL), done.stderr
    assert "output so far" not in done.stderr


@pytest.mark.slow
def test_a_server_that_ends_as_it_starts_is_reported_with_all_that_it_wrote(
    command: Callable[..., Any],
) -> None:
    nowhere = {"PREFECT_API_DATABASE_CONNECTION_URL": "oracle://nowhere"}
    done = command("serve", "--port", _free_port(), **nowhere)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    # As it comes, whole, beside the few lines that the error at the end repeats.
    forwarded = [line for line in lines if line.startswith("prefect server: ")]
    assert any("oracle" in line for line in forwarded), done.stderr
    assert any("Traceback" in line for line in forwarded)
    assert re.search(r"failed to start \(exit code 3\): .*oracle", done.stderr, re.DOTALL)


def test_a_port_that_is_taken_is_reported_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} of 127.0.0.1 cannot be used: Address"):
            Server(port)


@pytest.mark.slow
def test_a_server_of_our_own_is_reported_while_it_starts(
    monkeypatch: pytest.MonkeyPatch, prefect_home: Callable[[Path], str], tmp_path: Path
) -> None:
    prefect_home(tmp_path)
    monkeypatch.setattr("flows.serving.server.SECONDS_BETWEEN_MESSAGES", 0.2)
    monkeypatch.setattr("flows.serving.server.MESSAGES", ((0.4, "Waiting ({:.1f} s so far)."),))
    said: list[str] = []
    server = Server(auth=AUTH)
    try:
        server.wait(said.append, progress=True)
        assert said[0].startswith("The Prefect server is starting (")
        assert sum(line.startswith("Waiting (") for line in said) == 1
        assert not any("output so far: none" in line for line in said)
        require_answer(server.access)
        assert asks_for_authentication(server.access)
    finally:
        server.stop()


def test_a_folder_of_somebody_else_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "voirdire").mkdir()
    monkeypatch.setattr(access.os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(ValueError, match="is not a folder that you own"):
        stored_auth()


BASE = {"study": {"name": "n", "budget_usd": 40.0, "limit": None, "judges": ["a"]}}


@pytest.mark.parametrize(
    ("now", "ours", "merged", "notes"),
    [
        ({}, {}, {}, []),
        ({"budget_usd": 20.0}, {}, {"budget_usd": 20.0}, ["budget_usd is 20.0"]),
        ({}, {"judges": ["b"]}, {"judges": ["b"]}, []),
        ({"limit": 5}, {"judges": ["b"]}, {"limit": 5, "judges": ["b"]}, ["limit is 5"]),
        ({"limit": 5}, {"limit": 6}, {"limit": 5}, ["limit is 5"]),
        ({"limit": 5}, {"limit": 5}, {"limit": 5}, []),
        # A field that this version has no more goes.
        ({"gone": 1}, {}, {}, []),
    ],
)
def test_values_set_by_users_are_distinguished_from_changes_of_the_file(
    now: dict[str, object], ours: dict[str, object], merged: dict[str, object], notes: list[str]
) -> None:
    base = BASE["study"]
    found, reported = merge(BASE, {"study": {**base, **now}}, {"study": {**base, **ours}})
    assert found == {"study": {**base, **merged}}
    assert [line.split(";")[0] for line in reported] == [f"study.{note}" for note in notes]


def test_parameters_that_users_add_stay() -> None:
    here = {**BASE, "warehouse": "w.duckdb"}
    assert merge(BASE, here, BASE) == (here, [])
