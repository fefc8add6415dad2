"""Studies: the parameters of a flow, one per TOML file."""

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from flows.studies.study import PATIENCE_SECONDS, Parameters, Study, with_prompts
from tasks.kit.catalogue import Catalogue, one_per_line, tables
from tasks.kit.user_folder import own_folder
from tasks.validation.invalid_values import problems_in
from tasks.validation.toml_tables import entry
from tasks.validation.unknown_names import unknown

__all__ = ["PATIENCE_SECONDS", "Parameters", "Study", "with_prompts"]


NO_TABLE = (
    "the file needs the table [study], which says what is asked, as in [study], dataset = "
    "'answers.csv'. An empty one runs all defaults."
)
CRON_LINE = (
    "It has five fields: minute (0-59), hour (0-23), day of the month (1-31), month (1-12 or jan) "
    "and day of the week (0-7 or mon), such as 15 2 * * 1"
)


class StudyFile(BaseModel):
    """One file of this folder."""

    model_config = ConfigDict(extra="forbid")

    about: str
    """One line that `voirdire list` and the Prefect UI show."""
    flow: Literal["audit"] = "audit"
    """The flow that runs the study."""
    cron: str | None = None
    """Schedule as a cron line, in the study's time zone; null: no schedule."""
    on_alert: str | None = None
    """Study to start when this one finds drift, if that study's schedule is switched on."""
    study: Study

    @field_validator("cron")
    @classmethod
    def _as_prefect_reads_it(cls, cron: str | None) -> str | None:
        if cron is not None and (problem := _cron_problem(cron)):
            raise ValueError(f"not a cron line ({problem.lower()}). {CRON_LINE}")
        return cron


def _cron_problem(line: str) -> str:
    """Say what is wrong with a cron line of five fields; empty if Prefect reads it."""
    from cronsim import CronSim, CronSimError

    if len(line.split()) != 5:
        return "wrong number of fields"
    try:
        CronSim(line, datetime.now(UTC))
    except CronSimError as error:
        # Prefect reads some lines more, such as ? for any day; to import it takes a second.
        from prefect.client.schemas.schedules import CronSchedule

        try:
            CronSchedule(cron=line)
        except ValidationError:
            return str(error)
    return ""


def _parse(name: str, data: dict[str, Any]) -> StudyFile:
    table = data.get("study", {})
    problems = [] if "study" in data else [NO_TABLE]
    study = Study()
    try:
        named = {"name": name, **with_prompts(table)} if isinstance(table, dict) else table
        study = entry(Study, "[study]", named, show_values=True)
        problems += [f"[study] {problem}" for problem in study.wave_problems()]
    except ValueError as error:
        problems.append(str(error))
    try:
        file = entry(StudyFile, "the file", {**data, "study": study}, show_values=True)
    except ValueError as error:
        problems.insert(0, str(error))
    if problems:
        raise ValueError("\n".join(problems))
    return file


def _why_missing(name: str) -> str:
    """Say what to do with a file that is given in place of a study."""
    if not Path(name).exists():
        return ""
    file = shlex.quote(name)
    return (
        f"no study {name!r:.200}: this is a file or folder. Audit a file of questions and answers "
        f"with `voirdire audit --dataset {file}`, and measure votes or a log of another tool with "
        f"`voirdire measure {file}`."
    )


STUDIES: Catalogue[StudyFile] = tables(
    "study",
    Path(__file__).parent,
    _parse,
    own=partial(own_folder, "studies"),
    why_missing=_why_missing,
)


def make_study(
    name: str,
    changes: dict[str, Any],
    *,
    base: Study | None = None,
    called: Mapping[str, str] | None = None,
) -> Study:
    """Return a study of the catalogue, or ``base``, with ``changes``, checked.

    Errors name fields by the options that they come from, ``called``. Raise LookupError for an
    unknown name, ValueError for values that are not allowed, all in one line.
    """
    known = (base or STUDIES[name].study).model_dump()
    changes = with_prompts(changes)
    strange = set(changes) - set(known)
    if strange:
        everything = "docs/reference/study-file.md describes all"
        raise unknown("study option", min(strange), sorted(known), everything)
    try:
        study = Study(**{**known, **changes})
    except ValidationError as error:
        raise ValueError(problems_in(error, Study, called)) from error
    try:
        study.check(called)
    except (LookupError, ValueError) as error:
        file = None if base else STUDIES.own.get(name)
        if file is None or _is_sound(name):
            raise
        raise type(error)(f"the study {name!r} of {file}:{one_per_line(str(error))}") from error
    return study


def _is_sound(name: str) -> bool:
    """Tell whether a study of the catalogue passes the check as it is, without changes."""
    try:
        STUDIES[name].study.check()
    except (LookupError, ValueError):
        return False
    return True
