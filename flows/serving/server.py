"""A Prefect server: a named one, the one that the user serves, or one of our own."""

import atexit
import os
import secrets
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
from typing import NamedTuple

from flows.serving.access import AUTH_VARIABLE, USER, Access, own_server
from flows.serving.guarded_server import HOSTS, origins

SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    # It reads a run before it writes, so that SQLite refuses it ("database is locked") where a run
    # is claimed meanwhile. A run that is late merely waits for the one before it.
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
PATIENCE_SECONDS = 18.0
"""How long a server that is said to run may take to answer; ours is waited for while it lives."""
SILENCE_SECONDS = 12.0
"""What our own server has said so far is shown if it takes longer than this to answer."""
REQUEST_SECONDS = 2.0
SECONDS_BETWEEN_WORDS = 5.0
LINES_KEPT = 40
LAST_LINES = 4
"""What stands above them is where the server was when it failed."""
Say = Callable[[str], None]


def find_server(named: str | None = None) -> Access | None:
    """Return the server that is named, or set, or that the same user's ``voirdire serve`` runs.

    A server that merely answers at the usual port may be anybody's, and is not used.
    """
    if url := named or os.environ.get("PREFECT_API_URL"):
        return Access(_api(url), os.environ.get(AUTH_VARIABLE))
    own = own_server()
    return own[0] if own else None


def require_answer(access: Access, seconds: float | None = None) -> None:
    """Wait until a server that is said to run answers, and lets us in.

    Raises
    ------
    ValueError
        With the server's own error, after ``seconds`` (PATIENCE_SECONDS) at the latest.
    """
    until = time.monotonic() + (PATIENCE_SECONDS if seconds is None else seconds)
    # Half of what is left, as connecting and reading may each take so long.
    while problem := _problem(access, seconds=max(0.5, (until - time.monotonic()) / 2)):
        if time.monotonic() + 0.5 > until or problem.final:
            raise ValueError(
                f"the Prefect server at {access.url} cannot be used: {problem.text}. Start it, "
                "name another with --server URL or PREFECT_API_URL, or name none."
            )
        time.sleep(0.5)


def asks_for_authentication(access: Access) -> bool:
    """Tell whether a server refuses who does not authenticate."""
    problem = _problem(Access(access.url), seconds=PATIENCE_SECONDS)
    return bool(problem and problem.final)


class Server:
    """A server of our own, which starts in the background and ends with us."""

    def __init__(
        self,
        port: int | None = None,
        auth: str | None = None,
        *,
        pages: bool = False,
        listener: Say | None = None,
    ) -> None:
        self.port = port or _free_port()
        if port:
            _require_free(port)
        self.access = Access(f"http://127.0.0.1:{self.port}/api", auth)
        self._listener = listener
        self._said: deque[str] = deque(maxlen=LINES_KEPT)
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "flows.serving.guarded_server", str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment(pages=pages),
            # A Ctrl-C is for us, who need the server until we have ended.
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        atexit.register(self.stop)

    @property
    def url(self) -> str:
        """Address of its API."""
        return self.access.url

    @property
    def process(self) -> int:
        """Number of its process."""
        return self._process.pid

    def wait(self, say: Say | None = None, *, progress: bool = False) -> None:
        """Wait until it answers, for as long as it lives; ``say`` is told that it takes long.

        With ``progress`` it is told every few seconds.

        Raises
        ------
        RuntimeError
            With its own last words, as soon as it has ended.
        """
        began = told = time.monotonic()
        shown = False
        while problem := _problem(self.access, seconds=REQUEST_SECONDS):
            if problem.final:
                raise RuntimeError(
                    f"the Prefect server at {self.url} does not let us in: {problem.text}."
                )
            if self._process.poll() is not None:
                self._reader.join(2)
                raise RuntimeError(
                    f"the Prefect server on port {self.port} ended as it started (exit code "
                    f"{self._process.returncode}): {self._words(LAST_LINES) or 'it said nothing'}"
                )
            now = time.monotonic()
            if say and progress and now - told > SECONDS_BETWEEN_WORDS:
                told = now
                say(f"The Prefect server is starting ({now - began:.0f} s) ...")
            if say and now - began > SILENCE_SECONDS and not shown:
                shown = True
                say(
                    f"The Prefect server has not answered for {now - began:.0f} s. So far it has "
                    f"said: {self._words() or 'nothing'}"
                )
            time.sleep(0.05)

    def stop(self, seconds: float = 20.0) -> None:
        """End the server, by force where it takes longer than ``seconds``."""
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
            if name not in {"PREFECT_API_URL", AUTH_VARIABLE, "PREFECT_SERVER_API_AUTH_STRING"}
        }
        auth = {"PREFECT_SERVER_API_AUTH_STRING": self.access.auth} if self.access.auth else {}
        return {
            **inherited,
            **SETTINGS,
            **({} if pages else TEMPORARY),
            **auth,
            "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(origins(self.port)),
            "PREFECT_UI_API_URL": self.url,
        }

    def _words(self, last: int = LINES_KEPT) -> str:
        return "\n".join([line for line in self._said if line.strip()][-last:])

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            text = line.decode(errors="replace").rstrip()
            self._said.append(text)
            if self._listener:
                self._listener(text)


def new_auth() -> str:
    """Return an authentication string for a server that lives as long as this process."""
    return f"{USER}:{secrets.token_urlsafe(24)}"


class Problem(NamedTuple):
    """Why a server cannot be used."""

    text: str
    final: bool = False
    """Waiting does not help."""


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follow no redirection: it would tell another host the authentication string."""

    def redirect_request(self, *_: object) -> None:
        """Return no request."""


def _problem(access: Access, seconds: float) -> Problem | None:
    """Return why a server cannot be used; null if it can."""
    # Its health is told to everybody, its version to those who are let in.
    request = urllib.request.Request(f"{access.url}/admin/version")  # noqa: S310 - checked by _api
    if access.auth:
        request.add_header("Authorization", f"Basic {b64encode(access.auth.encode()).decode()}")
    here = request.host.startswith(HOSTS)
    # No proxy is told the string of a server on this machine.
    proxies = [urllib.request.ProxyHandler({})] if here else []
    try:
        with urllib.request.build_opener(_Straight, *proxies).open(request, timeout=seconds):
            return None
    except urllib.error.HTTPError as error:
        if error.code in {401, 403}:
            hint = f"it asks for authentication: set {AUTH_VARIABLE} to its string"
            return Problem(hint, final=True)
        return Problem(f"it answers {error.code} {error.reason}")
    except (OSError, ValueError, HTTPException) as error:
        return Problem(str(getattr(error, "reason", None) or error))


def _api(url: str) -> str:
    url = url.rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is not the address of a server. Give http://HOST:PORT/api.")
    return url if url.endswith("/api") else f"{url}/api"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _require_free(port: int) -> None:
    """Refuse a port that another program has, at once."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ValueError(
                f"port {port} of 127.0.0.1 cannot be used: {error.strerror}. Take another with "
                "--port N. If a Prefect server of yours runs there, name it with --server "
                f"http://127.0.0.1:{port}/api; anybody's server could run code as you."
            ) from error
