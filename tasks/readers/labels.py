"""Read labels of people and judges: JSON of the alternative annotator test, or a tidy table.

CSV is read by Polars and not by ``bounded.csv_table``: row by row, 500 000 labels take 2.3 s of CPU
time and not .08 s, so the five million of ``benchmarks/alt_test.py`` would take 23 s, where the
whole command may take 10 s.
"""

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from tasks.kit.printable import several
from tasks.readers.bounded import (
    MAX_LINE,
    FileLimits,
    Problems,
    clip,
    known_suffix,
    reads_gzip,
    separator_of,
)
from tasks.readers.expressions import refuse_decimal_commas
from tasks.readers.parquet import require_parquet

COLUMNS = ("annotator", "item", "label")
LIKE = (
    "Give JSON, annotator -> item -> label (text, number or list), or a .csv or .parquet file "
    "with the columns annotator, item, label. The first may also be called human or person in "
    "people's labels, and judge in judges' labels."
)
PEOPLE, JUDGES = ("annotator", "human", "person"), ("annotator", "judge")
"""Names that the column of annotators may have in a table."""
MIB = 1 << 20
LARGEST = {".json": 128 * MIB, ".csv": 512 * MIB, ".parquet": 512 * MIB}
"""Maximum size of a file in bytes; all labels are held in memory."""
FEWER = "Leave out items that judges and people do not share; a .parquet file can hold more labels."
MOST = 20_000_000
"""Maximum number of labels of a file."""


@reads_gzip()
def read_labels(path: Path, who: Sequence[str] = PEOPLE) -> pl.DataFrame:
    """Read one label per row: ``annotator``, ``item``, and ``label`` as JSON.

    ``who`` has the names that the first column may have in a table.

    A label is null if it is null, NaN, empty text, or a list that contains one of these. An
    annotator without labels has one row without an item.

    A ValueError gives the file, what is wrong with it, and what is allowed.
    """
    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        ".json": _from_json,
        ".csv": partial(_from_csv, who=who),
        ".parquet": partial(_from_parquet, who=who),
    }
    size = LARGEST.get(path.suffix.lower(), 0)
    problems = Problems(path.name, LIKE, FileLimits(size, todo=FEWER))
    labels = readers[known_suffix(path, problems, readers)](path)
    if labels.is_empty():
        raise ValueError(f"{path.name} has no labels. {LIKE}")
    _refuse_second_labels(path, labels)
    refuse_decimal_commas(path.name, labels["label"].str.strip_chars('"'))
    return labels


def _refuse_second_labels(path: Path, labels: pl.DataFrame) -> None:
    """Refuse two labels of one annotator for one item, which JSON cannot have."""
    key = ["annotator", "item"]
    # Of millions of labels, hashes are compared in a second and texts in several.
    hashes = labels.select(key).hash_rows()
    if path.suffix.lower() == ".json" or hashes.n_unique() == labels.height:
        return
    rows = labels.with_row_index("row").filter(pl.struct(key).is_duplicated())
    if rows.is_empty():
        return
    again = rows.height - rows.n_unique(key)
    who, item = rows.select(key).row(0)
    one, other = rows.filter(pl.col("annotator") == who, pl.col("item") == item)["row"].head(2)
    lines = _lines(path) if path.suffix.lower() == ".csv" else None
    where = f"lines {lines[one]} and {lines[other]}" if lines else f"rows {one + 1} and {other + 1}"
    raise ValueError(
        f"{path.name}, {where}: {clip(who)} labels {clip(item)} twice "
        f"({several(again, 'label')} too many). If these are two people, give them two names; else "
        "keep one label each."
    )


