"""A Prefect server that dies in the middle of an audit; results never depend on it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warehouse.store import Warehouse

WORDS = ("audit", "--limit", "10", "--perturbation", "fake_reference", "--judge", "emu/one",
         "--name", "alone", "--yes")  # fmt: skip
# ten questions, three arms, two orders
BALLOTS = 60


def test_an_audit_ends_complete_and_soon(
    emulated: Any, environment: dict[str, str], warehouse: Warehouse, tmp_path: Path
) -> None:
    emulated.provider(concurrency=2, timeout_seconds=30)
    emulated.behave(latency=0.5)
    # With a server of its own.
    del environment["PREFECT_API_URL"]
    environment["COLUMNS"] = "300"
    with subprocess.Popen(
        [sys.executable, "-m", "flows.cli", *WORDS], cwd=tmp_path, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as audit:  # fmt: skip
        while audit.poll() is None and emulated.stats().get("replies", 0) < 5:
            time.sleep(0.05)
        (server,) = _children(audit.pid, "flows._guarded")
        os.kill(server, signal.SIGKILL)
        said, errors = audit.communicate(timeout=400)
    after = time.time()
    assert audit.returncode == 0, errors
    state, asked, ended = warehouse.query("select state, asked, epoch(ended_at) from runs").row(0)
    assert (state, asked, emulated.stats()["requests"]) == ("completed", BALLOTS, BALLOTS)
    kinds = warehouse.query("select kind from findings order by kind")["kind"].to_list()
    assert kinds == ["position", "promote"]
    assert (tmp_path / "reports" / "alone.html").is_file()
    # Prefect's own tries took 140 s here, and as long again as the process ended.
    assert after - ended < 120
    assert "Its results are complete without it." in said
    assert "the table in the Prefect UI was not written" in said.splitlines()[-1]
    assert not [word for word in ("Traceback", "httpx", "ERROR") if word in said + errors]


def _children(parent: int, program: str) -> Iterator[int]:
    """Yield the processes that ``parent`` started and that run ``program``."""
    for folder in Path("/proc").glob("[0-9]*"):
        # A process may end while one looks at it.
        with contextlib.suppress(OSError):
            started_by = int((folder / "stat").read_text().rpartition(") ")[2].split()[1])
            if started_by == parent and program in (folder / "cmdline").read_text():
                yield int(folder.name)
