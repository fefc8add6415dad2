"""Files that a form may name: those in the served folders, and nothing is shown of any other."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows.audit import audit
from flows.calibrate import calibrate
from flows.remeasure import remeasure
from flows.serving import allowed_paths
from flows.serving.allowed_paths import admit, allowed_calibration, allowed_study, allowed_warehouse
from flows.studies import Study
from flows.studies.calibration import Calibration
from warehouse.store import Warehouse


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a warehouse that is served; runs come from forms."""
    folder = tmp_path / "served"
    (folder / "own" / "datasets" / "deep").mkdir(parents=True)
    (tmp_path / "secret.jsonl").write_text("a secret")
    monkeypatch.setenv("VOIRDIRE_WAREHOUSE", str(folder / "main.duckdb"))
    monkeypatch.setenv("VOIRDIRE_HOME", str(folder / "own"))
    monkeypatch.setattr(allowed_paths, "deployment", SimpleNamespace(id="of-a-form"))
    return folder


OUTSIDE = [
    "/etc/passwd",
    "../secret.jsonl",
    "deep/../../../secret.jsonl",
    "link.jsonl",
    "links/secret.jsonl",
    "/nowhere/at/all.jsonl",
    "loop.jsonl",
    "a\0b.jsonl",
    "",
    ".",
    "..",
]


def _links(folder: Path, outside: Path) -> None:
    (folder / "link.jsonl").symlink_to(outside / "secret.jsonl")
    (folder / "link.duckdb").symlink_to(outside / "secret.jsonl")
    (folder / "links").symlink_to(outside)
    (folder / "loop.jsonl").symlink_to(folder / "loop.jsonl")


def _file_of(what: str, given: str) -> Any:
    """Put a path into the place of a form that is called ``what``, and ask for it."""
    if what in {"humans", "judges", "table"}:
        return allowed_calibration(Calibration(**{what: given}))
    return allowed_study(Study.model_construct(**{**vars(Study()), what: given}))


@pytest.mark.parametrize("what", ["dataset", "folder", "humans", "judges", "table"])
def test_a_form_names_no_data_elsewhere(what: str, served: Path, tmp_path: Path) -> None:
    _links(served / "own" / "datasets", tmp_path)
    reported = set()
    for given in OUTSIDE:
        with pytest.raises(ValueError, match=f"{what} must be a path inside the folder") as raised:
            _file_of(what, given)
        reported.add(str(raised.value))
    # What is there, and what is not, is refused in the same words.
    assert len(reported) == 1
    assert "secret" not in reported.pop()


def test_a_form_names_no_warehouse_elsewhere(served: Path, tmp_path: Path) -> None:
    _links(served, tmp_path)
    reported = set()
    for given in (*OUTSIDE, "link.duckdb", "links/new"):
        if given in {"link.jsonl", "loop.jsonl"}:
            continue  # with .duckdb after it, a name inside that nobody has
        with pytest.raises(ValueError, match="warehouse must be a name") as raised:
            allowed_warehouse(given)
        reported.add(str(raised.value))
    assert len(reported) == 1


@pytest.mark.usefixtures("served")
def test_errors_do_not_tell_whether_a_file_is_there(tmp_path: Path) -> None:
    reported = set()
    for given in (str(tmp_path / "secret.jsonl"), str(tmp_path / "none.jsonl")):
        with pytest.raises(ValueError, match="dataset must be") as raised:
            allowed_study(Study(dataset=given))
        reported.add(str(raised.value))
    assert len(reported) == 1


def test_a_form_names_files_of_the_served_folders(served: Path) -> None:
    data = served / "own" / "datasets"
    assert allowed_warehouse(None) is None
    assert allowed_warehouse("other") == str(served / "other.duckdb")
    assert allowed_warehouse("main.duckdb") == str(served / "main.duckdb")
    assert allowed_warehouse(str(served / "main.duckdb")) == str(served / "main.duckdb")
    assert allowed_study(Study()) == Study()
    assert allowed_study(Study(dataset="mine.jsonl")).dataset == str(data / "mine.jsonl")
    assert allowed_study(Study(dataset="deep/a.csv")).dataset == str(data / "deep" / "a.csv")
    assert allowed_study(Study(folder="deep")).folder == str(data / "deep")
    found = allowed_calibration(Calibration(humans="h.json", judges="deep/j.json"))
    assert (found.humans, found.judges) == (str(data / "h.json"), str(data / "deep" / "j.json"))


@pytest.mark.usefixtures("served")
def test_the_command_line_names_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowed_paths, "deployment", SimpleNamespace(id=None))
    elsewhere = str(tmp_path / "secret.jsonl")
    assert allowed_warehouse(elsewhere) == elsewhere
    assert allowed_study(Study(dataset=elsewhere, folder="/")).dataset == elsewhere
    assert allowed_calibration(Calibration(humans=elsewhere)).humans == elsewhere


ELSEWHERE = "elsewhere.duckdb"


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    "run",
    [
        lambda at: asyncio.run(audit.fn(Study(judges=["offline/random"], limit=1), at)),
        lambda at: remeasure.fn("quick", at),
        lambda at: calibrate.fn(Calibration(), at),
    ],
)
def test_every_flow_asks_first(run: Callable[[str], Any], tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="warehouse must be a name"):
        run(str(tmp_path / ELSEWHERE))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("dataset", "warehouse", "place"),
    [
        ("bloom", "../other", "main"),
        ("/etc/passwd", "other", "other"),
        ("/etc/passwd", None, "main"),
    ],
)
def test_a_form_that_is_refused_leaves_a_row(
    served: Path, dataset: str, warehouse: str | None, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A digest of the file would tell whether it is there.
    monkeypatch.setattr(Study, "fingerprint", lambda _: pytest.fail("the file was read"))
    with pytest.raises(ValueError, match="must be a") as raised:
        admit(Study(dataset=dataset), warehouse, "r1")
    assert [file.name for file in served.glob("*.duckdb")] == [f"{place}.duckdb"]
    query = "select run, flow, study, state, error from runs"
    [row] = Warehouse(served / f"{place}.duckdb").query(query).rows()
    assert row[:4] == ("r1", "audit", "quick", "failed")
    assert row[4] == str(raised.value)
