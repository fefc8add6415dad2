"""Keys of results, choices that options offer, and ids that depend on content only."""

import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

SERIES = ("dataset", "judge", "prompt")
"""A judge in all its waves."""

JUDGE = (*SERIES, "wave")
"""A judge as it was asked."""

CONDITIONS = ("dataset", "prompt", "wave")
"""How a judge was asked; named where they differ within a table."""

CELL = (*JUDGE, "mode", "perturbation")
"""A judge under a perturbation: what a bias is claimed about."""

JUDGES = (*CONDITIONS, "mode")
"""All judges that were asked alike."""

PANEL = (*JUDGES, "perturbation")
"""All judges under a perturbation."""

SAMPLE = (*JUDGE, "sample")
"""A sample as a judge saw it."""

BETWEEN = " / "
"""Separates the name of a judge from the name of its prompt."""

LARGEST_INTEGER = 2**63 - 1
"""Largest integer that a column of the warehouse holds."""

Gate = Literal["position", "validity", "bias", "discernment", "agreement", "drift"]
"""What the scorecard checks of a judge."""

Mode = Literal["balanced", "paper"]
"""How the orders of a pair are chosen."""

Sham = Literal["first", "second", "both", "none"]
"""Which meaning-free edits shifts are measured against."""

Stop = Literal["none", "lossless", "pair"]
"""When a judge is asked no further vote on a pair."""

Checks = Literal["drop", "flag"]
"""What happens to texts that fail a validity check."""

ShareInterval = Literal["wilson", "clopper_pearson", "jeffreys"]
"""Confidence interval for proportions."""

EpsilonKind = Literal["additive", "multiplicative"]
"""What the non-inferiority margin is: an amount of probability, or a share of the annotator's."""

Test = Literal["auto", "score", "t"]
"""Test of non-inferiority."""

Preference = Literal["first", "second", "tie"]
"""A vote that counts: the answer that was shown first, the other, or neither."""

NoVerdict = Literal["invalid", "abstain", "ambiguous"]
"""Why a vote has no verdict."""

Choice = Literal[Preference, NoVerdict]
"""The outcome of a vote on two answers."""

RatingKind = Literal["single", "binary", "rubric", "labels"]
"""What a judge prompt that shows one answer asks for."""

LENGTH = 32
PEOPLE = "people"
"""Provider of human judges, as in people/ann."""


def unit_name(judge: str, prompt: str, prompts: Collection[str]) -> str:
    """Name a judge, with its prompt where there are several ``prompts``.

    >>> unit_name("openai/gpt", "pair_v2", ["pair_v2"])
    'openai/gpt'
    >>> unit_name("openai/gpt", "pair_v2", ["pair_v1", "pair_v2"])
    'openai/gpt / pair_v2'
    """
    return f"{judge}{BETWEEN}{prompt}" if len({*prompts}) > 1 else judge


def content_key(*parts: object) -> str:
    """Return 128 bits of SHA-256 over the JSON of ``parts``, as hex.

    >>> content_key("a", "bc") == content_key("ab", "c")
    False
    """
    packed = json.dumps(parts, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(packed.encode()).hexdigest()[:LENGTH]


def file_digest(path: Path) -> str:
    """Return a digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def whole(value: Any) -> Any:
    """Return JSON data with whole floats as integers at any depth, so that equal numbers agree.

    >>> whole({"temperature": 0.0, "stop": [1.5, 2.0]})
    {'temperature': 0, 'stop': [1.5, 2]}
    """
    if isinstance(value, dict):
        return {name: whole(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
