from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from warehouse.peek import default_path, done_before
from warehouse.store import Warehouse

RUN: dict[str, Any] = {
    "run": "r1", "flow": "audit", "study": "quick", "user": "u", "process": "h/1",
    "parameters": "{}",
    "fingerprint": "f1", "code_version": "1", "state": "running",
    "started_at": datetime(2024, 1, 1, tzinfo=UTC),
}  # fmt: skip


def test_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VOIRDIRE_WAREHOUSE", raising=False)
    assert default_path() == tmp_path / "voirdire.duckdb"
    monkeypatch.setenv("VOIRDIRE_WAREHOUSE", "sub/mine.duckdb")
    assert default_path() == tmp_path / "sub" / "mine.duckdb"


@pytest.mark.parametrize(
    ("state", "done"),
    [("running", False), ("failed", False), ("completed with gaps", False), ("completed", True)],
)
def test_only_a_completed_run_counts_as_done(warehouse: Warehouse, state: str, done: bool) -> None:
    warehouse.start_run(RUN)
    warehouse.update_run("r1", state=state)
    assert done_before(warehouse.path, "f1") is done
    assert done_before(warehouse.path, "f2") is False


def test_what_cannot_be_read_counts_as_not_done(tmp_path: Path) -> None:
    assert done_before(tmp_path / "nowhere.duckdb", "f1") is False
    assert done_before(tmp_path, "f1") is False
    (tmp_path / "text").write_text("no database")
    assert done_before(tmp_path / "text", "f1") is False
    with duckdb.connect(str(tmp_path / "theirs.duckdb")) as connection:
        connection.execute("create table runs (a int)")
    assert done_before(tmp_path / "theirs.duckdb", "f1") is False
