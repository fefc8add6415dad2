"""The user's own folder (VOIRDIRE_HOME), which holds catalogues of the user's own."""

import os
from pathlib import Path

VARIABLE = "VOIRDIRE_HOME"
DEFAULT = "voirdire"


def home() -> Path:
    """Return the user's folder: that of ``VOIRDIRE_HOME``, else ``voirdire`` in this folder."""
    return Path(os.environ.get(VARIABLE) or DEFAULT).absolute()


def own_folder(catalogue: str) -> Path | None:
    """Return the folder of the user's own entries of a catalogue; null if it is not there."""
    folder = home() / catalogue
    return folder if folder.is_dir() else None
