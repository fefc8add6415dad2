"""The command that repeats an audit: its study, its wave, and the options that it was given."""

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


def audit_again(path: Path, study: str, wave: str) -> str:
    """Return the command that measures the votes of a wave in the warehouse at ``path`` again.

    A study that is named as one of the bundled ones, or of the user's own, is run with the settings
    of its file: options that the audit was given are repeated.
    """
    words = ["voirdire", "audit", study, "--wave", wave]
    audits = (Study.stored(text) for (text,) in Warehouse(path).query(AUDITS, [study]).rows())
    asked = next((each for each in audits if each.wave == wave), None)
    if asked is not None and study in STUDIES:
        words += _options(asked, STUDIES[study].study)
    return shlex.join(map(printable, words))


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
