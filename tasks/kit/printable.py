"""Text for terminals, pages and logs: no invisible characters, no secrets."""

import math
import os
import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

LOST = "\N{REPLACEMENT CHARACTER}"
MOST = 4000
"""Maximum length of a message, in characters."""

MOST_LINES = 24
"""A message of more lines, as of another program, is shortened as a whole."""

PRINTED = bytes([*b"\t\n\f\r\x1b", *range(32, 256)])
"""Bytes that text in some encoding may have."""
MOST_CONTROL = 0.02
"""Maximum share of other bytes in a text."""

LONGEST_CAUSE = 300
"""Maximum length of an error in a sentence about something else, in characters."""

UNSEEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
JOINERS = "\u200c\u200d"  # needed by emoji and some scripts


def is_unseen(character: str) -> bool:
    """Tell whether a character is invisible (control, format, private use) or a noncharacter."""
    hidden = unicodedata.category(character) in UNSEEN and character not in JOINERS
    return hidden or ord(character) & 0xFFFE == 0xFFFE  # the last two of a plane are noncharacters


def printable(text: str) -> str:
    """Replace control characters, which could control a terminal; line feeds stay."""
    return text if text.isprintable() else "".join(_shown(character) for character in text)


def laid_out(text: str) -> str:
    """Return a text with its lines and indentations, and a mark for each invisible character."""
    return printable(text.replace("\r\n", "\n").replace("\t", "    "))


HEAD = re.compile(r" *(?:[-!?\N{CHECK MARK}\N{BALLOT X}] )?")
"""The indent of a line, and the mark of an item of a list."""


def wrapped(text: str, width: int) -> str:
    """Break lines that are wider than a terminal at spaces; what follows an item is indented.

    A word that is wider, such as a path, stays whole, so that it can be copied.
    """
    return "\n".join(_wrapped(line, width) for line in text.split("\n"))


def _wrapped(line: str, width: int) -> str:
    if cells(line) <= width:
        return line
    first = "".join(HEAD.findall(line)[:1])
    lines = [first]
    # Only spaces of the keyboard: others keep the digits of a number together.
    for word in re.findall(" *[^ ]+", line[len(first) :]):
        if cells(lines[-1] + word) <= width or lines == [first]:
            lines[-1] += word
        else:
            lines.append(" " * cells(first) + word.lstrip(" "))
    return "\n".join(lines)


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    # Here, as few commands print such a text, and rich takes time to import.
    from rich.cells import cell_len

    return cell_len(text)


def several(number: int, one: str, more: str = "") -> str:
    """Write a number of things: ``1 id``, ``1 200 ids``."""
    return f"{thousands(number)} {one if number == 1 else more or one + 's'}"


def decimal(value: float, digits: int = 2) -> str:
    """Write a number without the zero before its point: ``.21``, ``-.05``, ``1.00``.

    Halves are rounded away from zero, as by ``round`` in SQL.
    """
    scale = 10**digits
    text = f"{math.floor(abs(value) * scale + 0.5) / scale:.{digits}f}"
    minus = "-" if value < 0 and float(text) else ""
    return minus + (text[1:] if text.startswith("0.") else text)


def thousands(many: int) -> str:
    """Write a whole number in groups of three."""
    return f"{many:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def p_value(value: float) -> str:
    """Write a p-value with three digits, never as 0."""
    return "<.001" if value < 0.0005 else decimal(value, 3)


def first_few(names: Sequence[str], most: int, total: int = 0) -> list[str]:
    """Return the first names and, at the end, how many more there are: ``a``, ``b``, ``3 more``.

    ``total`` is how many there are, if ``names`` are only the first.
    """
    left = max(total, len(names)) - most
    return [*names[:most], f"{left} more"] if left > 0 else [*names]


def joined_few(names: Sequence[str], most: int) -> str:
    """Write the first names, and how many more there are: ``a, b and 3 more``."""
    parts = first_few(names, most)
    return " and ".join([", ".join(parts[:most]), *parts[most:]])


def message(text: str) -> str:
    """Return text for a terminal: printable, and each of few lines shortened in the middle."""
    lines = printable(text).split("\n")
    if len(lines) > MOST_LINES:
        return _shortened("\n".join(lines))
    return "\n".join(map(_shortened, lines))


def _shortened(shown: str) -> str:
    if len(shown) <= MOST:
        return shown
    half = MOST // 2
    return f"{shown[:half]} [... {len(shown) - 2 * half} characters ...] {shown[-half:]}"


def _shown(character: str) -> str:
    return LOST if is_unseen(character) and character != "\n" else character


SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD")
"""Ends of the parts of a variable's name, if the variable holds a secret."""

AUTHENTICATION = "PREFECT_API_AUTH_STRING"
"""Variable of the authentication string of the Prefect server, which runs code as us."""

SHORTEST = 4
"""A shorter value would be found in the middle of words."""


def redact(text: str, variables: Iterable[str] = ()) -> str:
    """Replace the values of environment variables that are named like keys, or among ``variables``.

    Characters that cannot be seen (escapes, marks of direction) are written out, and it is one
    line. Whoever shortens a text does it afterwards: the half of a key would not be found.
    """
    names = {*variables, *(name for name in os.environ if _is_secret(name))}
    secrets = {os.environ.get(name, "").strip() for name in names if name}
    # One may begin with another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "[key]") if len(secret) >= SHORTEST else text
    line = text if text.isprintable() else " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _is_secret(name: str) -> bool:
    return name == AUTHENTICATION or any(part.endswith(SECRETS) for part in name.upper().split("_"))


def because(error: str | None) -> str:
    """Return the error of a run in parentheses, in one line and clipped; empty if there is none."""
    if not error:
        return ""
    return f" ({_bounded(printable(' '.join(error.split())).rstrip('.'))})"


def cause(error: BaseException | str) -> str:
    """Return the first line of a library's error, printable and clipped, without a full stop."""
    return _bounded(printable(str(error).strip().split("\n", maxsplit=1)[0]).rstrip("."))


def _bounded(line: str) -> str:
    return f"{line[:LONGEST_CAUSE]}{'...' if len(line) > LONGEST_CAUSE else ''}"


@contextmanager
def renamed(name: str, to: str) -> Iterator[None]:
    """Let a ValueError that names a file by ``name``, as a copy of it is called, name it ``to``."""
    try:
        yield
    except ValueError as error:
        named = re.compile(rf"(?<![\w.]){re.escape(name)}(?![\w.]*\w)")
        error.args = tuple(
            named.sub(lambda _: to, each) if isinstance(each, str) else each for each in error.args
        )
        raise


def same_command(wave: str) -> str:
    """Say which command continues a run: it may name each new wave by the date or the minute."""
    return f"the same command{f' with --wave {shlex.quote(printable(wave))}' if wave else ''}"


def is_binary(start: bytes) -> bool:
    """Tell whether a file that begins so is no text in any encoding.

    Then it is not UTF-8 and has many control characters. Text in UTF-16, which can be saved as
    UTF-8, has a zero byte at every second place.
    """
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        # The last character may be cut.
        if error.start >= len(start) - 3:
            return False
    else:
        return False
    zeros, control = start.count(0), len(start.translate(None, PRINTED))
    return control > len(start) * MOST_CONTROL and zeros < len(start) / 4
