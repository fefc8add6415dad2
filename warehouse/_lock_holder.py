"""Find out which process holds the lock on a database file, and what to do about it."""

import re
from pathlib import Path
from typing import NamedTuple

DOING = {"READ": " for reading", "WRITE": " for writing", None: ""}
LONGEST_NAME = 80


class Holder(NamedTuple):
    """A process that keeps a database file locked."""

    pid: int | None
    command: str
    """Program and script, without arguments, which may hold secrets."""
    mode: str | None
    """READ or WRITE; null if the system does not say."""

    @property
    def ours(self) -> bool:
        """Whether it is a command of this project."""
        return bool(re.search(r"\bvoirdire\b|\bflows\.\w+|\bbooth\b", self.command))

    def __str__(self) -> str:
        """Return the middle of a sentence: "held open by process 7 (python x.py) for reading"."""
        if self.pid is None:
            return "held open by another process"
        name = f" ({self.command})" if self.command else ""
        return f"held open by process {self.pid}{name}{DOING[self.mode]}"

    @property
    def advice(self) -> str:
        """The next step, as a sentence without a full stop."""
        if self.ours:
            return "Wait until that command has ended"
        return (
            "Close that session. `voirdire sql` reads results without holding the file, and "
            "`voirdire snapshot` makes a copy for other tools"
        )


def holder_of(path: Path, error: str) -> Holder:
    """Return the process that holds a database file, from DuckDB's error and /proc/locks."""
    said = re.search(r"PID (\d+)", error)
    locks = _locks(path)
    pid = int(said[1]) if said else next(iter(locks), None)
    return Holder(pid, _command(pid) if pid else "", locks.get(pid) if pid else None)


def _locks(path: Path) -> dict[int, str]:
    """Return the modes of the locks on a file by process; empty where there is no /proc."""
    try:
        inode = path.stat().st_ino
        lines = Path("/proc/locks").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    # "1: POSIX  ADVISORY  READ 4711 08:01:1234 0 EOF"; waiting ones have an arrow.
    fields = [line.split() for line in lines if "->" not in line]
    return {
        int(pid): mode
        for _, _, _, mode, pid, place, *_ in fields
        if place.rsplit(":", 1)[-1] == str(inode) and int(pid) > 0
    }


def _command(pid: int) -> str:
    """Return a process's program and its script or module."""
    process = Path(f"/proc/{pid}")
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    named = [Path(words[0]).name]
    match words[1:]:
        case ["-m", module, *_]:
            named += ["-m", module]
        case [script, *_] if script.endswith(".py") or Path(script).name == "voirdire":
            named.append(Path(script).name)
    shown = " ".join(named)[:LONGEST_NAME]
    return "".join(c if c.isprintable() else "?" for c in shown)
