"""The user's own folder (VOIRDIRE_HOME) with the user's own catalogues."""

import os
from pathlib import Path

VARIABLE = "VOIRDIRE_HOME"
"""your own folder, with `studies/`, `providers/`, `prompts/`, `datasets/`, `perturbations/`,
`statistics/` and `metrics/`. Default: `voirdire` in the current folder. A folder that does not
exist is an error"""
DEFAULT = "voirdire"


def home() -> Path:
    """Return the user's folder: ``VOIRDIRE_HOME``, else ``voirdire`` in the current folder."""
    return Path(os.environ.get(VARIABLE) or DEFAULT).absolute()


def require_home() -> None:
    """Raise an error if ``VOIRDIRE_HOME`` is set and is not a folder: it may be misspelt."""
    given = os.environ.get(VARIABLE)
    if given and not Path(given).is_dir():
        raise ValueError(
            f"{VARIABLE} is {given!r:.200}, which is not a folder. Correct it, unset it, or write "
            "the folder by `voirdire init`."
        )


def own_folder(catalogue: str) -> Path | None:
    """Return the folder of the user's own entries of a catalogue; None if it does not exist."""
    folder = home() / catalogue
    return folder if folder.is_dir() else None
