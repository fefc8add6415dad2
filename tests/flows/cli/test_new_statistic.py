"""A new statistic is one file: what it gives is found wherever results are looked at."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from benchmarks.simulated_studies import simulate
from flows.cli import examples
from flows.cli.main import main
from tasks.aggregate import count_votes
from tasks.inference import bootstrap
from tasks.simulation.traits import Traits
from tasks.statistics import STATISTICS
from warehouse.store import Warehouse

EXAMPLE = Path(examples.__file__).parent / "statistics" / "_mostly_first.py"
"""The example that `voirdire init` writes."""

ODD = """
import polars as pl

from tasks.counting.cells import shares
from tasks.statistics import statistic


@statistic(
    source="mine",
    family="position",
    gives=("odd_pairs", "all_pairs"),
    missing={"odd_pairs": "no pair is odd"},
    no_interval={"all_pairs": "a count: no interval"},
)
def odd_pairs(tallies):
    \"\"\"Measure nothing.\"\"\"
    none = pl.lit(None, pl.String)
    pairs = tallies.with_columns(
        counted=False, hit=False, dropped=False, votes="planned", mode=pl.lit("any"),
        perturbation=none, kind=none,
    )
    every = shares("all_pairs", pairs.with_columns(counted=True))
    return [shares("odd_pairs", pairs), every.with_columns(low=None, high=None)]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name of a statistic in the user's own folder."""
    name = "mostly_first"
    (tmp_path / "statistics").mkdir()
    shutil.copy(EXAMPLE, tmp_path / "statistics" / f"{name}.py")
    with monkeypatch.context() as patch:
        patch.setenv("VOIRDIRE_HOME", str(tmp_path))
        STATISTICS.read_own()
        yield name
    STATISTICS.read_own()


def test_its_rows_are_in_mart_numbers_and_its_name_in_the_list(own: str, tmp_path: Path) -> None:
    votes = tmp_path / "votes.jsonl"
    choices = [
        ("first", "first"),
        ("first", "second"),
        ("second", "second"),
        ("first", "tie"),
        # Not valid, so unknown.
        ("invalid", "invalid"),
    ]
    rows = [
        {
            "dataset": "d",
            "judge": "ada",
            "sample": f"s{number}",
            "cluster": f"s{number}",
            "arm": "control",
            "shown_first": side,
            "repeat": 0,
            "choice": choice,
        }
        for number, pair in enumerate(choices)
        for side, choice in zip(("anchor", "target"), pair, strict=True)
    ]
    votes.write_text("\n".join(map(json.dumps, rows)))
    place = tmp_path / "w.duckdb"
    done = CliRunner().invoke(main, ["measure", str(votes), "--warehouse", str(place)])
    assert done.exit_code == 0, done.output
    found = Warehouse(place).query(
        "select family, unit, null_value, floor, seed, estimate, n, dropped from mart.numbers "
        "where statistic = ?",
        [own],
    )
    # More first picks in two of the three pairs in which there are more of one kind.
    about = ("position", "share", 0.5, "random judge", bootstrap.SEED)
    assert found.rows() == [(*about, pytest.approx(2 / 3), 3, 1)]
    listed = CliRunner().invoke(main, ["list"])
    assert own in listed.output.split()
    # The path is folded at the width of the terminal.
    assert f"(yourfile{tmp_path}/statistics/" in "".join(listed.output.split())
    explained = CliRunner().invoke(main, ["list", own])
    said = " ".join(explained.output.split())
    assert "Measure in how many control pairs first picks outnumber second picks" in said
    for declared in ("unit share", "0.5 if there is no effect", "random judge", "family position"):
        assert declared in said


def test_its_reasons_are_its_own(own: str, tmp_path: Path) -> None:
    (tmp_path / "statistics" / f"{own}.py").unlink()
    (tmp_path / "statistics" / "odd_pairs.py").write_text(ODD)
    STATISTICS.read_own()
    votes = tmp_path / "votes.jsonl"
    asked = {"dataset": "d", "judge": "ada", "arm": "control", "repeat": 0, "choice": "tie"}
    rows = [
        {**asked, "sample": f"s{at}", "cluster": f"s{at}", "shown_first": side}
        for at in range(2)
        for side in ("anchor", "target")
    ]
    votes.write_text("\n".join(map(json.dumps, rows)))
    words = ["measure", str(votes), "--format", "json", "--only", "odd_pairs"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert {row["statistic"]: row["reason"] for row in json.loads(done.stdout)} == {
        "odd_pairs": "nothing qualifies: no pair is odd",
        "all_pairs": "a count: no interval",
    }


@pytest.mark.usefixtures("own")
def test_a_log_without_an_order_gets_the_rows_for_which_it_is_irrelevant(tmp_path: Path) -> None:
    irrelevant = (
        """gives=("odd_pairs", "all_pairs"), rows={"all_pairs": {"order": "irrelevant"}},"""
    )
    text = ODD.replace('gives=("odd_pairs", "all_pairs"),', irrelevant)
    (tmp_path / "statistics" / "odd_pairs.py").write_text(text)
    STATISTICS.read_own()
    # RewardBench scores each answer by itself, so that no order was shown.
    scored = tmp_path / "my-model_all.jsonl"
    scored.write_text("\n".join(json.dumps({"chosen": at, "rejected": 0}) for at in range(4)))
    words = ["measure", str(scored), "--format", "json", "--only", "odd_pairs"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    found = [(row["statistic"], row["estimate"], row["n"]) for row in json.loads(done.stdout)]
    assert found == [("all_pairs", 0, 4)]


@pytest.mark.parametrize(("kappa", "biased"), [(0.0, False), (1.5, True)])
def test_its_null_is_that_of_a_judge_without_position_bias(
    own: str, kappa: float, *, biased: bool
) -> None:
    traits = Traits(omega=1.5, nu=1.0, iota=0.1, kappa=kappa)
    log = simulate(traits, kind="promote", beta=0, items=400, votes=2, seed=5)
    [row] = STATISTICS[own](tallies=count_votes(log)).to_dicts()
    assert row["n"] > 60
    # 95 % intervals: one holds .5, the other lies above it.
    assert row["low"] > 0.5 if biased else row["low"] < 0.5 < row["high"]


def test_the_page_of_statistics_has_a_row_for_it(own: str, generator: ModuleType) -> None:
    page = generator.statistics()
    assert f"## {own}" in page
    assert f"| `{own}` | position | share | 0.5 | random judge | not yet |" in page
