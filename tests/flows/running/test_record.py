"""Runs that end, are killed, or are only taken for dead."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.publishing.artifacts import _literal
from flows.running import record
from flows.running.record import Record
from flows.running.run_row import failure_recorded, first_row
from flows.studies import Study
from tasks.judging.sequential_stopping import Schedule, mark_stops
from warehouse.store import Warehouse


@pytest.fixture
def store(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "voirdire.duckdb")


@pytest.fixture
def running(store: Warehouse) -> Iterator[Record]:
    with Record("audit", "mine", Study(), store) as record:
        yield record


def _state(store: Warehouse, run: str = "mine") -> str:
    return str(store.query("select state from runs where run = ?", [run]).item())


def _age(store: Warehouse, minutes: float, **columns: object) -> None:
    store.update_run("mine", seen_at=datetime.now(UTC) - timedelta(minutes=minutes), **columns)


def test_signs_are_given_while_the_run_runs(
    store: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "SECONDS_BETWEEN_SIGNS", 0.05)
    with Record("audit", "mine", Study(), store):
        _age(store, 60)
        until = time.monotonic() + 20
        seen = "select seen_at > now() - interval 1 minute from runs"
        while not store.query(seen).item():
            assert time.monotonic() < until
            time.sleep(0.05)
    assert _state(store) == "completed"
    store.sign_of_life("mine")
    # a run that has ended does not run again
    assert _state(store) == "completed"


def test_an_error_does_nothing_where_it_is_printed(
    running: Record,
    make_votes: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DESK_API_KEY", "sk-secret")
    errors = ["its batch \x1b[2J\u202e was [bold]lost[/] sk-secret"] * 2
    asyncio.run(running.save_votes(make_votes([]), errors))
    running.counts["failed"] = 2
    told = "2 x its batch \\x1b[2J\\u202e was [bold]lost[/] [key]"
    assert told in running.summary()
    assert running._causes() == told


def test_a_calibration_is_not_replaced(store: Warehouse) -> None:
    with Record("calibrate", "hers", Study(name="people"), store):
        pass
    with (
        pytest.raises(ValueError, match=r"a calibration named 'people'.* with --name"),
        Record("audit", "mine", Study(name="people"), store),
    ):
        pass
    runs = store.query("select run, state, error from runs order by started_at").rows()
    assert [row[:2] for row in runs] == [("hers", "completed"), ("mine", "failed")]
    assert "a calibration named 'people'" in runs[1][2]
    # A booth saves no results, an audit has; then it is the study's own name.
    for flow in ("booth", "audit"):
        store.update_run("hers", flow=flow)
        with Record("audit", f"after {flow}", Study(name="people"), store):
            pass


def test_a_judge_that_repeats_itself_is_named(
    running: Record,
    make_ballots: Callable[..., Any],
    make_votes: Callable[..., Any],
) -> None:
    ballots = make_ballots(
        [
            {
                "ballot_id": f"{pair}-{shown}-{repeat}",
                "pair_id": f"p{pair}",
                "judge": "offline/x",
                "shown_first": shown,
                "repeat": repeat,
            }
            for pair in range(50)
            for shown in ("anchor", "target")
            for repeat in range(3)
        ]
    )
    votes = make_votes(
        [
            {"ballot_id": b, "choice": "tie" if b == "0-anchor-1" else "first"}
            for b in ballots.filter(pl.col("repeat") < 2)["ballot_id"]
        ]
    )
    stops = mark_stops(ballots, votes, Schedule(6, probe=True))
    running.counts["planned"] = 300
    running.count_stopped(stops, votes)
    assert (
        "100 not needed (offline/x answered alike in 99 of 100 probes: one vote per order was "
        "asked)"
    ) in running.summary()


def test_what_was_not_sent_is_told(running: Record) -> None:
    running.left_out = {"desk/one": ["seed", "temperature"]}
    assert "Not sent, as unsupported: seed, temperature of desk/one" in running.summary()


def test_markdown_is_escaped() -> None:
    hostile = "<img src=x> [a](b) `c` **d** | # ~~e~~"
    assert _literal(hostile) == (r"\<img src=x\> \[a\](b) \`c\` \*\*d\*\* \| \# \~\~e\~\~")


@pytest.mark.usefixtures("running")
def test_claims_are_given_up_ballot_by_ballot(store: Warehouse) -> None:
    ballots = pl.DataFrame({"ballot_id": ["a" * 32, "b" * 32]})
    assert store.claim(ballots, "mine").height == 2
    with Record("audit", "other", Study(), store):
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
