import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result
from polars.testing import assert_frame_equal
from printed_commands import in_short

from benchmarks.simulated_votes import PRESETS, simulate
from flows.cli.main import main
from flows.publishing.pages import report_path
from flows.publishing.served_files import reports_of
from flows.running.processes import HOST, Terminated, process_note
from flows.running.run_row import first_row
from flows.studies import make_study
from schemas.judging import Verdicts, VoteLog
from schemas.results import Estimates
from tasks.aggregate import count_votes
from tasks.counting.verdicts import tally_votes
from tasks.inference.bootstrap import FORMULAS
from tasks.results import Results, results_of_file
from warehouse.atomic_files import write_private
from warehouse.path_checks import completed_run
from warehouse.store import Saving, Warehouse

STUDY = make_study("quick", {"name": "mine"})


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    votes = [
        simulate(traits, kind=kind, beta=beta, items=20, votes=4, seed=seed).with_columns(
            judge=pl.lit(name),
            anchor_author=pl.lit("ant"),
            target_author=pl.lit("bee"),
            # One perturbation has one kind, whichever preset the votes are of.
            kind=pl.when(pl.col("kind").is_not_null()).then(pl.lit("promote")),
            anchor_length=pl.col("sample").str.len_chars() + seed,
            target_length=pl.lit(9),
            category=pl.when(pl.col("cluster").rank("dense") % 2 == 0).then(pl.lit("maths")),
        )
        for seed, (name, (traits, kind, beta)) in enumerate(PRESETS.items())
    ]
    return VoteLog.of(pl.concat(votes, how="diagonal_relaxed"))


@pytest.fixture(scope="module")
def whole(log: pl.DataFrame) -> Results:
    """Second path: the frames of `voirdire measure`, in the order of their keys and checked."""
    return results_of_file(log, "balanced")


