"""Formats of other tools' logs, one per file: ``@log_format(...)`` on a function named like it.

The function reads a recognised file into ``Parts``: votes whose order is known, and ratings, which
are everything else. Rows of judges and of people are never mixed, and what a judge failed to decide
is invalid, never a verdict.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from tasks.kit.catalogue import Catalogue, modules
from tasks.readers.bounded import MAX_FILE, clip
from tasks.readers.duckdb_reader import Source

TEXTS = ("item", "texts")
RATED: dict[str, Any] = {
    "item": pl.String,
    "cluster": pl.String,
    "category": pl.String,
    "criterion": pl.String,
    "judge": pl.String,
    "human": pl.Boolean,
    "kind": pl.String,
    "label": pl.String,
    "value": pl.Float64,
    "invalid": pl.String,
}
"""Columns of ratings that are read one by one, from objects."""
METADATA = ("item", "field", "value")
LONGEST_VALUE = 200
"""Characters of a field of metadata; longer texts have no results of their own."""
MOST_VALUES = 3
"""Most strange values that are named."""
COPIES = "copies of earlier rows"
MOST_WITH_TEXTS = 100_000
"""Most rows of a table whose texts are read, as they are in memory together."""


class Parts(NamedTuple):
    """What a file of another tool holds, before names and numbers of repeats are checked."""

    title: str = ""
    """Title of the format, which the reader of the format need not give."""
    votes: pl.DataFrame | None = None
    """Votes on pairs whose order is known: columns of ``VoteLog`` without ``repeat``.

    Here and in ``ratings`` a column ``id`` marks rows that must be unique, ``copy`` is a digest of
    the row of the file if other files may have copies of it, and ``part`` names a part of the log,
    such as a turn, that is a dataset of its own.
    """
    ratings: pl.DataFrame | None = None
    """Columns of ``Ratings`` without ``repeat``; a missing column is null. ``label_chance`` is the
    probability that people were asked about the item."""
    texts: pl.DataFrame | None = None
    """``item`` and ``texts``: what people saw of it, as a JSON object; only of items they rated."""
    metadata: pl.DataFrame | None = None
    """``METADATA``: what is known of an item besides its texts, a row for each field."""
    outputs: Mapping[str, str] = {}
    """Item -> the output that was rated, where the log of another run may have another one."""
    left_out: Mapping[str, int] = {}
    """Why rows are left out -> their number."""
    notes: tuple[str, ...] = ()
    """What the format does not record, or what a reader should know."""
    rows: int = 0
    """Rows of the file; where a file is one object, its samples or results."""
    verdicts: tuple[str, str] | None = None
    """Labels of the format for a pass and for a fail, if it has labels of its own."""
    task: str | None = None
    """Name of the task within which the file numbers its items, if it has one."""
    model: str | None = None
    """Model whose outputs the file's ratings are about, if it is one."""


def texts_of(items: Iterable[tuple[str | None, Mapping[str, Any]]]) -> pl.DataFrame:
    """Return the frame of the texts of items; what is no text is written as JSON."""
    rows = []
    for item, about in items:
        texts = {
            name: each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
            for name, each in about.items()
            if each not in (None, "")
        }
        if item is not None and texts:
            rows.append((item, json.dumps(texts, ensure_ascii=False)))
    frame = pl.DataFrame(rows, schema=dict.fromkeys(TEXTS, pl.String), orient="row")
    return frame.unique("item", keep="first", maintain_order=True)


def metadata_of(items: Iterable[tuple[str | None, Mapping[str, Any]]]) -> pl.DataFrame:
    """Return the fields of items that are short texts, numbers, true or false.

    The fields of an object within have dotted paths; lists are left out.
    """
    rows = [
        (item, field, text)
        for item, about in items
        for field, value in _flat(about)
        if item is not None and (text := value_of(value)) and len(text) <= LONGEST_VALUE
    ]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(METADATA, pl.String), orient="row")
    return frame.unique(maintain_order=True)


def _flat(about: Mapping[str, Any], deepest: int = 5) -> Iterator[tuple[str, Any]]:
    for field, value in about.items():
        if not isinstance(value, dict):
            yield field, value
        elif deepest:
            yield from ((f"{field}.{name}", each) for name, each in _flat(value, deepest - 1))


def outputs_of(items: Iterable[tuple[str | None, Any]]) -> dict[str, str]:
    """Return the output of each item that has one, as JSON."""
    known = ((item, output) for item, output in items if item is not None and output is not None)
    return {item: json.dumps(output) for item, output in known}


def runs_of(outputs: Iterable[Mapping[str, str]]) -> list[str | None]:
    """Name the run of each file: files of a run agree in the outputs of all items that they share.

    Null where all files are of one run.
    """
    runs: list[dict[str, str]] = []
    places = []
    for own in outputs:
        agree = (all(run.get(item, text) == text for item, text in own.items()) for run in runs)
        place = next((at for at, same in enumerate(agree) if same), len(runs))
        if place == len(runs):
            runs.append({})
        runs[place].update(own)
        places.append(place)
    return [f"run {place + 1}" if len(runs) > 1 else None for place in places]


