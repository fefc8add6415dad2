"""Votes from a file, and all that an audit would say of them, in a warehouse."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from click.testing import CliRunner, Result
from polars.testing import assert_frame_equal

from benchmarks.simulated_votes import PRESETS, simulate
from flows.cli.main import main
from flows.results.drift import drift_in
from flows.running.counts import RunCounts
from flows.running.run_row import RunRow
from flows.studies import Study
from schemas.judging import VoteLog
from schemas.results import Drifts, Estimates, Findings
from tasks.conclude import conclude
from tasks.readers.votes import read_votes
from tasks.results import conclusions_of, results_of_file
from warehouse.store import Warehouse

Make = Callable[..., Any]
WAREHOUSE_TESTS = Path(__file__).parents[2] / "warehouse"
EARLIER = """
    insert into runs by name select
        study as run, flow, study, 'u' as user, 'p' as process, '{}' as parameters,
        'f' as fingerprint, 'c' as code_version, now() as started_at, 'completed' as state
    from (values ('quick', 'audit'), ('own', 'measure')) as t (study, flow);
    insert into estimates by name select
        'rank' as statistic, 'd' as dataset, 'ada' as judge, 'p' as prompt, '' as wave,
        'balanced' as mode, 'boast' as perturbation, '' as subgroup, 2 as estimate, 1 as low,
        3 as high, 10 as n, 10 as clusters, 0 as dropped, 2 as votes_per_pair, 'b' as method,
        study, study as run, now() as saved_at
    from (values ('quick'), ('own')) as t (study);
