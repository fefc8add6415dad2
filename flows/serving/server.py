"""The Prefect server: given by its address, run by `voirdire serve`, or temporary."""

import atexit
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections import deque
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

from flows.serving.access import Access, own_server
from flows.serving.guarded_server import HOSTS, origins
from tasks.kit.printable import AUTHENTICATION

SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    # The new UI asks a host outside for its analytics settings, whatever is set here.
    "PREFECT_SERVER_UI_V2_ENABLED": "false",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    # This service reads before it writes, which SQLite refuses ("database is locked") if a run is
    # claimed meanwhile. A late run merely waits for the run before it.
    "PREFECT_SERVER_SERVICES_LATE_RUNS_ENABLED": "false",
}
TEMPORARY = {
    "PREFECT_UI_ENABLED": "0",
    "PREFECT__SERVER_EPHEMERAL": "1",
    # A run uses no blocks. Unmemoised, so that the next server with pages registers them.
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
    "PREFECT_MEMOIZE_BLOCK_AUTO_REGISTRATION": "false",
}
"""Settings of a server that serves one run, without the UI."""
ANSWER_SECONDS = 18.0
"""How long a given server may take to start; our own may take as long as it runs."""
BUSY_SECONDS = 60.0
"""How long a given server may be too busy to answer, as during the runs of a night."""
MESSAGES = (
    (12.0, "Waiting for the Prefect server, which is starting ({:.0f} s so far)."),
    (60.0, "The Prefect server has not answered for {:.0f} s."),
)
"""Seconds of waiting for our own server -> the message then, beside the server's output."""
REQUEST_SECONDS = 2.0
SECONDS_BETWEEN_MESSAGES = 5.0
LINES_KEPT = 40
LAST_LINES = 4
"""Lines that are shown if the server failed; those above are a traceback."""
ANOTHER = "Correct this, or give a running server with --server URL or PREFECT_API_URL."
Print = Callable[[str], None]


def find_server(named: str | None = None) -> Access | None:
    """Return the given server, else the one of PREFECT_API_URL, else the user's ``voirdire serve``.

    A server that merely answers at the usual port is not used, because it may be another user's.
    """
    if url := named or os.environ.get("PREFECT_API_URL"):
        return Access(_api(url), os.environ.get(AUTHENTICATION))
    own = own_server()
    return own[0] if own else None


def require_answer(access: Access, say: Print = lambda _: None) -> None:
    """Wait until a given server answers and accepts our authentication.

    ``say`` is called once if it is busy. A ValueError gives the reason, after ANSWER_SECONDS if no
    server is there and after BUSY_SECONDS if it is silent.
    """
    began, said = time.monotonic(), False
    while problem := _problem(access, seconds=ANSWER_SECONDS / 3):
        passed = time.monotonic() - began
        if passed + 0.5 > (BUSY_SECONDS if problem.busy else ANSWER_SECONDS) or problem.final:
            raise ValueError(
                f"the Prefect server at {access.url} cannot be used: {problem.text}. Start it, "
                "give another with --server URL or PREFECT_API_URL, or give none."
            )
        if problem.busy and not said:
            say(f"Waiting for the Prefect server at {access.url}, which does not answer yet.")
            said = True
        time.sleep(0.5)


def asks_for_authentication(access: Access) -> bool:
    """Tell whether a server requires authentication."""
    problem = _problem(Access(access.url), seconds=ANSWER_SECONDS)
    return bool(problem and problem.final)


