"""The command that repeats or continues an audit: its study, its wave, the options it was given."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.studies import STUDIES, Study
from tasks.kit.printable import printable
from warehouse.store import Warehouse

OPTIONS = {
    "dataset": "--dataset",
    "folder": "--folder",
    "category_column": "--by",
    "pass_label": "--pass",
    "columns": "--map",
    "perturbations": "--perturbation",
    "judges": "--judge",
    "prompts": "--prompt",
    "votes_per_pair": "--votes",
    "mode": "--mode",
    "stop": "--stop",
    "probe": "--probe",
    "sham": "--sham",
    "detects_at": "--detects-at",
    "replicates": "--replicates",
    "reworded": "--reworded",
    "seed": "--seed",
    "limit": "--limit",
}
"""Field of a study that decides what is asked -> its option."""

AUDITS = """
    select parameters from runs where study = ? and flow = 'audit' order by started_at desc
"""


def continuing(asked: Study, named: str, path: Path) -> str:
    """Return the command that continues an audit with the warehouse at ``path``, from any folder.

    ``named`` is the file of the study, which may save its results under another name.
    """
    words = ["voirdire", "audit", named]
    if asked.wave or (named in STUDIES and STUDIES[named].study.wave):
        words += ["--wave", asked.wave]
    if named in STUDIES:
        usual = STUDIES[named].study
        words += _options(asked, usual)
        if asked.name != usual.name:
            words += ["--name", asked.name]
        if asked.budget_usd not in (usual.budget_usd, None):
            words += ["--budget", f"{asked.budget_usd:g}"]
    words += ["--warehouse", str(path)]
    return shlex.join(map(printable, words))


def audit_again(path: Path, study: str, wave: str | None) -> str:
    """Return the command that measures the votes of a wave in the warehouse at ``path`` again.

    ``wave`` is null for a study without waves.

    A study that is named as one of the bundled ones, or of the user's own, is run with the settings
    of its file: options that the audit was given are repeated.
    """
    words = ["voirdire", "audit", study, *(["--wave", wave] if wave else [])]
    audits = map(_readable, Warehouse(path).query(AUDITS, [study])["parameters"])
    asked = next((each for each in audits if each and each.wave == (wave or "")), None)
    if asked is not None and study in STUDIES:
        words += _options(asked, STUDIES[study].study)
    return shlex.join(map(printable, words))


def _readable(parameters: str) -> Study | None:
    """Return the settings of a run; null if they have values that this version does not take."""
    try:
        return Study.stored(parameters)
    except ValueError:
        return None


def _options(asked: Study, usual: Study) -> Iterator[str]:
    for field, option in OPTIONS.items():
        value: Any = getattr(asked, field)
        if value in (getattr(usual, field), None):
            continue
        if isinstance(value, bool):
            if value:
                yield option
        elif isinstance(value, dict):
            yield from (word for name, path in value.items() for word in (option, f"{name}={path}"))
        elif isinstance(value, list):
            yield from (word for each in value for word in (option, str(each)))
        else:
            yield from (option, str(value))
