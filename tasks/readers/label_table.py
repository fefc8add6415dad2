"""Read a table with one row per item and one column per judge and per person."""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import polars as pl

from tasks.kit.printable import several
from tasks.readers.bounded import (
    MAX_ROWS,
    FileLimits,
    Problems,
    clip,
    csv_table,
    json_lines,
    known_suffix,
    reads_gzip,
    repeated_columns,
    unpacked,
    with_columns,
    without_gz,
)
from tasks.readers.duckdb_reader import opened
from tasks.readers.expressions import refuse_decimal_commas
from tasks.readers.labels import COLUMNS, LARGEST, MOST, labels_as_json, read_labels
from tasks.readers.parquet import parquet_frame
from tasks.validation.unknown_names import nearest

SUFFIXES = (".csv", ".jsonl", ".parquet")
SIZE = 512 << 20
JUDGE, HUMAN = "judge", "human"
IDS = ("id", "item")
"""Columns that identify an item where no column is named."""
CHANCE = "label_chance"
MOST_VALUES = 50
"""Most values of a column of slices or criteria: each gets its own results."""
BATCH = 100_000
"""Rows of a text file that become a frame at a time."""
EMPTY = "(empty)"
SLICE = "slice:"
"""Begins the names of columns that hold slices."""
LIKE = (
    "Give one row per item, with a column for each judge and each person. Name the columns with "
    "--judge and --human."
)

ITEMS_LIKE = "Give one row per item, with a column that identifies it."


class LabelColumns(NamedTuple):
    """Which columns of a table hold what; null for the default."""

    judges: tuple[str, ...] = ()
    humans: tuple[str, ...] = ()
    item: str | None = None
    cluster: str | None = None
    criterion: str | None = None
    slices: tuple[str, ...] = ()


class LabelTable(NamedTuple):
    """Labels of a table, and what the table says about each item."""

    labels: pl.DataFrame
    """``annotator``, ``human``, ``item``, ``criterion``, ``label`` (JSON; null if missing)."""
    items: pl.DataFrame
    """One row per item and criterion: ``item``, ``criterion``, ``cluster``, ``label_chance``,
    ``texts`` (a JSON object of all other text columns), and a column per slice."""


def is_label_table(source: str) -> bool:
    """Tell whether a command's argument names a file of this kind rather than a study."""
    return without_gz(Path(source)).suffix.lower() in SUFFIXES


def described_labels(path: Path) -> str:
    """Say what labels a file has and which command takes it; empty for other files."""
    with unpacked(path, Problems(path.name)) as file:
        return _described(path.name, file)


def _described(name: str, path: Path) -> str:
    kind = path.suffix.lower()
    if kind == ".json":
        try:
            return _labels_of_annotators(name, path)
        except ValueError:
            # Any other JSON, which has nothing to do with labels.
            return ""
    if kind not in SUFFIXES:
        return ""
    with opened(path) as source:
        columns = source.columns if source else frozenset()
    if {JUDGE, HUMAN} <= columns and "choice" not in columns:
        rows = read_label_table(path, LabelColumns()).items.height
        return (
            f"{name}: table of labels, {several(rows, 'row')} (columns {JUDGE!r} and {HUMAN!r}). "
            f"To compare them: `voirdire calibrate {quote(name)}`."
        )
    if kind == ".jsonl" or not columns >= {*COLUMNS}:
        return ""
    return _labels_of_annotators(name, path)


def _labels_of_annotators(name: str, path: Path) -> str:
    labels = read_labels(path)
    people = several(labels["annotator"].n_unique(), "annotator")
    items = several(labels["item"].n_unique(), "item")
    return (
        f"{name}: {several(labels['label'].count(), 'label')} of {people} on {items}. Labels of "
        "people are compared with labels of judges in another file: `voirdire calibrate "
        f"--humans {quote(name)} --judges FILE`."
    )


@reads_gzip()
def read_label_table(path: Path, columns: LabelColumns) -> LabelTable:
    """Read labels of judges and people from the columns of one table.

    Rows with the same item and criterion are an error, unless a column of clusters says that rows
    belong together: then each is an item of its own.

    A ValueError gives the file, what is wrong with it, and what is allowed.
    """
    table, places = _opened(path, LIKE)
    named = _resolved(path.name, table.columns, columns)
    if named.item and not named.cluster:
        _refuse_repeated(path.name, table, named.item, named.criterion, places)
    rows = _identified(path.name, table, named)
    annotators = (*named.judges, *named.humans)
    for name in annotators:
        refuse_decimal_commas(path.name, table[name])
    if rows.height * len(annotators) > MOST:
        raise ValueError(f"{path.name} has more than {MOST} labels, the maximum. Leave out rows.")
    labels = pl.concat(
        rows.select(
            "item",
            "criterion",
            annotator=pl.lit(name),
            human=pl.lit(name in named.humans),
            label=_labels(table[name]),
        )
        for name in annotators
    )
    return LabelTable(labels, rows)


