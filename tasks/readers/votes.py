"""Read votes collected elsewhere into a vote log."""

import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.curation import KINDS, VERDICTS
from schemas.frame import FrameError
from schemas.judging import ARMS, CHOICES, FORMATS, SIDES, STOPS, VERSUS, VoteLog
from schemas.keys import LARGEST_INTEGER
from tasks.kit.printable import several
from tasks.readers.bounded import (
    OF_LOGS,
    SURROGATE,
    Problems,
    Reader,
    csv_table,
    json_lines,
    known_suffix,
    open_table,
    reads_gzip,
)
from tasks.readers.duckdb_reader import opened
from tasks.readers.parquet import require_parquet

NO_FORMAT = (
    "neither a log in a known format (`voirdire list formats`) nor a table that can be read. A log "
    "may be cut off; columns of other names are named by --map, as in `--map item=ID --map label=L`"
)
"""What is said of a file that nothing recognises."""
OTHER_TABLES = (
    "A row per item with labels: `voirdire calibrate FILE --judge COLUMN --human COLUMN`; "
    "questions with answers: `voirdire audit --dataset FILE`."
)
"""What reads tables that hold no votes."""
COLUMNS = (
    "judge",
    "perturbation",
    "kind",
    "arm",
    "sample",
    "cluster",
    "shown_first",
    "repeat",
    "choice",
)
ATTACK = ("arm", "perturbation", "kind")
"""Columns that a file without perturbations does not need."""
DEFAULTS = {"prompt": "unknown", "wave": ""}
SIZES = tuple(f"{side}_{what}" for what in ("length", *FORMATS, "markup") for side in SIDES)
SHARES = ("human_score", "label_chance")
MODELS = ("anchor_author", "target_author", *SIZES, *SHARES)
"""Columns about the two answers of a pair, equal in all its votes."""
OPTIONAL = tuple(column for column in VoteLog.dtypes() if column not in COLUMNS)
LIKE = "The columns are described in docs/reference/file-formats.md."

WORDS = {str: "a text", int: "a whole number from 0", bool: "true or false", float: "a number"}
TYPES: dict[str, type] = {name: kind.to_python() for name, kind in VoteLog.dtypes().items()}
DECIMAL = re.compile(r"\d*\.?\d+(?:[eE]-?\d+)?", re.ASCII)
ALLOWED = {
    "arm": ARMS,
    "shown_first": SIDES,
    "kind": KINDS,
    "choice": CHOICES,
    "stopped": STOPS,
    "label": VERDICTS,
}
RESERVED = ("jury/all", "judges/all", "judges", "humans")
PAIR = ("dataset", "sample", "arm", "perturbation")
SAME = {
    "on a perturbation must have the same kind": ("kind", ("perturbation",)),
    "on a sample must have the same cluster": ("cluster", ("dataset", "sample")),
    "on a question must have the same category": ("category", ("dataset", "cluster")),
    "on a pair must have the same label, for all judges (the correct one, or null)": (
        "label",
        PAIR,
    ),
    "of a judge must have the same value of human": ("human", ("dataset", "judge")),
    **{f"on a pair must have the same {column}": (column, PAIR) for column in MODELS},
}
"""Rule -> the column that must be equal in all votes with the same values of these columns."""
NEEDED = ("judge", "arm", "sample", "cluster", "shown_first", "repeat")
BOOLEANS = {"true": True, "false": False}
LOGS = {".json", ".eval"}
"""Suffixes that logs have, and tables of votes have not."""
READERS: dict[str, Reader] = {".jsonl": json_lines, ".ndjson": json_lines, ".csv": csv_table}

PlaceOf = Callable[[int], str]


