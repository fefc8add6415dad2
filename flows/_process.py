"""Whether a process of this machine is still the one it was."""

import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

SLACK = timedelta(seconds=5)
"""The kernel counts from its start in hundredths of a second, and clocks are set."""


def runs_since(process: int, moment: datetime) -> bool:
    """Tell whether a process runs that ran at ``moment``: numbers are given anew."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # It runs, but is somebody else's.
        pass
    began = _began(process)
    return began is None or began < moment + SLACK


def _began(process: int) -> datetime | None:
    """Return when a process began; null where the system has no /proc to say so."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    ticks = int(stat.rsplit(")", 1)[1].split()[19])
    seconds = next(int(line.split()[1]) for line in boot.splitlines() if line.startswith("btime"))
    return datetime.fromtimestamp(seconds + ticks / os.sysconf("SC_CLK_TCK"), UTC)


def identity(process: int) -> str | None:
    """Return what tells a running process from a later one of its number; null if none runs.

    It is when the process began, in the kernel's own count, which no clock changes.
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return _identity_elsewhere(process)
    return f"{boot}/{stat.rsplit(')', 1)[1].split()[19]}"


def _identity_elsewhere(process: int) -> str | None:
    """Return the same where there is no /proc, from ps."""
    if Path("/proc/self").exists():
        return None
    ps = shutil.which("ps")
    told = (
        subprocess.run(  # noqa: S603 - our own words
            [ps, "-o", "lstart=", "-p", str(process)], capture_output=True, text=True, check=False
        )
        if ps
        else None
    )
    return (told.stdout.strip() or None) if told else None
