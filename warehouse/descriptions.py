"""What tables and marts hold: their names, what a row is, and what each column means."""

import re
import tomllib
from functools import cache

from warehouse._ddl import ADDED, FRAMES, MARTS, added_columns, mart_files, mart_grain

__all__ = ["FRAMES", "column_meanings", "grains", "marts", "picked_columns"]


PICKED = re.compile(
    r"max\((\w+)\)\s+filter \(\s*(?:where )?statistic = '(\w+)'[^)]*\) as (\w+)", re.IGNORECASE
)
"""How a mart picks one number of one statistic as a column of its own."""

PIVOTED = re.compile(r"'(\w+)' as (\w+)")
"""How a mart that pivots names the columns of a statistic: its estimate, `_low` and `_high`."""


def marts() -> list[str]:
    """Return the names of all marts."""
    return [file.stem for file in mart_files()]


def grains() -> list[tuple[str, str]]:
    """Return each mart with what a row of it is."""
    return [(file.stem, mart_grain(file.read_text(encoding="utf-8"))) for file in mart_files()]


@cache
def picked_columns(mart: str) -> dict[str, tuple[str, str]]:
    """Return the columns of a mart that are a number of one statistic: (number, statistic)."""
    text = (MARTS / f"{mart}.sql").read_text(encoding="utf-8")
    pivoted = [
        (number, row, column + end)
        for row, column in PIVOTED.findall(text)
        for number, end in (("estimate", ""), ("low", "_low"), ("high", "_high"))
    ]
    return {column: (number, row) for number, row, column in (*PICKED.findall(text), *pivoted)}


@cache
def column_meanings() -> dict[str, dict[str, list[str]]]:
    """Return what columns hold: column -> meaning -> the tables and marts with this meaning.

    Columns of marts that come from a table, or from a statistic, are described there.
    """
    described = {
        frame.place().table: {
            **frame.descriptions(),
            **{column: ADDED[column][1] for column in added_columns(frame)},
        }
        for frame in FRAMES
    }
    computed = tomllib.loads((MARTS / "columns.toml").read_text(encoding="utf-8"))
    described |= {f"mart.{mart}": columns for mart, columns in computed.items() if mart != "all"}
    found: dict[str, dict[str, list[str]]] = {}
    for place, columns in {"marts": computed["all"], **described}.items():
        for column, text in columns.items():
            found.setdefault(column, {}).setdefault(text, []).append(place)
    return found
