"""Work that a run does early."""

from pathlib import Path

import pytest

from flows.results.preparation import opened_early
from warehouse import store
from warehouse.store import Warehouse


def test_the_warehouse_is_made_while_the_block_runs(tmp_path: Path) -> None:
    path = tmp_path / "v.duckdb"
    with opened_early(path):
        pass
    assert path.exists()
    assert Warehouse(path).query("select count(*) from runs").item() == 0


def test_an_unusable_file_is_left_to_the_visit_that_reports_it(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary,")
    with opened_early(path):
        pass
    with pytest.raises(store.WarehouseError, match="is not a DuckDB file"):
        Warehouse(path).query("select 1")
    assert path.read_text() == "Dear diary,"


def test_an_interrupt_leaves_no_draft(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), opened_early(tmp_path / "v.duckdb"):
        raise KeyboardInterrupt
    assert [file.name for file in tmp_path.iterdir()] == ["v.duckdb"]
