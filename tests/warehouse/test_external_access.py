"""A warehouse from elsewhere, and queries that reach out of it."""

import os
from pathlib import Path

import duckdb
import pytest

from schemas.results import Estimates
from warehouse import _schema
from warehouse._ddl import create, create_marts, marts_are_ours
from warehouse.store import Warehouse, WarehouseError

SECRET = "the operator's private words"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a warehouse that another program may change; nobody has looked into it yet."""
    path = tmp_path / "elsewhere.duckdb"
    Warehouse(path).query("select 1")
    monkeypatch.setattr(_schema, "_examined", set())
    (tmp_path / "private.txt").write_text(SECRET)
    return path


REACHING = [
    "copy (select 1) to '{folder}/out.csv'",
    "copy estimates to '{folder}/out.parquet' (format parquet)",
    "copy estimates to '/dev/stdout'",
    "attach '{folder}/other.duckdb'",
    "select * from read_text('{folder}/private.txt')",
    "select * from read_blob('{folder}/private.txt')",
    "select * from read_csv('{folder}/private.txt')",
    "select * from '{folder}/private.csv'",
    "select * from glob('{folder}/*')",
    "select * from sniff_csv('{folder}/private.txt')",
    "install httpfs",
    "load httpfs",
    "load '{folder}/x.duckdb_extension'",
    "export database '{folder}/all'",
    "import database '{folder}/all'",
    "create secret s (type s3)",
    "set enable_external_access = true",
    "set lock_configuration = false",
    "reset enable_external_access",
    "set allowed_directories = ['/']",
    "set temp_directory = '{folder}'",
    "pragma profiling_output = '{folder}/profile'",
    "commit; copy (select 1) to '{folder}/out.csv'",
]


@pytest.mark.parametrize("query", REACHING)
def test_no_query_reaches_out_of_the_warehouse(query: str, elsewhere: Path) -> None:
    before = sorted(elsewhere.parent.iterdir())
    with pytest.raises(WarehouseError) as raised:
        Warehouse(elsewhere).query(query.format(folder=elsewhere.parent))
    reported = str(raised.value)
    assert "a query must not use anything outside this warehouse" in reported
    assert "voirdire sql QUERY --format parquet --output FILE" in reported
    assert "voirdire export --output FOLDER" in reported
    assert "private.txt" not in reported
    assert "\n" not in reported
    assert sorted(elsewhere.parent.iterdir()) == before


def test_variables_of_this_process_are_no_tables(elsewhere: Path) -> None:
    import polars as pl

    frame = pl.DataFrame({"a": [1]})
    with pytest.raises(WarehouseError, match="does not exist"):
        Warehouse(elsewhere).query("select * from frame")
    assert frame.height == 1


def _doctor(path: Path, *statements: str) -> None:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement.format(folder=path.parent))


DOCTORED = [
    "create or replace view mart.numbers as select content from read_text('{folder}/private.txt')",
    "create or replace view mart.bias as select 'quick' as study, 'biased' as finding",
    "drop view mart.asr",
    "create view mart.estimates as select 1 as study",
    "create table mart.judges as select 'x' as judge",
    "drop view mart.asr; create table mart.asr as select 1 as study",
]


@pytest.mark.parametrize("statement", DOCTORED)
def test_marts_of_a_foreign_file_are_made_anew_before_anything_reads_them(
    statement: str, elsewhere: Path, tmp_path: Path
) -> None:
    ours = tmp_path / "ours.duckdb"
    Warehouse(ours).query("select 1")
    views = "select schema_name, view_name, sql from duckdb_views() where not internal order by all"
    expected = Warehouse(ours).query(views)
    digest = Warehouse(ours).query("select marts from meta").item()
    _doctor(elsewhere, statement)
    shelf = Warehouse(elsewhere)
    # The forger has left our digest where it was, so it says that all is well.
    with duckdb.connect(str(elsewhere), read_only=True) as connection:
        assert connection.execute("select marts from meta").fetchall() == [(digest,)]
        assert not marts_are_ours(connection)
    assert shelf.query("select * from mart.numbers").is_empty()
    assert shelf.query(views).equals(expected)
    assert shelf.query("from duckdb_tables() where schema_name = 'mart'").is_empty()


def test_the_marts_that_we_make_are_ours(tmp_path: Path) -> None:
    path = str(tmp_path / "v.duckdb")
    with duckdb.connect(path) as connection:
        create(connection)
        assert not marts_are_ours(connection)
        create_marts(connection)
    with duckdb.connect(path) as connection:
        assert marts_are_ours(connection)


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        (
            (
                "drop table estimates",
                "create view estimates as select * from read_text('/etc/hosts')",
            ),
            "view estimates",
        ),
        (("alter table meta rename to kept", "create view meta as from kept"), "view meta"),
        (("create macro round(x, n) as 42",), "macro round"),
        (("create macro AVG(x) as 42",), "macro avg"),
        (("create macro unnest(x) as table select 42",), "macro unnest"),
    ],
)
def test_what_takes_the_place_of_ours_is_refused(
    statements: tuple[str, ...], named: str, elsewhere: Path
) -> None:
    _doctor(elsewhere, *statements)
    for visit in (
        lambda: Warehouse(elsewhere).read(Estimates),
        lambda: Warehouse(elsewhere).query("select 1"),
        lambda: Warehouse(elsewhere).update_run("r", state="x"),
    ):
        with pytest.raises(WarehouseError) as raised:
            visit()
        assert "definitions that voirdire did not write" in str(raised.value)
        assert named in str(raised.value).lower()
        assert SECRET not in str(raised.value)


def test_views_and_macros_of_an_analyst_are_left_alone(elsewhere: Path) -> None:
    _doctor(
        elsewhere,
        "create view my_view as select study from estimates",
        "create macro my_macro(x) as x + 1",
        "create table my_table as select 1 as a",
    )
    shelf = Warehouse(elsewhere)
    assert shelf.query("select my_macro(a) as b from my_table").rows() == [(2,)]
    assert shelf.query("select * from my_view").is_empty()


def test_a_new_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "v.duckdb"
        Warehouse(path).query("select 1")
        assert path.stat().st_mode & 0o777 == 0o600
        # Who opens it to a group on purpose is not overruled.
        path.chmod(0o640)
        Warehouse(path).query("select 1")
        assert path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)
