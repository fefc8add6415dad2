"""A Prefect server that dies or freezes; results never depend on it."""

import contextlib
import os
import re
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from waiting import PATIENCE_SECONDS

from warehouse.store import Warehouse

Voirdire = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.slow
WORDS = (
    "audit",
    "--limit",
    "10",
    "--perturbation",
    "fake_reference",
    "--judge",
    "emu/one",
    "--name",
    "alone",
    "--yes",
)
# ten questions, three arms, two orders
BALLOTS = 60


@pytest.mark.usefixtures("made_home")
@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP])
def test_an_audit_ends_complete_and_soon(
    fate: signal.Signals,
    emulated: Any,
    environment: dict[str, str],
    warehouse: Warehouse,
    tmp_path: Path,
) -> None:
    emulated.provider(concurrency=2, timeout_seconds=30)
    emulated.behave(latency=0.5)
    # With a server of its own.
    del environment["PREFECT_API_URL"]
    environment["COLUMNS"] = "300"
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *WORDS],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as audit:
        while audit.poll() is None and emulated.stats().get("replies", 0) < 5:
            time.sleep(0.05)
        (server,) = _children(audit.pid, "flows.serving.guarded_server")
        os.kill(server, fate)
        # Prefect's own tries took 140 s after the end, and for ever where the server was frozen.
        said, errors = audit.communicate(timeout=PATIENCE_SECONDS)
    assert audit.returncode == 0, errors
    state, asked = warehouse.query("select state, asked from runs").row(0)
    assert (state, asked, emulated.stats()["requests"]) == ("completed", BALLOTS, BALLOTS)
    kinds = warehouse.query("select kind from findings order by kind")["kind"].to_list()
    assert kinds == ["position", "promote"]
    assert (tmp_path / "reports" / "alone.html").is_file()
    assert "All results are complete and saved in the warehouse." in errors
    (last,) = [line for line in said.splitlines() if line.startswith("Completed")]
    assert "the answer in the Prefect UI was not written" in last
    assert not [word for word in ("Traceback", "httpx", "ERROR") if word in said + errors]
    assert list(_children(audit.pid, "flows.serving.guarded_server")) == []


def test_one_that_falls_silent_before_the_run_is_named_and_the_failure_recorded(
    voirdire: Voirdire, warehouse: Warehouse
) -> None:
    words = ("audit", "quick", "--limit", "1", "--judge", "offline/random", "--name", "early")
    with ThreadingHTTPServer(("127.0.0.1", 0), VersionOnly) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/api"
        audit = voirdire(*words, "--server", url, COLUMNS="300")
        server.shutdown()
    assert audit.returncode == 2
    assert audit.stderr.startswith(f"voirdire: the Prefect server at {url} did not start the run:")
    assert "No judge was asked. Check that the server is up, then run again." in audit.stderr
    row = warehouse.query("select flow, state, asked, error from runs").row(0)
    assert row[:3] == ("audit", "failed", 0)
    assert row[3].startswith(f"the Prefect server at {url} did not start")


@pytest.mark.parametrize("silent_seconds", [0, 4])
def test_a_run_waits_for_a_busy_server(
    silent_seconds: int, voirdire: Voirdire, server: str, warehouse: Warehouse
) -> None:
    # Prefect's SQLite database refuses a write while others write; its client gives up after three.
    # A server on a busy machine may also be silent for longer than the client waits.
    words = [*WORDS]
    words[words.index("emu/one")] = "offline/random"
    refusals = 4 if silent_seconds else 7
    with Busy(urlsplit(server).port or 0, refusals, silent_seconds) as busy:
        threading.Thread(target=busy.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{busy.server_address[1]}/api"
        more = {"PREFECT_API_REQUEST_TIMEOUT": "3"} if silent_seconds else {}
        audit = voirdire(*words, **more, PREFECT_API_URL=url)
        busy.shutdown()
    assert (audit.returncode, busy.refusals) == (0, 0), audit.stderr
    # As a word: the ID of a run in its address may contain these digits.
    assert not re.search(r"\b503\b", audit.stdout + audit.stderr)
    assert warehouse.query("select state, asked from runs").rows() == [("completed", BALLOTS)]


class Busy(socketserver.ThreadingTCPServer):
    """Passes requests on to a Prefect server, but refuses the first that create a run of a flow."""

    daemon_threads = True

    def __init__(self, port: int, refusals: int, silent_seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), PassOn)
        self.port, self.refusals, self.silent_seconds = port, refusals, silent_seconds


class PassOn(socketserver.StreamRequestHandler):
    """Passes one request on to the server, and all that follows on its connection."""

    server: Busy

    def handle(self) -> None:
        first, *fields = iter(self.rfile.readline, b"\r\n")
        if first.startswith(b"POST /api/flow_runs/ ") and self.server.refusals:
            self.server.refusals -= 1
            if self.server.silent_seconds:
                time.sleep(self.server.silent_seconds)
                return
            self.wfile.write(
                b"HTTP/1.1 503 Busy\r\nretry-after: 0\r\ncontent-length: 0\r\n"
                b"connection: close\r\n\r\n"
            )
            return
        # The server refuses requests for another host; other connections than sockets end here.
        ours = [b"host: 127.0.0.1:%d\r\n" % self.server.port]
        if not any(field.lower().startswith(b"upgrade:") for field in fields):
            ours.append(b"connection: close\r\n")
        names = tuple(field.partition(b" ")[0] for field in ours)
        kept = [field for field in fields if not field.lower().startswith(names)]
        port = self.server.port
        # The client may have gone.
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as there:
            there.sendall(b"".join([first, *kept, *ours, b"\r\n"]))
            sender = threading.Thread(target=self._send, args=(there,), daemon=True)
            sender.start()
            while part := there.recv(65536):
                self.wfile.write(part)

    def _send(self, there: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            while part := self.rfile.read1(65536):
                there.sendall(part)


class VersionOnly(BaseHTTPRequestHandler):
    """Answers what is asked before a run begins, and breaks off all else."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path.endswith("/admin/version") else 422)
        self.end_headers()
        self.wfile.write(b'"3.8.8"')

    def do_POST(self) -> None:
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def _children(parent: int, program: str) -> Iterator[int]:
    """Yield the processes that ``parent`` started and that run ``program``."""
    for folder in Path("/proc").glob("[0-9]*"):
        # A process may end while one looks at it.
        with contextlib.suppress(OSError):
            started_by = int((folder / "stat").read_text().rpartition(") ")[2].split()[1])
            if started_by == parent and program in (folder / "cmdline").read_text():
                yield int(folder.name)
