"""Tell whether a PID still belongs to the same process."""

import shutil
import subprocess
from pathlib import Path


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


def noted(process: int) -> str:
    """Write a process as ``PID@START``, which :func:`still_runs` reads."""
    return f"{process}@{(identity(process) or '').rpartition('/')[2]}"


def still_runs(note: str) -> bool:
    """Tell whether the process of a note runs; no clock has a part in it.

    Earlier versions noted the process ID alone: any process of that ID is taken for it.
    """
    number, _, start = note.partition("@")
    now = identity(int(number))
    return now is not None and (not start or now.rpartition("/")[2] == start)
