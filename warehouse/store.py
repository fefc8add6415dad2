"""One DuckDB file: every visit opens it, does one transaction and closes it."""

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import duckdb
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.arrow import fetch, lend
from schemas.frame import Frame, ranked
from schemas.judging import tallies_query
from schemas.runs import BatchedBallots, Batches, Runs
from warehouse._ddl import create, create_marts, marts_behind
from warehouse._external_access import REFUSED, connect, is_refusal
from warehouse._locks import LockedError, LockNotices, LockRetry, WarehouseBusyError
from warehouse._saving import (
    Saving,
    StatementError,
    WarehouseError,
    require_unchanged,
    save,
    typed,
)
from warehouse._schema import VERSION, build, is_current
from warehouse.file_export import Copy, copy_file, log_of, require_target, write_copy
from warehouse.path_checks import (
    DEFAULT,
    VARIABLE,
    damage,
    default_path,
    is_of_another_kind,
    require_folder,
)

__all__ = [
    "VERSION",
    "Saving",
    "StatementError",
    "Warehouse",
    "WarehouseBusyError",
    "WarehouseError",
    "query_unsaved",
]
PATIENCE_SECONDS = 60.0
"""How long a visit waits for a file that another process holds open."""

HEARTBEAT_WAIT_SECONDS = 1.0
"""How long a heartbeat waits for the file; the next heartbeat follows anyway."""

WRITING: dict[str, Any] = {"threads": 1, "storage_compatibility_version": "v1.2.0"}
"""Settings that write: statistics of the columns of earlier formats take half the time to open."""
MEMORY = Path(":memory:")
"""What DuckDB calls a database that is no file."""
F = TypeVar("F", bound=Frame)
# In one process, DuckDB refuses two connections with different settings.
_one_visit = threading.RLock()


