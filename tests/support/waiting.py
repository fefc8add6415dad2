"""Waits of tests for other processes, which a loaded machine may delay for minutes."""

import time
from collections.abc import Callable
from typing import TypeVar

# Less than pytest's timeout, so that a test ends with its own message.
PATIENCE_SECONDS = 240
Found = TypeVar("Found")


def wait_for(ask: Callable[[], Found], missing: str) -> Found:
    """Return what ``ask`` returns as soon as that is true; fail with what is missing."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not (found := ask()):
        assert time.monotonic() < until, f"{missing} within {PATIENCE_SECONDS} s"
        time.sleep(0.1)
    return found
