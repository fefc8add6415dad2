"""A new statistic is one file: what it gives is found wherever results are looked at."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from flows.cli.main import main
from tasks.inference import bootstrap
from tasks.statistics import STATISTICS
from warehouse.store import Warehouse

OWN = '''
"""Share of first picks among all ballots of the control arm."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Estimates
from tasks.counting.cells import shares
from tasks.statistics import statistic


@statistic(source="a test", family="position", unit="share", null=0.5, floor="random judge")
def mostly_first(tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Measure how often a pair has more first picks than others."""
    control = tallies.filter(pl.col("arm") == "control")
    picked = pl.col("anchor_12") + pl.col("target_21")
    items = control.with_columns(
        counted=pl.col("voted") > 0,
        hit=2 * picked > pl.col("voted"),
        dropped=pl.col("voted") == 0,
        mode=pl.lit("any"),
        perturbation=pl.lit(None, pl.String),
        kind=pl.lit(None, pl.String),
        votes=pl.col("planned"),
    )
    return shares("mostly_first", items)
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name of a statistic in the user's own folder."""
    name = "mostly_first"
    (tmp_path / "statistics").mkdir()
    (tmp_path / "statistics" / f"{name}.py").write_text(OWN)
    with monkeypatch.context() as patch:
        patch.setenv("VOIRDIRE_HOME", str(tmp_path))
        STATISTICS.read_own()
        yield name
    STATISTICS.read_own()


def test_its_rows_are_in_mart_numbers_and_its_name_in_the_list(own: str, tmp_path: Path) -> None:
    votes = tmp_path / "votes.jsonl"
    choices = [("first", "first"), ("first", "second"), ("first", "first")]
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
        "select family, unit, null_value, floor, seed, estimate, n from mart.numbers "
        "where statistic = ?",
        [own],
    )
    # Two of three pairs were decided for the slot that came first, both times.
    about = ("position", "share", 0.5, "random judge", bootstrap.SEED)
    assert found.rows() == [(*about, pytest.approx(2 / 3), 3)]
    listed = CliRunner().invoke(main, ["list"])
    assert (
        f"(your file {tmp_path}/statistics/" in "".join(listed.output.split("\n")).replace("  ", "")
        or own in listed.output
    )
    explained = CliRunner().invoke(main, ["list", own])
    said = " ".join(explained.output.split())
    assert "Measure how often a pair has more first picks than others." in said
    for declared in ("unit share", "0.5 if there is no effect", "random judge", "family position"):
        assert declared in said


def test_the_page_of_statistics_has_a_row_for_it(own: str, generator: ModuleType) -> None:
    page = generator.statistics()
    assert f"## {own}" in page
    assert f"| `{own}` | position | share | 0.5 | random judge | not yet |" in page
