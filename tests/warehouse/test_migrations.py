"""What rows of earlier schemas become: every migration, from the oldest schema on."""

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from schemas.calibration import HumanAgreement, Ratings
from schemas.conclusions import Rankings, Recommendations
from schemas.judging import VoteLog
from schemas.results import Drifts, Estimates, Findings, Gates
from warehouse import _schema
from warehouse._ddl import mart_files
from warehouse.store import Warehouse

Tables = dict[str, list[dict[str, str | None]]]
NEXT = _schema.VERSION + 1
NEXT_OF_OLDEST = _schema.OLDEST + 1
MIGRATIONS = _schema.MIGRATIONS
OLDEST = Path(__file__).with_name(f"schema_{_schema.OLDEST:03}.sql")
ROWS = Path(__file__).with_name(f"rows_{_schema.OLDEST:03}.sql")
AS_TEXT = "select columns(*)::varchar from {}"
VIEWS = "select view_name from duckdb_views() where schema_name = 'mart' order by all"


def _older(folder: Path, version: int = _schema.OLDEST, then: str = "") -> Warehouse:
    """Make a warehouse of an earlier schema, with rows of every kind; ``then`` changes them."""
    warehouse = Warehouse(folder / "w.duckdb")
    with duckdb.connect(str(warehouse.path)) as connection:
        connection.execute(OLDEST.read_text(encoding="utf-8"))
        connection.execute(ROWS.read_text(encoding="utf-8"))
        for number in range(NEXT_OF_OLDEST, version + 1):
            (file,) = MIGRATIONS.glob(f"{number:03}_*.sql")
            connection.execute(file.read_text(encoding="utf-8"))
        connection.execute(then)
        connection.execute("update meta set schema_version = ?", [version])
    return warehouse


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, Tables]:
    """Return a warehouse that was of the oldest schema, and the tables that it had then."""
    warehouse = _older(tmp_path_factory.mktemp("migrated"))
    with duckdb.connect(str(warehouse.path)) as connection:
        names = [name for (name,) in connection.execute("show tables").fetchall()]
        before = {name: connection.execute(AS_TEXT.format(name)).fetchall() for name in names}
        columns = {name: connection.table(name).columns for name in names}
    named = {
        name: [dict(zip(columns[name], row, strict=True)) for row in rows]
        for name, rows in before.items()
    }
    warehouse.query("from meta")
    return warehouse, named


def _rows(warehouse: Warehouse, query: str) -> list[tuple[Any, ...]]:
    return warehouse.query(query).rows()


def test_there_is_one_migration_for_each_version_after_the_first() -> None:
    numbers = sorted(file.name[:4] for file in MIGRATIONS.glob("*.sql"))
    assert numbers == [f"{number:03}_" for number in range(NEXT_OF_OLDEST, NEXT)]


def test_a_file_of_the_oldest_schema_gets_the_tables_of_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrations = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, migrations)
    monkeypatch.setattr(_schema, "MIGRATIONS", migrations)
    # Descriptions are written by a migration, so there is one more.
    (migrations / f"{NEXT:03}_nothing.sql").write_text("select 1")
    monkeypatch.setattr(_schema, "VERSION", NEXT)
    old, new = Warehouse(tmp_path / "old.duckdb"), Warehouse(tmp_path / "new.duckdb")
    with duckdb.connect(str(old.path)) as connection:
        connection.execute(OLDEST.read_text(encoding="utf-8"))
    columns = """
        select table_name, column_name, data_type, is_nullable, comment from duckdb_columns()
        where not internal and schema_name = 'main' order by all
    """
    assert old.query(columns).equals(new.query(columns))
    assert old.query(VIEWS).equals(new.query(VIEWS))


