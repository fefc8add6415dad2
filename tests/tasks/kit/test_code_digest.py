import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.kit import code_digest as digests
from tasks.kit.code_digest import code_digest, reachable_digest

REPO = Path(__file__).parents[3]
COPIED = shutil.ignore_patterns("__pycache__", "*.pyc")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the rooms are taken to be; digests are taken anew."""
    monkeypatch.setattr(digests, "ROOMS", tmp_path)
    _forget()
    yield tmp_path
    _forget()


def _forget() -> None:
    for cached in (code_digest, reachable_digest, digests._imported, digests._files_of):
        cached.cache_clear()


def _code() -> str:
    _forget()
    return code_digest()


def _reachable(module: str) -> str:
    _forget()
    return reachable_digest(module)


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_the_code_is_all_of_tasks_and_schemas(root: Path) -> None:
    found = []
    for path in ("tasks/deep/a.py", "tasks/b.toml", "schemas/c.py", "tasks/d.j2"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        for text in ("1", "2"):
            (root / path).write_text(text)
            found.append(_code())
    (root / "tasks/b.toml").rename(root / "tasks/c.toml")
    found.append(_code())
    assert len(set(found)) == len(found)
    for path in ("tasks/notes.txt", "tasks/a.pyc", "flows.py"):
        (root / path).write_text("3")
        assert _code() == found[-1]


@pytest.fixture
def copied(root: Path) -> Path:
    """The rooms that results depend on, copied."""
    for room in digests.RESULTS:
        shutil.copytree(REPO / room, root / room, ignore=COPIED)
    return root


STAGES = {
    "perturb": "tasks.perturb",
    "measure": "tasks.aggregate",
    "conclude": "tasks.conclude",
    "report": "tasks.report",
    "draw ballots": "tasks.judge",
    "calibrate": "tasks.calibration.calibrate",
}


def test_a_stage_depends_on_the_code_that_it_can_reach(copied: Path) -> None:
    def digests_of_stages() -> dict[str, str]:
        _forget()
        return {name: reachable_digest(module) for name, module in STAGES.items()}

    before = digests_of_stages()
    for changed, stages in {
        "tasks/charts/forest.py": {"report"},
        "tasks/reporting/templates/report.html.j2": {"report"},
        "tasks/prompts/pair_v2.toml": {"draw ballots"},
        "tasks/metrics/accuracy.py": {"calibrate"},
        "tasks/statistics/asr.py": {"measure", "conclude", "report"},
        "tasks/perturb.py": {"perturb"},
        "schemas/frame.py": {*STAGES},
        "tasks/simulation/emulator.py": set(),
    }.items():
        file = copied / changed
        text = file.read_text("utf-8")
        file.write_text(f"{text}\n# a comment\n", "utf-8")
        after = digests_of_stages()
        moved = {name for name in STAGES if after[name] != before[name]}
        assert moved == stages, changed
        file.write_text(text, "utf-8")


def test_imports_are_followed_however_they_are_written(root: Path) -> None:
    inside = "def f():\n    from tasks.b import (\n        c,\n        d,\n    )\n"
    modules = {"tasks/b/__init__.py": "", "tasks/b/d.py": "import schemas.e\n"}
    _write(root, {"tasks/a.py": inside, **modules, "schemas/e.py": "x = 1\n"})
    before = _reachable("tasks.a")
    _write(root, {"tasks/other.py": "y = 1\n"})
    assert _reachable("tasks.a") == before
    _write(root, {"schemas/e.py": "x = 2\n"})
    assert _reachable("tasks.a") != before


def test_a_function_of_no_room_reaches_everything(root: Path) -> None:
    _write(root, {"tasks/a.py": "x = 1\n", "schemas/b.py": "y = 1\n"})
    assert _reachable("test_stage") == _code()


def test_files_of_the_users_own_folder_are_code_too(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = 'THINGS: Catalogue[str] = modules("thing")\n'
    uses = "from tasks.statistics import THINGS\n"
    _write(root, {"tasks/statistics/__init__.py": catalogue, "tasks/a.py": uses, "tasks/b.py": ""})
    own = root / "elsewhere" / "statistics" / "mine.py"
    own.parent.mkdir(parents=True)
    own.write_text("mine = 1\n")
    monkeypatch.setenv("VOIRDIRE_HOME", str(root / "elsewhere"))
    before = [_code(), *map(_reachable, ("tasks.a", "tasks.b"))]
    own.write_text("mine = 2\n")
    after = [_code(), *map(_reachable, ("tasks.a", "tasks.b"))]
    assert [old != new for old, new in zip(before, after, strict=True)] == [True, True, False]
