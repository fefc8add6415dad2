"""Compute once what several statistics derive from the same frame."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import Lock
from typing import Any, TypeVar

import polars as pl

Thing = TypeVar("Thing")
Make = Callable[[pl.DataFrame], Thing]
Made = dict[tuple[Make[Any], int], "Future[tuple[pl.DataFrame, Any]]"]
_made: ContextVar[Made | None] = ContextVar("_made", default=None)
_lock = Lock()


@contextmanager
def measured_together() -> Iterator[None]:
    """Keep what :func:`once` makes until all statistics are measured."""
    token = _made.set({})
    try:
        yield
    finally:
        _made.reset(token)


def once(make: Make[Thing]) -> Make[Thing]:
    """Make something of a frame once, also where several threads ask for it."""

    @wraps(make)
    def found(frame: pl.DataFrame) -> Thing:
        made = _made.get()
        if made is None:
            return make(frame)
        waiting: Future[Any] = Future()
        with _lock:
            future = made.setdefault((make, id(frame)), waiting)
        if future is waiting:
            try:
                # The frame is kept too, so that no other one gets its id.
                future.set_result((frame, make(frame)))
            except BaseException as error:
                future.set_exception(error)
                raise
        thing: Thing = future.result()[1]
        return thing

    return found
