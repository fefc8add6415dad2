"""How long a provider asks to wait."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the provider asks to wait, whichever header says so.

    ``retry-after`` is a number of seconds or an HTTP date (RFC 9110, section 10.2.3).
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        text = str(headers.get(name) or "")
        try:
            seconds = float(text) / unit
        except ValueError:
            seconds = _until(text)
        if 0 <= seconds < math.inf:
            return seconds
    return None


def _until(text: str) -> float:
    """Return the seconds until an HTTP date; infinite if it is none."""
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return math.inf
