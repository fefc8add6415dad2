"""Errors for unknown names: what is missing where, the known names, and what to do."""

import difflib
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path


class UnknownNameError(LookupError):
    """There is nothing of that name."""


MOST_FILES = 1000
"""Most files of a folder in which a similar name is sought."""
MOST_NAMES = 8
"""Most known names in an error."""
ALL_STUDIES = '`voirdire sql "from runs"` lists all'
"""Where all studies of a warehouse are."""


def unknown(
    what: str,
    wanted: str,
    known: Sequence[str],
    everything: str = "`voirdire list` shows all",
    *,
    where: str = "",
    step: str = "",
) -> UnknownNameError:
    """Return the error for an unknown name: a suggestion, and the names most like it.

    ``everything`` says where all names are, if there are more; ``where``, as in *in study 'mine'*,
    what the name was sought in; ``step``, a sentence, what to do.
    """
    near = nearest(wanted, known)
    hint = f" Did you mean {near!r}?" if near else ""
    names = ", ".join(known) or "none"
    if len(known) > MOST_NAMES:
        alike = difflib.get_close_matches(wanted, known, n=MOST_NAMES, cutoff=0)
        names = f"{', '.join(sorted(alike))}, …; {everything}"
    missing = " ".join(filter(None, (f"no {what} {wanted!r:.200}", where)))
    return UnknownNameError(f"{missing}.{hint} Known: {names}. {step}".rstrip())


def require_known(
    given: Mapping[str, str | None], known: Mapping[str, Sequence[str]], everything: str, where: str
) -> None:
    """Raise the error of :func:`unknown` for the first of the given names that is not known."""
    for what, names in known.items():
        name = given.get(what)
        if name is not None and name not in names:
            raise unknown(what, name, names, everything, where=where)


def no_such_file(path: Path, named: str) -> tuple[str, str]:
    """Say that there is no such file, and what to do, in an error that has ``named`` it.

    A file in the same folder whose name is like it is probably meant.
    """
    if path.exists():
        return f"{str(path)!r:.200} is a folder or a device", "Name a file."
    there = islice(path.parent.iterdir(), MOST_FILES) if path.parent.is_dir() else ()
    names = {file.stem: file.name for file in there}
    near = nearest(path.stem, [*names])
    where = f"in {str(Path.cwd())!r}" if str(path) == named else f"at {str(path)!r:.200}"
    todo = f"Did you mean {names[near]!r}?" if near else "Check the path."
    return f"there is no such file {where}", todo


def nearest(wanted: str, known: Sequence[str]) -> str | None:
    """Return the known name probably meant: closest in spelling, or the only one with that part.

    Parts are separated by ``_``, and a judge's by ``/``.
    """
    if near := difflib.get_close_matches(wanted, known, n=1):
        return near[0]
    whole = [name for name in known if wanted.lower() in re.split("[_/]", name)]
    return whole[0] if len(whole) == 1 else None
