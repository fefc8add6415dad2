"""Processes that run, have ended, and whose number was given anew."""

import os
import subprocess
import sys

from flows.running.processes import identity, is_running, process_note


def test_this_process_runs() -> None:
    assert is_running(process_note(os.getpid()))
    assert identity(os.getpid()) == identity(os.getpid())


def test_one_that_has_ended_does_not() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        note = process_note(process.pid)
        process.wait()
    assert identity(process.pid) is None
    assert not is_running(note)
    assert not is_running(str(process.pid))


def test_one_that_began_later_only_has_its_number() -> None:
    assert not is_running(f"{os.getpid()}@1")


def test_one_of_another_user_runs() -> None:
    # Process 1 is never ours to signal, and its start can be read all the same.
    assert is_running(process_note(1))
