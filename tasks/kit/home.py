"""The user's own folder (VOIRDIRE_HOME) with the user's own catalogues."""

import os
from pathlib import Path

VARIABLE = "VOIRDIRE_HOME"
DEFAULT = "voirdire"


def home() -> Path:
    """Return the user's folder: ``VOIRDIRE_HOME``, else ``voirdire`` in the current folder."""
    return Path(os.environ.get(VARIABLE) or DEFAULT).absolute()


def own_folder(catalogue: str) -> Path | None:
    """Return the folder of the user's own entries of a catalogue; None if it does not exist."""
    folder = home() / catalogue
    return folder if folder.is_dir() else None
