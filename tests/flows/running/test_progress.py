"""Messages of a run: when they are logged, and by which thread."""

import asyncio
from types import SimpleNamespace

import pytest

from flows.running import progress


def test_the_thread_of_a_run_logs_at_once_and_other_threads_when_it_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(progress, "get_run_logger", lambda: SimpleNamespace(warning=logged.append))

    async def run() -> None:
        notify = progress.notifier()
        # A visit of a locked warehouse waits in this thread, which runs nothing else meanwhile.
        notify("locked")
        assert logged == ["locked"]
        await asyncio.to_thread(notify, "locked again")
        await asyncio.sleep(0)
        assert logged == ["locked", "locked again"]

    asyncio.run(run())
