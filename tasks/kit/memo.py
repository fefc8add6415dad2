"""Compute what several statistics need of the same frame once."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

import polars as pl

from tasks.kit.defaults import in_force

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class _Entry:
    lock: Lock = field(default_factory=Lock)
    results: list[Any] = field(default_factory=list)


@dataclass
class _Memo:
    frames: dict[int, pl.DataFrame]
    entries: dict[Any, _Entry] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)


_memo: ContextVar[_Memo | None] = ContextVar("memo", default=None)


def memo(*frames: pl.DataFrame) -> AbstractContextManager[None]:
    """Keep the results that memoised functions have for these very frames until the end.

    Results for other frames are not kept, as these would stay in memory too.
    """
    return in_force(_memo, _Memo({id(frame): frame for frame in frames}))


def memoised(
    function: Callable[Concatenate[pl.DataFrame, P], T],
) -> Callable[Concatenate[pl.DataFrame, P], T]:
    """Return ``function``, computed once for each frame of :func:`memo`, by one thread.

    Nobody may change its result.
    """

    @wraps(function)
    def found(frame: pl.DataFrame, /, *args: P.args, **kwargs: P.kwargs) -> T:
        kept = _memo.get()
        if kept is None or id(frame) not in kept.frames:
            return function(frame, *args, **kwargs)
        key = (function, id(frame), args, tuple(kwargs.items()))
        with kept.lock:
            entry = kept.entries.setdefault(key, _Entry())
        with entry.lock:
            if not entry.results:
                entry.results.append(function(frame, *args, **kwargs))
        result: T = entry.results[0]
        return result

    return found
