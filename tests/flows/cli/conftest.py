"""Fixtures of the tests of commands."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from flows.cli import measure as command
from tasks.kit.defaults import chosen_interval


@pytest.fixture(scope="module")
def computed_once() -> Iterator[None]:
    """Compute the results of equal votes once: for tests of how `measure` shows results."""
    known: dict[Any, Any] = {}
    results, rows = command.results_in_log, command.query_unsaved

    def once(key: Any, compute: Any) -> Any:
        if key not in known:
            known[key] = compute()
        return known[key]

    def results_once(log: Any, mode: str) -> Any:
        if log.titles:
            return results(log, mode)
        return once(
            (log.votes.write_ndjson(), mode, chosen_interval()), partial(results, log, mode)
        )

    def rows_once(frames: Any, query: str, parameters: Any) -> Any:
        texts = tuple(frame.write_ndjson() for _, frame in frames)
        return once((texts, query), partial(rows, frames, query, parameters))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "results_in_log", results_once)
        patch.setattr(command, "query_unsaved", rows_once)
        yield
