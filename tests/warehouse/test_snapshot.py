"""A copy of the warehouse for tools that keep a file open."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from schemas.curation import Questions
from warehouse.store import Saving, Warehouse, WarehouseError

Make = Callable[..., Saving]
LEAVES_A_LOG = """
import os, sys, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("set checkpoint_threshold = '1GB'")
connection.execute("insert into questions by name select * replace ('d/9' as question_id) "
                   "from questions limit 1")
os._exit(9)
"""


def test_a_copy_stays_as_it_was_and_holds_up_nobody(
    stocked: Warehouse, make: Make, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.duckdb"
    stocked.snapshot(copy)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir() if "part" in file.name] == []
    with duckdb.connect(str(copy), read_only=True) as tool:
        assert stocked.save([make(Questions, {"question_id": "d/2"})], run="r2") == 1
        # an open copy is replaced beside whoever reads it
        stocked.snapshot(copy)
        assert tool.execute("select count(*) from questions").fetchone() == (1,)
        assert tool.execute("select count(*) from mart.bias").fetchone() is not None
    assert Warehouse(copy).read(Questions).equals(stocked.read(Questions))


def test_what_a_killed_writer_left_beside_the_file_is_in_the_copy(
    stocked: Warehouse, tmp_path: Path
) -> None:
    left = subprocess.run([sys.executable, "-c", LEAVES_A_LOG, stocked.path], check=False)
    assert left.returncode == 9
    assert Path(f"{stocked.path}.wal").exists()
    stocked.snapshot(tmp_path / "copy.duckdb")
    assert Warehouse(tmp_path / "copy.duckdb").read(Questions).height == 2


def test_a_missing_folder_is_made(stocked: Warehouse, tmp_path: Path) -> None:
    target = tmp_path / "of" / "friday" / "copy.duckdb"
    stocked.snapshot(target)
    assert Warehouse(target).read(Questions).equals(stocked.read(Questions))


@pytest.mark.parametrize("kind", ["same", "symbolic", "hard", "other", "folder", "log"])
def test_nothing_else_is_overwritten(stocked: Warehouse, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "copy.duckdb"
    match kind:
        case "same":
            target = stocked.path
        case "symbolic":
            target.symlink_to(stocked.path)
        case "hard":
            os.link(stocked.path, target)
        case "other":
            target.write_text("my notes, which are no database")
        case "folder":
            target.mkdir()
        case "log":
            Path(f"{target}.wal").write_bytes(b"log")
    before = stocked.path.read_bytes()
    with pytest.raises(WarehouseError):
        stocked.snapshot(target)
    assert stocked.path.read_bytes() == before
    assert kind != "other" or target.read_text().startswith("my notes")
