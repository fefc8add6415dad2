"""Waves of which the warehouse has votes but no results."""

from collections.abc import Sequence
from shlex import quote


def votes_alone(study: str, wave: str, measured: Sequence[str]) -> str:
    """Say that a wave has votes alone, and what measures them instead of those ``measured``.

    Examples
    --------
    >>> print(votes_alone("nights", "n1", ["n2"]))
    Study 'nights' has no results of wave 'n1', only its votes. Run `voirdire audit nights --wave \
n1`, which asks no judge again: it measures these votes, and replaces the results of n2.
    """
    return (
        f"Study {study!r} has no results of wave {wave!r}, only its votes. Run `voirdire audit "
        f"{quote(study)} --wave {quote(wave)}`, which asks no judge again: it measures these "
        f"votes, and replaces the results of {', '.join(measured)}."
    )
