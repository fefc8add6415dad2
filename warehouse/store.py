"""One DuckDB file: every visit opens it, does one transaction and closes it."""

import random
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import duckdb
import polars as pl
from pandera.typing.polars import DataFrame

import schemas
from schemas.arrow import fetch, lend
from schemas.batches import BatchedBallots, Batches
from schemas.frame import Fact, Frame, Result
from schemas.runs import Runs
from warehouse._ddl import added_columns, comment, create, create_marts, marts_digest
from warehouse.peek import DEFAULT, VARIABLE, default_path, require_folder

VERSION = 13
"""Raised with each file in ``migrations/``, which is named after the version that it makes."""

MIGRATIONS = Path(__file__).parent / "migrations"
MASKS = Path(schemas.__file__).with_name("masks.sql")
PATIENCE_SECONDS = 60.0
F = TypeVar("F", bound=Frame)
# Two connections of one process with different settings exclude each other in DuckDB.
_one_visit = threading.RLock()


class WarehouseError(ValueError):
    """The file cannot be used as a warehouse, or the frame cannot be saved in it."""


class Saving(NamedTuple):
    """A frame to save, and as what."""

    model: type[Frame]
    frame: pl.DataFrame
    first_wins: bool = False
    """Keep the row that is there already, instead of refusing another one of the same key."""
    part: str = "true"
    """Of a result: replace only the study's rows of which this (SQL of our own) is true."""


