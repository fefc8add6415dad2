from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from schemas.curation import Questions
from schemas.judging import VoteLog
from schemas.results import Findings
from tasks.kit import defaults
from warehouse import _ddl, _schema
from warehouse._ddl import ADDED, FRAMES, added_columns, marts_digest
from warehouse.store import Saving, Warehouse, WarehouseError

Make = Callable[..., Saving]
NEXT = _schema.VERSION + 1
SINCE_21 = ("excluded_judges", "judge_pairs", "jury_conclusions", "gates")
"""Tables of conclusions."""
SINCE_23 = ("unit", "null_value", "floor", "seed")
SINCE_4 = ("subgroup", "boot_low", "boot_high")
SINCE_5 = ("label", "human")
SINCE_6 = (
    "anchor_author",
    "target_author",
    "anchor_length",
    "target_length",
    "anchor_markup",
    "target_markup",
    "human_score",
    "label_chance",
)
SINCE_14 = tuple(
    f"{side}_{kind}" for kind in ("header", "list", "bold") for side in ("anchor", "target")
)
SINCE_7 = ("p_holm", "p_by", "shrunk", "shrunk_error", "reason", "e_value", "e_rejected")
SINCE_15 = (
    "control",
    "control_low",
    "control_high",
    "control_p",
    "sham_shift",
    "sham_shift_low",
    "sham_shift_high",
    "detected",
    "detected_low",
    "detected_high",
    "detected_by",
    "detects_at",
)
SINCE_17 = ("df", "too_few")
SINCE_18 = ("category",)
OF_FINDINGS_18 = (
    "shift_spread",
    "shift_spread_low",
    "shift_spread_high",
    "moved_p",
    "category_p",
    "lost_difference",
    "lost_over",
    "lost_p",
    "lost_finding",
)
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
    files = {file.stem: file.read_text().split("\n")[0] for file in _ddl._mart_files()}
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


COLUMNS = (
    "select table_name, column_name, data_type, is_nullable, column_default, comment "
    "from duckdb_columns() where schema_name = 'main' and not internal order by all"
)

NEXT = _schema.VERSION + 1


def test_a_warehouse_of_schema_1_becomes_one_of_today(stocked: Warehouse, tmp_path: Path) -> None:
    before = {model: stocked.read(model) for model in FRAMES}
    with duckdb.connect(str(stocked.path)) as connection:
        marts = connection.execute(VIEWS).fetchall()
        for (view,) in marts:
            connection.execute(f"drop view mart.{view}")
        for undo in (
            *(f"drop table {name}" for name in SINCE_21),
            "drop table annotations",
            "drop table study_pairs",
            "drop table alt_tests",
            "drop table advantages",
            *(f"alter table vote_log drop column {name}" for name in SINCE_5),
            *(f"alter table vote_log drop column {name}" for name in (*SINCE_14, *SINCE_18)),
            *(
                f"alter table findings drop column {name}"
                for name in (*SINCE_7, *SINCE_15, *OF_FINDINGS_18)
            ),
            "alter table findings alter column finding set not null",
            "delete from findings where perturbation is null",
            "alter table findings alter column perturbation set not null",
            "drop table drifts",
            "drop table batched_ballots",
            "drop table batches",
            *(f"alter table vote_log drop column {name}" for name in SINCE_6),
            *(
                f"alter table estimates drop column {name}"
                for name in (*SINCE_4, *SINCE_17, "family", *SINCE_23)
            ),
            "alter table shifts drop column replicate",
            "alter table shifts drop column has_replicate",
            *(
                f"alter table shifts drop column {arm}_votes"
                for arm in ("control", "sham", "replicate")
            ),
            *(f"alter table {name} drop column shown_first" for name in ("verdicts", "shifts")),
            "drop table claims",
            "alter table judges drop column system",
            "alter table prompts drop column verdict",
            "alter table votes drop column dropped_params",
            "alter table votes drop column first_token",
            "alter table votes drop column first_probability",
            "alter table vote_log drop column stopped",
            "alter table runs drop column seen_at",
            "update meta set schema_version = 1",
        ):
            connection.execute(undo)
    fresh = Warehouse(tmp_path / "fresh.duckdb")
    assert stocked.query(COLUMNS).equals(fresh.query(COLUMNS))
    assert stocked.query(VIEWS).rows() == marts
    assert stocked.query("select schema_version from meta").item() == _schema.VERSION
    assert all(stocked.read(model).equals(frame) for model, frame in before.items())


def test_findings_of_schema_4_keep_their_meaning(stocked: Warehouse) -> None:
    words = [
        "biased",
        "no relevant bias",
        "detects",
        "overlooks",
        "rewards",
        "inconclusive",
        "too few questions",
    ]
    with duckdb.connect(str(stocked.path)) as connection:
        connection.execute("create table findings_of_4 as select unnest(?) as finding", [words])
        sql = (_schema.MIGRATIONS / "007_findings.sql").read_text()
        connection.execute(sql.replace("findings", "findings_of_4"))
        rows = connection.execute("select finding, reading, reason from findings_of_4").fetchall()
    assert rows == [
        ("biased", None, None),
        ("no relevant bias", None, None),
        ("no relevant bias", "detects", None),
        ("biased", "overlooks", None),
        ("biased", "rewards", None),
        ("inconclusive", None, None),
        (None, None, "fewer than 10 independent questions"),
    ]