def object_in(value: object) -> dict[str, Any]:
    """Return a value of JSON if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_in(value: object) -> list[Any]:
    """Return a value of JSON if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: object) -> str | None:
    """Return a text or number of JSON as text; None for what is neither, or empty."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).strip() or None


def value_of(value: object) -> str | None:
    """Return :func:`text_of` a value, and also ``true`` and ``false``; ``1.0`` as ``1``."""
    if isinstance(value, bool):
        return json.dumps(value)
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else text_of(value)  # type: ignore[call-overload]


def without_copies(rows: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Leave out copies of earlier rows and count them: rows with equal ``stamp`` and ``digest``.

    Rows without both are repeats, not copies; they have no digest ``copy``.
    """
    known = pl.any_horizontal(pl.col("stamp", "digest").is_not_null())
    kept = rows.filter(~(known & ~pl.struct(pl.all()).is_first_distinct()))
    digest = pl.when(known).then(pl.struct(pl.all()).hash())
    return kept.with_columns(copy=digest), {COPIES: rows.height - kept.height}


def distinct_objects(
    source: Source, found: Iterable[dict[str, Any]], names: tuple[str, ...], own: str
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Leave out copies of earlier objects and count them: equal ones whose ``names`` are known.

    Raise ValueError if objects with the same id, the field ``own``, have different content.
    """
    kept: list[dict[str, Any]] = []
    first: dict[str, dict[str, Any]] = {}
    copies, conflicts = 0, []
    for each in found:
        known = all(each.get(name) is not None for name in names)
        key = json.dumps([each.get(name) for name in (*names, own)])
        earlier = first.setdefault(key, each) if known else each
        if earlier is each:
            kept.append(each)
        elif earlier == each:
            copies += 1
        elif each.get(own) is None:
            kept.append(each)
        else:
            conflicts.append(each[own])
    if conflicts:
        what = (
            f"has {len(conflicts)} with the {own} of an earlier one and different content, the "
            f"first is {clip(str(conflicts[0]))}"
        )
        source.problems.refuse("", what, f"Keep one for each {own}.")
    return kept, {COPIES: copies}


def counted(why: str, values: pl.Series) -> dict[str, int]:
    """Return how often each value occurs, the most frequent ones by name: ``why`` has a place."""
    counts = values.fill_null("null").value_counts(sort=True).rows()
    first = {why.format(clip(value)): many for value, many in counts[:MOST_VALUES]}
    rest = sum(many for _, many in counts[MOST_VALUES:])
    return first | ({why.format("other values"): rest} if rest else {})


def strange_values(columns: Iterable[pl.Series], known: Iterable[str]) -> tuple[str, ...]:
    """Return a note with the values of columns that are none of the known ones.

    These are counted among all that is invalid too, so the note says that it is about a part.
    """
    given = pl.concat([each.cast(pl.String) for each in columns]).drop_nulls()
    found = counted("{}", given.filter(~given.is_in(list(known))))
    listed = ", ".join(f"{value} ({many})" for value, many in found.items())
    return (f"among the invalid, values that name no winner: {listed}",) if found else ()


def with_texts(source: Source, ratings: pl.DataFrame) -> bool:
    """Tell whether to read the texts of a table: if people rated, and it is not too long."""
    short = ratings.height <= MOST_WITH_TEXTS and source.path.stat().st_size <= MAX_FILE
    return short and bool(ratings["human"].any())


@dataclass(frozen=True)
class Format:
    """A format of logs."""

    name: str
    title: str
    """What it is called in messages."""
    needs: tuple[tuple[str, ...], ...]
    """Alternatives; a file with all fields of one of them is in this format."""
    source: str
    read: Callable[[Source], Parts]
    summary: str

    def fields_found(self, source: Source) -> int:
        """Return the number of required fields that a file has; 0 if it lacks one."""
        return max((len(some) for some in self.needs if source.columns >= {*some}), default=0)


def log_format(
    *, title: str, needs: tuple[tuple[str, ...], ...], source: str
) -> Callable[[Callable[[Source], Parts]], Format]:
    """Register a function as the reader of a format.

    Of several formats whose fields a file has, the one with the most fields is used.
    """

    def declare(read: Callable[[Source], Parts]) -> Format:
        summary = (read.__doc__ or "").strip().split("\n")[0]
        name = getattr(read, "__name__", "")
        return Format(name, title, needs, source, read, summary)

    return declare


FORMATS: Catalogue[Format] = modules("log format", __name__, Path(__file__).parent, Format)


def recognise(source: Source) -> Format | None:
    """Return the format of a file, by its fields; None if it is unknown."""
    if source.kind == "archive":
        return FORMATS["inspect_ai"]
    found = [(each.fields_found(source), name) for name, each in FORMATS.items()]
    most, name = max(found)
    return FORMATS[name] if most else None