class Warehouse:
    """The frames of all studies in one file, made on first use."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path).absolute() if path else default_path()

    def save(
        self,
        savings: Sequence[Saving],
        *,
        run: str,
        study: str = "",
        counts: Mapping[str, Any] | None = None,
    ) -> int:
        """Save frames in one transaction; return the number of rows that are new.

        Facts that are there already are left alone; results of ``study`` are replaced. ``counts``
        are columns of the run's own row, so that it never tells of more or less than is saved.

        Raises
        ------
        WarehouseError
            If a fact would change, or a row refers to one that is not there. Nothing is saved.
        """
        with self._visit(write=True) as connection:
            new = sum(_save(connection, saving, run, study) for saving in savings)
            if counts:
                _update_run(connection, run, counts)
            return new

    def read(self, model: type[F], among: pl.DataFrame | None = None) -> DataFrame[F]:
        """Read a frame, only the rows whose key columns occur in ``among`` if that is given."""
        columns = ", ".join(model.dtypes())
        table = model.place().table
        with self._visit(write=False) as connection:
            if among is None:
                found = fetch(connection, f"select {columns} from {table}")
            else:
                lend(connection, "among", among.unique())
                same = " and ".join(f"t.{c} is not distinct from among.{c}" for c in among.columns)
                found = fetch(
                    connection, f"select {columns} from {table} as t semi join among on {same}"
                )
        return model.of(found)

    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> pl.DataFrame:
        """Run one query on the file, opened for reading only."""
        with self._visit(write=False) as connection:
            return fetch(connection, sql, parameters)

    def masks(self, study: str) -> pl.DataFrame:
        """Lay the ballots of a study into masks; the rows, maybe millions, have no order."""
        with self._visit(write=False) as connection:
            # To keep an order, or to pass parameters, takes several times as long.
            connection.execute("set preserve_insertion_order = false")
            connection.execute("set variable study = ?", [study])
            return fetch(connection, MASKS.read_text(encoding="utf-8"))

    def claim(self, ballots: pl.DataFrame, run: str) -> pl.DataFrame:
        """Claim those of ``ballots`` (their ``ballot_id``) that nobody asks; return those.

        A ballot that has a vote is not claimed. A claim holds as long as its run is running.
        """
        with self._visit(write=True) as connection:
            lend(connection, "incoming", ballots.select("ballot_id").unique())
            connection.execute(
                "delete from claims where run not in (select run from runs where state = 'running')"
            )
            connection.execute(
                "insert into claims by name select ballot_id, $run as run from incoming "
                "anti join votes using (ballot_id) anti join claims using (ballot_id)",
                {"run": run},
            )
            return fetch(
                connection,
                "select ballot_id from claims semi join incoming using (ballot_id) "
                "anti join votes using (ballot_id) where run = ?",
                [run],
            )

    def release(self, ballots: pl.DataFrame, run: str) -> None:
        """Give up a run's claims on ``ballots``: they have a vote, or others may ask them."""
        with self._visit(write=True) as connection:
            lend(connection, "incoming", ballots.select("ballot_id").unique())
            connection.execute(
                "delete from claims where run = $run and ballot_id in (from incoming)",
                {"run": run},
            )

    def start_run(self, row: dict[str, Any]) -> None:
        """Record that a run began; one that is tried again begins anew."""
        frame = Runs.of(pl.DataFrame([row]))
        with self._visit(write=True) as connection:
            lend(connection, "incoming", frame)
            connection.execute("delete from runs where run = ?", [frame["run"][0]])
            connection.execute("insert into runs by name select * from incoming")

    def update_run(self, run: str, **columns: Any) -> None:
        """Record how far a run has come, or how it ended."""
        with self._visit(write=True) as connection:
            _update_run(connection, run, columns)

    def sign_of_life(self, run: str) -> None:
        """Record that a run runs, even if it was taken for dead; not if it has ended."""
        with self._visit(write=True) as connection:
            connection.execute(
                "update runs set seen_at = ?, state = 'running' where run = ? and ended_at is null",
                [datetime.now(UTC), run],
            )

    def start_batch(self, row: dict[str, Any], ballots: Sequence[str]) -> None:
        """Record the intention to send ``ballots`` in a batch."""
        batch = Batches.of(pl.DataFrame([row], schema=Batches.dtypes()))
        held = pl.DataFrame({"batch": row["batch"], "ballot_id": list(ballots)})
        with self._visit(write=True) as connection:
            lend(connection, "incoming", batch)
            connection.execute("insert into batches by name select * from incoming")
            _save(connection, Saving(BatchedBallots, held), row["run"], "")

    def update_batch(self, batch: str, **columns: Any) -> None:
        """Record how far a batch has come, or how it ended."""
        changes = ", ".join(f"{column} = ?" for column in columns)
        with self._visit(write=True) as connection:
            connection.execute(
                f"update batches set {changes} where batch = ?", [*columns.values(), batch]
            )

    @contextmanager
    def _visit(self, *, write: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        with _one_visit:
            if not write and not self._is_current():
                with self._open(read_only=False):
                    pass
            with self._open(read_only=not write) as connection:
                connection.execute("begin transaction")
                # Without the commit, closing the connection undoes everything.
                try:
                    yield connection
                    connection.execute("commit")
                except duckdb.Error as error:
                    raise WarehouseError(f"{self.path}: {error}") from error

    def _is_current(self) -> bool:
        if not self.path.exists():
            return False
        with self._open(read_only=True) as connection:
            return _state(connection, self.path) == (VERSION, marts_digest())

    @contextmanager
    def _open(self, *, read_only: bool) -> Iterator[duckdb.DuckDBPyConnection]:
        connection = self._connect(read_only=read_only)
        try:
            connection.execute("set timezone = 'UTC'")
            if not read_only:
                # Rows have no order here, and to keep one while writing takes as much memory again.
                connection.execute("set preserve_insertion_order = false")
                connection.execute("set threads = 1")
            if not read_only and _state(connection, self.path) != (VERSION, marts_digest()):
                _build(connection, self.path)
            yield connection
        finally:
            connection.close()

    def _connect(self, *, read_only: bool) -> duckdb.DuckDBPyConnection:
        if self.path.is_dir():
            raise WarehouseError(f"{self.path} is a folder. Name a file, such as {DEFAULT}.")
        try:
            require_folder(self.path)
        except ValueError as error:
            raise WarehouseError(str(error)) from error
        until = time.monotonic() + PATIENCE_SECONDS
        pause = 0.01
        while True:
            try:
                return duckdb.connect(str(self.path), read_only=read_only)
            except duckdb.Error as error:
                if "Could not set lock" not in str(error) or time.monotonic() > until:
                    raise WarehouseError(self._explain(error)) from error
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not secrecy
            pause = min(pause * 2, 1.0)

    def _explain(self, error: duckdb.Error) -> str:
        text = str(error)
        if "Could not set lock" in text:
            holder = re.search(r"PID (\d+)", text)
            by = f" by process {holder[1]}" if holder else ""
            return (
                f"{self.path} was kept busy{by} for {PATIENCE_SECONDS:.0f} s. "
                "Close the program that holds it open for writing, then run again."
            )
        if "not a valid DuckDB database file" in text or "serialization" in text.lower():
            return (
                f"{self.path} is not a DuckDB file that this version can read. "
                f"Choose another file with --warehouse or {VARIABLE}."
            )
        return (
            f"{self.path} cannot be opened: {text.splitlines()[0].rstrip('.')}. "
            f"Choose another place with --warehouse or {VARIABLE}."
        )


def _save(connection: duckdb.DuckDBPyConnection, saving: Saving, run: str, study: str) -> int:
    model, frame, first_wins, part = saving
    typed = model.of(frame)
    place = model.place()
    columns = list(model.dtypes())
    stamped = typed.with_columns(
        pl.lit(value).alias(column)
        for column, value in {"study": study, "run": run, "saved_at": datetime.now(UTC)}.items()
        if column in added_columns(model)
    )
    lend(connection, "incoming", stamped)
    _check_references(connection, place.table, place.references)
    using = ", ".join(place.key)
    if issubclass(model, Result):
        connection.execute(f"delete from {place.table} where study = ? and ({part})", [study])
        source = "incoming"
    elif issubclass(model, Fact):
        if not first_wins:
            _check_unchanged(connection, place.table, place.key, columns)
        source = f"incoming anti join {place.table} using ({using})"
    else:
        raise TypeError(f"{model.__name__} is neither a fact nor a result.")
    connection.execute(f"insert into {place.table} by name select * from {source}")
    new = connection.fetchall()[0][0]
    return int(new)


def _update_run(
    connection: duckdb.DuckDBPyConnection, run: str, columns: Mapping[str, Any]
) -> None:
    changes = ", ".join(f"{column} = ?" for column in columns)
    connection.execute(f"update runs set {changes} where run = ?", [*columns.values(), run])


def _check_references(
    connection: duckdb.DuckDBPyConnection, table: str, references: dict[str, str]
) -> None:
    for column, other in references.items():
        key = _column_in(other, column)
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


def _column_in(table: str, column: str) -> str:
    return "question_id" if table == "questions" else column


def _check_unchanged(
    connection: duckdb.DuckDBPyConnection, table: str, key: tuple[str, ...], columns: list[str]
) -> None:
    others = [column for column in columns if column not in key]
    if not others:
        return
    differs = " or ".join(f"i.{c} is distinct from t.{c}" for c in others)
    shown = ", ".join(f"i.{c}" for c in key)
    changed = connection.execute(
        f"select {shown} from incoming i join {table} t using ({', '.join(key)}) "
        f"where {differs} limit 3"
    ).fetchall()
    if changed:
        rows = "; ".join(", ".join(map(str, row)) for row in changed)
        raise WarehouseError(
            f"{table} ({', '.join(key)}) {rows} is there already with other content, and facts "
            "never change. Give the new version a new name (a dataset of your own is named after "
            "its file); nothing was saved."
        )


def _state(connection: duckdb.DuckDBPyConnection, path: Path) -> tuple[int, str]:
    """Return schema version and marts digest; (0, "") of an empty file."""
    names = "select table_name from duckdb_tables() union select view_name from duckdb_views()"
    there = {t for (t,) in connection.execute(f"{names} where not internal").fetchall()}
    if not there:
        return 0, ""
    try:
        ((version, marts),) = connection.execute(
            "select schema_version, marts from meta"
        ).fetchall()
    except (duckdb.Error, ValueError) as error:
        raise WarehouseError(
            f"{path} holds other tables ({', '.join(sorted(there)[:3])}), it is not a "
            f"warehouse of voirdire. Choose another file with --warehouse or {VARIABLE}."
        ) from error
    if version > VERSION:
        raise WarehouseError(
            f"{path} was written by a newer voirdire (schema {version}, this one knows {VERSION}). "
            "Update voirdire, or choose another file with --warehouse."
        )
    return version, marts


def _build(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    connection.execute("begin transaction")
    try:
        version, _ = _state(connection, path)
        if version == 0:
            connection.execute("create table meta (schema_version integer, marts varchar)")
            connection.execute("insert into meta values (0, '')")
            create(connection)
        else:
            for number in range(version + 1, VERSION + 1):
                (file,) = MIGRATIONS.glob(f"{number:03}_*.sql")
                connection.execute(file.read_text(encoding="utf-8"))
        if version < VERSION:
            comment(connection)
        create_marts(connection)
        connection.execute(
            "update meta set schema_version = ?, marts = ?", [VERSION, marts_digest()]
        )
    except duckdb.Error as error:
        connection.execute("rollback")
        raise WarehouseError(
            f"{path} cannot be brought to schema {VERSION}; it is as it was. {error}"
        ) from error
    except BaseException:
        connection.execute("rollback")
        raise
    connection.execute("commit")
