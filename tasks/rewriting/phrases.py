"""Phrases without content, phrase swaps and lists of words, from ``phrases.toml``."""

import tomllib
from pathlib import Path
from typing import Any

DATA: dict[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)

NEUTRAL: tuple[str, ...] = tuple(DATA["neutral"])
NOTES: tuple[str, ...] = tuple(DATA["notes"])
NOTE_HEAD = "A note on"
PADDING_LEADS: tuple[str, ...] = tuple(DATA["padding_leads"])
NEUTRAL_LEADS: tuple[str, ...] = tuple(DATA["neutral_leads"])
SWAPS: dict[str, str] = DATA["swaps"]
SAFE_BEFORE: dict[str, str] = DATA["safe_before"]
SAFE_AFTER: dict[str, str] = DATA["safe_after"]
OPENERS, LINKING, ASKING, COMMON = (
    frozenset(DATA[name].split()) for name in ("openers", "linking", "asking", "common")
)
SURNAMES: tuple[str, ...] = tuple(DATA["surnames"].split())
PRESSES: tuple[str, ...] = tuple(DATA["presses"])
TITLES: tuple[str, ...] = tuple(DATA["titles"])
