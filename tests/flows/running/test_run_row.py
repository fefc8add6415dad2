"""Runs that end, are killed, or are only taken for dead."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from waiting import wait_for

from flows.running import run_row
from flows.running.counts import RunCounts
from flows.running.run_row import RunRow, failure_recorded, first_row, one_line
from flows.studies import Study
from tasks.kit.catalogue import EntryError
from warehouse.store import Warehouse


@pytest.fixture
def store(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "voirdire.duckdb")


@pytest.fixture
def running(store: Warehouse) -> Iterator[RunRow]:
    with RunRow("audit", "mine", store, RunCounts(Study())) as row:
        yield row


def _state(store: Warehouse, run: str = "mine") -> str:
    return str(store.query("select state from runs where run = ?", [run]).item())


def _age(store: Warehouse, minutes: float, **columns: object) -> None:
    store.update_run("mine", seen_at=datetime.now(UTC) - timedelta(minutes=minutes), **columns)


def test_signs_are_given_while_the_run_runs(
    store: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_row, "SECONDS_BETWEEN_HEARTBEATS", 0.05)
    with RunRow("audit", "mine", store, RunCounts(Study())):
        _age(store, 60)
        seen = "select seen_at > now() - interval 1 minute from runs"
        wait_for(lambda: store.query(seen).item(), "no sign was given")
    assert _state(store) == "completed"
    store.heartbeat("mine")
    # a run that has ended does not run again
    assert _state(store) == "completed"


def test_a_calibration_is_not_replaced(store: Warehouse) -> None:
    with RunRow("calibrate", "hers", store, RunCounts(Study(name="people"))):
        pass
    with (
        pytest.raises(ValueError, match=r"a calibration named 'people'.* with --name"),
        RunRow("audit", "mine", store, RunCounts(Study(name="people"))),
    ):
        pass
    runs = store.query("select run, state, error from runs order by started_at").rows()
    assert [row[:2] for row in runs] == [("hers", "completed"), ("mine", "failed")]
    assert "a calibration named 'people'" in runs[1][2]
    # A booth saves no results, an audit has; then it is the study's own name.
    for flow in ("booth", "audit"):
        store.update_run("hers", flow=flow)
        with RunRow("audit", f"after {flow}", store, RunCounts(Study(name="people"))):
            pass


@pytest.mark.usefixtures("running")
def test_claims_are_given_up_ballot_by_ballot(store: Warehouse) -> None:
    ballots = pl.DataFrame({"ballot_id": ["a" * 32, "b" * 32]})
    assert store.claim(ballots, "mine").height == 2
    with RunRow("audit", "other", store, RunCounts(Study())):
        assert store.claim(ballots, "other").is_empty()
        store.save([], run="mine", release=ballots.head(1))
        assert store.claim(ballots, "other")["ballot_id"].to_list() == ["a" * 32]
        # only one's own
        store.save([], run="other", release=ballots)
    assert store.query("select ballot_id from claims").item() == "b" * 32


def test_an_interrupted_start_waits_for_no_file_that_is_busy(store: Warehouse) -> None:
    store.query("select 1")
    hold = f"import duckdb; c = duckdb.connect({str(store.path)!r}); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        holder.stdout.readline()
        with (
            pytest.raises(KeyboardInterrupt) as raised,
            failure_recorded(lambda: first_row("audit", "r", Study(), datetime.now(UTC)), store),
        ):
            raise KeyboardInterrupt
        # The file is still held.
        assert holder.poll() is None
        holder.kill()
    [note] = raised.value.__notes__
    assert note.startswith(f"{store.path} has no row of this run: ")


def test_an_error_that_says_what_happened_is_kept_without_its_class() -> None:
    errors = (ValueError("no key.\nSet it."), EntryError("it failed."), OSError(), KeyError("a"))
    kept = [one_line(error) for error in errors]
    assert kept == ["no key. Set it.", "it failed.", "OSError", "KeyError: 'a'"]
