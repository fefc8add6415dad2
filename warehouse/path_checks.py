"""Path checks and the last completed run, without heavy imports."""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from warehouse._external_access import connect

VARIABLE = "VOIRDIRE_WAREHOUSE"
"""the DuckDB file, if `--warehouse` is not given. Default: `voirdire.duckdb` in the current
folder"""
DEFAULT = "voirdire.duckdb"
DAMAGE = {
    "Could not read enough bytes": "its end is missing",
    "Corrupt database file": "a part of it was overwritten",
}
"""Part of DuckDB's message about a damaged file -> what is wrong."""
MAGIC = slice(8, 12)
"""Offset of the magic bytes of a DuckDB file (https://duckdb.org/docs/internals/storage)."""

RUNS = """
    select study, flow, run, state, fingerprint, ended_at at time zone 'UTC', planned,
        from_warehouse + asked
    from runs order by started_at
"""

MEASURED = """
    select study, false as calibration from estimates
    union select study, true from human_agreements order by study
"""
JUDGES = "select distinct study, judge from estimates order by judge"
WAVES = "select distinct study, wave from estimates where wave <> '' order by wave"


def default_path() -> Path:
    """Return the place from the environment, or the file in this folder."""
    return Path(os.environ.get(VARIABLE) or DEFAULT).absolute()


def damage(path: Path, error: Exception) -> str:
    """Say that a file is damaged, and what to do; empty for errors that do not mean that."""
    for sign, what in DAMAGE.items():
        if sign in str(error):
            return (
                f"{path} is damaged: {what}. Replace it with a copy that is whole, such as a "
                f"snapshot that you made, or choose another file with --warehouse or {VARIABLE}."
            )
    return ""


def near(path: Path) -> Path:
    """Return a path as one would type it here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def option_for(path: Path) -> list[str]:
    """Return the option that names a warehouse in a command; none for the default one."""
    place = path.absolute()
    return [] if place == default_path() else ["--warehouse", str(near(place))]


def existing_path(given: Path | str | None, study: str = "") -> Path:
    """Return the place of a warehouse that must be there, by default :func:`default_path`.

    Raise ValueError if there is no such file: naming the place, and the audit, of ``study`` if
    given, that makes it.
    """
    path = Path(given or default_path()).absolute()
    audit = f"voirdire audit {study}".rstrip()
    require_file(path, f"Run `{audit}` first.")
    return path


def require_folder(path: Path) -> None:
    """Refuse a place in a folder that is not there: it may be misspelt.

    A ValueError names the folder.
    """
    if not path.absolute().parent.is_dir():
        raise ValueError(
            f"there is no folder {path.absolute().parent}. Make it first, or choose another place "
            f"for the warehouse with --warehouse or {VARIABLE}."
        )


def require_file(path: Path, step: str) -> None:
    """Reject a path without a file; ``step`` says how to create it.

    A ValueError names the place.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder. Name a file, such as {DEFAULT}.")
    if not path.is_file():
        raise ValueError(f"there is no warehouse at {path}. {step}")


def is_of_another_kind(path: Path) -> bool:
    """Tell whether a file is not DuckDB's, which might read it as a table or access the web."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            head = file.read(MAGIC.stop)
    except OSError:
        # DuckDB says why.
        return False
    return head[MAGIC] != b"DUCK"


class CompletedRun(NamedTuple):
    """A completed run whose results are current."""

    run: str
    ended_at: datetime
    planned: int
    cast: int
    """Number of votes behind its results."""


def studies_in(path: Path, *, audited: bool = False) -> list[str]:
    """Return the names of all studies that were run; none if the file cannot be read now.

    With ``audited``, those that judges were asked about, without calibrations.
    """
    return sorted(
        {study for study, flow, *_ in _rows(path, RUNS) if flow == "audit" or not audited}
    )


def measured_in(path: Path, *, calibrations: bool) -> list[str]:
    """Return the studies with results, if asked for also calibrations; none as above."""
    found = _rows(path, MEASURED)
    return sorted({study for study, compared in found if calibrations or not compared})


def judges_in(path: Path, study: str) -> list[str]:
    """Return the judges with results in a study; none as above."""
    return [judge for name, judge in _rows(path, JUDGES) if name == study]


def waves_in(path: Path, study: str) -> list[str]:
    """Return the waves with results of a study; none if the file cannot be read now."""
    return [wave for name, wave in _rows(path, WAVES) if name == study]


def completed_run(path: Path, study: str, fingerprint: Callable[[], str]) -> CompletedRun | None:
    """Return the last run of a study if it was completed and had this fingerprint.

    Only a hint to save time: a file that cannot be read now counts as none. The fingerprint takes
    longest, and is asked for only if there is a run.
    """
    of_study = [row for name, *row in _rows(path, RUNS) if name == study]
    if not of_study:
        return None
    flow, run, state, its_fingerprint, ended_at, planned, cast = of_study[-1]
    fits = (
        flow == "audit"
        and state == "completed"
        and cast is not None
        and its_fingerprint == fingerprint()
    )
    return CompletedRun(run, ended_at, planned, cast) if fits else None


def _rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query without parameters; none if the file cannot be read now."""
    if not path.is_file() or is_of_another_kind(path):
        return []
    try:
        with connect(path) as connection:
            # A query with parameters would import pandas.
            return connection.execute(query).fetchall()
    except duckdb.Error:
        return []
