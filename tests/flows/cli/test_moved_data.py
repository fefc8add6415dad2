"""A saved study whose data file was named by a path relative to another folder."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from printed_commands import in_short

from flows.cli.main import main
from flows.running.run_row import first_row
from flows.studies import make_study
from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

DATA = "question,anchor,target\nWhy is it blue?,Because of the air.,Because air scatters blue.\n"


@pytest.fixture
def audited(tmp_path: Path, make_estimates: Any) -> Warehouse:
    """Return a warehouse with a study of a file of its folder."""
    warehouse, now = Warehouse(tmp_path / "there" / "w.duckdb"), datetime.now(UTC)
    warehouse.path.parent.mkdir()
    study = make_study("quick", {"dataset": "faq.csv", "name": "faq"})
    row = first_row("audit", "r1", study, now)
    warehouse.start_run({**row, "study": "faq", "state": "completed", "ended_at": now})
    warehouse.save([Saving(Estimates, make_estimates())], run="r1", study="faq")
    return warehouse


def run(warehouse: Warehouse, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--warehouse", str(warehouse.path)])


@pytest.mark.parametrize("command", ["plan", "audit"])
def test_an_error_says_what_the_path_is_relative_to(
    audited: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    lost = run(audited, command, "faq")
    assert (lost.exit_code, lost.stdout) == (2, "")
    assert (
        f"relative to the folder in which the audit ran, and leads to no file from {tmp_path}."
        in (lost.stderr)
    )
    assert f"name the file: `voirdire {command} faq --dataset PATH`." in in_short(lost.stderr)
    file = audited.path.parent / "faq.csv"
    file.write_text(DATA, encoding="utf-8")
    beside = run(audited, command, "faq")
    assert f"The folder of the warehouse leads to {file}." in beside.stderr
    assert f"`voirdire {command} faq --dataset {file}`." in in_short(beside.stderr)


def test_the_file_is_found_in_its_folder_and_by_its_path(
    audited: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = audited.path.parent / "faq.csv"
    file.write_text(DATA, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(audited, "plan", "faq", "--dataset", str(file)).exit_code == 0
    monkeypatch.chdir(file.parent)
    assert run(audited, "plan", "faq").exit_code == 0
