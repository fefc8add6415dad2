"""Processes that run, have ended, and whose number was given anew."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows._process import runs_since


def test_this_process_runs() -> None:
    assert runs_since(os.getpid(), datetime.now(UTC))


def test_one_that_has_ended_does_not() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert not runs_since(process.pid, datetime.now(UTC))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
def test_one_that_began_later_only_has_its_number() -> None:
    assert not runs_since(os.getpid(), datetime.now(UTC) - timedelta(days=365))


def test_one_of_another_user_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert runs_since(os.getpid(), datetime.now(UTC))
