"""Memoization of what several statistics derive from the same frame."""

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
    """Keep the results of :func:`once` functions until all statistics are computed."""
    token = _made.set({})
    try:
        yield
    finally:
        _made.reset(token)


def once(make: Make[Thing]) -> Make[Thing]:
    """Memoize a function of a frame by the frame's identity; safe for concurrent threads."""

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
                # Keeping the frame alive prevents reuse of its id.
                future.set_result((frame, make(frame)))
            except BaseException as error:
                future.set_exception(error)
                raise
        thing: Thing = future.result()[1]
        return thing

    return found
