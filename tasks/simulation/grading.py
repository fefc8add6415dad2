"""Ratings of single answers by simulated judges: a latent quality on a scale of their own.

On a scale from 0 to 1 an answer stands at .5 + slope * quality + leniency + noise. Its quality is
computed as for an answer of a pair, with the effects of its features, its length and the reference;
for a label it also counts whether the answer mentions it. A grade is that position on the declared
scale, clipped to its ends and rounded if grades are whole; an answer passes, or gets a label, from
``pass_at`` on. If a map says what the texts of replies
mean, a grade is the nearest one that has a text.
"""

import json
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from tasks.judging.rating_parser import Grading, Scale, Value
from tasks.kit.random_numbers import normal, pick, uniform
from tasks.rewriting.text_splitting import words
from tasks.simulation.judge import MALFORMED_RATINGS, WHO, latent_quality, prompt_digest, worded
from tasks.simulation.traits import Traits

USUAL_LENGTH = 500
"""Characters of an answer whose length counts neither for nor against it."""
MIDDLE = 0.5
DECIMALS = 2
"""Decimals of a grade that need not be whole."""
SHARED_WORD = 6
"""Fewest letters of a word that an answer may share with the reference."""
REASON = "the answer stands at {position:.2f} on a scale from 0 to 1."


def rate(messages: list[dict[str, str]], traits: Traits, repeat: int, shown: dict[str, Any]) -> str:
    """Reply to a pointwise judge prompt; ``shown`` has its texts, reference and form."""
    grading = _grading(json.dumps(shown["grading"], sort_keys=True))
    question, answer = shown["texts"]
    prompt = prompt_digest(messages)
    if uniform(traits.seed, "malformed", prompt, repeat) < traits.iota:
        return WHO + pick(MALFORMED_RATINGS, traits.seed, "form", prompt, repeat)
    quality = answer_quality(question, answer, traits, shown.get("reference"))
    if traits.psi:
        quality += traits.psi * normal(traits.seed, "prompt", prompt)
    quality += worded(messages, traits)
    criteria = grading.labels if grading.kind == "labels" else tuple(grading.scales)
    seen = _mentioned(criteria, answer) if grading.kind == "labels" and traits.mention else set()
    positions = {
        criterion: _position(
            quality + traits.mention * (criterion in seen),
            criterion,
            traits,
            answer=answer,
            keys=(prompt, repeat),
        )
        for criterion in criteria
    }
    mean = sum(positions.values()) / len(positions)
    return grading.write(_values(grading, positions, traits), WHO + REASON.format(position=mean))


def answer_quality(question: str, answer: str, traits: Traits, reference: str | None) -> float:
    """Return how good an answer looks by itself, in logits."""
    length = math.log(max(1, len(answer)) / USUAL_LENGTH)
    return (
        latent_quality(question, answer, traits)
        + traits.lam * length
        + traits.reference_weight * (_shared(reference, answer) if reference else 0.0)
    )


def grade_at(
    position: float, scale: Scale, ceiling: float = 1, among: Sequence[float] = ()
) -> float:
    """Return the grade at a position from 0 to 1 of a scale, clipped and rounded.

    If grades ``among`` which to choose are given, it is the nearest of them.

    >>> grade_at(0.5, Scale(low=1, high=5)), grade_at(1.4, Scale(low=1, high=10), ceiling=0.9)
    (3.0, 9.0)
    >>> grade_at(0.75, Scale(low=1, high=5), among=(1, 3, 5))
    5
    """
    width = scale.high - scale.low
    if among:
        exact = scale.low + width * min(max(position, 0.0), ceiling)
        given = [each for each in among if each <= scale.low + width * ceiling] or [min(among)]
        # Half way between two grades is the higher one, as below.
        return min(given, key=lambda each: (abs(each - exact), -each))
    grade = scale.low + width * min(max(position, 0.0), ceiling)
    if not scale.whole:
        return min(max(round(grade, DECIMALS), scale.low), scale.high)
    # Half a grade rounds up, so that a ceiling between two grades is kept by rounding down.
    highest = math.floor(scale.low + width * ceiling)
    return float(min(max(math.floor(grade + 0.5), scale.low), highest))


def _position(
    quality: float, criterion: str, traits: Traits, *, answer: str, keys: tuple[str, int]
) -> float:
    """Return where an answer stands by a criterion, from 0 to 1, unclipped."""
    seed = traits.seed
    if traits.uniform or uniform(seed, "lapse", *keys, criterion) < traits.lapse:
        return uniform(seed, "anywhere", *keys, criterion)
    if traits.upsilon and criterion:
        quality += traits.upsilon * normal(seed, "criterion", criterion, answer)
    noise = traits.grade_noise * normal(seed, "grade", *keys, criterion)
    return MIDDLE + traits.slope * quality + traits.leniency + noise


def _values(grading: Grading, positions: dict[str, float], traits: Traits) -> dict[str, Value]:
    if grading.kind == "labels":
        chosen = (label for label, position in positions.items() if position >= traits.pass_at)
        return {"": tuple(chosen)}
    mapped = grading.mapped
    values: dict[str, Value] = {}
    for criterion, position in positions.items():
        if scale := grading.scales[criterion]:
            values[criterion] = grade_at(position, scale, traits.ceiling, mapped)
        else:
            values[criterion] = position >= traits.pass_at
    return values


def _mentioned(labels: Iterable[str], answer: str) -> set[str]:
    """Return the labels whose words are all in the answer."""
    there = set(words(answer))
    return {label for label in labels if there.issuperset(words(label))}


def _shared(reference: str, answer: str) -> float:
    """Return the share of the reference's long words that the answer has."""
    wanted = {word for word in words(reference) if len(word) >= SHARED_WORD}
    return len(wanted & {*words(answer)}) / len(wanted) if wanted else 0.0


@lru_cache
def _grading(text: str) -> Grading:
    return Grading.model_validate_json(text)
