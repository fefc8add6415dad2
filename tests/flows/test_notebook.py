"""The lines of the docs with which notebooks and BI tools read results, run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from schemas.results import Estimates, Findings
from tasks.conclude import conclude
from tasks.statistics.mps import mps
from warehouse.store import Saving, Warehouse

ROOT = Path(__file__).parents[2]
PYARROW = ROOT / ".venv" / "notebook"
"""Where `make test` puts it; the environment itself may have it, too."""
CLIENTS = ROOT / ".venv" / "clients" / "bin" / "python"
"""An environment of its own, as its packages need others than voirdire does."""
LINES = re.compile(r"```python\n(import duckdb, polars.*?)```", re.DOTALL)
EXTENSION = """
from duckdb_extensions import import_extension

import_extension("ui")
"""
"""Does what ``install ui`` does on a machine with internet."""
ASKED = """
import socket
import time
import urllib.error
import urllib.request

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
con.execute(f"set ui_local_port = {port}")
con.execute("call start_ui_server()")
address = f"http://localhost:{port}"


def ask(query, origin=address):
    request = urllib.request.Request(f"{address}/ddb/run", query.encode(), {"Origin": origin})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read()


# The server listens soon after the call.
for _ in range(100):
    with socket.socket() as tried:
        if not tried.connect_ex(("127.0.0.1", port)):
            break
    time.sleep(0.1)


print(b"ada" in ask("select judge from mart.bias"))
print(b"read-only" in ask("delete from votes"))
try:
    ask("select 1", origin="http://other.example")
except urllib.error.HTTPError as error:
    print(error.code)
"""
"""The requests that the pages of DuckDB's UI send, which are on the internet."""


@pytest.fixture
def environment() -> dict[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(PYARROW)}
    there = subprocess.run(
        [sys.executable, "-c", "import pyarrow"], env=environment, capture_output=True, check=False
    )
    if there.returncode:
        pytest.skip("pyarrow is not installed: `make test` does, as requirements-notebook.txt says")
    return environment


def test_the_lines_of_the_docs(
    make_shifts: Any, tmp_path: Path, environment: dict[str, str]
) -> None:
    _save(tmp_path / "voirdire.duckdb", make_shifts)
    [lines] = LINES.findall((ROOT / "docs" / "how-to" / "sql.md").read_text(encoding="utf-8"))
    made = [line for line in lines.splitlines() if line.startswith("findings = ")]
    assert len(made) == 2
    # After each: how many rows, of which judge, and what kind of frame.
    shown = 'print(len(findings), *findings["judge"], isinstance(findings, pl.DataFrame))'
    program = re.sub(r"^(findings = .*)$", rf"\1\n{shown}", lines, flags=re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 ada True\n" * 2


@pytest.mark.slow
@pytest.mark.parametrize("client", ["ibis", "sqlalchemy"])
def test_other_clients_read_a_snapshot(client: str, make_shifts: Any, tmp_path: Path) -> None:
    if not CLIENTS.is_file():
        pytest.skip("no clients are installed: `make test` does, as requirements-clients.txt says")
    _save(tmp_path / "voirdire.duckdb", make_shifts)
    Warehouse(tmp_path / "voirdire.duckdb").snapshot(tmp_path / "bi.duckdb")
    text = (ROOT / "docs" / "how-to" / "sql.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [lines] = [block for block in blocks if client in block.splitlines()[0]]
    refused = {
        "ibis": 'con.raw_sql("delete from votes")',
        "sqlalchemy": 'engine.connect().execute(text("delete from votes"))',
    }
    program = f"""{lines}
print(len(rows))
try:
    {refused[client]}
except Exception as error:
    print("read-only" in str(error))
"""
    done = subprocess.run(
        [CLIENTS, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\nTrue\n"), done.stderr


@pytest.mark.slow
def test_the_ui_of_duckdb_reads_a_snapshot(make_shifts: Any, tmp_path: Path) -> None:
    if not CLIENTS.is_file():
        pytest.skip("no clients are installed: `make test` does, as requirements-clients.txt says")
    _save(tmp_path / "voirdire.duckdb", make_shifts)
    Warehouse(tmp_path / "voirdire.duckdb").snapshot(tmp_path / "bi.duckdb")
    text = (ROOT / "docs" / "how-to" / "sql.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"```python\n(import duckdb\n.*?)```", text, re.DOTALL)
    opened, _, waits = lines.partition('con.execute("call start_ui()")\n')
    assert waits.startswith("input(")
    done = subprocess.run(
        [CLIENTS, "-c", EXTENSION + opened + ASKED],
        cwd=tmp_path,
        # The extension is installed in the home folder.
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n401\n"), done.stderr


def _save(path: Path, make_shifts: Any) -> None:
    """Save the results of a judge that a perturbation moves."""
    rows = [{"sample": f"s{n:02}", "experimental_score": 0.5 + n / 99} for n in range(30)]
    estimates = mps(shifts=make_shifts(rows, control_score=0.5))
    savings = [Saving(Estimates, estimates), Saving(Findings, conclude(estimates))]
    Warehouse(path).save(savings, run="r1", study="quick")
