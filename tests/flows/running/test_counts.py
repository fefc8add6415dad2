"""What a run reports of its ballots, votes and errors."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from flows.running.counts import RunCounts
from flows.studies import Study
from tasks.judging.sequential_stopping import Schedule, mark_stops


@pytest.fixture
def counts() -> RunCounts:
    return RunCounts(Study())


def test_an_error_does_nothing_where_it_is_printed(
    counts: RunCounts,
    make_votes: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DESK_API_KEY", "sk-secret")
    errors = ["its batch \x1b[2J\u202e was [bold]lost[/] sk-secret"] * 2
    counts.add_votes(make_votes([]), errors)
    reported = "2 x its batch \\x1b[2J\\u202e was [bold]lost[/] [key]"
    assert reported in counts.summary()
    assert counts.causes() == reported


def test_a_judge_that_repeats_itself_is_named(
    counts: RunCounts,
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
    counts.numbers["planned"] = 300
    counts.count_stopped(stops, votes)
    assert (
        "100 not needed (offline/x repeated its vote in 99 of 100 probes: it was asked one vote "
        "per order)"
    ) in counts.summary()


def test_what_was_not_sent_is_reported(counts: RunCounts) -> None:
    counts.left_out = {"desk/one": ["seed", "temperature"]}
    assert "Not sent, as unsupported: seed, temperature of desk/one" in counts.summary()
