import os
import time
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import polars as pl
import pytest
from prefect.cache_policies import NO_CACHE

from tasks.kit import stage as staging
from tasks.kit.defaults import (
    CalibrationThresholds,
    Thresholds,
    calibrated_by,
    limited_by,
    share_interval,
)
from tasks.kit.stage import (
    DAYS_VARIABLE,
    Compressed,
    Content,
    cached_function,
    prune_results,
    stage,
    uncached_task,
)


class Design(NamedTuple):
    votes: int
    mode: str


def _key(name: str = "tally", **inputs: Any) -> str:
    context: Any = SimpleNamespace(task=SimpleNamespace(name=name, fn=_key))
    return Content().compute_key(context, inputs, {})


def test_a_key_does_not_depend_on_how_a_frame_lies_in_memory() -> None:
    frame = pl.DataFrame({"a": ["x", None, "y"], "b": [1, 2, 3]})
    twice = pl.concat([frame, frame], rechunk=False)
    assert _key(frame=twice.slice(3)) == _key(frame=frame)
    assert _key(frame=twice.unique(maintain_order=True)) == _key(frame=frame)
    assert _key(series=twice["a"].tail(3)) == _key(series=frame["a"])


def test_a_key_depends_on_names_and_not_on_the_order_of_arguments() -> None:
    assert _key(a=1, b=2) == _key(b=2, a=1)
    assert _key(a=1, b=2) != _key(a=2, b=1)
    assert _key("tally", a=1) != _key("match", a=1)


def test_different_inputs_have_different_keys() -> None:
    frame = pl.DataFrame({"a": [1, 2]})
    inputs: list[Any] = [
        None,
        "",
        "None",
        "null",
        0,
        0.0,
        False,
        "0",
        1,
        True,
        1.0,
        "1",
        [],
        [None],
        [[]],
        ["1"],
        [1],
        [1, 2],
        ["1", "2"],
        ["12"],
        ["1, 2"],
        {},
        {"a": 1},
        {"a": "1"},
        {"b": 1},
        {"a": {"b": 1}},
        {"a": {}, "b": 1},
        float("inf"),
        Design(2, "paper"),
        Design(2, "balanced"),
        frame,
        frame.head(1),
        frame.reverse(),
        frame.rename({"a": "b"}),
        frame.cast(pl.Float64),
        frame.clear(),
        [frame],
        {"a": frame},
        "\ud800",
    ]
    for one, other in combinations(inputs, 2):
        assert _key(x=one) != _key(x=other), (one, other)


@pytest.mark.parametrize(
    "result",
    [
        None,
        "text",
        ("a", 1),
        Design(2, "paper"),
        pl.DataFrame(),
        pl.DataFrame({"a": ["x", None], "b": [1, 2], "c": [True, None], "d": [0.1 + 0.2, None]}),
        pl.DataFrame({"a": [datetime(2024, 1, 1, tzinfo=UTC)], "b": [None]}),
    ],
)
def test_a_kept_result_comes_back(result: Any) -> None:
    text = Compressed().dumps(result)
    again = Compressed().loads(text.decode().encode())
    assert type(again) is type(result)
    if isinstance(result, pl.DataFrame):
        assert again.equals(result)
        assert again.schema == result.schema
    else:
        assert again == result


def test_a_kept_frame_of_texts_is_small() -> None:
    frame = pl.DataFrame({"a": ["the same words " * 60] * 1000})
    assert len(Compressed().dumps(frame)) < frame.estimated_size() / 20


@pytest.mark.parametrize("value", [{1, 2}, object(), Path("x"), b"x", print, pl.LazyFrame()])
def test_what_has_no_plain_content_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=f"cannot be cached on a {type(value).__name__}; pass"):
        _key(x=[value])


def test_a_key_depends_on_the_limits_and_the_interval_in_force() -> None:
    keys = {_key(x=1)}
    with limited_by(Thresholds(fewest_questions=30)):
        keys.add(_key(x=1))
    with limited_by(Thresholds()):
        assert _key(x=1) in keys
    with calibrated_by(CalibrationThresholds(least_agreement=0.3)):
        keys.add(_key(x=1))
    with share_interval("jeffreys"):
        keys.add(_key(x=1))
    assert len(keys) == 4


