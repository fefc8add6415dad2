"""Stages: pure functions as Prefect tasks, cached by the content of their inputs and code."""

import base64
import functools
import hashlib
import io
import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import polars as pl
from prefect import Task, task
from prefect.cache_policies import NO_CACHE, CachePolicy
from prefect.context import TaskRunContext
from prefect.serializers import PickleSerializer
from prefect.settings import get_current_settings
from pydantic import BaseModel

from schemas.digests import frame_digest
from tasks.kit.code_digest import reachable_digest
from tasks.kit.defaults import calibration_limits, chosen_interval, limits

LIBRARIES = ("duckdb", "numpy", "polars", "scipy")
"""Libraries that compute results: another version computes them anew."""
PICKLED, FRAME = b"-", b"+"
DAYS_VARIABLE = "VOIRDIRE_RESULT_DAYS"
"""number of days after which a run deletes unused cached results when it ends. Default: 30"""

P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class Content(CachePolicy):
    """Cache key from the task, the code that it can reach, its inputs, and the limits in force.

    Prefect's own ``INPUTS`` policy hashes a frame's memory layout, and its default policy the run.
    """

    def compute_key(
        self,
        task_ctx: TaskRunContext,
        inputs: dict[str, Any],
        flow_parameters: dict[str, Any],  # noqa: ARG002 - the signature is Prefect's
        **_: Any,
    ) -> str:
        """Return the cache key of a task run, whose earlier result is used now."""
        key = _key(task_ctx.task.fn, task_ctx.task.name, inputs)
        # Prefect names the file of a result by its key, and reads it without marking it as used.
        _mark_used(results_folder() / key)
        return key


class Compressed(PickleSerializer):
    """Pickles results, but compresses frames: pickled frames of text take four times their size."""

    type: str = "voirdire"

    def dumps(self, obj: Any) -> bytes:
        """Serialize a result."""
        if not isinstance(obj, pl.DataFrame):
            return PICKLED + super().dumps(obj)
        buffer = io.BytesIO()
        obj.write_ipc(buffer, compression="zstd")
        return FRAME + base64.b64encode(buffer.getbuffer())

    def loads(self, blob: bytes) -> Any:
        """Deserialize a result."""
        kind, text = blob[:1], blob[1:]
        if kind == PICKLED:
            return super().loads(text)
        return pl.read_ipc(io.BytesIO(base64.b64decode(text)))


def results_folder() -> Path:
    """Return the folder of cached results, a subfolder of Prefect's local storage.

    It is passed to every stage, as Prefect would otherwise ask its server before each of them.
    """
    return Path(get_current_settings().results.local_storage_path) / "voirdire"


def oldest_kept() -> float:
    """Return the time before which what can be made again is deleted: VOIRDIRE_RESULT_DAYS ago.

    Raise ValueError if the variable (default 30) is not a number of days.
    """
    given = os.environ.get(DAYS_VARIABLE, "30")
    try:
        return time.time() - 86400 * float(given)
    except ValueError:
        raise ValueError(
            f"{DAYS_VARIABLE} is {given!r:.40}; it must be a number of days, such as 30. Correct "
            "or unset it."
        ) from None


def prune_results() -> int:
    """Delete cached results that were not used for VOIRDIRE_RESULT_DAYS; return how many."""
    oldest = oldest_kept()
    pruned = 0
    for file in results_folder().glob("*"):
        # Another run may prune at the same time.
        with suppress(FileNotFoundError):
            if file.stat().st_mtime < oldest:
                file.unlink()
                pruned += 1
    return pruned


def _mark_used(file: Path) -> None:
    """Keep a result from being pruned, if there is one."""
    with suppress(OSError):
        os.utime(file)


def stage(function: Callable[P, R], run_name: str | None = None) -> Task[P, R]:
    """Make a cached stage; ``run_name`` may use its parameters, as in ``perturb {name}``.

    Without it, runs are named like the function, without the suffix that Prefect would add.
    """
    return task(
        cache_policy=Content(),
        persist_result=True,
        result_storage=results_folder(),
        result_serializer=Compressed(),
        task_run_name=run_name or _words(function.__name__),
    )(function)


def uncached_task(function: Callable[P, R], name: str | None = None) -> Task[P, R]:
    """Make an uncached task, for results that are stored elsewhere."""
    called = name or function.__name__
    return task(
        name=name, task_run_name=_words(called), cache_policy=NO_CACHE, persist_result=False
    )(function)


def _words(name: str) -> str:
    return name.replace("_", " ")


def cached_function(function: Callable[P, pl.DataFrame]) -> Callable[P, pl.DataFrame]:
    """Make a function whose frames are cached by its inputs and code, without making it a task.

    Frames are stored with the cached results of stages, under the same kind of key; using one
    keeps it from being pruned.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> pl.DataFrame:
        file = results_folder() / _key(function, function.__qualname__, [args, kwargs])
        with suppress(OSError, pl.exceptions.PolarsError):
            frame = pl.read_ipc(io.BytesIO(file.read_bytes()))
            _mark_used(file)
            return frame
        frame = function(*args, **kwargs)
        # The frame can be recomputed, so a full disk is no error.
        with suppress(OSError):
            _write_atomically(file, frame)
        return frame

    return call


def _write_atomically(file: Path, frame: pl.DataFrame) -> None:
    """Write a frame atomically, readable by its owner only."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as new:
        try:
            frame.write_ipc(new, compression="zstd")
            Path(new.name).replace(file)
        except BaseException:
            Path(new.name).unlink(missing_ok=True)
            raise


def _key(function: Callable[..., Any], name: str, inputs: Any) -> str:
    """Return the cache key for a function, its name, its inputs, and what is in force.

    A function may read the limits and the interval of a study or a calibration without being passed
    them.
    """
    code = reachable_digest(function.__module__)
    in_force = [_plain(limits()), _plain(calibration_limits()), chosen_interval()]
    parts = [name, code, _versions(), _plain(inputs), in_force]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@functools.cache
def _versions() -> list[str]:
    return [version(library) for library in LIBRARIES]


def _plain(value: Any) -> Any:
    if isinstance(value, pl.DataFrame):
        return frame_digest(value)
    if isinstance(value, pl.Series):
        return frame_digest(value.to_frame())
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, BaseModel):
        return _plain(value.model_dump())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"a stage cannot be cached on a {type(value).__name__}; pass plain values.")
