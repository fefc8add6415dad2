"""Text for terminals and pages, without invisible and direction-changing characters."""

import unicodedata

LOST = "\N{REPLACEMENT CHARACTER}"
MOST = 4000
"""Maximum length of a message, in characters."""

UNSEEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
JOINERS = "\u200c\u200d"  # needed by emoji and some scripts


def is_unseen(character: str) -> bool:
    """Tell whether a character is invisible (control, format, private use) or a noncharacter."""
    hidden = unicodedata.category(character) in UNSEEN and character not in JOINERS
    return hidden or ord(character) & 0xFFFE == 0xFFFE  # the last two of a plane are noncharacters


def printable(text: str) -> str:
    """Replace control characters, which could control a terminal; line feeds stay."""
    return text if text.isprintable() else "".join(_shown(character) for character in text)


def message(text: str) -> str:
    """Return text for a terminal: printable, and shortened in the middle if long."""
    shown = printable(text)
    if len(shown) <= MOST:
        return shown
    half = MOST // 2
    return f"{shown[:half]} [... {len(shown) - 2 * half} characters ...] {shown[-half:]}"


def _shown(character: str) -> str:
    return LOST if is_unseen(character) and character != "\n" else character
