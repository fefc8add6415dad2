"""Waves with votes but no results in the warehouse."""

from collections.abc import Sequence


def votes_alone(study: str, wave: str, measured: Sequence[str], audit: str) -> str:
    """Say that a wave has votes alone, and that ``audit`` measures them instead of ``measured``.

    Examples
    --------
    >>> print(votes_alone("nights", "n1", ["n2"], "voirdire audit nights --wave n1"))
    Study 'nights' has no results of wave 'n1', only its votes. Run `voirdire audit nights --wave \
n1`, which asks no judge again: it measures these votes, and replaces the results of n2.
    """
    return (
        f"{only_votes(study, wave)} Run `{audit}`, which asks no judge again: it measures these "
        f"votes, and replaces the results of {', '.join(measured)}."
    )


def only_votes(study: str, wave: str) -> str:
    """Say that the warehouse has votes of a wave, and no results."""
    return f"Study {study!r} has no results of wave {wave!r}, only its votes."