class Warehouse:
    """The frames of all studies in one file, which is created on first use.

    While another process holds the file open, each visit waits up to ``patience_seconds``;
    ``tell`` is called with a message that names the process.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.path = Path(path).absolute() if path else default_path()
        self.patience_seconds = patience_seconds
        self._lock_notices = LockNotices(self.path, tell)

    def save(
        self,
        savings: Sequence[Saving],
        *,
        run: str,
        study: str = "",
        counts: Mapping[str, Any] | None = None,
        release: pl.DataFrame | None = None,
        patience_seconds: float | None = None,
    ) -> int:
        """Save frames in one transaction; return the number of rows that are new.

        Existing facts are left unchanged; results of ``study`` are replaced. ``counts`` update the
        run's own row in the same transaction, so they always match what is saved. The run gives up
        its claims on the ballots of ``release``.

        Raise WarehouseError if a fact would change, or a row refers to a missing row. Nothing is
        saved.
        """
        # Validate before opening the file, because readers wait while it is open.
        savings = [typed(saving) for saving in savings]
        with self._visit(write=True, patience_seconds=patience_seconds) as connection:
            new = sum(save(connection, saving, run, study) for saving in savings)
            if counts:
                _update(connection, "run", run, counts)
            if release is not None:
                lend(connection, "incoming", release.select("ballot_id").unique())
                connection.execute(
                    "delete from claims where run = $run and ballot_id in (from incoming)",
                    {"run": run},
                )
            return new

    def read(self, model: type[F], among: pl.DataFrame | None = None) -> DataFrame[F]:
        """Read a frame, only the rows whose key columns occur in ``among`` if that is given."""
        (found,) = self.read_all([model], among)
        return cast("DataFrame[F]", found)

    def read_all(
        self, models: Sequence[type[Frame]], among: pl.DataFrame | None = None
    ) -> list[pl.DataFrame]:
        """Read several frames, as ``read`` does, in one visit: to open takes longest."""
        with self._visit(write=False) as connection:
            ours = ""
            if among is not None:
                lend(connection, "among", among.unique())
                same = " and ".join(f"t.{c} is not distinct from among.{c}" for c in among.columns)
                ours = f" semi join among on {same}"
            found = [
                fetch(
                    connection,
                    f"select {', '.join(model.dtypes())} from {model.place().table} as t{ours}",
                )
                for model in models
            ]
        return [model.of(frame) for model, frame in zip(models, found, strict=True)]

    def query(
        self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = (), *, marts: bool = False
    ) -> pl.DataFrame:
        """Run one query on the file, opened for reading only.

        With ``marts``, marts also have their plain names, and ``show tables`` lists them.
        """
        with self._visit(write=False) as connection:
            if marts:
                connection.execute("set search_path = 'main,mart'")
            return fetch(connection, sql, parameters)

    def query_all(
        self, *queries: tuple[str, Sequence[Any] | Mapping[str, Any]]
    ) -> list[pl.DataFrame]:
        """Run several queries, each with its parameters, in one visit: to open takes longest."""
        with self._visit(write=False) as connection:
            return [fetch(connection, *query) for query in queries]

    def copy(
        self, copies: Sequence[Copy], folder: Path, form: str, study: str | None = None
    ) -> dict[str, int]:
        """Write copies into a folder in one transaction; return the number of rows of each file."""
        with self._visit(write=False, writes_in=folder) as connection:
            connection.execute("set variable study = ?", [study])
            written = {c.name: write_copy(connection, c, folder, form) for c in copies}
        return {name: rows for name, rows in written.items() if rows is not None}

    def tallies(self, study: str) -> pl.DataFrame:
        """Count the ballots of a study (``tallies.sql``); the rows, maybe millions, have no order.

        It has the columns of ``Tallies``, not validated, with texts as ``pl.Enum``.
        """
        # To keep an order, or to pass parameters, takes several times as long.
        with self._visit(write=False, ordered=False) as connection:
            connection.execute("set variable study = ?", [study])
            last = "select max(repeat) from vote_log where study = getvariable('study')"
            found = fetch(connection, tallies_query(fetch(connection, last).item() or 0))
        return ranked(found, *found.select(pl.col(pl.String).exclude("category")).columns)

    def snapshot(self, target: Path) -> None:
        """Copy the file between two writes; an existing copy is replaced.

        Raise WarehouseError if a part is damaged, or ``target`` is no place for a copy.
        """
        require_target(self.path, target)
        while True:
            with self._visit(write=False) as connection:
                if not log_of(self.path).exists():
                    copy_file(connection, self.path, target)
                    return
            # Whoever wrote last was killed, and left a part beside the file.
            with self._opened(write=True) as connection:
                connection.execute("checkpoint")

    def claim(self, ballots: pl.DataFrame, run: str) -> pl.DataFrame:
        """Claim the ``ballots`` (by ``ballot_id``) that no run has claimed; return them.

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

    def require_unchanged(self, savings: Sequence[Saving]) -> None:
        """Raise WarehouseError if facts are there with other content, as ``save`` does."""
        checked = list(map(typed, savings))
        with self._visit(write=False) as connection:
            for saving in checked:
                require_unchanged(connection, saving)

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
            _update(connection, "run", run, columns)

    def heartbeat(self, run: str) -> None:
        """Record that a run runs, even if it was taken for dead; not if it has ended."""
        with self._visit(write=True, patience_seconds=HEARTBEAT_WAIT_SECONDS) as connection:
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
            save(connection, typed(Saving(BatchedBallots, held)), row["run"], "")

    def update_batch(self, batch: str, **columns: Any) -> None:
        """Record how far a batch has come, or how it ended."""
        with self._visit(write=True) as connection:
            _update(connection, "batch", batch, columns)

    @contextmanager
    def _visit(self, **options: Any) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open the file as ``_opened`` does, for one transaction."""
        with self._opened(**options) as connection:
            try:
                connection.execute("begin transaction")
                # Without the commit, closing the connection undoes everything.
                yield connection
                connection.execute("commit")
            except duckdb.Error as error:
                if is_refusal(error):
                    raise WarehouseError(f"{self.path}: {REFUSED}") from error
                # DuckDB reads a part when it is needed, so others may have been read well.
                if text := damage(self.path, error):
                    raise WarehouseError(text) from error
                if isinstance(error, duckdb.InternalException | duckdb.FatalException):
                    raise WarehouseError(
                        f"{self.path}: DuckDB itself failed ({str(error).splitlines()[0]}). Try "
                        "again; if it fails again, it is an error in DuckDB."
                    ) from error
                raise StatementError(f"{self.path}: {error}") from error

    @contextmanager
    def _opened(
        self,
        *,
        write: bool,
        patience_seconds: float | None = None,
        ordered: bool = True,
        writes_in: Path | None = None,
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open the file as soon as no other process holds it; close it afterwards."""
        seconds = self.patience_seconds if patience_seconds is None else patience_seconds
        again = seconds < self.patience_seconds
        retry = LockRetry(self.path, seconds, self._lock_notices, again=again)
        while True:
            # Other threads of this process can use the file while this one waits.
            with _one_visit:
                try:
                    connection = (
                        self._writing()
                        if write
                        else self._reading(ordered=ordered, writes_in=writes_in)
                    )
                except LockedError as error:
                    locked = str(error)
                else:
                    try:
                        self._lock_notices.free()
                        yield connection
                    except BaseException:
                        # Else closing waits for the end of a query that a signal has interrupted.
                        connection.interrupt()
                        raise
                    finally:
                        connection.close()
                    return
            retry.wait(locked)

    def _reading(self, *, ordered: bool, writes_in: Path | None) -> duckdb.DuckDBPyConnection:
        """Open the file for reading; migrate a file of an earlier version first."""
        if not self.path.exists():
            self._writing().close()
        connection = self._connect(read_only=True, ordered=ordered, writes_in=writes_in)
        current = False
        try:
            current = is_current(connection, self.path)
        finally:
            if not current:
                connection.close()
        if current:
            return connection
        self._writing().close()
        return self._connect(read_only=True, ordered=ordered, writes_in=writes_in)

    def _writing(self) -> duckdb.DuckDBPyConnection:
        connection = self._connect(read_only=False, ordered=False)
        try:
            if not is_current(connection, self.path):
                build(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(
        self, *, read_only: bool, ordered: bool, writes_in: Path | None = None
    ) -> duckdb.DuckDBPyConnection:
        if self.path.is_dir():
            raise WarehouseError(f"{self.path} is a folder. Name a file, such as {DEFAULT}.")
        try:
            require_folder(self.path)
        except ValueError as error:
            raise WarehouseError(str(error)) from error
        if not self.path.exists():
            self._create()
        elif is_of_another_kind(self.path):
            raise WarehouseError(self._not_duckdb())
        # Rows have no order, and preserving one while writing would double the memory.
        settings: dict[str, Any] = {} if ordered else {"preserve_insertion_order": False}
        if not read_only:
            settings |= WRITING
        try:
            return connect(self.path, reading=read_only, writes_in=writes_in, **settings)
        except duckdb.Error as error:
            if "Could not set lock" in str(error):
                raise LockedError(str(error)) from error
            raise WarehouseError(self._explain(error)) from error

    def _create(self) -> None:
        """Build the file in a private folder and link it into place, complete.

        DuckDB creates a file before it locks it, so another process could open one without content.
        """
        place, log = self.path.resolve(), log_of(self.path)
        if log.exists() and not self.path.exists():
            raise WarehouseError(
                f"{log} is there without {self.path}: a program was killed while it wrote, and the "
                "warehouse was moved or deleted since. Move the warehouse back, or delete the log."
            )
        try:
            with TemporaryDirectory(dir=place.parent, prefix=f".{place.name[:80]}.") as folder:
                draft = Path(folder) / place.name
                with closing(connect(draft, reading=False, **WRITING)) as connection:
                    build(connection, draft, self.path)
                draft.chmod(0o600)
                _publish(draft, place)
        except OSError as error:
            raise WarehouseError(self._cannot_open(error.strerror or str(error))) from error
        except duckdb.Error as error:
            raise WarehouseError(self._explain(error)) from error

    def _not_duckdb(self) -> str:
        return (
            f"{self.path} is not a DuckDB file that this version can read. "
            f"Choose another file with --warehouse or {VARIABLE}."
        )

    def _explain(self, error: duckdb.Error) -> str:
        text = str(error)
        if "not a valid DuckDB database file" in text or "serialization" in text.lower():
            return self._not_duckdb()
        if damaged := damage(self.path, error):
            return damaged
        why = re.sub(r"^[A-Za-z ]+ Error: ", "", text.splitlines()[0])
        return self._cannot_open(why.rstrip("."))

    def _cannot_open(self, why: str) -> str:
        return (
            f"{self.path} cannot be opened: {why}. "
            f"Choose another place with --warehouse or {VARIABLE}."
        )


def _publish(draft: Path, place: Path) -> None:
    """Move a file to a new place; a file that is there by now stays."""
    try:
        # Unlike a rename, this replaces nothing.
        os.link(draft, place)
    except FileExistsError:
        return
    except OSError:
        # A file system without links, such as exFAT.
        if not place.exists():
            draft.rename(place)


def _update(
    connection: duckdb.DuckDBPyConnection, what: str, key: str, columns: Mapping[str, Any]
) -> None:
    """Change columns of a run or batch."""
    table = {"run": "runs", "batch": "batches"}[what]
    changes = ", ".join(f"{column} = ?" for column in columns)
    connection.execute(f"update {table} set {changes} where {what} = ?", [*columns.values(), key])


def query_unsaved(
    frames: Iterable[tuple[type[Frame], pl.DataFrame]], sql: str, parameters: Mapping[str, Any]
) -> pl.DataFrame:
    """Run a query on frames that are the results of ``$study`` in a database in memory.

    It has every table, and the marts that the query reads.
    """
    savings = [typed(Saving(*each)) for each in frames]
    with closing(connect(MEMORY, reading=False)) as connection:
        create(connection)
        create_marts(connection, marts_behind(sql))
        for saving in savings:
            save(connection, saving, run="unsaved", study=parameters["study"])
        return fetch(connection, sql, parameters)