@reads_gzip(OF_LOGS)
def read_votes(path: Path) -> DataFrame[VoteLog]:
    """Read a .jsonl, .csv or .parquet file with one vote per row, without converting values.

    A ValueError gives the file, the place, the value, what is allowed and the next step.
    """
    raw, place = _read(path)
    absent = {c: dtype for c, dtype in VoteLog.dtypes().items() if c not in raw.columns}
    votes = raw.with_columns(
        pl.lit("control" if c == "arm" else None, dtype).alias(c) for c, dtype in absent.items()
    )
    defaults = {"dataset": path.stem, **DEFAULTS}
    votes = votes.with_columns(pl.col(c).fill_null(value) for c, value in defaults.items())
    for column in votes.columns:
        _check_values(votes[column], place)
    _check_rows(votes, place)
    try:
        return VoteLog.of(votes)
    except FrameError as error:
        raise ValueError(f"{path.name}: {error} {LIKE}") from error


def holds_votes(path: Path) -> bool:
    """Tell whether a file is a table with the columns that votes need."""
    with opened(path) as source:
        return source is not None and {*COLUMNS} - {*ATTACK} <= source.columns


def _read(path: Path) -> tuple[pl.DataFrame, PlaceOf]:
    """Return the typed votes, and a function that names the place of a row."""
    if path.suffix.lower() in LOGS and path.is_file():
        raise ValueError(f"{path.name}: {NO_FORMAT}.")
    problems = Problems(path.name, LIKE, OF_LOGS)
    if known_suffix(path, problems, (*READERS, ".parquet")) == ".parquet":
        return _parquet(path), lambda row: f"{path.name}, row {row + 1}"
    table = open_table(path, problems, READERS)
    problems.check()
    if table.columns is not None:
        if len(set(table.columns)) < len(table.columns):
            raise ValueError(f"{path.name}: a column occurs twice in {table.columns}. {LIKE}")
        # Check the columns even if the file has no votes.
        _check_columns(path.name, table.columns)
    # Not rows with their places: objects in objects would make reading take a fifth longer.
    rows, places = [], []
    for row in table.rows:
        own = row.fields
        if table.columns is not None:
            own = {column: _value(column, text) for column, text in own.items()}
        rows.append(own)
        places.append(row.where)
    problems.check()
    found = table.columns or list(dict.fromkeys(column for row in rows for column in row))
    _check_columns(path.name, found, votes=len(rows))

    def place(row: int) -> str:
        return f"{path.name}, {places[row]}"

    return pl.DataFrame([_typed(c, [row.get(c) for row in rows], place) for c in found]), place


def _value(column: str, text: str) -> object:
    """Convert a CSV field; text that does not fit its column is kept, and refused later."""
    kind = TYPES[column]
    if kind is int and text.isascii() and text.isdigit():
        return int(text) if len(text) < 19 else text
    if kind is float and len(text) < 40 and DECIMAL.fullmatch(text):
        return float(text)
    return BOOLEANS.get(text.lower(), text) if kind is bool else text


def _parquet(path: Path) -> pl.DataFrame:
    votes = require_parquet(path, LIKE)
    _check_columns(path.name, votes.columns, votes=votes.height)
    fits: dict[type, Callable[[Any], bool]] = {
        str: lambda dtype: dtype in (pl.String, pl.Categorical, pl.Enum),
        int: lambda dtype: dtype.is_integer(),
        bool: lambda dtype: dtype == pl.Boolean,
        float: lambda dtype: dtype.is_float() or dtype.is_integer(),
    }
    for column, dtype in votes.schema.items():
        kind = TYPES[column]
        if dtype != pl.Null and not fits[kind](dtype):
            raise ValueError(
                f"{path.name}: column {column!r} is of type {dtype}, but must hold {WORDS[kind]}. "
                f"Convert it before saving, as in `cast(pl.{VoteLog.dtypes()[column]})`. {LIKE}"
            )
    return votes.cast({c: VoteLog.dtypes()[c] for c in votes.columns})


