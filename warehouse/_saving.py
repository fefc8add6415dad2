"""Save a frame in the warehouse: all rows or none."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import duckdb
import polars as pl

from schemas.arrow import lend
from schemas.frame import Fact, Frame, Result
from schemas.judging import Judges
from warehouse._ddl import added_columns


class WarehouseError(ValueError):
    """The file cannot be used as a warehouse, or the frame cannot be saved in it."""


class StatementError(WarehouseError):
    """DuckDB did not run a statement."""


class Saving(NamedTuple):
    """A frame to save, and the table and rules for saving it."""

    model: type[Frame]
    frame: pl.DataFrame
    first_wins: bool = False
    """Keep the existing row, instead of rejecting another one with the same key."""
    part: str = "true"
    """For a result: replace only the study's rows for which this (SQL of our own) is true."""


def typed(saving: Saving) -> Saving:
    """Check a frame before the file is opened."""
    return saving._replace(frame=saving.model.of(saving.frame))


def save(connection: duckdb.DuckDBPyConnection, saving: Saving, run: str, study: str) -> int:
    """Save a frame that is ``typed``, and return how many of its rows are new."""
    model, frame, first_wins, part = saving
    place = model.place()
    if issubclass(model, Result):
        connection.execute(f"delete from {place.table} where study = ? and ({part})", [study])
    elif not issubclass(model, Fact):
        raise TypeError(f"{model.__name__} is neither a fact nor a result.")
    # Many results are empty, and each statement takes milliseconds to plan.
    if frame.is_empty():
        return 0
    columns = list(model.dtypes())
    stamped = frame.with_columns(
        pl.lit(value).alias(column)
        for column, value in {"study": study, "run": run, "saved_at": datetime.now(UTC)}.items()
        if column in added_columns(model)
    )
    lend(connection, "incoming", stamped)
    _check_references(connection, place.table, place.references)
    source = "incoming"
    if issubclass(model, Fact):
        if model is Judges:
            _delete_unasked(connection, columns, run)
        if not first_wins:
            _check_unchanged(connection, place.table, place.key, columns)
        source = f"incoming anti join {place.table} using ({', '.join(place.key)})"
    connection.execute(f"insert into {place.table} by name select * from {source}")
    new = connection.fetchall()[0][0]
    return int(new)


def _check_references(
    connection: duckdb.DuckDBPyConnection, table: str, references: dict[str, str]
) -> None:
    for column, other in references.items():
        key = "question_id" if other == "questions" else column
        orphans = connection.execute(
            f"select distinct {column} from incoming i where {column} is not null and not exists "
            f"(select 1 from {other} o where o.{key} = i.{column}) limit 3"
        ).fetchall()
        if orphans:
            shown = ", ".join(repr(value) for (value,) in orphans)
            raise WarehouseError(
                f"{table}.{column} {shown} is not in {other}. Save the {other} first; "
                "nothing was saved."
            )


def require_unchanged(connection: duckdb.DuckDBPyConnection, saving: Saving) -> None:
    """Raise WarehouseError if facts are there with other content; nothing is written."""
    model, frame = saving.model, saving.frame
    if frame.is_empty():
        return
    place, columns = model.place(), list(model.dtypes())
    lend(connection, "incoming", frame)
    _check_unchanged(connection, place.table, place.key, columns)


def _delete_unasked(connection: duckdb.DuckDBPyConnection, columns: list[str], run: str) -> None:
    """Delete judges that have other content now and nothing rests on, with their ballots."""
    names = {"names": _unasked(connection, columns, run)}
    for table in ("ballots", "judges"):
        connection.execute(f"delete from {table} where judge in (select unnest($names))", names)


def _unasked(connection: duckdb.DuckDBPyConnection, columns: list[str], run: str = "") -> list[str]:
    """Return the judges that have other content now and that nothing rests on.

    Votes, batches and other runs that are running keep a judge from being one of them.
    """
    differs = " or ".join(f"i.{c} is distinct from j.{c}" for c in columns)
    unasked = connection.execute(
        f"select judge from incoming i join judges j using (judge) where ({differs}) "
        "and not exists (from ballots b where b.judge = j.judge and (ballot_id in "
        "(select ballot_id from votes) or ballot_id in (select ballot_id from batched_ballots))) "
        "and not exists (from runs r where r.state = 'running' and r.run <> $run "
        "and contains(r.parameters, to_json(judge)))",
        {"run": run},
    ).fetchall()
    return [judge for (judge,) in unasked]


