"""Text for terminals and pages, without invisible and direction-changing characters."""

import unicodedata

LOST = "\N{REPLACEMENT CHARACTER}"
MOST = 4000
"""Characters of a message."""

UNSEEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
JOINERS = "\u200c\u200d"  # hold emoji and some scripts together


def is_unseen(character: str) -> bool:
    """Tell whether a character is a control character, unseen or none at all."""
    hidden = unicodedata.category(character) in UNSEEN and character not in JOINERS
    return hidden or ord(character) & 0xFFFE == 0xFFFE  # the last two of a plane: not characters


def printable(text: str) -> str:
    """Replace control characters, which could command a terminal; line ends stay."""
    return text if text.isprintable() else "".join(_shown(character) for character in text)


def message(text: str) -> str:
    """Return what a terminal may be told: printable, and cut in the middle if it is long."""
    shown = printable(text)
    if len(shown) <= MOST:
        return shown
    half = MOST // 2
    return f"{shown[:half]} [... {len(shown) - 2 * half} characters ...] {shown[-half:]}"


def _shown(character: str) -> str:
    return LOST if is_unseen(character) and character != "\n" else character
