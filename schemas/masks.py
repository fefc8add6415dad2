"""Queries that pack ballots into bit masks, for :func:`tasks.counting.masks.count_masks`."""

from collections.abc import Container
from pathlib import Path

import duckdb

HERE = Path(__file__).parent
COMPARED = (HERE / "compared.sql").read_text(encoding="utf-8")
LAST_REPEAT = 62
WIDTH = 10
"""Number of repeats whose six masks fit into one word of ``masks.sql``."""


KEYS = ("dataset", "judge", "prompt", "wave", "sample", "arm", "perturbation")


def masks_sql(connection: duckdb.DuckDBPyConnection, alike: Container[str] = ()) -> str:
    """Return ``masks.sql`` for the repeats, 0 to 62, of the ballots in ``vote_log``.

    Keys that are ``alike`` in all ballots are left out of the grouping.
    """
    ((last,),) = connection.execute(
        "select coalesce(max(repeat), 0) from vote_log where study = getvariable('study')"
    ).fetchall()
    words = (
        f"bit_or(if(repeat // {WIDTH} = {word}, place, 0)) as word_{word}"
        for word in range(last // WIDTH + 1)
    )
    text = (HERE / "masks.sql").read_text(encoding="utf-8")
    keys = ", ".join(key for key in KEYS if key not in alike)
    return text.format(keys=keys, words=", ".join(words))
