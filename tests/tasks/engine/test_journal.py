import asyncio
import json
import os
import threading
from pathlib import Path

import pytest
from waiting import PATIENCE_SECONDS

from tasks.engine import journal as journalling
from tasks.engine.journal import Journal, exclusive_lock, read_journal

LINES = [{"id": str(n), "text": "\u2028\U0001f600\n"} for n in range(3)]
CUT = json.dumps(LINES[0]).encode()[:-3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the place of a journal with three lines, which nobody writes any more."""
    path = tmp_path / "deep" / "run.jsonl"
    journal = Journal(path)
    for line in LINES:
        journal.write(line)
    journal.close()
    return path


def _append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def test_a_journal_keeps_whole_lines(path: Path) -> None:
    assert read_journal(path) == (LINES, 0)


@pytest.mark.parametrize(
    "damage", [CUT, b"\0" * 5000, b"\xff\xfe\n", b"[1]\n", b"[" * 100_000 + b"\n"]
)
def test_what_cannot_be_read_is_counted_and_the_rest_is_kept(path: Path, damage: bytes) -> None:
    _append(path, damage)
    assert read_journal(path) == (LINES, 1)
    # the run goes on under its old id
    journal = Journal(path)
    journal.write(LINES[0])
    assert read_journal(path) == ([*LINES, LINES[0]], 1)
    journal.close()


def test_a_last_line_that_lacks_its_end_only_is_read(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])
    assert read_journal(path) == (LINES, 0)


def test_a_disk_that_takes_a_part_gets_the_rest(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(journalling.os, "write", lambda file, data: write(file, data[:3]))
    journal = Journal(path)
    journal.write(LINES[0])
    journal.close()
    assert read_journal(path) == ([*LINES, LINES[0]], 0)


def test_the_name_of_a_new_journal_is_made_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(journalling.os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    folder = tmp_path / "replies"
    Journal(folder / "run.jsonl").close()
    assert synced == [folder.stat().st_ino, tmp_path.stat().st_ino]


def test_a_journal_that_is_written_is_left_alone(path: Path) -> None:
    # the same run, begun twice
    writers = [Journal(path), Journal(path)]
    for writer in writers:
        with exclusive_lock(path) as alone:
            assert not alone
        writer.close()
    with exclusive_lock(path) as alone:
        assert alone


def test_whoever_opens_a_journal_that_is_being_saved_begins_a_new_one(path: Path) -> None:
    opened: list[Journal] = []
    writer = threading.Thread(target=lambda: opened.append(Journal(path)))
    with exclusive_lock(path) as alone:
        assert alone
        writer.start()
        writer.join(timeout=0.3)
        assert writer.is_alive()
        path.unlink()
    writer.join(timeout=PATIENCE_SECONDS)
    opened[0].write(LINES[1])
    opened[0].close()
    assert read_journal(path) == ([LINES[1]], 0)


def test_a_journal_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), exclusive_lock(tmp_path / "run.jsonl"):
        pass


def test_what_is_written_while_the_disk_is_at_it_is_synced_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journalling, "SECONDS_BETWEEN_SYNCS", 0.001)
    journal = Journal(tmp_path / "r.jsonl")
    synced: list[int] = []

    def sync(file: int) -> None:
        synced.append(os.fstat(file).st_size)
        if len(synced) == 1:
            journal.write({"n": 2})

    async def run() -> None:
        journal.write({"n": 1})
        monkeypatch.setattr(os, "fsync", sync)
        syncing = asyncio.create_task(journal.keep_syncing())
        for _ in range(400):
            if len(synced) > 1:
                break
            await asyncio.sleep(0.005)
        syncing.cancel()

    asyncio.run(run())
    journal.close()
    assert synced == [len(b'{"n": 1}\n'), 2 * len(b'{"n": 1}\n')]
