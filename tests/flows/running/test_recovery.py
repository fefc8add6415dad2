"""What ended runs left: journals, whole and damaged, and batches."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prefect.logging import disable_run_logger

from flows.running import recovery
from flows.running.counts import RunCounts
from flows.running.recovery import journal_of, recover
from flows.running.run_row import RunRow
from flows.studies import STUDIES
from schemas.curation import Questions
from schemas.judging import Ballots, Judges, Pairs, Prompts, Votes
from tasks.engine.journal import Journal, Reply
from tasks.judge import prompt_table
from tasks.prompts import PROMPTS
from warehouse.store import Saving, Warehouse

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = {
    "run": "old",
    "flow": "audit",
    "study": "quick",
    "user": "ada",
    "process": "elsewhere/1",
    "parameters": "{}",
    "fingerprint": "f",
    "code_version": "1",
    "started_at": NOW,
    "seen_at": NOW,
    "state": "killed",
}
Make = Callable[..., Any]


@pytest.fixture
def shelf(
    tmp_path: Path, make_questions: Make, make_pairs: Make, make_judges: Make, make_ballots: Make
) -> Warehouse:
    """Return a warehouse with four ballots that a killed run asked."""
    shelf = Warehouse(tmp_path / "voirdire.duckdb")
    shelf.start_run(RUN)
    ballots = make_ballots(
        [{"ballot_id": f"b{n}", "repeat": n} for n in range(4)], prompt="pair_v1"
    )
    frames = [
        (Questions, make_questions()),
        (Pairs, make_pairs()),
        (Judges, make_judges()),
        (Prompts, prompt_table(["pair_v1"])),
        (Ballots, ballots),
    ]
    shelf.save([Saving(model, frame) for model, frame in frames], run="old", study="quick")
    return shelf


def _line(ballot_id: str, **more: object) -> dict[str, Any]:
    reply = Reply("[[A]]", model="m", seconds=1.0, prompt_tokens=5, completion_tokens=1)
    reported = {**reply._asdict(), "id": f"{ballot_id}/7", "cast_at": NOW.isoformat()}
    return {**reported, **more}


def _leave(shelf: Warehouse, *ballots: str, run: str = "old", damage: bytes = b"") -> Path:
    path = journal_of(shelf, run)
    path.parent.mkdir(exist_ok=True)
    lines = [json.dumps(_line(ballot_id)).encode() + b"\n" for ballot_id in ballots]
    path.write_bytes(b"".join([*lines[:1], damage, *lines[1:]]))
    return path


def _cast(shelf: Warehouse) -> list[str]:
    return shelf.read(Votes)["ballot_id"].sort().to_list()


def test_a_whole_journal_is_saved_and_removed(shelf: Warehouse) -> None:
    path = _leave(shelf, "b0", "b1")
    assert recover(shelf) == []
    assert _cast(shelf) == ["b0", "b1"]
    assert not path.parent.exists()
    assert shelf.query("select asked, prompt_tokens from runs").rows() == [(2, 10)]


@pytest.mark.parametrize(
    "damage",
    [
        b"\0" * 4096 + b"\n",
        b'{"id": "b2/3", "te{"id"\n',
        b"\xff\n",
        b"{}\n",
        json.dumps(_line("b2", attempts="often")).encode() + b"\n",
        json.dumps(_line("b2", cast_at="today")).encode() + b"\n",
        json.dumps(_line("b2", of_the_future=1)).encode() + b"\n",
    ],
    ids=["zeros", "cut", "bytes", "empty", "type", "date", "column"],
)
def test_a_damaged_line_costs_no_other_and_is_kept(shelf: Warehouse, damage: bytes) -> None:
    path = _leave(shelf, "b0", "b1", damage=damage)
    content = path.read_bytes()
    (note,) = recover(shelf)
    assert _cast(shelf) == ["b0", "b1"]
    kept = path.with_suffix(".bad")
    assert "that are saved: 2; lines that cannot be read: 1;" in note
    assert str(kept) in note
    assert kept.read_bytes() == content
    # it is reported once
    assert recover(shelf) == []
    # and the next one of that run does not replace it
    _leave(shelf, "b1", damage=damage)
    assert len(recover(shelf)) == 1
    assert kept.read_bytes() == content
    assert path.with_suffix(".1.bad").exists()


def test_replies_without_a_ballot_or_prompt_are_kept(
    shelf: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _leave(shelf, "b0", "gone")
    (note,) = recover(shelf)
    assert _cast(shelf) == ["b0"]
    assert "replies to ballots or judge prompts that no longer exist: 1" in note
    assert path.with_suffix(".bad").exists()
    _leave(shelf, "b1")
    monkeypatch.delitem(PROMPTS.files, "pair_v1")
    assert len(recover(shelf)) == 1
    monkeypatch.undo()
    path.with_suffix(".1.bad").rename(path)
    assert recover(shelf) == []
    assert _cast(shelf) == ["b0", "b1"]


def test_what_is_wrong_with_one_journal_stops_no_other(shelf: Warehouse) -> None:
    first = journal_of(shelf, "a")
    first.mkdir(parents=True)
    _leave(shelf, "b0")
    (note,) = recover(shelf)
    assert "IsADirectoryError" in note
    assert str(first) in note
    assert _cast(shelf) == ["b0"]


def test_a_journal_whose_writer_is_about_to_end_is_waited_for(shelf: Warehouse) -> None:
    journal = Journal(journal_of(shelf, "old"))
    journal.write(_line("b0"))
    threading.Timer(0.3, journal.close).start()
    assert recover(shelf) == []
    assert _cast(shelf) == ["b0"]


def test_a_journal_that_is_still_written_is_left_alone(
    shelf: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "WORKER_END_SECONDS", 0.1)
    journal = Journal(journal_of(shelf, "old"))
    journal.write(_line("b0"))
    assert recover(shelf) == []
    assert _cast(shelf) == []
    journal.write(_line("b1"))
    journal.close()
    assert recover(shelf) == []
    assert _cast(shelf) == ["b0", "b1"]


@pytest.mark.parametrize(
    ("changes", "saved", "after"),
    [
        ({}, (2, "old"), "completed"),
        ({}, (1, "old"), "sent"),
        ({}, (2, "another"), "sent"),
        ({"state": "intended"}, (2, "old"), "intended"),
        ({"run": "busy"}, (2, "busy"), "sent"),
    ],
)
def test_a_batch_whose_votes_are_all_saved_has_ended(
    shelf: Warehouse,
    make_votes: Make,
    changes: dict[str, str],
    saved: tuple[int, str],
    after: str,
) -> None:
    votes, owner = saved
    shelf.start_run({**RUN, "run": "busy", "state": "running"})
    batch = {
        "batch": "k",
        "judge": "ada",
        "provider": "offline",
        "run": "old",
        "state": "sent",
        "created_at": NOW,
        **changes,
    }
    shelf.start_batch(batch, ["b0", "b1"])
    saving = Saving(Votes, make_votes([{"ballot_id": f"b{n}"} for n in range(votes)]))
    shelf.save([saving], run=owner)
    recover(shelf)
    assert shelf.query("select state, ended_at is not null from batches").rows() == [
        (after, after == "completed")
    ]


def test_a_run_begins_all_the_same_and_tells_what_is_lost_and_no_key(
    shelf: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    _leave(shelf, "b0", damage=b"\0\n")
    study = STUDIES["quick"].study
    with disable_run_logger(), RunRow("audit", "new", shelf, RunCounts(study)) as row:
        pass
    assert "lines that cannot be read: 1" in row.counts.summary()
    reported = dict(shelf.query("select run, error from runs").rows())
    assert "old.bad" in reported["new"]
    with (
        pytest.raises(ValueError, match="sk-other"),
        RunRow("audit", "last", shelf, RunCounts(study)),
    ):
        raise ValueError("not sk-other")
    reported = dict(shelf.query("select run, error from runs").rows())
    assert reported["last"] == "not [key]"
