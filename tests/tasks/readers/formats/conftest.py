"""Logs written by hand to the documented fields, and read as a user's file would be."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.logs.log_reader import Log, read_log

Read = Callable[..., Log]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write rows (JSON Lines) or one object to a file, and read it as a log."""

    def write(content: list[dict[str, Any]] | dict[str, Any], name: str = "log.jsonl") -> Log:
        path = tmp_path / name
        lines = [json.dumps(content)] if isinstance(content, dict) else map(json.dumps, content)
        path.write_text("\n".join(lines), encoding="utf-8")
        log = read_log(path)
        assert log is not None
        return log

    return write


@pytest.fixture
def rated() -> Callable[[Log, str], list[tuple[Any, ...]]]:
    """Return columns of a log's ratings, as rows."""

    def columns(log: Log, *names: str) -> list[tuple[Any, ...]]:
        return log.ratings.select(names).rows()

    return columns
