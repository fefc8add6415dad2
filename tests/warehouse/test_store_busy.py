import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import polars as pl
import pytest

from schemas.arrow import fetch
from schemas.curation import Questions
from warehouse import _locks, store
from warehouse._locks import holder_of
from warehouse.store import Saving, Warehouse, WarehouseBusyError

Make = Callable[..., Saving]
REPO = Path(store.__file__).parents[1]

HOLD = """
import sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "read")
print("held", flush=True)
sys.stdin.readline()
"""
COUNT = """
import sys, duckdb
with duckdb.connect(sys.argv[1], read_only=True) as connection:
    print(connection.execute("select count(*) from questions").fetchone()[0])
"""
WRITE = """
import sys, time, polars as pl
from itertools import count
from schemas.curation import Questions
from warehouse.store import Saving, Warehouse
warehouse, start = Warehouse(sys.argv[1]), int(sys.argv[2])
for number in count(start):
    row = {"question_id": [f"d/{number}"], "dataset": ["d"], "question": ["?" * 5000]}
    warehouse.save([Saving(Questions, pl.DataFrame(row))], run=f"r{start}")
    print(number, flush=True)
    time.sleep(0.2)
"""


def _start(script: str, *arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPO,
    )


@contextmanager
def _held(path: Path, how: str) -> Iterator["subprocess.Popen[str]"]:
    """Keep the file open in another process until the end of the block."""
    with _start(HOLD, path, how) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["write", "read"])
def test_a_busy_file_is_waited_for(stocked: Warehouse, make: Make, how: str) -> None:
    with _held(stocked.path, how) as process:
        letting_go = threading.Timer(2.0, process.kill)
        letting_go.start()
        assert stocked.save([make(Questions, {"question_id": "d/2"})], run="r2") == 1
        letting_go.join()


@pytest.mark.parametrize(("how", "doing"), [("write", "writing"), ("read", "reading")])
def test_a_file_that_stays_busy_is_reported_with_who_holds_it_and_how(
    stocked: Warehouse, make: Make, monkeypatch: pytest.MonkeyPatch, how: str, doing: str
) -> None:
    monkeypatch.setattr(_locks, "NOTICE_SECONDS", 0.1)
    notices: list[str] = []
    impatient = Warehouse(stocked.path, patience_seconds=0.3, tell=notices.append)
    with _held(stocked.path, how) as process:
        with pytest.raises(WarehouseBusyError) as raised:
            impatient.save([make(Questions)], run="r2")
        held = f"held open by process {process.pid} (python"
        assert held in str(raised.value)
        assert f") for {doing} for more than the 0.3 s" in str(raised.value)
        # what is wrong with the session that holds it, not with the one that waits
        assert "Close that session" in str(raised.value)
        assert "voirdire snapshot" in str(raised.value)
        (notice,) = notices
        assert held in notice
        assert "Waiting up to 0.3 s" in notice
        if how == "write":
            with pytest.raises(WarehouseBusyError):
                impatient.read(Questions)
    assert impatient.read(Questions).height == 1
    assert [reported.split(",")[0] for reported in notices[1:]] == [f"{stocked.path} is free again"]


def test_a_visit_that_is_tried_again_does_not_say_how_long_it_waits(
    stocked: Warehouse, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_locks, "NOTICE_SECONDS", 0.1)
    notices: list[str] = []
    patient = Warehouse(stocked.path, patience_seconds=60, tell=notices.append)
    with _held(stocked.path, "write"), pytest.raises(WarehouseBusyError):
        patient.save([make(Questions)], run="r2", patience_seconds=0.3)
    (notice,) = notices
    assert "for writing. Waiting. " in notice


