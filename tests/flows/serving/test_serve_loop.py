"""Prefect's runner is started again if it does not start."""

import asyncio
from typing import Any, cast

import pytest

from flows.serving import serve_loop
from flows.serving.serve_loop import start_runs


class _Runner:
    """Fails to start as often as it is told, then serves until it is cancelled."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    async def start(self) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise RuntimeError("Runner failed to start: client")


async def _start(failures: int) -> int:
    """Return how many runners were registered anew."""
    runner, made = _Runner(failures), 0

    async def again() -> Any:
        nonlocal made
        made += 1
        return runner

    await start_runs(cast("Any", runner), again)
    return made


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_loop, "SECONDS_BETWEEN_STARTS", 0.0)


@pytest.mark.parametrize("failures", range(3))
def test_a_runner_that_does_not_start_is_started_again(
    failures: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asyncio.run(_start(failures)) == failures
    said = capsys.readouterr().err
    assert said.count("did not start: Runner failed to start: client. It is started") == failures


def test_a_runner_that_never_starts_ends_serving() -> None:
    with pytest.raises(RuntimeError, match="Runner failed to start"):
        asyncio.run(_start(3))