"""
JSON = ("--format", "json")
MARTS = ("bias", "asr", "exclusions", "scorecard", "contrasts", "drift", "ranking", "validity")


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    """Three judges in two waves, the votes of neither known to any catalogue."""
    logs = [
        simulate(traits, kind="promote", beta=beta, items=15, votes=2, seed=seed).with_columns(
            judge=pl.lit(f"{name} of elsewhere"),
            wave=pl.lit(wave),
            perturbation="kind",
        )
        for seed, (name, (traits, _, beta)) in enumerate(list(PRESETS.items())[:3])
        for wave in ("2024-01-01", "2024-01-02")
    ]
    return VoteLog.of(pl.concat(logs, how="diagonal_relaxed"))


@pytest.fixture
def votes(log: pl.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "own.parquet"
    log.write_parquet(path)
    return path


@pytest.fixture(scope="module")
def measured(log: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, bytes]:
    """Return what measuring the votes writes, and the warehouse in which it keeps the results."""
    folder = tmp_path_factory.mktemp("measured")
    log.write_parquet(folder / "own.parquet")
    result = voirdire("measure", folder / "own.parquet", *JSON, "--warehouse", folder / "w.duckdb")
    assert result.exit_code == 0, result.output
    return result, (folder / "w.duckdb").read_bytes()


@pytest.fixture
def place(
    measured: tuple[Result, bytes], copy_warehouse: Callable[[Path, bytes], None], tmp_path: Path
) -> Path:
    """Return a warehouse in which the votes were measured."""
    copy_warehouse(tmp_path / "w.duckdb", measured[1])
    return tmp_path / "w.duckdb"


def voirdire(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def test_all_that_follows_is_in_the_warehouse(
    measured: tuple[Result, bytes], place: Path, votes: Path
) -> None:
    result, _ = measured
    assert "saved as study own in" in result.stderr
    log = read_votes(votes)
    warehouse = Warehouse(place)
    estimates = results_of_file(log, "balanced").estimates
    assert len(json.loads(result.stdout)) == estimates.height
    assert_frame_equal(warehouse.read(Estimates), estimates)
    assert_frame_equal(warehouse.read(Findings), conclude(estimates))
    assert_frame_equal(warehouse.read(Drifts), drift_in(log, "balanced"))
    assert_frame_equal(warehouse.read(VoteLog), log)
    for mart in MARTS:
        rows = warehouse.query(f"select count(*) as n from mart.{mart} where study = 'own'")
        assert rows["n"].item() > 0, mart
    (run,) = warehouse.query("select * from runs").to_dicts()
    assert (run["flow"], run["study"], run["state"]) == ("measure", "own", "completed")
    assert (run["planned"], run["from_warehouse"], run["asked"]) == (log.height, log.height, 0)


@pytest.mark.charts
def test_report_and_sql_work_on_it_and_a_second_time_replaces(
    place: Path, votes: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    assert voirdire("measure", votes, "--warehouse", place).exit_code == 0
    result = voirdire("report", "own", "--number", "--out", page, "--warehouse", place)
    assert result.exit_code == 0, result.output
    assert "of elsewhere" in page.read_text()
    query = "select count(*) as n from estimates"
    assert "n" in voirdire("sql", query, "--warehouse", place).output
    assert Warehouse(place).query(query)["n"].item() == Warehouse(place).read(Estimates).height
    anew = voirdire("remeasure", "own", "--warehouse", place)
    assert anew.exit_code == 2
    assert "comes from a file of votes" in anew.output


@pytest.mark.charts
def test_control_votes_alone_are_kept_and_reported(make_vote_log: Make, tmp_path: Path) -> None:
    path, place = tmp_path / "plain.parquet", tmp_path / "w.duckdb"
    make_vote_log([{"sample": f"s{n}"} for n in range(12)]).write_parquet(path)
    assert voirdire("measure", path, "--warehouse", place).exit_code == 0
    # of their pairs, only what the place does can be found
    assert Warehouse(place).read(Findings)["kind"].to_list() == ["position"]
    result = voirdire("report", "plain", "--warehouse", place)
    assert result.exit_code == 0, result.output


def test_people_who_saw_one_order_are_counted_and_not_called_judges(
    make_vote_log: Make, tmp_path: Path
) -> None:
    path, place, page = tmp_path / "plain.jsonl", tmp_path / "w.duckdb", tmp_path / "page.html"
    ours = [
        {"sample": f"s{n}", "judge": "ada", "shown_first": side}
        for n in range(12)
        for side in ("anchor", "target")
    ]
    theirs = [{"sample": f"s{n}", "judge": who, "human": True} for n in range(12) for who in "xyz"]
    make_vote_log([*ours, *theirs]).write_ndjson(path)
    measured = voirdire("measure", path, "--warehouse", place)
    assert "xcluded from mean attack success rates" not in measured.output
    result = voirdire("report", "plain", "--out", page, "--warehouse", place)
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert "1 judge and 3 people compared answers; nothing was perturbed." in text
    assert "1 of 1 judge favours one slot: ada the first" in text
    section = text.split('<h2 id="position">')[1].split("<h2")[0]
    assert section.count('<tr><th scope="row">') == 1
    gates = text.split('<h2 id="scorecard">')[1].split("<h2")[0]
    assert gates.count('<tr><th scope="row">') == 1
    design = text.split('<h2 id="design-and-provenance">')[1]
    assert "position: the gap, or" in design
    assert "control alone: up to 12, up to 24" in design
    assert "Benjamini-Hochberg over 1 cell" in design
    assert "not stated" not in design
    assert "No result about position for 3 people: votes in one order only" in section


@pytest.mark.slow
def test_an_audit_is_not_replaced(place: Path, votes: Path) -> None:
    warehouse = Warehouse(place)
    (run,) = warehouse.query("select run from runs")["run"]
    warehouse.update_run(run, flow="audit")
    before = warehouse.read(VoteLog)
    result = voirdire("measure", votes, "--mode", "paper", "--warehouse", place)
    assert result.exit_code == 2
    assert "already has another study named 'own'" in result.output
    assert_frame_equal(warehouse.read(VoteLog), before)


def test_a_calibration_is_not_replaced(votes: Path, tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb")
    with RunRow("calibrate", "hers", warehouse, RunCounts(Study(name="own"))):
        pass
    result = voirdire("measure", votes, "--warehouse", warehouse.path)
    assert (result.exit_code, warehouse.read(VoteLog).is_empty()) == (2, True)
    assert "already has another study named 'own'" in result.output


def test_what_fails_leaves_nothing(
    votes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "w.duckdb"
    named = votes.rename(tmp_path / "my votes.parquet")
    result = voirdire("measure", named, "--warehouse", place)
    assert (result.exit_code, place.exists()) == (2, False)
    assert "Rename the file." in result.output
    # One of the last frames to be saved breaks its schema.
    broken: Any = pl.DataFrame({"judge": ["ada"]})
    monkeypatch.setattr(
        "tasks.results.conclusions_of",
        lambda *found, **more: conclusions_of(*found, **more)._replace(gates=broken),
    )
    result = voirdire("measure", named.rename(votes), "--warehouse", place)
    assert result.exit_code == 2
    assert Warehouse(place).read(Estimates).is_empty()
    assert Warehouse(place).query("select state from runs")["state"].to_list() != ["completed"]


def test_a_report_shows_the_saved_conclusions(place: Path, tmp_path: Path) -> None:
    page = tmp_path / "own.html"
    with duckdb.connect(str(place)) as connection:
        connection.execute("update gates set reason = 'as it was concluded' where gate = 'bias'")
    result = voirdire("report", "own", "--warehouse", place, "--out", page)
    assert result.exit_code == 0, result.output
    assert "as it was concluded" in page.read_text(encoding="utf-8")


def test_a_long_reason_of_several_judges_is_a_footnote(place: Path, tmp_path: Path) -> None:
    page = tmp_path / "own.html"
    long = "one label per item does not tell how well people agree with each other"
    with duckdb.connect(str(place)) as connection:
        connection.execute(f"update gates set reason = '{long}' where gate = 'bias'")
    result = voirdire("report", "own", "--warehouse", place, "--out", page)
    assert result.exit_code == 0, result.output
    html = page.read_text(encoding="utf-8")
    assert f"Note 1: {long}." in html
    assert html.count(long) == 1
    assert len(re.findall("<small>[^<]*note 1</small>", html)) == 6


@pytest.mark.slow
def test_after_an_upgrade_queries_and_reports_name_the_command(votes: Path, tmp_path: Path) -> None:
    place = tmp_path / "w.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute((WAREHOUSE_TESTS / "schema_032.sql").read_text(encoding="utf-8"))
        connection.execute(EARLIER)
    line = (
        "voirdire: An earlier version saved results here, so some marts may lack rows or values of "
        f"them. Run `voirdire measure VOTES --warehouse {place}` on the file of own; "
        f"`voirdire remeasure quick --warehouse {place}`."
    )
    query = ("sql", "select count(*) as n from mart.ranking", "--warehouse", place)
    found = voirdire(*query, "--format", "json")
    assert json.loads(found.stdout) == [{"n": 0}]
    assert found.stderr.split("\n")[0] == line
    # What is measured again is no longer named.
    assert voirdire("measure", votes, "--warehouse", place).exit_code == 0
    assert f"Run `voirdire remeasure quick --warehouse {place}`." in voirdire(*query).stderr
    with duckdb.connect(str(place)) as connection:
        connection.execute("delete from estimates where study = 'quick'")
    assert "earlier version" not in voirdire(*query).stderr