def test_arguments_of_the_holder_are_not_shown(tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text("import time; print('ready', flush=True); time.sleep(60)")
    with subprocess.Popen(
        [sys.executable, str(script), "--password", "sk-secret"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        error = f"Conflicting lock is held in /usr/bin/python (PID {process.pid}) by user ada."
        reported = str(holder_of(tmp_path / "none", error))
        process.kill()
    assert "notebook.py" in reported
    assert "sk-secret" not in reported


def test_threads_that_wait_do_not_keep_each_other(stocked: Warehouse, make: Make) -> None:
    """A read need not wait for a save that waits for a reader of another process."""
    with _held(stocked.path, "read"):
        saving = threading.Thread(
            target=lambda: stocked.save([make(Questions, {"question_id": "d/2"})], run="r2")
        )
        saving.start()
        time.sleep(0.3)
        assert stocked.read(Questions).height == 1
        # The save still waits for the reader of the other process.
        assert saving.is_alive()
    saving.join()
    assert stocked.read(Questions).height == 2


def test_readers_do_not_keep_each_other_out(stocked: Warehouse) -> None:
    with _held(stocked.path, "read"):
        assert stocked.read(Questions).height == 1


def test_another_process_reads_between_two_saves(stocked: Warehouse, make: Make) -> None:
    for number in (2, 3):
        stocked.save([make(Questions, {"question_id": f"d/{number}"})], run="r2")
        with _start(COUNT, stocked.path) as reader:
            assert reader.communicate()[0] == f"{number}\n"


def test_threads_take_turns(warehouse: Warehouse, make: Make) -> None:
    savings = [make(Questions, {"question_id": f"d/{n}"}) for n in range(16)]
    errors = []

    def visit(saving: Saving) -> None:
        try:
            warehouse.save([saving], run="r1")
            warehouse.read(Questions)
        except Exception as error:  # noqa: BLE001 - a thread's errors are lost otherwise
            errors.append(error)

    threads = [threading.Thread(target=visit, args=(saving,)) for saving in savings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert warehouse.read(Questions).height == 16


@pytest.mark.slow
def test_two_processes_write_to_one_file_and_lose_nothing_saved_when_killed(
    warehouse: Warehouse,
) -> None:
    with _start(WRITE, warehouse.path, 0) as one, _start(WRITE, warehouse.path, 1000) as other:
        writers = {0: one, 1000: other}
        acknowledged = {start: int(_line(writer)) for start, writer in writers.items()}
        # The second one goes on in the file of one that was killed.
        for start, writer in writers.items():
            for _ in range(5):
                acknowledged[start] = int(_line(writer))
            writer.send_signal(signal.SIGKILL)
            assert writer.stdout
            for line in writer.stdout:
                acknowledged[start] = int(line) if line.endswith("\n") else acknowledged[start]
    assert [one.returncode, other.returncode] == [-signal.SIGKILL] * 2
    saved = {number for start, last in acknowledged.items() for number in range(start, last + 1)}
    found = {int(each.removeprefix("d/")) for each in warehouse.read(Questions)["question_id"]}
    # one save of each may have been committed whose line was not written any more
    assert found - {last + 1 for last in acknowledged.values()} == saved


def test_a_file_left_with_a_log_is_read(stocked: Warehouse, make: Make) -> None:
    # a writer killed after its commit and before the checkpoint leaves a .wal beside the file
    script = """
import os, sys, duckdb
connection = duckdb.connect(sys.argv[1])
connection.execute("set wal_autocheckpoint = '1TB'")
connection.execute("insert into questions by name "
                   "select * replace ('d/2' as question_id) from questions")
os.kill(os.getpid(), 9)
"""
    with _start(script, stocked.path) as writer:
        pass
    assert writer.returncode == -signal.SIGKILL
    assert stocked.path.with_name("v.duckdb.wal").exists()
    assert stocked.read(Questions)["question_id"].to_list() == ["d/1", "d/2"]
    stocked.save([make(Questions, {"question_id": "d/3"})], run="r3")
    with duckdb.connect(str(stocked.path), read_only=True) as connection:
        rows = fetch(connection, "select question_id from questions order by all")
    assert rows.equals(pl.DataFrame({"question_id": ["d/1", "d/2", "d/3"]}))


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline()


def test_a_second_holder_is_named_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(_locks.time, "monotonic", lambda: clock[0])
    reported: list[str] = []
    notices = _locks.LockNotices(tmp_path / "w.duckdb", reported.append)

    def met(seconds: float, pid: int) -> list[str]:
        clock[0] = seconds
        notices.met(f"Could not set lock: conflicting lock is held (PID {pid})", 60)
        return [line.split(" is ")[1].split(".")[0] for line in reported]

    one = "held open by process 4194301"
    two = "held open by process 4194302"
    assert met(0, 4194301) == []
    assert met(4.9, 4194301) == []
    assert met(5.1, 4194301) == [one]
    # Another one, which is not named at once: several may take turns.
    assert met(9, 4194302) == [one]
    assert met(11, 4194302) == [one, two]
    assert met(60, 4194301) == [one, two]
    notices.free()
    assert reported[-1].endswith("is free again, after 60 s.")
    assert met(61, 4194301)[:2] == [one, two]
    assert met(67, 4194301)[-1] == one


def test_a_notice_is_broken_at_spaces_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "/of/a/team/w.duckdb is held open by another process."
    monkeypatch.setenv("COLUMNS", "30")
    _locks._print(text)
    assert capsys.readouterr().err == f"voirdire: {text}\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _locks._print(text)
    assert capsys.readouterr().err.splitlines() == [
        "voirdire: /of/a/team/w.duckdb",
        "is held open by another",
        "process.",
    ]