def _check_columns(name: str, found: Sequence[str], votes: int | None = None) -> None:
    if votes == 0:
        raise ValueError(f"{name} holds no votes. {LIKE}")
    missing = [c for c in COLUMNS if c not in found and c not in ATTACK]
    strange = [c for c in found if c not in COLUMNS + OPTIONAL]
    if missing or strange:
        problems = [f"missing {_columns(missing)}"] if missing else []
        problems += [f"unknown {_columns(strange)}"] if strange else []
        near = difflib.get_close_matches(strange[0], missing or OPTIONAL, n=1) if strange else []
        hint = f" Did you mean {near[0]!r}?" if near else ""
        extra = " Remove unknown columns." if strange and not near else ""
        few = 2 * len(missing) > len(COLUMNS) - len(ATTACK)
        sides = [side for side in ("judge", "human") if side in found]
        if few and "choice" in missing and sides:
            raise ValueError(_may_be_labels(name, sides[0]))
        if few:
            what = f"{name}: {NO_FORMAT} (as votes: {'; '.join(problems)})"
            raise ValueError(f"{what}. {LIKE} {OTHER_TABLES}")
        raise ValueError(
            f"{name}: {'; '.join(problems)}.{hint}{extra} "
            f"Required: {', '.join(c for c in COLUMNS if c not in ATTACK)}. "
            f"Optional: {', '.join(ATTACK + OPTIONAL)}. {LIKE}"
        )


def _may_be_labels(name: str, side: str) -> str:
    """Say how a table is read that has a column of one side, and none of votes."""
    other = "--human" if side == "judge" else "--judge"
    return (
        f"{name} has a column {side!r}, but no votes. If it is a table of labels (a row per item, "
        "a column per judge and person), compare them with `voirdire calibrate "
        f"{quote(name)} {other} COLUMN`. If {side!r} names who rated each row, name the columns "
        f"with --map, as in `--map item=ID --map label=L`. {LIKE}"
    )


def _columns(names: Sequence[str]) -> str:
    word = "column" if len(names) == 1 else "columns"
    return f"{word} {', '.join(f'{name!r:.60}' for name in names)}"


def _typed(column: str, values: list[Any], place: PlaceOf) -> pl.Series:
    kind = TYPES[column]
    if kind is float:
        values = [float(v) if type(v) is int and abs(v) <= LARGEST_INTEGER else v for v in values]
    if {type(value) for value in values} - {kind, type(None)}:
        row = next(i for i, v in enumerate(values) if v is not None and type(v) is not kind)
        is_number = kind is str and type(values[row]) in {int, float}
        quoted = f', in quotes: "{values[row]}"' if is_number else ""
        _refuse(place(row), column, values[row], WORDS[kind] + quoted)
    if kind is int and max((v for v in values if v is not None), default=0) > LARGEST_INTEGER:
        row = next(i for i, v in enumerate(values) if v is not None and v > LARGEST_INTEGER)
        _refuse(place(row), column, values[row], f"at most {LARGEST_INTEGER}")
    try:
        return pl.Series(column, values, dtype=VoteLog.dtypes()[column])
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell
        row = next(i for i, v in enumerate(values) if v and SURROGATE.search(v))
        _refuse(place(row), column, values[row], "valid UTF-8 text")


def _refuse(where: str, column: str, value: object, rule: str) -> NoReturn:
    raise ValueError(f"{where}: {column} {value!r:.60} must be {rule}. {LIKE}")


def _check_values(values: pl.Series, place: PlaceOf) -> None:
    """Refuse invalid values, naming their place in the file."""
    column = values.name
    broken: list[tuple[pl.Series, str]] = []
    if column in NEEDED:
        broken.append((values.is_null(), "given"))
    if column in ALLOWED:
        allowed = ALLOWED[column]
        strange = values.is_not_null() & ~values.is_in(allowed)
        broken.append((strange, f"one of {', '.join(allowed)}"))
    elif values.dtype == pl.String and column != "wave":
        broken.append((values == "", "given" if column in NEEDED else "null instead of empty"))
    if column == "repeat" or column in SIZES:
        broken.append((values < 0, WORDS[int]))
    if column in SHARES:
        inside = values.is_between(0, 1, closed="right" if column == "label_chance" else "both")
        broken.append((~inside, "above 0 and at most 1" if column == "label_chance" else "0 to 1"))
    if column == "judge":
        used = values.is_in(RESERVED)
        broken.append((used, f"another name: {', '.join(RESERVED)} are reserved for results"))
    if column.endswith("_author"):
        broken.append((values.str.contains(VERSUS, literal=True), f"without {VERSUS!r}"))
    for rows, rule in broken:
        if rows.any():
            row = rows.arg_true()[0]
            _refuse(place(row), column, values[row], rule)