@reads_gzip()
def read_items(path: Path, columns: LabelColumns, *, any_slices: bool = False) -> pl.DataFrame:
    """Read what a table without labels says about items, see :class:`LabelTable`.

    With ``any_slices`` slices that the table lacks are left out.

    A ValueError gives the file, what is wrong with it, and what is allowed.
    """
    table, places = _opened(path, ITEMS_LIKE)
    item = columns.item or next((name for name in IDS if name in table.columns), None)
    listed = f"The columns are: {', '.join(table.columns)[:300]}."
    if item is None:
        raise ValueError(
            f"{path.name} has no column {' or '.join(map(repr, IDS))}. Name the column that "
            f"identifies items with --item COLUMN. {listed}"
        )
    slices = tuple(name for name in columns.slices if not any_slices or name in table.columns)
    named = LabelColumns(item=item, cluster=columns.cluster, slices=slices)
    used = [item, *([named.cluster] if named.cluster else []), *named.slices]
    if missing := [name for name in used if name not in table.columns]:
        raise ValueError(f"{path.name} has no column {missing[0]!r:.60}. {listed}")
    _refuse_repeated(path.name, table, item, None, places, like=f" {ITEMS_LIKE}")
    return _identified(path.name, table, named)


def _opened(path: Path, like: str) -> tuple[pl.DataFrame, pl.Series]:
    """Return the cells of a table, and the place of each row."""
    suffix = path.suffix.lower()
    limits = FileLimits(LARGEST.get(suffix, SIZE), MOST if suffix == ".csv" else MAX_ROWS)
    problems = Problems(path.name, like, limits)
    suffix = known_suffix(path, problems, SUFFIXES)
    table, places = READERS[suffix](path, problems)
    problems.check()
    if table.is_empty():
        raise ValueError(f"{path.name} has no rows. {like}")
    return table, places


def _resolved(file: str, found: Sequence[str], columns: LabelColumns) -> LabelColumns:
    """Fill in default columns and check that every named column is there, once."""
    judges = columns.judges or ((JUDGE,) if JUDGE in found else ())
    humans = columns.humans or ((HUMAN,) if HUMAN in found else ())
    item = columns.item or next((name for name in IDS if name in found), None)
    named = columns._replace(judges=judges, humans=humans, item=item)
    listed = f"The columns are: {', '.join(found)[:300]}."
    for names, option, whose in ((judges, "--judge", "a judge"), (humans, "--human", "people")):
        if not names:
            raise ValueError(
                f"{file} has no column named {option[2:]!r}. Name the column with the labels of "
                f"{whose} with {option} COLUMN. {listed}"
            )
    others = [named.item, named.cluster, named.criterion]
    used = [*judges, *humans, *(name for name in others if name), *named.slices]
    if missing := [name for name in used if name not in found]:
        options: dict[str | None, str] = {
            **dict.fromkeys(judges, "--judge"),
            **dict.fromkeys(humans, "--human"),
            **dict.fromkeys(named.slices, "--slice"),
            named.criterion: "--criterion",
            named.cluster: "--cluster",
            named.item: "--item",
        }
        near = nearest(missing[0], found)
        meant = f" Did you mean {options[missing[0]]} {near:.60}?" if near else ""
        raise ValueError(f"{file} has no column {missing[0]!r:.60}. {listed}{meant}")
    both = [name for name in judges + humans if (judges + humans).count(name) > 1]
    if both:
        raise ValueError(
            f"column {both[0]!r:.60} is named more than once with --judge or --human. Each column "
            "holds the labels of one judge or one person."
        )
    return named


def _refuse_repeated(
    file: str,
    table: pl.DataFrame,
    item: str,
    criterion: str | None,
    places: pl.Series,
    *,
    like: str = "",
) -> None:
    """Refuse two rows with the same item and criterion; null ids name no item."""
    key = [item, criterion] if criterion else [item]
    rows = table.select(key).with_row_index("row").drop_nulls(item)
    twice = rows.filter(pl.struct(key).is_duplicated())
    if twice.is_empty():
        return
    first = twice.filter(pl.struct(key) == pl.struct(key).first())
    one, other = (places[row] for row in first["row"].head(2))
    again = twice.height - twice.unique(key).height
    about = f" and {criterion!r:.60} {clip(first[criterion][0])}" if criterion else ""
    more = "" if again == 1 else f" {again} rows repeat an earlier one."
    criteria = "" if criterion else " If they are about different criteria, add --criterion COLUMN."
    repeats = f" If they are repeats of one item, add --cluster {item:.60}.{criteria}"
    raise ValueError(
        f"{file}: {one} and {other} have the same {item!r:.60}: {clip(first[item][0])}{about}."
        f"{more} Correct the ids or delete one of the rows.{like or repeats}"
    )