class Server:
    """Our own server, which starts in the background and ends with this process."""

    def __init__(
        self,
        port: int | None = None,
        auth: str | None = None,
        *,
        pages: bool = False,
        reports: Path | None = None,
        listener: Print | None = None,
    ) -> None:
        self.port = port or _free_port()
        if port:
            _require_free(port)
        served = [str(reports)] if reports else []
        self.access = Access(f"http://127.0.0.1:{self.port}/api", auth, *served)
        self._listener = listener
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "flows.serving.guarded_server", str(self.port), *served],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment(pages=pages),
            # Ctrl-C must not reach the server, which this process needs until it has ended.
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        atexit.register(self.stop)

    @property
    def process(self) -> int:
        """Its PID."""
        return self._process.pid

    def wait(self, say: Print | None = None, *, progress: bool = False) -> None:
        """Wait until the server answers, as long as it runs.

        ``say`` is called with a message if the server takes long, and every few seconds if
        ``progress``. Raise RuntimeError with the server's last output, as soon as it has ended.
        """
        began = reported = time.monotonic()
        shown = 0
        while problem := _problem(self.access, seconds=REQUEST_SECONDS):
            if problem.final:
                raise RuntimeError(
                    f"the Prefect server at {self.access.url}, which was started for this command, "
                    f"refuses access: {problem.text}. {ANOTHER}"
                )
            if self._process.poll() is not None:
                self._reader.join(2)
                output = self._output(LAST_LINES) or "no output"
                raise RuntimeError(
                    f"the Prefect server on port {self.port} failed to start (exit code "
                    f"{self._process.returncode}): {output.rstrip('.')}. {ANOTHER}"
                )
            now = time.monotonic()
            if say and progress and now - reported > SECONDS_BETWEEN_MESSAGES:
                reported = now
                say(f"The Prefect server is starting ({now - began:.0f} s) ...")
            if say and shown < len(MESSAGES) and now - began > MESSAGES[shown][0]:
                output, message = self._output(), MESSAGES[shown][1]
                shown += 1
                say(
                    f"{message.format(now - began)}{f' Its output so far: {output}' * bool(output)}"
                )
            time.sleep(0.05)

    def begin_to_stop(self) -> None:
        """Ask the server to stop, without waiting for it."""
        self._process.terminate()

    def stop(self, seconds: float = 20.0) -> None:
        """Stop the server; kill it if it takes longer than ``seconds``."""
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _environment(self, *, pages: bool) -> dict[str, str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in {"PREFECT_API_URL", AUTHENTICATION, "PREFECT_SERVER_API_AUTH_STRING"}
        }
        auth = {"PREFECT_SERVER_API_AUTH_STRING": self.access.auth} if self.access.auth else {}
        return {
            **inherited,
            **SETTINGS,
            **({} if pages else TEMPORARY),
            **auth,
            "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(origins(self.port)),
            "PREFECT_UI_API_URL": self.access.url,
        }

    def _output(self, last: int = LINES_KEPT) -> str:
        return "\n".join([line for line in self._lines if line.strip()][-last:])

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            text = line.decode(errors="replace").rstrip()
            self._lines.append(text)
            if self._listener:
                self._listener(text)


class Problem(NamedTuple):
    """Why a server cannot be used."""

    text: str
    final: bool = False
    """Whether waiting does not help."""
    busy: bool = False
    """Whether something is there, but silent."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follow no redirect, which would send the authentication string to another host."""

    def redirect_request(self, *_: object) -> None:
        """Return no request."""


def _problem(access: Access, seconds: float) -> Problem | None:
    """Return why a server cannot be used; null if it can."""
    # Unlike the health check, this address requires authentication.
    request = urllib.request.Request(f"{access.url}/admin/version")  # noqa: S310 - checked by _api
    if access.auth:
        request.add_header("Authorization", f"Basic {b64encode(access.auth.encode()).decode()}")
    here = request.host.startswith(HOSTS)
    # The string of a server on this machine is not sent through a proxy.
    proxies = [urllib.request.ProxyHandler({})] if here else []
    try:
        with urllib.request.build_opener(_NoRedirects, *proxies).open(request, timeout=seconds):
            return None
    except urllib.error.HTTPError as error:
        if error.code in {401, 403}:
            hint = f"it asks for authentication: set {AUTHENTICATION} to its string"
            return Problem(hint, final=True)
        return Problem(f"it answers {error.code} {error.reason}")
    except (OSError, ValueError, HTTPException) as error:
        cause = getattr(error, "reason", None) or error
        return Problem(str(cause), busy=isinstance(cause, TimeoutError))


def _api(url: str) -> str:
    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise ValueError(
            f"{url!r} is not the address of a Prefect server. Give http://HOST:PORT/api."
        )
    return url if url.endswith("/api") else f"{url}/api"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _require_free(port: int) -> None:
    """Check that the port is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ValueError(
                f"port {port} of 127.0.0.1 cannot be used: {error.strerror}. Take another with "
                "--port N. If your own Prefect server runs there, give --server "
                f"http://127.0.0.1:{port}/api; another user's server could run code as you."
            ) from error