def _check_rows(votes: pl.DataFrame, place: PlaceOf) -> None:
    """Refuse votes whose columns contradict each other, and repeated votes."""
    control = pl.col("arm").is_in(["control", "replicate"])
    reworded = pl.col("arm") == "reworded"
    named, kind = pl.col("perturbation").is_not_null(), pl.col("kind").is_not_null()
    key = VoteLog.place().key
    filled = [column.name for column in votes if column.count()]
    rules = {
        "all perturbations share control and replicate votes, so their perturbation and kind "
        "must be null": (control & (named | kind)),
        "an experimental or sham vote must name its perturbation and kind": (
            ~control & ~reworded & ~(named & kind)
        ),
        "a reworded vote must name the variant of the prompt as its perturbation, and no kind": (
            reworded & ~(named & ~kind)
        ),
        **{
            f"all votes {rule}": _differs(column, by)
            for rule, (column, by) in SAME.items()
            if column in filled
        },
        "all votes of a judge must have the same value of simulated": (
            pl.col("simulated").drop_nulls().n_unique().over("judge") > 1
        ),
        **{
            f"{side}_markup counts all markup, so it must be at least {' + '.join(parts)}": (
                pl.col(f"{side}_markup") < pl.sum_horizontal(pl.col(parts).cast(pl.Float64))
            )
            for side in SIDES
            if (parts := [c for kind in FORMATS if (c := f"{side}_{kind}") in filled])
        },
        f"each vote must occur once, but several rows have the same {', '.join(key)}": (
            pl.struct(key).is_duplicated()
        ),
    }
    for rule, broken in rules.items():
        rows = votes.with_row_index("at").filter(broken)
        if not rows.is_empty():
            shown = ("judge", "arm", "perturbation", "kind", "sample", "cluster")
            first = rows.row(0, named=True)
            values = ", ".join(
                f"{column} {first[column]!r:.60}"
                for column in (*shown, "shown_first", "repeat")
                if first[column] is not None
            )
            given = _alternatives(rows, rule)
            raise ValueError(
                f"{place(rows['at'][0])}: {rule}{given}. "
                f"{several(rows.height, 'vote breaks', 'votes break')} this rule, "
                f"the first is: {values}. {LIKE}"
            )


def _differs(column: str, by: Sequence[str]) -> pl.Expr:
    """Tell where a column has two values, or one and null, in votes with the same values of ``by``.

    Votes of people and of judges may leave a fact to each other: the data state it for judges, and
    the score of a pair comes from people.
    """
    human = pl.col("human").fill_null(value=False)
    within = pl.col(column).n_unique().over(*by, human) > 1
    return within | (pl.col(column).drop_nulls().n_unique().over(by) > 1)


def _alternatives(rows: pl.DataFrame, rule: str) -> str:
    """Return the contradicting values beside the first vote, if the rule is one of ``SAME``."""
    column, by = SAME.get(rule.removeprefix("all votes "), (None, ()))
    if column is None:
        return ""
    first = rows.head(1).select(by)
    values = rows.join(first, on=by, nulls_equal=True, how="semi")[column]
    given = ["null" if v is None else str(v) for v in values.unique(maintain_order=True).head(4)]
    return f" (found: {' and '.join(f'{v:.30}' for v in given)})"