@pytest.fixture(scope="module")
def left(log: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What an audit of an older version left: votes and verdicts, and no estimates."""
    warehouse = Warehouse(tmp_path_factory.mktemp("left") / "w.duckdb")
    row = first_row("audit", "old", STUDY, datetime.now(UTC))
    warehouse.start_run(
        {
            **row,
            "state": "completed",
            "ended_at": datetime.now(UTC),
            "planned": 9,
            "from_warehouse": 2,
            "asked": 7,
        }
    )
    verdicts = tally_votes(count_votes(log), "balanced")
    warehouse.save([Saving(VoteLog, log), Saving(Verdicts, verdicts)], run="old", study=STUDY.name)
    return warehouse.path.read_bytes()


@pytest.fixture
def warehouse(
    left: bytes, tmp_path: Path, copy_warehouse: Callable[[Path, bytes], None]
) -> Warehouse:
    copy_warehouse(tmp_path / "w.duckdb", left)
    return Warehouse(tmp_path / "w.duckdb")


def remeasure(warehouse: Warehouse, *options: str) -> Result:
    command = ["remeasure", *options, "--warehouse", str(warehouse.path)]
    return CliRunner().invoke(main, command)


def test_estimates_are_those_of_the_votes(warehouse: Warehouse, whole: Results) -> None:
    result = remeasure(warehouse, STUDY.name)
    assert result.exit_code == 0
    found = warehouse.read(Estimates)
    assert f"{found.height} estimates and" in result.output
    assert_frame_equal(found, whole.estimates, abs_tol=1e-9)
    assert {"category_shift", "category_spread"} < {*found["statistic"]}
    findings = warehouse.query("select count(*) as n from findings")["n"].item()
    assert findings == 2 * len(PRESETS)  # of position, and of the perturbation


def test_the_report_is_written_again(warehouse: Warehouse) -> None:
    report = report_path(warehouse.path, STUDY.name)
    write_private(report, b"older results")
    result = remeasure(warehouse, STUDY.name)
    assert f"Report: {report}" in result.output
    page = report.read_text("utf-8")
    assert warehouse.query("select max(run) from estimates").item() in page


def test_results_are_saved_where_the_report_cannot_be_written(warehouse: Warehouse) -> None:
    (reports_of(warehouse.path)).write_text("not a folder", "utf-8")
    result = remeasure(warehouse, STUDY.name)
    assert result.exit_code == 0
    assert "was not written: " in result.output
    assert "Report: " not in result.output
    assert f"(`voirdire report {STUDY.name}` writes it)." in in_short(result.output)
    assert not warehouse.read(Estimates).is_empty()


def test_the_run_is_recorded_and_does_not_pass_for_an_audit(warehouse: Warehouse) -> None:
    before = completed_run(warehouse.path, STUDY.name, STUDY.fingerprint)
    remeasure(warehouse, STUDY.name)
    runs = warehouse.query("select * from runs order by started_at").to_dicts()
    assert [run["flow"] for run in runs] == ["audit", "remeasure"]
    last = runs[-1]
    assert (last["state"], last["from_warehouse"], last["asked"]) == ("completed", 9, 0)
    assert last["ended_at"] >= last["started_at"]
    assert before is not None
    assert completed_run(warehouse.path, STUDY.name, STUDY.fingerprint) is None


@pytest.mark.parametrize(
    ("error", "state", "code", "said"),
    [
        (ValueError("no such thing"), "failed", 2, "no such thing"),
        (KeyError("gone"), "failed", 2, "KeyError: 'gone'"),
        (KeyboardInterrupt(), "cancelled", 130, "stopped by Ctrl-C"),
        (Terminated(), "cancelled", 143, "stopped by SIGTERM"),
    ],
)
def test_one_that_fails_says_so_in_runs(
    warehouse: Warehouse,
    whole: Results,
    monkeypatch: pytest.MonkeyPatch,
    *,
    error: BaseException,
    state: str,
    code: int,
    said: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("flows.running.processes.exit_now", sys.exit)
    # What comes before it takes a second, and is the same for each error.
    monkeypatch.setattr("flows.results.study_results.results_of", lambda *_, **__: whole)
    monkeypatch.setattr("flows.results.study_results.drift_of", fail)
    assert remeasure(warehouse, STUDY.name).exit_code == code
    query = "select flow, state, ended_at is not null, error, planned from runs order by started_at"
    assert warehouse.query(query).row(1) == ("remeasure", state, True, said, 9)
    # Nothing of it is saved.
    assert warehouse.query("select count(*) from estimates").item() == 0


@pytest.mark.slow
def test_runs_whose_process_is_gone_are_marked_as_killed(warehouse: Warehouse) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        gone = f"{HOST}/{process_note(process.pid)}"
    here = f"{HOST}/{process_note(os.getpid())}"
    for run, place in (("dead", gone), ("alive", here)):
        row = first_row("audit", run, make_study("quick", {"name": "another"}), datetime.now(UTC))
        warehouse.start_run({**row, "process": place, "state": "running"})
    assert remeasure(warehouse, STUDY.name).exit_code == 0
    states = "select run, state from runs where study = 'another' order by run"
    assert warehouse.query(states).rows() == [("alive", "running"), ("dead", "killed")]


def test_formulas_alone_say_what_is_missing(warehouse: Warehouse, whole: Results) -> None:
    assert remeasure(warehouse, STUDY.name, "--formulas").exit_code == 0
    found = warehouse.read(Estimates)
    assert found["boot_low"].null_count() == found.height
    silent = found.filter(reason=FORMULAS)
    assert {"rank", "jury_correlation", "cohen_kappa", "bt_strength"} <= {*silent["statistic"]}
    assert silent["estimate"].null_count() == silent["low"].count() == 0
    # What has a formula has the same numbers; the p-value of a mean square is by permutation alone.
    keys = Estimates.place().key
    both = found.join(whole.estimates, on=keys, nulls_equal=True, suffix="_whole").filter(
        pl.col("reason").is_null(), ~pl.col("statistic").str.ends_with("_contrast")
    )
    square = both.filter(statistic="mean_square_shift")
    assert (square["p_value"].count(), square["p_value_whole"].null_count()) == (0, 0)
    both = both.filter(pl.col("statistic") != "mean_square_shift")
    assert both.height > 100
    for column in ("estimate", "low", "p_value"):
        assert_frame_equal(
            both.select(column),
            both.select(pl.col(f"{column}_whole").alias(column)),
            abs_tol=1e-9,
        )
    tested = found.filter(statistic="mps_sham_contrast")["method"]
    assert tested.str.ends_with("; t test").all()


@pytest.mark.parametrize(
    ("study", "file", "said"),
    [
        ("other", "w.duckdb", r"no votes of study 'other' in .*\. Known: mine\."),
        ("mine", "none.duckdb", r"no warehouse at .*none\.duckdb\. Run `voirdire audit mine "),
    ],
)
def test_what_cannot_be_measured_is_named(
    warehouse: Warehouse, study: str, file: str, said: str
) -> None:
    result = remeasure(Warehouse(warehouse.path.with_name(file)), study)
    assert result.exit_code == 2
    assert pl.Series([result.output.replace("\n", " ")]).str.contains(said).all()


def test_a_study_that_an_earlier_version_stored_is_measured(warehouse: Warehouse) -> None:
    with warehouse._visit(write=True) as connection:
        connection.execute(
            """update runs set parameters = replace(parameters, '"mode"', '"gone": 1, "mode"')"""
        )
    assert '"gone": 1' in warehouse.query("select parameters from runs limit 1").item()
    done = remeasure(warehouse, STUDY.name)
    assert done.exit_code == 0, done.output
