from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from warehouse.path_checks import CompletedRun, completed_run, default_path
from warehouse.store import Warehouse

ENDED = datetime(2024, 1, 2, tzinfo=UTC)
RUN: dict[str, Any] = {
    "run": "r1",
    "flow": "audit",
    "study": "quick",
    "user": "u",
    "process": "h/1",
    "parameters": "{}",
    "fingerprint": "f1",
    "code_version": "1",
    "state": "running",
    "started_at": datetime(2024, 1, 1, tzinfo=UTC),
}


def test_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VOIRDIRE_WAREHOUSE", raising=False)
    assert default_path() == tmp_path / "voirdire.duckdb"
    monkeypatch.setenv("VOIRDIRE_WAREHOUSE", "sub/mine.duckdb")
    assert default_path() == tmp_path / "sub" / "mine.duckdb"


def unneeded() -> str:
    """Be the fingerprint where there is no run to compare it with."""
    raise AssertionError("computed for nothing")


@pytest.mark.parametrize(
    ("state", "stands"),
    [("running", False), ("failed", False), ("completed with gaps", False), ("completed", True)],
)
def test_only_a_completed_run_stands(warehouse: Warehouse, state: str, stands: bool) -> None:
    warehouse.start_run(RUN)
    warehouse.update_run("r1", state=state, ended_at=ENDED, planned=5, from_warehouse=3, asked=1)
    expected = CompletedRun("r1", ENDED.replace(tzinfo=None), 5, 4) if stands else None
    assert completed_run(warehouse.path, "quick", lambda: "f1") == expected
    assert completed_run(warehouse.path, "quick", lambda: "f2") is None
    assert completed_run(warehouse.path, "other", unneeded) is None


def test_a_later_run_of_the_study_counts(warehouse: Warehouse) -> None:
    warehouse.start_run(RUN)
    warehouse.update_run("r1", state="completed", ended_at=ENDED, planned=5, asked=5)
    later = {**RUN, "run": "r2", "started_at": ENDED, "state": "failed"}
    warehouse.start_run({**later, "study": "other"})
    # null counts of an old run: what was cast is not known
    assert completed_run(warehouse.path, "quick", lambda: "f1") is None
    warehouse.update_run("r1", from_warehouse=0)
    assert completed_run(warehouse.path, "quick", lambda: "f1") is not None
    warehouse.start_run(later)
    assert completed_run(warehouse.path, "quick", lambda: "f1") is None


def test_what_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    assert completed_run(tmp_path / "nowhere.duckdb", "quick", unneeded) is None
    assert completed_run(tmp_path, "quick", unneeded) is None
    (tmp_path / "text").write_text("no database")
    assert completed_run(tmp_path / "text", "quick", unneeded) is None
    with duckdb.connect(str(tmp_path / "theirs.duckdb")) as connection:
        connection.execute("create table runs (a int)")
    assert completed_run(tmp_path / "theirs.duckdb", "quick", unneeded) is None
