from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from schemas.curation import Questions
from warehouse import _ddl, _schema
from warehouse._ddl import ADDED, FRAMES, added_columns, marts_digest
from warehouse.store import Saving, Warehouse, WarehouseError

Make = Callable[..., Saving]
NEXT = _schema.VERSION + 1
VIEWS = """
    select view_name from duckdb_views()
    where schema_name = 'mart' order by all
"""


@pytest.fixture
def marts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of marts instead of the real one."""
    folder = tmp_path / "marts"
    folder.mkdir()
    monkeypatch.setattr(_ddl, "MARTS", folder)
    return folder


@pytest.fixture
def migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of migrations instead of the real one."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    monkeypatch.setattr(_schema, "MIGRATIONS", folder)
    return folder


def test_every_frame_has_its_table_and_nothing_else(warehouse: Warehouse) -> None:
    found = warehouse.query(
        "select table_name, column_name, data_type, is_nullable, comment from duckdb_columns() "
        "where not internal and schema_name = 'main' order by table_oid, column_index"
    )
    types = {"String": "VARCHAR", "Int64": "BIGINT", "Float64": "DOUBLE", "Boolean": "BOOLEAN"}
    moment = "TIMESTAMP WITH TIME ZONE"
    expected: list[tuple[object, ...]] = [
        ("meta", "schema_version", "INTEGER", True, None),
        ("meta", "marts", "VARCHAR", True, None),
        ("meta", "upgraded_at", "TIMESTAMP WITH TIME ZONE", True, None),
    ]
    for model in FRAMES:
        columns, table = model.to_schema().columns, model.place().table
        expected += [
            (table, n, types.get(str(t), moment), columns[n].nullable, model.descriptions()[n])
            for n, t in model.dtypes().items()
        ]
        added = {"study": "VARCHAR", "run": "VARCHAR", "saved_at": moment}
        expected += [(table, n, added[n], False, ADDED[n][1]) for n in added_columns(model)]
    assert sorted(map(repr, found.rows())) == sorted(map(repr, expected))


def test_every_table_says_what_a_row_is(warehouse: Warehouse) -> None:
    found = warehouse.query("select table_name, comment from duckdb_tables()")
    assert dict(found.iter_rows()) == {
        **{model.place().table: model.grain() for model in FRAMES},
        "meta": None,
    }


def test_every_mart_has_its_view_with_its_grain(warehouse: Warehouse) -> None:
    found = warehouse.query(
        "select view_name, comment from duckdb_views() where schema_name = 'mart'"
    )
    files = {file.stem: file.read_text().split("\n")[0] for file in _ddl.mart_files()}
    assert {view: f"-- {comment}" for view, comment in found.iter_rows()} == files
    assert all(line.startswith("-- One row per ") for line in files.values())


def test_no_column_is_a_reserved_word(warehouse: Warehouse) -> None:
    found = warehouse.query(
        "select table_name, column_name from duckdb_columns() where not internal "
        "and column_name in (select keyword_name from duckdb_keywords() "
        "where keyword_category = 'reserved')"
    )
    assert found.rows() == []


def test_a_mart_is_replaced_when_its_file_changes(marts: Path, stocked: Warehouse) -> None:
    file = marts / "items.sql"
    file.write_text("-- One row per question's name.\nselect question_id from questions")
    assert stocked.query("select * from mart.items").rows() == [("d/1",)]
    before = marts_digest()
    file.write_text("-- One row: how many.\nselect count(*) as n from questions")
    assert marts_digest() != before
    assert stocked.query("select * from mart.items").rows() == [(1,)]
    (marts / "more.sql").write_text("-- One row.\nselect 2 as n")
    assert stocked.query(VIEWS).rows() == [("items",), ("more",)]
    file.unlink()
    assert stocked.query(VIEWS).rows() == [("more",)]
    assert stocked.read(Questions).height == 1


def test_a_mart_may_read_another(marts: Path, warehouse: Warehouse) -> None:
    (marts / "a.sql").write_text("-- One row.\nselect n + 1 as n from mart.b")
    (marts / "b.sql").write_text("-- One row.\nselect n + 1 as n from mart.c")
    (marts / "c.sql").write_text("-- One row.\nselect 1 as n")
    assert warehouse.query("select n from mart.a").rows() == [(3,)]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select * from nowhere", "nowhere"),
        ("selct 1", "Parser Error"),
        ("select n from mart.broken", "broken"),
        ("select nothing(1)", "nothing"),
    ],
)
def test_a_broken_mart_is_named_and_changes_nothing(
    marts: Path, stocked: Warehouse, make: Make, sql: str, said: str
) -> None:
    (marts / "good.sql").write_text("-- One row.\nselect 1 as n")
    assert stocked.query("select * from mart.good").rows() == [(1,)]
    broken = marts / "broken.sql"
    broken.write_text(f"-- One row.\n{sql}")
    with pytest.raises(ValueError, match=r"marts that cannot be made: broken\.sql: ") as raised:
        stocked.save([make(Questions, {"question_id": "d/2"})], run="r2")
    assert said in str(raised.value)
    broken.unlink()
    assert stocked.query(VIEWS).rows() == [("good",)]
    assert stocked.read(Questions).height == 1


def test_a_warehouse_from_before_the_first_release_is_refused(stocked: Warehouse) -> None:
    with duckdb.connect(str(stocked.path)) as connection:
        connection.execute("update meta set schema_version = 13")
    before = stocked.path.read_bytes()
    with pytest.raises(WarehouseError) as raised:
        stocked.read(Questions)
    assert str(raised.value) == (
        f"{stocked.path} was written by a voirdire from before its first release (schema 13, this "
        f"one reads {_schema.OLDEST} and later). Copy what you need from it with DuckDB, and "
        "choose another file with --warehouse or VOIRDIRE_WAREHOUSE."
    )
    assert stocked.path.read_bytes() == before


def test_an_older_warehouse_is_brought_forward_once(
    stocked: Warehouse, make: Make, migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stocked.read(Questions)
    (migrations / "001_ignored.sql").write_text("drop table questions")
    (migrations / f"{NEXT:03}_notes.sql").write_text(
        "create table notes (text varchar); insert into notes values ('migrated');"
        "alter table questions add column note varchar;"
    )
    (migrations / f"{NEXT + 1:03}_more.sql").write_text(
        "insert into notes select text || '!' from notes"
    )
    monkeypatch.setattr(_schema, "VERSION", NEXT + 1)
    assert stocked.read(Questions).equals(before)
    stocked.save([make(Questions, {"question_id": "d/2"})], run="r2")
    assert stocked.query("select text from notes").rows() == [("migrated",), ("migrated!",)]
    assert stocked.query("select question_id, note from questions order by all").rows() == [
        ("d/1", None),
        ("d/2", None),
    ]
    assert stocked.query("select schema_version from meta").rows() == [(NEXT + 1,)]


def test_a_migration_that_fails_is_undone(
    stocked: Warehouse, make: Make, migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (migrations / f"{NEXT:03}_notes.sql").write_text("create table notes (text varchar)")
    (migrations / f"{NEXT + 1:03}_bad.sql").write_text(
        "delete from votes; select error('no such luck')"
    )
    monkeypatch.setattr(_schema, "VERSION", NEXT + 1)
    for visit in (
        lambda: stocked.read(Questions),
        lambda: stocked.save([make(Questions, {"question_id": "d/2"})], run="r2"),
    ):
        with pytest.raises(WarehouseError) as raised:
            visit()
        assert str(raised.value).startswith(
            f"{stocked.path} could not be migrated to schema {NEXT + 1} and is unchanged. "
        )
        assert "no such luck" in str(raised.value)
    with duckdb.connect(str(stocked.path), read_only=True) as connection:
        left = connection.execute(
            "select (select schema_version from meta), (select count(*) from votes), "
            "(select count(*) from questions), "
            "(select count(*) from duckdb_tables() where table_name = 'notes')"
        ).fetchall()
    assert left == [(NEXT - 1, 1, 1, 0)]


def test_a_new_file_needs_no_migration(
    warehouse: Warehouse, migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (migrations / f"{NEXT:03}_bad.sql").write_text("select error('not for new files')")
    monkeypatch.setattr(_schema, "VERSION", NEXT)
    assert warehouse.read(Questions).is_empty()
    assert warehouse.query("select schema_version from meta").rows() == [(NEXT,)]