def test_findings_of_schema_14_have_their_reading_as_their_word(stocked: Warehouse) -> None:
    rows = [
        ("biased", None),
        ("no relevant bias", "detects"),
        ("biased", "overlooks"),
        (None, None),
    ]
    with duckdb.connect(str(stocked.path)) as connection:
        connection.execute("create table findings_of_14 (finding varchar, reading varchar)")
        connection.executemany("insert into findings_of_14 values (?, ?)", rows)
        sql = (_schema.MIGRATIONS / "015_words.sql").read_text()
        connection.execute(sql.replace("findings", "findings_of_14"))
        found = connection.execute("select finding from findings_of_14").fetchall()
    assert found == [("biased",), ("detects",), ("overlooks",), (None,)]


def test_estimates_of_schema_16_of_nine_questions_are_too_few(stocked: Warehouse) -> None:
    with duckdb.connect(str(stocked.path)) as connection:
        connection.execute("create table estimates_of_16 as from (values (9), (10)) as t(clusters)")
        sql = (_schema.MIGRATIONS / "017_degrees_of_freedom.sql").read_text()
        connection.execute(sql.replace("estimates", "estimates_of_16"))
        found = connection.execute("select too_few, df from estimates_of_16").fetchall()
    assert found == [(defaults.TOO_FEW, None), (None, None)]


def test_votes_of_schema_13_keep_their_count_of_markup(
    tmp_path: Path, make: Make, make_vote_log: Callable[..., Any]
) -> None:
    warehouse = Warehouse(tmp_path / "old.duckdb")
    log = make_vote_log([{"anchor_markup": 3, "target_markup": 5}])
    warehouse.save([Saving(VoteLog, log), make(Findings)], run="r1", study="old")
    with duckdb.connect(str(warehouse.path)) as connection:
        marts = connection.execute(VIEWS).fetchall()
        for (view,) in marts:
            connection.execute(f"drop view mart.{view}")
        for name in SINCE_21:
            connection.execute(f"drop table {name}")
        for name in (*SINCE_14, *SINCE_18):
            connection.execute(f"alter table vote_log drop column {name}")
        for name in (*SINCE_17, "family", *SINCE_23):
            connection.execute(f"alter table estimates drop column {name}")
        for name in ("floor", "seed"):
            connection.execute(f"alter table drifts drop column {name}")
        for name in (*SINCE_15, *OF_FINDINGS_18):
            connection.execute(f"alter table findings drop column {name}")
        for name in ("verdicts", "shifts"):
            connection.execute(f"alter table {name} drop column shown_first")
        connection.execute("drop table study_pairs")
        connection.execute("alter table findings add column reading varchar default 'detects'")
        connection.execute("update meta set schema_version = 13")
    columns = ", ".join(("anchor_markup", "target_markup", *SINCE_14))
    found = warehouse.query(f"select {columns} from vote_log")
    assert found.rows() == [(3, 5, None, None, None, None, None, None)]
    # All migrations are one transaction, which DuckDB must be able to commit with rows there.
    assert warehouse.query("select finding from findings").rows() == [("detects",)]


def test_votes_of_schema_17_get_the_category_of_their_question(
    tmp_path: Path, make: Make, make_vote_log: Callable[..., Any]
) -> None:
    warehouse = Warehouse(tmp_path / "old.duckdb")
    log = make_vote_log([{"cluster": "d/1"}, {"sample": "s2", "cluster": "d/2"}])
    asked = [{"question_id": "d/1", "category": "sums"}, {"question_id": "d/2"}]
    warehouse.save([make(Questions, *asked), Saving(VoteLog, log)], run="r1", study="old")
    with duckdb.connect(str(warehouse.path)) as connection:
        marts = connection.execute(VIEWS).fetchall()
        for (view,) in marts:
            connection.execute(f"drop view mart.{view}")
        for name in SINCE_21:
            connection.execute(f"drop table {name}")
        connection.execute("alter table vote_log drop column category")
        for name in OF_FINDINGS_18:
            connection.execute(f"alter table findings drop column {name}")
        for name in ("family", *SINCE_23):
            connection.execute(f"alter table estimates drop column {name}")
        for name in ("floor", "seed"):
            connection.execute(f"alter table drifts drop column {name}")
        connection.execute("drop table study_pairs")
        connection.execute("update meta set schema_version = 17")
    found = warehouse.query("select cluster, category from vote_log order by all")
    assert found.rows() == [("d/1", "sums"), ("d/2", None)]


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
            f"{stocked.path} cannot be brought to schema {NEXT + 1}; it is as it was. "
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


def test_there_is_one_migration_for_each_version_after_the_first() -> None:
    numbers = sorted(file.name[:4] for file in _schema.MIGRATIONS.glob("*.sql"))
    assert numbers == [f"{number:03}_" for number in range(2, _schema.VERSION + 1)]