def test_an_upgrade_is_dated_and_new_marts_alone_are_none(
    migrated: tuple[Warehouse, Tables], tmp_path: Path
) -> None:
    """Results saved before that moment may lack what is newer, and commands say so."""
    dated = "select upgraded_at is not null from meta"
    assert migrated[0].query(dated).item()
    new = Warehouse(tmp_path / "new.duckdb")
    assert not new.query(dated).item()
    with duckdb.connect(str(new.path)) as connection:
        connection.execute("update meta set marts = 'others'")
    assert not new.query(dated).item()
    assert new.query("select marts from meta").item() != "others"


def test_what_no_migration_is_about_stays(migrated: tuple[Warehouse, Tables]) -> None:
    """Every value that was saved stays, except those that the other tests name."""
    changed = {
        "meta": {"schema_version", "marts", "upgraded_at"},
        "gates": {"reason"},
        "judge_recommendations": {"reasons", "undecided", "not_measured"},
        "estimates": {"subgroup"},
    }
    warehouse, before = migrated
    before["judge_recommendations"] = before.pop("recommendations")
    assert sum(len(rows) for rows in before.values()) > 30
    for name, rows in before.items():
        kept = [column for column in (rows or [{}])[0] if column not in changed.get(name, ())]
        after = warehouse.query(AS_TEXT.format(name)).to_dicts()
        was, now = ([[str(row[each]) for each in kept] for row in frame] for frame in (rows, after))
        assert sorted(was) == sorted(now), name


def test_every_mart_and_frame_reads_what_an_earlier_version_saved(
    migrated: tuple[Warehouse, Tables],
) -> None:
    """Columns of later versions are null; that is no error of a frame, and no mart fails."""
    warehouse, _ = migrated
    frames = (Drifts, Estimates, Findings, Gates, HumanAgreement, Rankings, Ratings, VoteLog)
    assert [warehouse.read(frame).height for frame in frames] == [1, 3, 1, 2, 5, 1, 3, 8]
    later = {
        Drifts: {"wave_number", "base_questions"},
        Findings: {"effect_logits", "by_logits", "spread_p", "category_shift", "most_lost"},
        Gates: {"finding", "measure", "changed", "too_few", "more_questions", "consequence"}
        | {"drift_mode", "drift_perturbation"},
        Rankings: {"quantity"},
        Ratings: {"turn", "anchor_length", "label_chance"},
        Recommendations: {"drift", "more_decide", "stays_open", "too_few", "unanswered"}
        | {"summary", "list_order"},
        VoteLog: {"turn"},
    }
    for frame, columns in later.items():
        found = warehouse.read(frame)
        assert {name for name in columns if found[name].null_count() < found.height} == set()
    for file in mart_files():
        warehouse.query(f"from mart.{file.stem}")
    reported = "select recommendation, passed, failed, inconclusive from mart.recommendations"
    assert _rows(warehouse, reported) == [("do not use", 1, 1, 1)]
    assert _rows(warehouse, "select gate, verdict from mart.scorecard order by gate") == [
        ("discernment", "inconclusive"),
        ("validity", "fail"),
    ]


def test_texts_have_the_words_of_today(migrated: tuple[Warehouse, Tables]) -> None:
    warehouse, _ = migrated
    texts = "select reasons, undecided, not_measured from mart.recommendations"
    assert _rows(warehouse, texts) == [
        (
            "invalid replies (.40 [.30, .50], limit .10)",
            "discernment is inconclusive",
            "discernment, drift",
        )
    ]
    assert _rows(warehouse, "select gate, reason from mart.scorecard order by gate") == [
        ("discernment", None),
        ("validity", "40 invalid replies"),
    ]
    assert _rows(warehouse, "select subgroup from estimates order by subgroup") == [
        ("",),
        ("invalid experimental votes for the anchor, others for the target",),
        # A category of a user's own data.
        ("unreadable handwriting",),
    ]


