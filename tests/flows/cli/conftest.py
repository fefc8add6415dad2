"""Fixtures of the tests of commands."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from flows.cli import measure as command
from tasks.inference.intervals import chosen


@pytest.fixture(scope="module")
def computed_once() -> Iterator[None]:
    """Compute the results of equal votes once: for tests of how `measure` shows results."""
    known: dict[Any, Any] = {}
    results, rows = command.results_of_votes, command._query_temporary

    def once(key: Any, compute: Any) -> Any:
        if key not in known:
            known[key] = compute()
        return known[key]

    def results_once(log: Any, mode: str, other: object) -> Any:
        if other is not None:
            return results(log, mode, other)
        return once((log.write_ndjson(), mode, chosen()), partial(results, log, mode))

    # The results are kept beside the rows, so that no others get their id.
    def rows_once(concluded: Any, query: str) -> Any:
        made = once((id(concluded), query), lambda: (rows(concluded, query), concluded))
        return made[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "results_of_votes", results_once)
        patch.setattr(command, "_query_temporary", rows_once)
        yield
