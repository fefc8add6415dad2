"""Waits of tests for other processes, which a loaded machine may delay for minutes."""

import time
from collections.abc import Callable
from typing import TypeVar

# Less than pytest's timeout, so that a test ends with its own message.
PATIENCE_SECONDS = 240
Found = TypeVar("Found")


def wait_for(ask: Callable[[], Found], missing: str) -> Found:
    """Return what ``ask`` returns as soon as that is true; fail with what is missing.

    The longer it has waited, the less often it asks, as a server spends time on each answer.
    """
    began = time.monotonic()
    while not (found := ask()):
        waited = time.monotonic() - began
        assert waited < PATIENCE_SECONDS, f"{missing} within {PATIENCE_SECONDS} s"
        time.sleep(min(1.0, 0.1 + waited / 20))
    return found
