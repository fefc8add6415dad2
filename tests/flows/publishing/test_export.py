"""Rows and tables written to files: whole, and for their owner alone."""

import csv
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main
from schemas.results import Estimates
from tasks.statistics.mps import mps
from warehouse.store import Saving, Warehouse, WarehouseError

Make = Callable[..., Any]
RUN = {
    "flow": "audit",
    "user": "u",
    "process": "h/1",
    "parameters": "{}",
    "fingerprint": "f",
    "code_version": "1",
    "state": "completed",
    "started_at": datetime(2024, 1, 1, tzinfo=UTC),
}


@pytest.fixture
def shelf(make_shifts: Make, tmp_path: Path) -> Warehouse:
    """Return a warehouse with the results of two studies; one judge's name is a formula."""
    store = Warehouse(tmp_path / "v.duckdb")
    for study, judge in (("quick", "=cmd()"), ("other", "ada")):
        rows = [{"judge": judge, "sample": f"s{n}", "experimental_score": 0.5} for n in range(12)]
        store.save([Saving(Estimates, mps(shifts=make_shifts(rows)))], run=study, study=study)
        store.start_run({**RUN, "run": study, "study": study})
    return store


def _run(shelf: Warehouse, *words: str) -> Result:
    before = os.umask(0)
    try:
        return CliRunner().invoke(main, [*words, "--warehouse", str(shelf.path)])
    finally:
        os.umask(before)


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_a_study_is_exported_whole(shelf: Warehouse, form: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = _run(shelf, "export", "quick", "--output", str(folder), "--format", form)
    assert done.exit_code == 0, done.output
    assert f" 1 row   {folder}/runs.{form}\n" in done.output
    assert f" 0 rows  {folder}/votes.{form}\n" in done.output
    files = sorted(folder.iterdir())
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    names = {file.name.removesuffix(f".{form}") for file in files}
    assert {"estimates", "votes", "vote_log", "runs", "mart.numbers", "mart.bias"} <= names
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "json": pl.read_json}[form]
    numbers = read(folder / f"estimates.{form}")
    assert set(numbers["study"]) == {"quick"}
    # CSV is what people open in spreadsheets, which compute what begins with =.
    assert set(numbers["judge"]) == {"'=cmd()" if form == "csv" else "=cmd()"}
    stored = shelf.query("select statistic, n, clusters from estimates where study = 'quick'")
    assert numbers.select("statistic", "n", "clusters").rows() == stored.rows()
    # Nothing is left beside it.
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "v.duckdb"]


def test_all_studies_are_exported(shelf: Warehouse, tmp_path: Path) -> None:
    done = _run(shelf, "export", "--output", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert set(pl.read_parquet(tmp_path / "out" / "estimates.parquet")["study"]) == {
        "quick",
        "other",
    }
    tables = shelf.query("select table_name from duckdb_tables() where not internal")["table_name"]
    views = shelf.query("select view_name from duckdb_views() where schema_name = 'mart'")
    written = {file.stem for file in (tmp_path / "out").iterdir()}
    assert written == {*tables, *("mart." + views["view_name"])} - {"meta", "claims"}


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("quick", "--output", "{full}"), "is not empty"),
        (("quick", "--output", "{full}/v.duckdb"), "v.duckdb is no folder. Name a new folder"),
        (("none", "--output", "{full}/new"), "Known: other, quick."),
        (("quick",), "Missing option '--output'"),
    ],
)
def test_an_export_that_cannot_be_made_leaves_nothing(
    shelf: Warehouse, words: tuple[str, ...], reported: str, tmp_path: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    done = _run(shelf, "export", *(word.format(full=tmp_path) for word in words))
    assert done.exit_code == 2
    assert reported in done.output
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("export", "--output"), "/proc/out"),
        (("snapshot", "--output"), "/proc/copy.duckdb"),
        (("sql", "select 1", "--output"), "/proc/rows.csv"),
    ],
)
def test_a_file_that_cannot_be_written_is_named_as_the_user_names_it(
    shelf: Warehouse, words: tuple[str, ...], place: str
) -> None:
    done = _run(shelf, *words, place)
    assert done.exit_code == 2
    why = "cannot be written (No such file or directory)"
    assert done.stderr == f"voirdire: {place}: {why}\n"


def test_an_error_while_rows_are_exported_names_the_folder_of_the_user(
    shelf: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Warehouse, __: object, folder: Path, *___: object) -> None:
        raise WarehouseError(f'IO Error: Could not write file "{folder}/votes.csv": no space left')

    monkeypatch.setattr(Warehouse, "copy", full)
    done = _run(shelf, "export", "--output", str(tmp_path / "out"))
    assert done.exit_code == 2
    said = f'voirdire: IO Error: Could not write file "{tmp_path}/out/votes.csv": no space left\n'
    assert done.stderr == said


QUERY = "select '=1+1' as formula, chr(27) || '[2J' as control, 1.5 as number, [1, 2] as list"


@pytest.mark.parametrize("name", ["rows.csv", "rows.json", "rows.parquet", "rows.txt"])
def test_rows_are_written_as_the_file_is_named(shelf: Warehouse, name: str, tmp_path: Path) -> None:
    target = tmp_path / name
    done = _run(shelf, "sql", QUERY, "--output", str(target))
    assert done.exit_code == 0, done.output
    assert target.stat().st_mode & 0o777 == 0o600
    if name == "rows.csv":
        with target.open(newline="") as file:
            (row,) = csv.DictReader(file)
        # Files keep what is there, but for formulas; only a terminal obeys control characters.
        assert row == {"formula": "'=1+1", "control": "\x1b[2J", "number": "1.5", "list": "[1, 2]"}
    elif name == "rows.json":
        assert pl.read_json(target)["formula"].item() == "=1+1"
    elif name == "rows.parquet":
        assert pl.read_parquet(target)["list"].item().to_list() == [1, 2]
    else:
        assert "formula" in target.read_text()


def test_parquet_needs_a_file(shelf: Warehouse) -> None:
    done = _run(shelf, "sql", "select 1", "--format", "parquet")
    assert done.exit_code == 2
    assert "Name a file, as in --output rows.parquet" in done.output


def test_an_error_about_external_access_says_what_is_allowed(
    shelf: Warehouse, tmp_path: Path
) -> None:
    done = _run(shelf, "sql", f"copy estimates to '{tmp_path}/x.parquet'")
    assert done.exit_code == 2
    assert "voirdire sql QUERY --format parquet --output FILE" in done.output
    assert not (tmp_path / "x.parquet").exists()


def test_csv_on_a_terminal_has_no_control_characters(
    shelf: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from flows.cli.sql_and_report import show_query

    show_query(QUERY, "csv", shelf.path)
    assert "\x1b[2J" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show_query(QUERY, "csv", shelf.path)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\N{REPLACEMENT CHARACTER}[2J" in shown
    assert shown.count("\n") == 2