def _identified(file: str, table: pl.DataFrame, columns: LabelColumns) -> pl.DataFrame:
    """Return one row per item and criterion with its cluster, slices and texts."""
    for name in (*columns.slices, *([columns.criterion] if columns.criterion else [])):
        values = table[name].n_unique()
        if values > MOST_VALUES:
            raise ValueError(
                f"column {name!r:.60} of {file} has {values} different values; a column of slices "
                f"or criteria has at most {MOST_VALUES}. Choose another column, or group values."
            )
    number = pl.int_range(1, table.height + 1).cast(pl.String)
    own = "row " + number if columns.item is None else _name(table[columns.item])
    rows = table.select(
        item=pl.coalesce(own, "row " + number),
        criterion=_text(table[columns.criterion]) if columns.criterion else pl.lit(None, pl.String),
        cluster=pl.lit(None, pl.String)
        if columns.cluster is None
        else _name(table[columns.cluster]),
        label_chance=probabilities(file, table[CHANCE])
        if CHANCE in table
        else pl.lit(None, pl.Float64),
        texts=_texts(table, columns),
        **{f"{SLICE}{name}": _text(table[name]) for name in columns.slices},
    ).with_columns(cluster=pl.coalesce("cluster", "item"))
    again = pl.int_range(1, pl.len() + 1).over("item", "criterion")
    repeated = pl.concat_str("item", pl.lit(" ("), again, pl.lit(")"))
    return rows.with_columns(item=pl.when(again > 1).then(repeated).otherwise("item"))


def _name(values: pl.Series) -> pl.Series:
    """Return cells as names: 3 is "3", also where a missing value made it 3.0."""
    names = values.cast(pl.String)
    return names.str.strip_suffix(".0") if values.dtype.is_float() else names


def _text(values: pl.Series) -> pl.Series:
    return _name(values).replace("", EMPTY).fill_null(EMPTY)


def probabilities(file: str, values: pl.Series) -> pl.Series:
    """Return the probabilities that people were asked; ValueError for other values."""
    chance = values.cast(pl.Float64, strict=False)
    inside = chance.is_between(0, 1, closed="right").fill_null(value=False)
    wrong = values.is_not_null() & ~inside
    if wrong.any():
        row = wrong.arg_true()[0]
        raise ValueError(
            f"{file}: {CHANCE} of row {row + 1} is {values[row]!r:.40}; it must be a probability "
            "above 0 and at most 1."
        )
    return chance


def _texts(table: pl.DataFrame, columns: LabelColumns) -> pl.Expr:
    used: set[str | None] = {*columns.judges, *columns.humans, *columns.slices, CHANCE}
    used |= {columns.item, columns.cluster, columns.criterion}
    texts = [name for name, kind in table.schema.items() if kind == pl.String and name not in used]
    return pl.struct(texts).struct.json_encode() if texts else pl.lit("{}")


def _labels(values: pl.Series) -> pl.Series:
    if values.dtype in (pl.Categorical, pl.Enum):
        values = values.cast(pl.String)
    if values.dtype == pl.Object or values.dtype.is_temporal() or values.dtype == pl.Struct:
        raise ValueError(
            f"column {values.name!r:.60} is of type {values.dtype}, but must hold text, numbers, "
            "true or false, or lists of these. Convert it before saving."
        )
    return labels_as_json(values, with_list_texts=True)


def _from_csv(path: Path, problems: Problems) -> tuple[pl.DataFrame, pl.Series]:
    """Return a CSV file's cells as texts, and the place of each row."""
    table = csv_table(path, problems)
    columns = table.columns or []
    repeated_columns(columns, problems)
    problems.check()
    schema = dict.fromkeys(columns, pl.String)
    frames, places = [pl.DataFrame(schema=schema)], [pl.Series(dtype=pl.String)]
    while rows := list(islice(table.rows, BATCH)):
        texts = {name: [row.fields.get(name) for row in rows] for name in columns}
        frames.append(pl.DataFrame(texts, schema=schema))
        places.append(pl.Series([row.where for row in rows], dtype=pl.String))
    return pl.concat(frames), pl.concat(places)


def _from_json_lines(path: Path, problems: Problems) -> tuple[pl.DataFrame, pl.Series]:
    given, names = with_columns(json_lines(path, problems))
    rows = list(given.rows)
    table = pl.DataFrame({name: _column([row.fields.get(name) for row in rows]) for name in names})
    return table, pl.Series([row.where for row in rows], dtype=pl.String)


def _column(values: list[Any]) -> pl.Series:
    """Return values as they are if all are alike, else as texts; lists and objects as JSON."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and all(value is None or value.bit_length() < 64 for value in values):
        # As floats, large ids would be alike.
        return pl.Series(values, dtype=pl.Int64)
    if kinds == {int, float} or (len(kinds) == 1 and kinds <= {bool, float}):
        return pl.Series(values, dtype=pl.Boolean if kinds == {bool} else pl.Float64)
    return pl.Series(
        [v if v is None or isinstance(v, str) else json.dumps(v) for v in values], dtype=pl.String
    )


def _from_parquet(path: Path, problems: Problems) -> tuple[pl.DataFrame, pl.Series]:
    try:
        table = parquet_frame(path)
    except ValueError as error:
        problems.add("", f"cannot be read as Parquet: {error}", "Write it again.")
        table = pl.DataFrame()
    return table, "row " + pl.int_range(1, table.height + 1, eager=True).cast(pl.String)


READERS = {".csv": _from_csv, ".jsonl": _from_json_lines, ".parquet": _from_parquet}
