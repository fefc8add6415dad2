"""A part of a benchmark that the machine cannot run is not passed over."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.mark.parametrize(
    ("part", "reported"),
    [
        ("full_disk", "not measured: full_disk (no tmpfs can be mounted here)"),
        ("clock", "not measured: clock (no C compiler to make a shifted clock with)"),
    ],
)
def test_what_cannot_be_measured_is_an_error(
    benchmark: Callable[[str], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    part: str,
    reported: str,
) -> None:
    faults, engine = benchmark("faults"), benchmark("engine")
    monkeypatch.setattr("sys.argv", ["faults.py", part])
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    monkeypatch.setenv("PREFECT_API_URL", "")
    refused = subprocess.CompletedProcess([], returncode=32)
    monkeypatch.setattr(faults.subprocess, "run", lambda *_, **__: refused)
    monkeypatch.setattr(faults.shutil, "which", lambda _: None)
    monkeypatch.setattr(engine, "unmeasured", [])
    with pytest.raises(SystemExit) as ended:
        faults.main()
    assert ended.value.code == reported


def test_what_is_above_its_limit_is_named_too(
    benchmark: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = benchmark("engine")
    monkeypatch.setattr(engine, "missed", [])
    monkeypatch.setattr(engine, "unmeasured", [])
    engine.finish()
    engine.show("lost", 1, 0)
    engine.leave_out("clock", "no compiler")
    with pytest.raises(SystemExit, match=r"above what it may be: lost; not measured: clock \(no"):
        engine.finish()
