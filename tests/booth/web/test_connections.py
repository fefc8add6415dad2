"""The booth when more connections come than it has files for, or when they say nothing."""

import contextlib
import http.client
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from waiting import PATIENCE_SECONDS, wait_for

from booth.web import connections
from booth.web.connections import most_connections
from warehouse.store import Warehouse

Audited = Callable[..., Warehouse]
ROOT = Path(connections.__file__).parents[2]
FILES = 128
SECONDS = 2.0
"""How long the booth of these tests waits for a request; then it closes the connection."""

LIMITED = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}))
from booth.web import connections
from booth.cli import booth
connections.RECEIVE_SECONDS = {SECONDS}
booth(sys.argv[1:])
"""
LINK = re.compile(r"http://\S+")


@pytest.fixture
def limited(audited: Audited, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Serve a booth that may open few files; yield a voter's link and what it complains of."""
    said = tmp_path / "said"
    words = ["quick", "--voter", "ann", "--port", "0", "--warehouse", str(audited().path)]
    with (
        said.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-u", "-c", LIMITED, *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdout
        link = LINK.search(process.stdout.readline())
        assert link
        yield link[0], said
        process.send_signal(signal.SIGINT)
        process.wait(timeout=PATIENCE_SECONDS)


def _status(link: str) -> int:
    """Ask for a page; 0 if there is no answer."""
    parts = urlsplit(link)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


@pytest.mark.slow
def test_mute_connections_are_closed_and_the_booth_goes_on(limited: tuple[str, Path]) -> None:
    link, said = limited
    assert _status(link) == 200
    parts = urlsplit(link)
    with contextlib.ExitStack() as stack:
        mute = []
        for _ in range(2 * FILES):
            try:
                one = socket.create_connection((parts.hostname, parts.port), timeout=5)
            except OSError:
                break
            mute.append(stack.enter_context(one))
            # some begin a request, and never end it
            with contextlib.suppress(OSError):
                one.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: " if len(mute) % 2 else b"")
        assert len(mute) > FILES // 4
        # a connection too many is refused, not left waiting
        assert _status(link) in {0, 200, 503}
        wait_for(lambda: _status(link) == 200, "the page is not served again")
    complaints = said.read_text()
    assert "Traceback" not in complaints
    assert len(complaints.splitlines()) <= 2


def test_connections_are_bounded_by_the_files_that_may_be_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for allowed, least, most in ((64, 4, 20), (10**6, 256, 256), (10, 4, 4)):
        monkeypatch.setattr(connections.resource, "getrlimit", lambda _, n=allowed: (n, n))
        assert least <= most_connections() <= most