@pytest.mark.parametrize("library", ["duckdb", "numpy", "polars", "scipy"])
def test_a_key_depends_on_the_code_and_on_libraries(
    monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    before = _key(x=1)
    monkeypatch.setattr(staging, "reachable_digest", lambda _: "other code")
    other_code = _key(x=1)
    monkeypatch.undo()
    monkeypatch.setattr(
        staging, "version", lambda name: "0.0.1" if name == library else version(name)
    )
    staging._versions.cache_clear()
    assert len({before, other_code, _key(x=1)}) == 3
    staging._versions.cache_clear()
    monkeypatch.undo()
    assert _key(x=1) == before


def test_a_stage_is_cached_by_content_and_an_uncached_task_never() -> None:
    def double(number: int) -> int:
        return 2 * number

    cached, never = stage(double), uncached_task(double)
    assert isinstance(cached.cache_policy, Content)
    assert cached.persist_result is True
    assert never.cache_policy == NO_CACHE
    assert never.persist_result is False
    assert cached.fn(2) == never.fn(2) == 4


def test_a_frame_is_remembered_for_equal_inputs_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "results_folder", lambda: tmp_path / "new")
    asked = []

    @cached_function
    def times(frame: pl.DataFrame, number: int) -> pl.DataFrame:
        asked.append(number)
        return frame.with_columns(pl.col("a") * number)

    frame = pl.DataFrame({"a": [0.1, None]})
    first = times(frame, 2)
    assert times(pl.concat([frame]), 2).equals(first)
    assert times(frame, 3).equals(pl.DataFrame({"a": [0.1 * 3, None]}))
    assert asked == [2, 3]
    kept = list((tmp_path / "new").iterdir())
    assert [file.stat().st_mode & 0o777 for file in kept] == [0o600] * 2
    # What another program or a power cut left there is no answer.
    for file in kept:
        file.write_bytes(file.read_bytes()[:40])
    assert times(frame, 2).equals(first)
    assert asked == [2, 3, 2]
    # It is used, so pruning spares it.
    old = time.time() - 40 * 86400
    for file in kept:
        os.utime(file, (old, old))
    times(frame, 2)
    assert prune_results() == 1
    times(frame, 2)
    assert asked == [2, 3, 2]


def test_a_frame_that_cannot_be_remembered_is_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(staging, "results_folder", lambda: tmp_path / "file")
    assert cached_function(pl.DataFrame)({"a": [1]}).equals(pl.DataFrame({"a": [1]}))


def test_results_older_than_an_option_of_days_are_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "results_folder", lambda: tmp_path)
    for name, days in (("new", 0.5), ("weeks", 20), ("old", 31)):
        (tmp_path / name).write_text("x")
        moment = time.time() - 86400 * days
        os.utime(tmp_path / name, (moment, moment))
    monkeypatch.delenv(DAYS_VARIABLE, raising=False)
    assert prune_results() == 1
    monkeypatch.setenv(DAYS_VARIABLE, "7")
    assert prune_results() == 1
    assert [file.name for file in tmp_path.iterdir()] == ["new"]
    monkeypatch.setenv(DAYS_VARIABLE, "a week")
    with pytest.raises(ValueError, match="VOIRDIRE_RESULT_DAYS is 'a week'; it must be a number"):
        prune_results()


def test_a_result_that_a_stage_uses_is_not_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "results_folder", lambda: tmp_path)
    used, unused = tmp_path / _key(a=1), tmp_path / "unused"
    for file in (used, unused):
        file.write_text("x")
        os.utime(file, (0, 0))
    _key(a=1)
    assert prune_results() == 1
    assert (used.exists(), unused.exists()) == (True, False)


def test_a_stage_keeps_its_results_where_no_server_is_asked() -> None:
    kept = stage(_key).result_storage
    assert kept == staging.results_folder()
    assert kept.name == "voirdire"