def _lines(path: Path) -> list[int]:
    """Return the line on which each row of a CSV file starts; a quoted cell may have several."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        separator = separator_of(file.readline(MAX_LINE).encode())
        file.seek(0)
        table = csv.reader(file, delimiter=separator)
        ends = [table.line_num for row in table if row]
    return [end + 1 for end in ends[:-1]]


class _WithRepeatedKey(dict[str, Any]):
    """A JSON object in which a key occurs twice."""

    key = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = _WithRepeatedKey(found)
    repeated.key = Counter(key for key, _ in pairs).most_common(1)[0][0]
    return repeated


def _from_json(path: Path) -> pl.DataFrame:
    try:
        text = path.read_bytes().decode("utf-8-sig")
        found: Any = json.loads(text, object_pairs_hook=_object, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} is not JSON in UTF-8: {error!s:.200}. {LIKE}") from error
    del text
    if not isinstance(found, dict) or not all(isinstance(x, dict) for x in found.values()):
        raise ValueError(f"{path.name} is not an object of objects: {found!r:.60}. {LIKE}")
    _refuse_repeated(path.name, "annotator", found)
    _refuse_objects(path.name, found)
    known: dict[tuple[type, Any], str | None] = {}
    who: list[str] = []
    items: list[str | None] = []
    labels: list[str | None] = []
    for annotator, given in found.items():
        if not annotator or "" in given:
            raise ValueError(
                f"{path.name}: annotator {annotator!r:.60} or one of their items has an empty "
                "name. Give each annotator and item a name."
            )
        _refuse_repeated(path.name, f"annotator {annotator!r:.60} has the item", given)
        who += [annotator] * max(len(given), 1)
        items += given or [None]
        labels += [_cached_json(each, known) for each in given.values()] or [None]
    try:
        return pl.DataFrame(
            {"annotator": who, "item": items, "label": labels},
            schema=dict.fromkeys(COLUMNS, pl.String),
        )
    except UnicodeEncodeError as error:  # half of a surrogate pair, which JSON can spell
        raise ValueError(f"{path.name} has a name that is not valid UTF-8: {error}.") from error


def _refuse_repeated(name: str, what: str, found: dict[str, Any]) -> None:
    repeated = found.key if isinstance(found, _WithRepeatedKey) else None
    if repeated is not None:
        raise ValueError(
            f"{name}: {what} {repeated!r:.60} more than once. Keep one label per annotator and "
            "item."
        )


def _refuse_objects(name: str, found: dict[str, dict[str, Any]]) -> None:
    """Refuse a file in which all labels are objects, which is another format."""
    labels = [label for given in found.values() for label in given.values()]
    if labels and all(isinstance(label, dict) for label in labels):
        raise ValueError(
            f"{name}: labels must not be objects, but each label is one, such as "
            f"{labels[0]!r:.60}. {LIKE}"
        )


def _cached_json(label: Any, known: dict[tuple[type, Any], str | None]) -> str | None:
    if isinstance(label, dict):
        return None
    if isinstance(label, list):
        return _as_json(label)
    key = type(label), label
    if key not in known:
        known[key] = _as_json(label)
    return known[key]


def _as_json(label: Any) -> str | None:
    """Return a label as JSON, without white space around it; None if missing or invalid."""
    each = label if isinstance(label, list) else [label]
    if not all(map(_is_readable, each)):
        return None
    trimmed = [one.strip() if isinstance(one, str) else one for one in each]
    return json.dumps(trimmed if isinstance(label, list) else trimmed[0], ensure_ascii=False)


def _is_readable(label: Any) -> bool:
    if isinstance(label, str):
        # An unpaired surrogate is not valid text.
        return bool(label.strip()) and label.encode("utf-8", "ignore").decode() == label
    return isinstance(label, int) or (isinstance(label, float) and math.isfinite(label))


def _from_csv(path: Path, who: Sequence[str]) -> pl.DataFrame:
    try:
        with path.open("rb") as file:
            separator = separator_of(file.readline(MAX_LINE))
        header = pl.read_csv(path, separator=separator, n_rows=0, infer_schema=False).columns
        name = _annotator_of(path.name, header, who)
        table = pl.read_csv(path, separator=separator, infer_schema=False, n_rows=MOST + 1)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path.name} is not CSV in UTF-8: {str(error).splitlines()[0]:.200}. {LIKE}"
        ) from error
    return _from_table(path.name, table.rename({name: "annotator"}), with_list_texts=True)


def _from_parquet(path: Path, who: Sequence[str]) -> pl.DataFrame:
    name = _annotator_of(path.name, require_parquet(path, LIKE, most=0).columns, who)
    table = require_parquet(path, LIKE, (name, *COLUMNS[1:]), MOST + 1)
    table = table.rename({name: "annotator"})
    for column in ("annotator", "item"):
        if not (_is_text(table[column].dtype) or table[column].dtype.is_integer()):
            _refuse_type(path.name, table[column], "text or whole numbers")
    label = table["label"].dtype
    inner = label.inner if isinstance(label, pl.List) else label
    if not (
        _is_text(inner) or inner.is_integer() or inner.is_float() or inner in (pl.Boolean, pl.Null)
    ):
        _refuse_type(path.name, table["label"], "text, numbers or lists of these")
    return _from_table(path.name, table, with_list_texts=False)


def _is_text(dtype: Any) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum)


def _refuse_type(name: str, column: pl.Series, allowed: str) -> None:
    raise ValueError(
        f"{name}: column {column.name!r} is of type {column.dtype}, but must hold {allowed}. "
        "Convert it before saving."
    )


def _annotator_of(name: str, found: list[str], who: Sequence[str]) -> str:
    """Return the name of the column of annotators, if the columns make a table of labels."""
    for each in who:
        if sorted(found) == sorted((each, *COLUMNS[1:])):
            return each
    raise ValueError(f"{name} has the wrong columns: {', '.join(found)[:200]}. {LIKE}")


def _from_table(name: str, table: pl.DataFrame, *, with_list_texts: bool) -> pl.DataFrame:
    if table.height > MOST:
        raise ValueError(f"{name} has more than {MOST} labels, the maximum. Leave out items.")
    names = table.with_columns(pl.col("annotator", "item").cast(pl.String))
    for column in ("annotator", "item"):
        broken = (names[column].is_null() | (names[column] == "")).arg_true()
        if broken.len():
            raise ValueError(f"{name}: row {broken[0] + 1} has no {column}. {LIKE}")
    labels = names.with_columns(
        label=labels_as_json(table["label"], with_list_texts=with_list_texts)
    )
    return labels.select(COLUMNS)


def labels_as_json(labels: pl.Series, *, with_list_texts: bool) -> pl.Series:
    """Return labels as JSON, reading each distinct one once; null if missing or invalid.

    ``with_list_texts`` says whether a text may be a JSON list.
    """
    known = labels.drop_nulls().unique()
    read = [
        _as_json(_from_list_text(each) if with_list_texts else each) for each in known.to_list()
    ]
    readable = pl.DataFrame([known.alias("label"), pl.Series("json", read, pl.String)])
    given = pl.DataFrame({"label": labels})
    return given.join(readable, on="label", how="left", maintain_order="left")["json"]


def _from_list_text(label: Any) -> Any:
    """Parse text that is a JSON list; return any other label unchanged."""
    if not (isinstance(label, str) and label.startswith("[") and label.endswith("]")):
        return label
    try:
        return json.loads(label, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return label
