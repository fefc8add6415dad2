"""Recover from runs whose process is gone: mark them, and save what their journals hold."""

import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

import polars as pl
from pydantic import TypeAdapter

from flows.running.processes import HOST, is_running
from schemas.judging import Ballots, Votes
from tasks.engine.journal import Reply, exclusive_lock, read_journal
from tasks.engine.worker_client import WorkerAnswer
from tasks.judge import vote_frame, vote_row
from tasks.kit.printable import redact
from tasks.prompts import is_known
from warehouse.store import Saving, Warehouse

COUNTS = """
    select
        count(*) as asked, sum(prompt_tokens)::bigint as prompt_tokens,
        sum(completion_tokens)::bigint as completion_tokens,
        case when count(*) = count(cost_usd) then sum(cost_usd) end as cost_usd,
    from votes where run = ?
"""

SENT = "select batch from batches where state = 'sent' limit 1"
ALL_SAVED = """
    select b.batch from batches b
    join batched_ballots h using (batch)
    left join votes v on v.ballot_id = h.ballot_id and v.run = b.run
    where b.state = 'sent' and b.run not in (select run from runs where state = 'running')
    group by b.batch having count(*) = count(v.ballot_id)
"""
"""Batches whose run was killed after it saved all their votes and before it recorded that."""

WORKER_END_SECONDS = 3.0
"""How long the worker of a run that was just killed may take to end."""

SECONDS_BETWEEN_CHECKS = 0.05
REPLY = TypeAdapter(Reply)


def journal_of(warehouse: Warehouse, run: str) -> Path:
    """Return the path of a run's journal, which is beside the warehouse."""
    return warehouse.path.with_name(f"{warehouse.path.name}.replies") / f"{run}.jsonl"


def discard_journal(journal: Path) -> None:
    """Remove a journal whose replies are all saved, and the folder if it is empty."""
    journal.unlink(missing_ok=True)
    folder = journal.parent
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def recover(warehouse: Warehouse, *, sent: bool = True) -> list[str]:
    """Save what the journals of ended runs hold; return what could not be saved.

    ``sent`` says whether the warehouse has batches that were sent.
    """
    for (batch,) in warehouse.query(ALL_SAVED).rows() if sent else ():
        warehouse.update_batch(batch, state="completed", ended_at=datetime.now(UTC))
    journals = sorted(journal_of(warehouse, "").parent.glob("*.jsonl"))
    if not journals:
        return []
    running = warehouse.query("select run from runs where state = 'running'")["run"].to_list()
    until = time.monotonic() + WORKER_END_SECONDS
    notes = (_recover(warehouse, path, until) for path in journals if path.stem not in running)
    return [note for note in notes if note]


def _recover(warehouse: Warehouse, journal: Path, until: float) -> str | None:
    try:
        while True:
            with exclusive_lock(journal) as locked:
                if locked:
                    return _save_all(warehouse, journal)
            # A run that is marked dead may still receive replies.
            if time.monotonic() > until:
                return None
            time.sleep(SECONDS_BETWEEN_CHECKS)
    except FileNotFoundError:
        # Another run has just saved it.
        return None
    except Exception as error:  # noqa: BLE001 - a broken journal must not stop the run
        why = redact(f"{type(error).__name__}: {error}")[:500]
        return f"the replies in {journal} could not be saved: {why}. The next run tries it again"


def _save_all(warehouse: Warehouse, journal: Path) -> str | None:
    """Save a journal and remove it; rename it if some of it cannot be saved."""
    lines, unreadable = read_journal(journal)
    replies = {}
    for line in lines:
        try:
            ballot_id = line.pop("id").rsplit("/", 1)[0]
            cast_at = datetime.fromisoformat(line.pop("cast_at"))
            replies[ballot_id] = WorkerAnswer(REPLY.validate_python(line), cast_at)
        except (AttributeError, KeyError, TypeError, ValueError):
            unreadable += 1
    save_recovered(warehouse, journal.stem, replies)
    saved = warehouse.read(Votes, among=_among(replies))["ballot_id"]
    unknown = len(replies.keys() - set(saved))
    if not unreadable and not unknown:
        discard_journal(journal)
        return None
    number = 0
    while (kept := journal.with_suffix(f".{number}.bad" if number else ".bad")).exists():
        number += 1
    kept = journal.rename(kept)
    return (
        f"replies in {journal.name} that are saved: {len(saved)}; lines that cannot be read: "
        f"{unreadable}; replies to ballots or judge prompts that no longer exist: {unknown}. The "
        f"file is kept as {kept}; to try it again, rename it back"
    )


def _among(ballots: Iterable[str]) -> pl.DataFrame:
    return pl.DataFrame({"ballot_id": list(ballots)}, schema={"ballot_id": pl.String})


def save_recovered(warehouse: Warehouse, run: str, replies: dict[str, WorkerAnswer]) -> int:
    """Save replies as votes of the ended run that asked them; return how many are new.

    Replies to ballots, or with judge prompts, that no longer exist are left out.
    """
    ballots = warehouse.read(Ballots, among=_among(replies))
    prompts = dict(ballots.select("ballot_id", "prompt").unique().iter_rows())
    rows = [
        vote_row(ballot_id, prompt, replies[ballot_id].reply, replies[ballot_id].cast_at)
        for ballot_id, prompt in prompts.items()
        if is_known(prompt)
    ]
    new = warehouse.save([Saving(Votes, vote_frame(rows), first_wins=True)], run=run)
    warehouse.update_run(run, **warehouse.query(COUNTS, [run]).to_dicts()[0])
    return new


SILENCE_SECONDS = 300.0
"""A run on another host is dead if no heartbeat arrives for so long."""

MAX_CLOCK_DIFFERENCE = timedelta(days=1)
"""A run on another host is dead at once if its last heartbeat is older."""

RUNNING = """
    select run, process, coalesce(seen_at, started_at) as seen_at from runs where state = 'running'
"""

_heartbeats: dict[tuple[str, datetime], float] = {}
"""When this process first saw a heartbeat of a run on another host (monotonic clock)."""


def mark_dead_runs(warehouse: Warehouse, running: pl.DataFrame | None = None) -> None:
    """Mark runs whose process is gone as killed, so that others may ask their claimed ballots.

    A process of this host is looked up by its PID. A run on another host sends heartbeats;
    as the clocks may differ, only a change that this process observes counts. ``running`` is the
    result of ``RUNNING``, if it is known.
    """
    found = warehouse.query(RUNNING) if running is None else running
    for run, process, seen_at in found.rows():
        host, note = process.rsplit("/", 1)
        if host == HOST:
            dead = not is_running(note)
        else:
            waited = monotonic() - _heartbeats.setdefault((run, seen_at), monotonic())
            too_old = datetime.now(UTC) - seen_at > MAX_CLOCK_DIFFERENCE
            dead = waited >= SILENCE_SECONDS or too_old
        if dead:
            warehouse.update_run(run, state="killed")
