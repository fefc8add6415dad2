"""Questions that must be answered before the heavy imports."""

import os
from pathlib import Path

import duckdb

VARIABLE = "VOIRDIRE_WAREHOUSE"
DEFAULT = "voirdire.duckdb"


def default_path() -> Path:
    """Return the place from the environment, or the file in this folder."""
    return Path(os.environ.get(VARIABLE) or DEFAULT).absolute()


def done_before(path: Path, fingerprint: str) -> bool:
    """Tell whether a run of this fingerprint was completed.

    Only a hint to save time: a file that cannot be read now counts as no.
    """
    if not path.is_file():
        return False
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            # A query with parameters would import pandas.
            done = connection.execute("select fingerprint from runs where state = 'completed'")
            return (fingerprint,) in done.fetchall()
    except duckdb.Error:
        return False
