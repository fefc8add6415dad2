"""Typed frames: a schema with a key and a table, and the only way to make them."""

from functools import cache
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import pandera.polars as pa
import polars as pl
import polars.selectors as cs
from pandera.errors import SchemaErrors
from pandera.typing.polars import DataFrame

# Polars loads NumPy at first use, and fails if two threads do so at once; every thread that uses
# frames starts after this line.
pl.Series(np.empty(0))

SHOWN = 3
MANY = 100_000
MISSING, KEPT, CAST = "missing", "kept", "cast"
"""What a draft does with a column."""

Row = dict[str, Any]
"""A row of a frame: column -> value."""


class TablePlace(NamedTuple):
    """Where a frame is stored: table, key, references."""

    table: str
    key: tuple[str, ...]
    references: dict[str, str]
    """Column -> table in whose key its values must exist."""


class FrameError(ValueError):
    """A frame violates its schema; the message lists every violation."""


class Frame(pa.DataFrameModel):
    """A schema with a key and, if it is stored, a table; make frames with :meth:`of` only."""

    _place: ClassVar[TablePlace] = TablePlace("", (), {})

    class Config:
        strict = True
        ordered = True

    def __init_subclass__(
        cls,
        *,
        table: str = "",
        key: tuple[str, ...] = (),
        references: dict[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Set the table, its key, and the tables that columns refer to."""
        super().__init_subclass__(**kwargs)  # type: ignore[no-untyped-call]
        cls._place = TablePlace(table, key, references or {})

    @classmethod
    def place(cls) -> TablePlace:
        """Return where the frame is stored: table, key, references."""
        return cls._place

    @classmethod
    def of(cls, frame: pl.DataFrame) -> DataFrame[Self]:
        """Project, cast, sort by key and validate ``frame``.

        Missing nullable columns are filled with null; extra columns are dropped.

        A FrameError gives all failures at once: column, rule, first offending rows.
        """
        wanted, key = cls.dtypes(), cls._place.key
        there = {*frame.columns}
        missing = [name for name in cls.required() if name not in there]
        if frame.is_empty() and not missing:
            return cls.empty()
        if frame.columns == [*wanted]:
            filled = frame.clone()
        else:
            filled = frame.select(
                pl.col(name) if name in there else pl.lit(None, dtype).alias(name)
                for name, dtype in wanted.items()
            )
        typed, broken = _cast(filled, wanted)
        rows = _sorted(typed, key)
        but = {*missing, *broken}
        if not but and not _schema(cls).checks and _passes(cls, rows):
            return cast("DataFrame[Self]", rows)
        failures = [
            *_missing(missing, frame),
            *broken.values(),
            *_schema_failures(cls, typed, but),
            *_not_finite(typed),
            *([] if but & {*key} else _duplicates(typed, key)),
        ]
        if failures:
            raise FrameError(f"{cls.__name__}: " + "; ".join(failures) + ".")
        return cast("DataFrame[Self]", rows)

    @classmethod
    def draft(cls, frame: pl.DataFrame) -> DataFrame[Self]:
        """Project, cast and sort ``frame`` without validation.

        Validation takes milliseconds even for few rows: concatenate drafts and validate once,
        with ``of``.
        """
        return cls._drafted(frame, coded=False)

    @classmethod
    def coded(cls, frame: pl.DataFrame) -> DataFrame[Self]:
        """Project, cast and sort ``frame`` like ``draft``, but keep texts that have codes.

        These are ``pl.Enum`` and ``pl.Categorical``.
        """
        return cls._drafted(frame, coded=True)

    @classmethod
    def _drafted(cls, frame: pl.DataFrame, *, coded: bool) -> DataFrame[Self]:
        # Asking for the type of an Enum checks that its categories differ: .1 s per million.
        codes = frame.select(cs.enum() | cs.categorical()).columns if coded else []
        texts = frame.drop(codes) if codes else frame
        there = {**texts.schema, **dict.fromkeys(codes, pl.String)}
        steps = tuple(
            MISSING if name not in there else KEPT if there[name] == dtype else CAST
            for name, dtype in _dtypes(cls).items()
        )
        if {*steps} != {KEPT} or frame.columns != [*_dtypes(cls)]:
            frame = frame.select(_projection(cls, steps))
        return cast("DataFrame[Self]", _sorted(frame, cls._place.key))

    @classmethod
    def prepare(cls) -> None:
        """Build the schema and its checks, which takes 40 ms when it is first needed."""
        _rules(cls)
        _empty(cls)

    @classmethod
    def empty(cls) -> DataFrame[Self]:
        """Return a frame without rows."""
        return cast("DataFrame[Self]", _empty(cls).clone())

    @classmethod
    def dtypes(cls) -> dict[str, Any]:
        """Map each column to its Polars type, in order."""
        return {**_dtypes(cls)}

    @classmethod
    def required(cls) -> list[str]:
        """Return the columns that hold no null."""
        return [n for n, c in _schema(cls).columns.items() if not c.nullable]

    @classmethod
    def descriptions(cls) -> dict[str, str]:
        """Map each column to its one-line description."""
        return {n: c.description or "" for n, c in _schema(cls).columns.items()}

    @classmethod
    def grain(cls) -> str:
        """Return the first line of the docstring: what one row is."""
        return (cls.__doc__ or "").strip().split("\n", maxsplit=1)[0]


def ranked(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Return texts, by default all, as ``pl.Enum`` with categories in order.

    Statistics group, sort and join by these texts many times, so they are ranked once. A frame
    without rows is left as it is: categories of nothing join no other column.
    """
    if frame.is_empty():
        return frame
    texts = [*(names or frame.select(pl.col(pl.String)).columns)]
    # Ranking a million texts takes seconds; an item is often a question, and so its cluster.
    same = {
        name: other
        for at, name in enumerate(texts)
        for other in texts[:at][::-1]
        if frame[name].equals(frame[other], null_equal=True)
    }
    own = [name for name in texts if name not in same]
    found = frame.select(pl.col(name).drop_nulls().unique().sort().implode() for name in own)
    coded = frame.with_columns(pl.col(name).cast(pl.Enum(found[name][0])) for name in own)
    return coded.with_columns(pl.col(other).alias(name) for name, other in same.items())


class Fact(Frame):
    """A frame that is stored once and never changes."""


class Result(Frame):
    """A frame that is computed from facts and replaced when computed again."""


def share(description: str, *, nullable: bool = False) -> Any:
    """Return a field for a rate in [0, 1]."""
    return pa.Field(ge=0, le=1, nullable=nullable, description=description)


def name(description: str, *, nullable: bool = False) -> Any:
    """Return a field for non-empty text."""
    return pa.Field(str_length={"min_value": 1}, nullable=nullable, description=description)


def counted(description: str) -> Any:
    """Return a field for a count."""
    return pa.Field(ge=0, description=description)


def optional(description: str, **checks: Any) -> Any:
    """Return a field that may be null; ``checks`` are pandera's, such as ``isin`` and ``ge``."""
    return pa.Field(nullable=True, description=description, **checks)


@cache
def _schema(model: type[Frame]) -> Any:
    """Return the schema of a frame, which pandera would build anew in each thread."""
    return model.to_schema()


@cache
def _dtypes(model: type[Frame]) -> dict[str, Any]:
    return {n: c.dtype.type for n, c in _schema(model).columns.items()}


@cache
def _projection(model: type[Frame], steps: tuple[str, ...]) -> list[pl.Expr]:
    """Return the columns of a draft; making expressions takes as long as running them."""
    columns = zip(_dtypes(model).items(), steps, strict=True)
    return [
        pl.lit(None, dtype).alias(name)
        if step == MISSING
        else pl.col(name).cast(dtype)
        if step == CAST
        else pl.col(name)
        for (name, dtype), step in columns
    ]


@cache
def _empty(model: type[Frame]) -> pl.DataFrame:
    return pl.DataFrame(schema=_dtypes(model))


def _sorted(frame: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    if frame.height < 2:
        return frame
    if frame.height > MANY:
        # Sorting millions of rows takes half a second per column.
        key = tuple(name for name in key if not _is_constant(frame[name])) or key[:1]
    return frame.sort(key, nulls_last=False, maintain_order=True)


def _is_constant(values: pl.Series) -> bool:
    return bool(values.null_count() in {0, len(values)} and values.min() == values.max())


def _missing(columns: list[str], frame: pl.DataFrame) -> list[str]:
    if not columns:
        return []
    found = ", ".join(_clip(column) for column in frame.columns) or "none"
    return [f"no column {', '.join(map(repr, columns))} (found: {found})"]


def _cast(frame: pl.DataFrame, wanted: dict[str, Any]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Cast every column; also return an error text for each column that loses values."""
    changed, failures = [], {}
    frame = _cast_exactly(frame, wanted)
    for column in [name for name, found in frame.schema.items() if found != wanted[name]]:
        result, broken = _cast_column(frame[column], wanted[column])
        if broken.any():
            failures[column] = _say(column, f"must be {wanted[column]}", frame[column], broken)
        changed.append(result)
    return (frame.with_columns(changed) if changed else frame), failures


def _cast_exactly(frame: pl.DataFrame, wanted: dict[str, Any]) -> pl.DataFrame:
    """Cast, in one query, the columns whose casts fail instead of losing information."""
    exact: dict[Any, Any] = {
        column: wanted[column]
        for column, found in frame.schema.items()
        if found == pl.Null
        or (found.is_integer() and wanted[column].is_integer())
        or (found == pl.String and wanted[column] == pl.Enum)
    }
    try:
        return frame.cast(exact) if exact else frame
    except pl.exceptions.PolarsError:
        return frame


def _cast_column(values: pl.Series, dtype: Any) -> tuple[pl.Series, pl.Series]:
    nothing = pl.repeat(None, values.len(), dtype=dtype, eager=True).alias(values.name)
    if values.dtype.is_nested():
        return nothing, values.is_not_null()
    try:
        result = values.cast(dtype, strict=False)
    except pl.exceptions.PolarsError:
        return nothing, values.is_not_null()
    broken = values.is_not_null() & result.is_null()
    if values.dtype.is_numeric() and (dtype.is_numeric() or dtype == pl.Boolean):
        # Casts from 1.5 to an integer, or from 2 to Boolean, lose information without an error.
        broken |= result.cast(values.dtype, strict=False).ne_missing(values)
    return result, broken


def _schema_failures(model: type[Frame], frame: pl.DataFrame, but: set[str]) -> list[str]:
    try:
        model.to_schema().validate(frame, lazy=True)
    except SchemaErrors as errors:
        cases = errors.failure_cases
        return [
            _say_cases(str(column), str(check), group)
            for (column, check), group in cases.group_by(["column", "check"], maintain_order=True)
            if column not in but
        ]
    return []


class _Expressions:
    """Stand for the frame that a check of pandera selects from, and return what it selects."""

    def select(self, expression: pl.Expr) -> pl.Expr:
        return expression


@cache
def _rules(model: type[Frame]) -> list[pl.Expr]:
    """Return what a valid frame that is sorted by its key fulfils, as expressions."""
    from pandera.backends.polars import builtin_checks  # 70 ms

    source: Any = _Expressions()
    checked = [
        getattr(builtin_checks, check.name)(pa.PolarsData(source, name), **check.statistics).all()
        for name, column in _schema(model).columns.items()
        for check in column.checks
    ]
    required = [pl.col(name).null_count() == 0 for name in model.required()]
    finite = [pl.col(n).is_finite().all() for n, kind in _dtypes(model).items() if kind.is_float()]
    alike = [
        pl.col(name).slice(1).eq_missing(pl.col(name).slice(0, pl.len() - 1))
        for name in model.place().key
    ]
    unique = [~pl.all_horizontal(alike).any()] if alike else []
    rules = [*checked, *required, *finite, *unique]
    return [rule.alias(str(number)) for number, rule in enumerate(rules)]


def _passes(model: type[Frame], frame: pl.DataFrame) -> bool:
    """Run all checks in one query: pandera itself runs a query for each column's check."""
    return all(frame.select(_rules(model)).row(0))


def _say_cases(column: str, check: str, cases: pl.DataFrame) -> str:
    first = cases.head(SHOWN)
    rows = ", ".join(
        f"row {index} is {_clip(value)}"
        for index, value in zip(first["index"], first["failure_case"], strict=True)
    )
    return f"column {column!r} breaks {_clip(check, 120)} in {_rows(cases.height)} ({rows})"


def _rows(number: int) -> str:
    return f"{number} row{'' if number == 1 else 's'}"


def _not_finite(frame: pl.DataFrame) -> list[str]:
    finite = frame.select(pl.col(pl.Float64, pl.Float32).is_finite().all())
    return [
        _say(c, "must be finite", frame[c], ~frame[c].is_finite().fill_null(True))  # noqa: FBT003
        for c in finite.columns
        if not finite[c].item()
    ]


def _duplicates(frame: pl.DataFrame, key: tuple[str, ...]) -> list[str]:
    repeated = frame.select(key).is_duplicated() if key else pl.Series(dtype=pl.Boolean)
    if not repeated.any():
        return []
    first = frame.filter(repeated).select(key).unique(maintain_order=True).head(SHOWN)
    shown = ", ".join(_clip(row) for row in first.iter_rows())
    rows = repeated.sum()
    return [f"key ({', '.join(key)}) occurs more than once in {rows} rows (first: {shown})"]


def _say(column: str, rule: str, values: pl.Series, broken: pl.Series) -> str:
    rows = broken.arg_true().head(SHOWN).to_list()
    shown = ", ".join(f"row {row} is {_clip(values[row])}" for row in rows)
    return f"column {column!r} {rule} in {_rows(int(broken.sum()))} ({shown})"


def _clip(value: object, width: int = 60) -> str:
    text = repr(value) if not isinstance(value, str) else repr(value[: width + 1])
    return text if len(text) <= width else text[: width - 1] + "…"
