import errno
import os
import random
import resource
import stat
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from schemas.curation import Questions
from warehouse import _schema, store
from warehouse.store import Saving, Warehouse, WarehouseError

Make = Callable[..., Saving]


def _refusals(path: Path, make: Make) -> list[str]:
    """Return what reading, querying and saving say."""
    warehouse = Warehouse(path)
    visits: list[Callable[[], object]] = [
        lambda: warehouse.read(Questions),
        lambda: warehouse.query("select 1"),
        lambda: warehouse.save([make(Questions)], run="r1"),
    ]
    said = []
    for visit in visits:
        with pytest.raises(WarehouseError) as raised:
            visit()
        said.append(str(raised.value))
    return said


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", b""),
        ("notes.txt", b"x"),
        ("notes.txt", b"Dear diary,\n" * 1000),
        ("notes.txt", b"\0" * 20000),
        # DuckDB would read these as tables, or fetch from the web what reads them.
        ("votes.csv", b"a,b\n1,2\n"),
        ("votes.csv", b""),
        ("v.parquet", b"PAR1"),
        ("v.json", b"[]"),
        ("v.db", b"SQLite format 3\0" * 99),
    ],
)
def test_a_file_of_another_kind_is_left_alone(
    tmp_path: Path, make: Make, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for said in _refusals(path, make):
        assert said == (
            f"{path} is not a DuckDB file that this version can read. "
            "Choose another file with --warehouse or VOIRDIRE_WAREHOUSE."
        )
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("create table sales (i int)", "sales"),
        ("create table meta (a int)", "meta"),
        ("create table meta (schema_version int, marts varchar)", "meta"),
        ("create view totals as select 1 as a", "totals"),
        ("create schema s; create table s.sales (i int)", "sales"),
    ],
)
def test_the_duckdb_file_of_another_program_is_left_alone(
    tmp_path: Path, make: Make, sql: str, shown: str
) -> None:
    path = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(sql)
    for said in _refusals(path, make):
        assert said == (
            f"{path} is not a warehouse of voirdire: it has other tables ({shown}). "
            "Choose another file with --warehouse or VOIRDIRE_WAREHOUSE."
        )
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute("select table_name from duckdb_tables()").fetchall()
    assert {name for (name,) in tables} <= {shown}