OF_DATA = (
    ": another question_id for each changed row of a file of your own, or another name for the "
    "file, after which the dataset is named"
)
OF_PERTURBATION = (
    ", or keep the name of a perturbation of your own and raise `recipe` in its decorator "
    "(docs/how-to/extend.md)"
)
OF_FILES = ("questions", "answers")
NEW_NAMES = {
    "questions": OF_DATA,
    "answers": OF_DATA,
    "perturbations": OF_PERTURBATION,
    "perturbed_answers": OF_PERTURBATION,
}
"""Table -> how a new version of its rows gets a name."""


def _check_unchanged(
    connection: duckdb.DuckDBPyConnection, table: str, key: tuple[str, ...], columns: list[str]
) -> None:
    others = [column for column in columns if column not in key]
    if not others:
        return
    differs = " or ".join(f"i.{c} is distinct from t.{c}" for c in others)
    shown = ", ".join(f"i.{c}" for c in key)
    both = f"from incoming i join {table} t using ({', '.join(key)}) where {differs}"
    changed = connection.execute(f"select {shown} {both} limit 3").fetchall()
    if changed and table == "judges":
        _check_judges(connection, columns)
        return
    if changed:
        rows = "; ".join(", ".join(map(str, row)) for row in changed)
        counts = ", ".join(
            f"count(*) filter (i.{c} is distinct from t.{c}), count(t.{c}), count(i.{c})"
            for c in others
        )
        [number, *found] = connection.execute(f"select count(*), {counts} {both}").fetchall()[0]
        rows += f" and {number - len(changed)} more" if number > len(changed) else ""
        per_column = zip(others, found[::3], found[1::3], found[2::3], strict=True)
        why = [_difference(name, before, now) for name, n, before, now in per_column if n]
        # Without one column the texts may all be the same.
        as_before = table in OF_FILES and not any(each.endswith("differs") for each in why)
        step = f"Give the new version a new name{NEW_NAMES.get(table, '')}"
        if as_before:
            step = f"Give the columns, and the --map, of the first audit. Else give{step[4:]}"
        raise WarehouseError(
            f"{table} ({', '.join(key)}) {rows} {'is' if number == 1 else 'are'} there already "
            f"with other content ({'; '.join(why)}), and facts never change. {step}; nothing was "
            "saved."
        )


def _difference(column: str, before: int, now: int) -> str:
    """Say how a column of changed rows differs, given how many of them have a value of it."""
    if before and not now:
        return f"{column} was given before, and is empty now"
    return f"{column} was empty before, and is given now" if not before else f"{column} differs"


def _check_judges(connection: duckdb.DuckDBPyConnection, columns: list[str]) -> None:
    """Refuse judges that were asked under another definition, and name what has changed."""
    unasked = _unasked(connection, columns)
    before, now = (
        {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
        for rows in (
            connection.execute(
                f"select {', '.join(f'{t}.{c}' for c in columns)} from incoming i "
                "join judges t using (judge)"
            ).fetchall()
            for t in ("t", "i")
        )
    )
    for judge in sorted(before):
        changed = list(_changes(before[judge], now[judge]))
        if changed and judge not in unasked:
            raise WarehouseError(
                f"{judge} already has votes, or a run is asking it, with {'; '.join(changed)}. A "
                "judge never changes under its name. Give the new version a new name: rename its "
                "table [judges.NAME] in the provider file; nothing was saved."
            )


def _changes(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """Name each field of a judge that differs, with its earlier and its present value."""
    old_fields, new_fields = (
        dict(_parts({**each, **json.loads(each["params"])})) for each in (before, now)
    )
    for name in sorted({*old_fields, *new_fields} - {"params"}):
        old, new = old_fields.get(name), new_fields.get(name)
        if old != new:
            shown = ["none" if value in (None, "") else f"{value!s:.80}" for value in (old, new)]
            yield f"{name} {shown[0]} (now {shown[1]})"


def _parts(fields: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value in nested tables with its place, as in ``traits.iota``."""
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            yield from _parts(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
