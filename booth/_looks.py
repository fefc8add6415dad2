"""Looks at ballots: what a page proves itself with, and how long it may say that it was seen."""

import base64
import binascii
import json
import time
from collections.abc import Mapping
from typing import NamedTuple

_BEGAN = time.time() - time.monotonic()


def now() -> float:
    """Return seconds since 1970, by a clock that nobody sets while the booth is open."""
    return _BEGAN + time.monotonic()


class Page(NamedTuple):
    """One load of a ballot."""

    ballot: str
    turn: int
    """Of the voter, when it was shown."""
    shown_at: float
    """By :func:`now`; tells the loads of a ballot apart."""


def shown(ballot: str, turn: int) -> Page:
    """Return the page that is shown now."""
    return Page(ballot, turn, round(now(), 6))


def packed(page: Page) -> str:
    """Return a page as text, fit for a form; whoever made it must sign it."""
    return base64.urlsafe_b64encode(json.dumps(page).encode()).decode()


def unpacked(text: str) -> Page | None:
    """Return the page that :func:`packed` was given; null if the text is none."""
    try:
        return Page(*json.loads(base64.urlsafe_b64decode(text)))
    except (binascii.Error, TypeError, ValueError):
        return None


def seen_for(page: Page, claim: float | None) -> float:
    """Return for how many seconds a page was seen: what it claims, and no more than is possible.

    That is the time since it was shown, which also stands for a claim that is missing, as without
    script.
    """
    passed = max(0.0, now() - page.shown_at)
    return passed if claim is None else min(claim, passed)


def total(looks: Mapping[float, float]) -> float:
    """Return the seconds of all looks at a ballot, by the times at which its pages were shown.

    Pages that were open side by side count no longer than the time since the first of them.
    """
    return min(sum(looks.values()), max(0.0, now() - min(looks))) if looks else 0.0
