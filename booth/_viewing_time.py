"""Viewing time of ballot pages: what a page may claim, and the total over its loads."""

import base64
import binascii
import json
import time
from collections.abc import Mapping
from typing import NamedTuple

_BEGAN = time.time() - time.monotonic()


def now() -> float:
    """Return seconds since 1970, by a clock that is monotonic while the booth is open."""
    return _BEGAN + time.monotonic()


class Page(NamedTuple):
    """One load of a ballot."""

    ballot: str
    turn: int
    """Turn of the voter when the page was shown."""
    shown_at: float
    """Time by :func:`now`, which identifies the load."""


def shown(ballot: str, turn: int) -> Page:
    """Return a page that is shown now."""
    return Page(ballot, turn, round(now(), 6))


def packed(page: Page) -> str:
    """Encode a page as text for a form; the caller must sign it."""
    return base64.urlsafe_b64encode(json.dumps(page).encode()).decode()


def unpacked(text: str) -> Page | None:
    """Decode a page; null if the text is not one."""
    try:
        return Page(*json.loads(base64.urlsafe_b64decode(text)))
    except (binascii.Error, TypeError, ValueError):
        return None


def seen_for(page: Page, claim: float | None) -> float:
    """Return the seconds for which a page was visible: its claim, at most the time since shown.

    Without a claim (no JavaScript), it is the time since the page was shown.
    """
    passed = max(0.0, now() - page.shown_at)
    return passed if claim is None else min(claim, passed)


def total(looks: Mapping[float, float]) -> float:
    """Return the seconds of all looks at a ballot, given by the time when each page was shown.

    The total of pages that were open in parallel is at most the time since the first one.
    """
    return min(sum(looks.values()), max(0.0, now() - min(looks))) if looks else 0.0
