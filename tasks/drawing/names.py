"""Names of judges on one or two short lines."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from schemas.frame import Row
from tasks.reporting.wording import MARK, clean, clip, columns, short_names

CHARACTERS = 23


class Name(NamedTuple):
    """The name of a judge on two lines; the lower one may be its mark, or empty."""

    upper: str
    lower: str
    whole: str

    @property
    def marked(self) -> bool:
        """Tell whether the lower line is the mark of a simulated judge."""
        return self.lower == MARK

    @property
    def row(self) -> str:
        """Return what places a row."""
        return f"{self.upper} {self.lower}"

    def values(self) -> Row:
        """Return the place of a row, whom it is about, and the name beside it."""
        shown = {"name": self.upper, "under": self.lower, "marked": self.marked}
        return {"row": self.row, "who": clean(self.whole), **shown}


def names(rows: Iterable[dict[str, Any]], width: int = CHARACTERS) -> dict[str, Name]:
    """Map ``who`` of each row to its name; names are unique.

    A simulated judge has one line and its mark, any other up to two lines.
    """
    marked = {row["who"]: bool(row["simulated"]) for row in rows}
    one = short_names([who for who, mark in marked.items() if mark], width)
    # A line may end early to break well, so two of them hold a little less than twice its width.
    two = short_names([who for who, mark in marked.items() if not mark], 2 * width - 8)
    return {
        **{who: Name(text, MARK, who) for who, text in one.items()},
        **{who: Name(*_break(text, width), who) for who, text in two.items()},
    }


def _break(text: str, width: int) -> tuple[str, str]:
    """Break a text that is too wide at the last good place, else where it must."""
    if columns(text) <= width:
        return text, ""
    places = [m.end() for m in re.finditer(r"[-/_.: …]", text)]
    fits = [p for p in places if columns(text[:p]) <= width and columns(text[p:]) <= width]
    after_provider = [p for p in fits if text[p - 1] == "/"]
    place = [*fits, *after_provider][-1] if fits else len(clip(text, width, tail=0)) - 1
    return text[:place].rstrip(), clip(text[place:].lstrip(), width)