def test_a_broken_file_is_reported(stocked: Warehouse, make: Make) -> None:
    whole = stocked.path.read_bytes()
    stocked.path.write_bytes(whole[: len(whole) // 2])
    for said in _refusals(stocked.path, make):
        assert said.startswith(f"{stocked.path} is damaged: its end is missing. Replace it with a ")
        assert said.endswith("choose another file with --warehouse or VOIRDIRE_WAREHOUSE.")


def test_a_damaged_part_is_reported_when_it_is_read(tmp_path: Path, make: Make) -> None:
    """The part is none of those that DuckDB reads to open the file."""
    path, noise = tmp_path / "v.duckdb", random.Random(0)
    rows = [{"question_id": f"q{n}", "question": noise.randbytes(500).hex()} for n in range(4000)]
    Warehouse(path).save([make(Questions, *rows)], run="r1")
    copy = tmp_path / "copy.duckdb"
    Warehouse(path).snapshot(copy)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"?" * 100)
    assert Warehouse(path).query("select 1").height == 1
    reads = (
        lambda: Warehouse(path).query("select max(question) from questions"),
        lambda: Warehouse(path).snapshot(copy),
    )
    for read in reads:
        with pytest.raises(WarehouseError) as raised:
            read()
        # It is no StatementError, as a query with a mistake is.
        assert raised.type is WarehouseError
        assert str(raised.value).startswith(f"{path} is damaged: a part of it was overwritten. Re")
    assert Warehouse(copy).query("select count(question) from questions").item() == 4000


def test_damage_of_the_version_is_no_other_kind_of_file(stocked: Warehouse) -> None:
    """It lies in the part that every visit reads first."""
    # It is where the text of the digest of the marts is.
    (digest,) = stocked.query("select marts from meta")["marts"]
    content = stocked.path.read_bytes()
    place = content.rindex(digest.encode())
    stocked.path.write_bytes(content[:place] + b"?" * len(digest) + content[place + len(digest) :])
    with pytest.raises(WarehouseError, match="is damaged: a part of it was overwritten"):
        stocked.query("select 1")


@pytest.mark.parametrize("kind", [duckdb.InternalException, duckdb.FatalException])
def test_a_failure_of_duckdb_itself_is_one_sentence(
    stocked: Warehouse, make: Make, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    """Its error has the addresses of sixty functions; the query has no mistake."""

    def fails(*_: object, **__: object) -> None:
        raise kind("Some Error: vector of size 0\n\nStack Trace:\n\n/x.so")

    before = stocked.read(Questions)
    for name in ("fetch", "save"):
        monkeypatch.setattr(store, name, fails)
    visits: list[Callable[[], object]] = [
        lambda: stocked.query("select 1"),
        lambda: stocked.save([make(Questions, {"question_id": "d/9"})], run="r9"),
    ]
    for visit in visits:
        with pytest.raises(WarehouseError) as raised:
            visit()
        assert raised.type is WarehouseError
        assert str(raised.value) == (
            f"{stocked.path}: DuckDB itself failed (Some Error: vector of size 0). Try again; if "
            "it fails again, it is an error in DuckDB."
        )
    monkeypatch.undo()
    assert stocked.read(Questions).equals(before)


def test_a_new_file_appears_complete_and_replaces_none(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.duckdb"
    build = store.build

    def build_while_another_does(
        connection: duckdb.DuckDBPyConnection, draft: Path, place: Path
    ) -> None:
        assert not path.exists()
        build(connection, draft, place)
        monkeypatch.setattr(store, "build", build)
        Warehouse(path).save([make(Questions, {"question_id": "d/2"})], run="r2")

    monkeypatch.setattr(store, "build", build_while_another_does)
    Warehouse(path).save([make(Questions)], run="r1")
    assert set(Warehouse(path).read(Questions)["question_id"]) == {"d/1", "d/2"}
    assert [file.name for file in tmp_path.iterdir()] == ["v.duckdb"]


def test_only_a_file_of_another_process_is_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined = []
    monkeypatch.setattr(
        _schema, "shadowing_definitions", lambda connection: examined.append(connection) or []
    )
    ours, theirs = tmp_path / "ours.duckdb", tmp_path / "theirs.duckdb"
    Warehouse(ours).query("select 1")
    assert examined == []
    theirs.write_bytes(ours.read_bytes())
    Warehouse(theirs).query("select 1")
    ours.unlink()
    theirs.rename(ours)
    Warehouse(ours).query("select 1")
    assert len(examined) == 2


def test_a_new_file_needs_no_links_and_follows_them(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File systems such as exFAT have no links; elsewhere a link names the place of the file."""

    def link(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    (tmp_path / "v.duckdb").symlink_to("data.duckdb")
    Warehouse(tmp_path / "v.duckdb").save([make(Questions)], run="r1")
    assert Warehouse(tmp_path / "data.duckdb").read(Questions).height == 1
    assert stat.S_IMODE((tmp_path / "data.duckdb").stat().st_mode) == 0o600
    # Another process was faster: its file stays.
    (tmp_path / "draft").touch()
    store._publish(tmp_path / "draft", tmp_path / "data.duckdb")
    assert Warehouse(tmp_path / "data.duckdb").read(Questions).height == 1


def test_a_disk_that_is_full_is_reported(tmp_path: Path, make: Make) -> None:
    used = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, used[1]))
    try:
        for said in _refusals(tmp_path / "v.duckdb", make):
            assert said.startswith(f"{tmp_path / 'v.duckdb'} cannot be opened: ")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, used)
    assert not [*tmp_path.iterdir()]


def test_a_log_without_its_file_is_not_lost(stocked: Warehouse, make: Make) -> None:
    """A program that was killed leaves its last saves there, and DuckDB would delete them."""
    log = stocked.path.with_name(f"{stocked.path.name}.wal")
    log.write_bytes(b"saves")
    stocked.path.rename(stocked.path.with_suffix(".moved"))
    for said in _refusals(stocked.path, make):
        assert said == (
            f"{log} is there without {stocked.path}: a program was killed while it wrote, and the "
            "warehouse was moved or deleted since. Move the warehouse back, or delete the log."
        )
    assert log.read_bytes() == b"saves"


def test_a_folder_is_no_file(tmp_path: Path, make: Make) -> None:
    for said in _refusals(tmp_path, make):
        assert said == f"{tmp_path} is a folder. Name a file, such as voirdire.duckdb."


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path, make: Make) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nodir" / "v.duckdb", tmp_path / "file" / "v.duckdb"):
        for said in _refusals(path, make):
            assert said == (
                f"there is no folder {path.parent}. Make it first, or choose another place for "
                "the warehouse with --warehouse or VOIRDIRE_WAREHOUSE."
            )
    assert not (tmp_path / "nodir").exists()


def test_a_folder_without_room_for_a_file_is_reported(make: Make) -> None:
    for said in _refusals(Path("/proc/v.duckdb"), make):
        assert said.startswith("/proc/v.duckdb cannot be opened: ")
        assert "Error" not in said
        assert said.endswith("Choose another place with --warehouse or VOIRDIRE_WAREHOUSE.")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_not_ours_is_reported(tmp_path: Path, make: Make) -> None:
    tmp_path.chmod(0o500)
    try:
        for said in _refusals(tmp_path / "v.duckdb", make):
            assert "cannot be opened" in said
    finally:
        tmp_path.chmod(0o700)


def test_a_newer_warehouse_is_left_alone(stocked: Warehouse, make: Make) -> None:
    with duckdb.connect(str(stocked.path)) as connection:
        connection.execute("update meta set schema_version = 99")
    for said in _refusals(stocked.path, make):
        assert said == (
            f"{stocked.path} was written by a newer voirdire (schema 99, this one knows "
            f"{store.VERSION}). Update voirdire, or choose another file with --warehouse."
        )
