"""Code of the user's own entries that fails is named with its file and line."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main
from tasks.datasets import DATASETS
from tasks.perturbations import PERTURBATIONS
from tasks.statistics import STATISTICS

STATISTIC = """
import polars as pl
from tasks.counting.cells import shares
from tasks.statistics import statistic

@statistic(source="mine", family="position")
def broken(tallies):
    "Measure nothing."
    {body}
"""
PERTURBATION = """
from tasks.perturbations import perturbation
from tasks.rewriting.checks import additive

@perturbation(kind="promote", bias="b", source="mine", check=additive, sham=None)
def broken(item, seed):
    "Change nothing."
    {body}
"""
DATASET = """
from tasks.datasets import dataset

@dataset(source="mine", license="CC0")
def broken(folder):
    "Import nothing."
    {body}
"""
VOTES = """\
dataset,judge,sample,cluster,arm,shown_first,repeat,choice
d,ada,s1,s1,control,anchor,0,first
d,ada,s1,s1,control,target,0,second
"""
PLAN = ("plan", "quick", "--limit", "2", "--judge", "offline/fair")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of the user's own, in the current folder."""
    catalogues = (STATISTICS, PERTURBATIONS, DATASETS)
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        patch.setenv("VOIRDIRE_HOME", str(tmp_path / "home"))
        patch.setenv("COLUMNS", "1000")
        yield tmp_path / "home"
    for catalogue in catalogues:
        catalogue.read_own()


def run(home: Path, kind: str, source: str, *words: str) -> Result:
    (home / kind).mkdir(parents=True)
    (home / kind / "broken.py").write_text(source, encoding="utf-8")
    for catalogue in (STATISTICS, PERTURBATIONS, DATASETS):
        catalogue.read_own()
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return {}['x']", "KeyError in line 9: 'x'."),
        ("raise RuntimeError", "RuntimeError in line 9: no reason given."),
        (
            "return shares('broken', tallies.with_columns(counted=True, hit=True, dropped=False))",
            "ValueError in line 9: the items lack the columns mode, votes. Each item needs ",
        ),
        ("return pl.DataFrame({'statistic': ['another']})", "InvalidOperationError: incomplete"),
    ],
)
def test_a_statistic(home: Path, body: str, why: str) -> None:
    votes = home.parent / "votes.csv"
    votes.write_text(VOTES, encoding="utf-8")
    done = run(home, "statistics", STATISTIC.format(body=body), "measure", str(votes))
    assert done.exit_code == 2
    assert f"the statistic 'broken' of {home}/statistics/broken.py failed: " in done.stderr
    assert why in done.stderr
    assert "rename it so that its name begins with _, and run again." in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return [][0]", "IndexError in line 8: list index out of range."),
        ("raise RuntimeError", "RuntimeError in line 8: no reason given."),
        ("return 7", "AttributeError: 'int' object has no attribute"),
        ("raise ValueError('first\\nsecond')", "ValueError in line 8: first."),
    ],
)
def test_a_perturbation(home: Path, body: str, why: str) -> None:
    words = (*PLAN, "--perturbation", "broken")
    done = run(home, "perturbations", PERTURBATION.format(body=body), *words)
    assert done.exit_code == 2
    assert f"the perturbation 'broken' of {home}/perturbations/broken.py failed: " in done.stderr
    assert why in done.stderr


def test_a_dataset(home: Path) -> None:
    source = DATASET.format(body="return folder.parts[99]")
    done = run(home, "datasets", source, *PLAN, "--dataset", "broken")
    assert done.exit_code == 2
    assert f"the dataset 'broken' of {home}/datasets/broken.py failed: " in done.stderr
    assert "AttributeError in line 7: " in done.stderr


def test_errors_of_bundled_entries_are_not_changed() -> None:
    with pytest.raises(KeyError, match="x"), STATISTICS.running("tie_rate"):
        raise KeyError("x")
