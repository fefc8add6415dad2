"""``voirdire serve`` with a server of its own: both end together, however that comes."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from waiting import PATIENCE_SECONDS, wait_for

pytestmark = [pytest.mark.served, pytest.mark.slow]


def _answers(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.usefixtures("made_home")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_its_server_ends_with_it(
    environment: dict[str, str], tmp_path: Path, how: signal.Signals
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {name: value for name, value in environment.items() if name != "PREFECT_API_URL"}
    # A command that ran in this process may have made the log silent.
    own["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "INFO"
    said = tmp_path / "said"
    with said.open("wb") as file:
        serving = subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "serve", "--port", str(port)],
            cwd=tmp_path,
            env=own,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(lambda: "are served" in said.read_text(), "no studies are served")
        time.sleep(2)
        # As a terminal sends Ctrl-C: to the command and all that it started in its group.
        os.killpg(serving.pid, how)
        code = serving.wait(timeout=PATIENCE_SECONDS)
    finally:
        if serving.poll() is None:
            serving.kill()
    wait_for(lambda: not _answers(port), "the server did not end")
    if how != signal.SIGKILL:
        assert code == 0, said.read_text()
        # Its server, interrupted too, once no longer answered: a minute of errors.
        assert "Schedules stay as they are" in said.read_text()
        assert "Traceback" not in said.read_text()