def test_texts_that_schema_38_had_already_have_the_words_of_today(tmp_path: Path) -> None:
    warehouse = _older(
        tmp_path,
        38,
        "update gates set words = 'detection of flaws (.30, 2 unreadable replies)';"
        "update judge_recommendations set more_decide = 'position, detection of flaws', "
        "stays_open = 'detection of flaws'",
    )
    assert _rows(warehouse, "select distinct words from mart.scorecard") == [
        ("discernment (.30, 2 invalid replies)",)
    ]
    assert _rows(warehouse, "select more_decide, stays_open from mart.recommendations") == [
        ("position, discernment", "discernment")
    ]


def test_votes_and_ratings_find_their_ballots(migrated: tuple[Warehouse, Tables]) -> None:
    """The votes on a replicate are numbered from 0, its ballots from 2 (from 1 for ratings)."""
    warehouse, _ = migrated
    votes = "select sample, arm, shown_first, repeat, ballot_id from vote_log where study = 'quick'"
    assert _rows(warehouse, f"{votes} order by ballot_id") == [
        ("q/1", "control", "anchor", 0, "c0"),
        ("q/1", "control", "target", 0, "c1"),
        ("q/1", "control", "anchor", 1, "c2"),
        ("q/1", "replicate", "anchor", 0, "n3"),
        ("q/1", "replicate", "target", 0, "n4"),
        ("q/1", "replicate", "anchor", 1, "n5"),
        ("q/2", "experimental", "anchor", 0, "x6"),
    ]
    # The votes of a measured file have no ballots.
    assert _rows(warehouse, "select ballot_id from vote_log where study = 'own'") == [(None,)]
    assert _rows(warehouse, "select arm, side, repeat, ballot_id from ratings order by all") == [
        ("control", "anchor", 0, "g0"),
        ("control", "target", 0, "g1"),
        ("replicate", "target", 0, "g2"),
    ]
    replies = "select arm, shown_first, repeat, reply from mart.transcript where prompt = 'single'"
    assert _rows(warehouse, f"{replies} order by all") == [
        ("control", "anchor alone", 0, "reply g0"),
        ("control", "target alone", 0, "reply g1"),
        ("replicate", "target alone", 0, "reply g2"),
    ]


def test_an_agreement_without_a_finding_stays_without_until_it_is_calibrated_again(
    migrated: tuple[Warehouse, Tables],
) -> None:
    """Its limit may have been another than today's, which the calibration alone knows."""
    found = "select criterion, agreement_finding, bias_finding from mart.human_agreement"
    assert _rows(migrated[0], f"{found} order by criterion") == [
        ("a", None, "biased"),
        ("b", None, None),
        ("c", None, None),
        ("d", None, None),
    ]


def test_what_a_gate_means_keeps_its_value_under_its_new_name(tmp_path: Path) -> None:
    warehouse = _older(
        tmp_path, 45, "update gates set standing = if(gate = 'validity', 'forbids', 'care')"
    )
    assert _rows(warehouse, "select gate, consequence from mart.scorecard order by gate") == [
        ("discernment", "care"),
        ("validity", "forbids"),
    ]


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("share detected of the kind detected best", "best share detected over kinds of flaws"),
        (
            "share detected in mean scores (D) of the kind detected best",
            "best share detected in mean scores (D) over kinds of flaws",
        ),
        ("gap", "gap"),
    ],
)
def test_the_best_share_detected_has_its_name_of_today(then: str, now: str, tmp_path: Path) -> None:
    text = "does not detect flaws ({} .09 [-.02, .21], limit .20)"
    old = text.format(then)
    warehouse = _older(
        tmp_path,
        47,
        f"update gates set measure = '{then}', words = '{old}';"
        f"update judge_recommendations set reasons = '{old}; more', summary = '{old}. More'",
    )
    gates = _rows(warehouse, "select distinct measure, words from mart.scorecard")
    assert gates == [(now, text.format(now))]
    advice = _rows(warehouse, "select reasons, summary from judge_recommendations")
    assert advice == [(f"{text.format(now)}; more", f"{text.format(now)}. More")]
