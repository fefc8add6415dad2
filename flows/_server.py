"""A Prefect server to talk to: the one that runs, or one of our own for as long as we run."""

import atexit
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

DEFAULT = "http://127.0.0.1:4200/api"
SETTINGS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_CLOUD_ENABLE_ORCHESTRATION_TELEMETRY": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
}
PATIENCE_SECONDS = 120.0
# A process that begins so ends with its standard input: it cannot outlive us, however we end.
ENDS_WITH_US = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
"""
PROGRAM = f"""{ENDS_WITH_US}
import uvicorn
uvicorn.run("prefect.server.api.server:create_app", factory=True, host="127.0.0.1",
            port=int(sys.argv[1]), log_level="error", lifespan="on")
"""


def find_server() -> str | None:
    """Return the address of a server: the one that is set, or the usual one if it answers."""
    chosen = os.environ.get("PREFECT_API_URL")
    return chosen or (DEFAULT if _answers(DEFAULT, seconds=0.5) else None)


class Server:
    """A server of our own, which starts in the background and ends with us."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/api"
        quiet = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1"}
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", PROGRAM, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **quiet, **SETTINGS},
            start_new_session=True,
        )
        self._said: list[bytes] = []
        threading.Thread(target=self._listen, daemon=True).start()
        atexit.register(self.stop)

    def wait(self) -> None:
        """Wait until it answers."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not _answers(self.url, seconds=2):
            if self._process.poll() is not None or time.monotonic() > until:
                said = b"".join(self._said[-5:]).decode(errors="replace").strip()
                raise RuntimeError(
                    f"the Prefect server did not start: {said or 'no answer'}. "
                    "Start one with `prefect server start` and set PREFECT_API_URL."
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

    def _listen(self) -> None:
        self._said.extend(self._process.stderr or ())


def _answers(url: str, seconds: float) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=seconds) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
