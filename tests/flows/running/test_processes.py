"""Processes that run, have ended, and whose number was given anew."""

import os
import subprocess
import sys

from flows.running.processes import identity, noted, still_runs


def test_this_process_runs() -> None:
    assert still_runs(noted(os.getpid()))
    assert identity(os.getpid()) == identity(os.getpid())


def test_one_that_has_ended_does_not() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        note = noted(process.pid)
        process.wait()
    assert identity(process.pid) is None
    assert not still_runs(note)
    assert not still_runs(str(process.pid))


def test_one_that_began_later_only_has_its_number() -> None:
    assert not still_runs(f"{os.getpid()}@1")


def test_one_of_another_user_runs() -> None:
    # Process 1 is never ours to signal, and its start can be read all the same.
    assert still_runs(noted(1))
