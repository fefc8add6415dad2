"""Simulated judges with known, planted biases; they read the same prompt as a real model.

The formulas follow Davidson's tie model: toward the second slot, an answer's odds are
exp(gap of quality + planted effects + length - position + noise of the prompt). Every random
number is a hash of the judge's seed, a purpose and texts, so a reply depends on no other call.
"""

import hashlib
import json
import math
import re
from collections import deque
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tasks.engine.journal import Reply
from tasks.kit.catalogue import read_toml
from tasks.kit.random_numbers import normal, pick, uniform
from tasks.prompting.prompt import MARK_DIGITS
from tasks.providers import Judge
from tasks.rewriting.plain_content import CACHED_CHARACTERS, canonical, features
from tasks.rewriting.text_splitting import plain, sentences, words
from tasks.simulation.traits import Feature, Traits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = TypeVar("Numbers", float, NDArray[np.float64])
else:
    Numbers = TypeVar("Numbers")

KEYS = Path(__file__).parents[1] / "datasets" / "_bloom"
ERROR_FEATURES: dict[str, Feature] = {"errors": "factual_error", "bias": "gender_bias"}
"""Field of a bundled question -> the feature that its replacements make."""

QUESTION, START, END = "[Question]\n", "[Start of answer A]\n", "[End of answer B]"
BETWEEN = re.compile(r"\n?\[End of answer A\]\s*\[Start of answer B\]\n?")
MARKED = re.compile(rf"\[Question ([0-9a-f]{{{MARK_DIGITS}}})\]\n")
"""Begins a prompt whose frame is marked; no text in it holds the mark, so nothing is ambiguous."""

WHO = "Simulated judge (a formula, not a model): "
REASONS = {
    "A": ("answer A serves the question better.", "answer A comes out ahead of answer B."),
    "B": ("answer B serves the question better.", "answer B comes out ahead of answer A."),
    "C": ("the two answers are about equally good.", "neither answer is clearly ahead."),
}
MALFORMED = (
    "both answers have their merits. No verdict follows.",
    "answer A serves the question better. Verdict: A",
    "answer B serves the question better. [B]",
    "the two answers are about equally good. [[C",
)
MALFORMED_RATINGS = (
    "the answer has its merits. No grade follows.",
    "the answer is good. Grade: 8 out of 10",
    "the answer is fair. [7]",
    "the answer is weak. [[3",
)


class Shares(NamedTuple):
    """Chances of the three choices, apart from malformed replies."""

    first: float
    tie: float
    second: float


class PairText(NamedTuple):
    """The texts of a judge prompt."""

    question: str
    first: str
    second: str


class _Features(NamedTuple):
    identity: str
    features: tuple[Feature, ...]
    filler: bool
    """Whether it contains filler sentences or unusual spacing."""


def simulated_reply(judge: Judge, messages: list[dict[str, str]], params: dict[str, Any]) -> Reply:
    """Return the reply of a simulated judge to a request; its tokens are words."""
    traits = _traits(json.dumps(params["traits"], sort_keys=True), params.get("wave", ""))
    # A prompt of the user's own comes with the texts that it shows and the replies it asks for.
    shown = params.get("shown") or {"texts": (), "replies": {}}
    if "grading" in shown:
        # Imports this module.
        from tasks.simulation.grading import rate

        return _reply(judge, messages, rate(messages, traits, params["seed"], shown))
    texts = PairText(*shown["texts"]) if shown["texts"] else None
    text = answer(messages, traits, params["seed"], texts)
    if shown["replies"]:
        text = shown["replies"].get(text.partition(" [[")[2].rstrip("]"), text)
    elif form := params.get("response_format"):
        text = as_object(text, form["json_schema"]["schema"]["required"])
    return _reply(judge, messages, text)


def _reply(judge: Judge, messages: list[dict[str, str]], text: str) -> Reply:
    return Reply(
        text=text,
        model=judge.model,
        finish_reason="stop",
        prompt_tokens=sum(len(message["content"].split()) for message in messages),
        completion_tokens=len(text.split()),
        cost_usd=0.0,
    )


@lru_cache
def _traits(text: str, wave: str) -> Traits:
    return Traits(**json.loads(text)).in_wave(wave)


def as_object(reply: str, names: Collection[str]) -> str:
    """Return an answer as an object of ``names``, for a prompt that asks for one."""
    reason, _, verdict = reply.partition(" [[")
    parts = {"reason": reason, "verdict": verdict.rstrip("]")}
    return json.dumps({name: parts[name] for name in names})


def answer(
    messages: list[dict[str, str]], traits: Traits, repeat: int, texts: PairText | None = None
) -> str:
    """Reply to a judge prompt as a model would, reason first and verdict last.

    Without ``texts`` they are taken from the last message.
    """
    prompt, seed = prompt_digest(messages), traits.seed
    if uniform(seed, "malformed", prompt, repeat) < traits.iota:
        return WHO + pick(MALFORMED, seed, "form", prompt, repeat)
    chances = shares(messages, traits, texts)
    drawn = uniform(seed, "vote", prompt, repeat)
    tag = "A" if drawn < chances.first else "C" if drawn < 1 - chances.second else "B"
    reason = pick(REASONS[tag], seed, "reason", prompt, repeat)
    return f"{WHO}{reason} [[{tag}]]"


def shares(messages: list[dict[str, str]], traits: Traits, texts: PairText | None = None) -> Shares:
    """Return the chances of each choice for a judge prompt."""
    if traits.uniform:
        return Shares(1 / 3, 1 / 3, 1 / 3)
    margin = gap(texts or read_prompt(messages[-1]["content"]), traits) - traits.kappa
    if traits.psi:
        margin += traits.psi * normal(traits.seed, "prompt", prompt_digest(messages))
    margin += worded(messages, traits)
    return Shares(*probabilities(margin, traits.nu, traits.temperature, traits.lapse))


def probabilities(
    margin: Numbers, nu: float, temperature: float, lapse: float
) -> tuple[Numbers, Numbers, Numbers]:
    """Return the chances of first, tie and second for a margin toward the second slot.

    Works on numbers and on arrays. Weights are relative to the leading slot's, so that none
    overflows; temperature 0 takes the greatest.
    """
    size = abs(margin) / 2
    second: Any = ((margin > 0) * 1.0 - (margin < 0) * 1.0 + 1) / 2
    lead: Any
    if temperature == 0:
        lead = (size > (math.log(nu) if nu else -math.inf)) * 1.0
        trail, tie = 0 * lead, 1 - lead
    else:
        lead = 1.0
        trail = math.e ** (-2 * size / temperature)
        tie = nu ** (1 / temperature) * math.e ** (-size / temperature)
    keep, share = (1 - lapse) / (lead + trail + tie), lapse / 3
    return (
        keep * (lead * (1 - second) + trail * second) + share,
        keep * tie + share,
        keep * (lead * second + trail * (1 - second)) + share,
    )


def gap(texts: PairText, traits: Traits) -> float:
    """Return how much better the second answer looks, apart from slot and prompt."""
    length = math.log(max(1, len(texts.second)) / max(1, len(texts.first)))
    first, second = (
        latent_quality(texts.question, text, traits) for text in (texts.first, texts.second)
    )
    return second - first + traits.lam * length


def read_prompt(user: str) -> PairText:
    """Find the question and the two answers in a user message.

    In a marked frame (``pair_v2``) only lines with its mark count. In an unmarked one (``pair_v1``)
    an answer may repeat the markers: the outermost count, and the last of several borders between
    the answers.

    Raise ValueError if the message has neither frame.
    """
    if marked := MARKED.match(user):
        return _read_marked(user, marked)
    question = user.find(QUESTION)
    start = user.find(START, max(0, question))
    end = user.rfind(END)
    border: re.Match[str] | None = None
    if 0 <= question < start < end:
        borders = deque(BETWEEN.finditer(user, start + len(START), end), maxlen=1)
        border = borders.pop() if borders else None
    if border is None:
        raise ValueError(
            f"simulated judges cannot read a judge prompt without the markers {QUESTION.strip()}, "
            f"{START.strip()} ... {END}. Word it like tasks/prompts/pair_v2.toml."
        )
    return PairText(
        user[question + len(QUESTION) : start].strip(),
        user[start + len(START) : border.start()],
        user[border.end() : end].removesuffix("\n"),
    )


def _read_marked(user: str, marked: re.Match[str]) -> PairText:
    start, border, end = (
        f"\n\n[Start of answer A {marked[1]}]\n",
        f"\n[End of answer A {marked[1]}]\n\n[Start of answer B {marked[1]}]\n",
        f"\n[End of answer B {marked[1]}]\n",
    )
    question, *rest = user[marked.end() :].split(start)
    first, *rest = "".join(rest).split(border)
    second, *rest = "".join(rest).split(end)
    if rest != [""]:
        raise ValueError(
            f"simulated judges cannot read this judge prompt marked {marked[1]}: its lines differ "
            "from the bundled ones. Word it like tasks/prompts/pair_v2.toml."
        )
    return PairText(question.strip(), first, second)


def worded(messages: list[dict[str, str]], traits: Traits) -> float:
    """Return what the words of the system message add, in logits."""
    system = "".join(each["content"] for each in messages if each["role"] == "system")
    return sum(effect for text, effect in traits.wordings.items() if text in system)


def prompt_digest(messages: list[dict[str, str]]) -> str:
    """Return what random numbers of a request depend on."""
    return _digest(*(text for message in messages for text in message.values()))


def latent_quality(question: str, text: str, traits: Traits) -> float:
    """Return an answer's quality, of variance omega^2 / 2, and the effects of its features."""
    seen = _features_of(question, text)
    seed, scale = traits.seed, traits.omega / math.sqrt(2)
    quality = scale * _normal(seed, "quality", seen.identity) if scale else 0.0
    return (
        quality
        + traits.sham_taste * seen.filler
        + sum(
            traits.effects[feature] + _spread(traits, feature, seen.identity)
            for feature in seen.features
            if feature in traits.effects
            and uniform(seed, "notice", feature, seen.identity) < traits.pi
        )
    )


def _spread(traits: Traits, feature: Feature, identity: str) -> float:
    if not traits.upsilon:
        return 0.0
    return traits.upsilon * _normal(traits.seed, f"effect of {feature}", identity)


@lru_cache(maxsize=8192)
def _normal(seed: int, purpose: str, identity: str) -> float:
    return normal(seed, purpose, identity)


def _features_of(question: str, text: str) -> _Features:
    """Return the features of an answer and its identity: the text without decoration and errors."""
    kept = len(question) + len(text) <= CACHED_CHARACTERS
    return (
        _cached_features(question, text) if kept else _cached_features.__wrapped__(question, text)
    )


@lru_cache(maxsize=2048)
def _cached_features(question: str, text: str) -> _Features:
    plain, counts = canonical(text), features(text)
    error, original = _answer_key(question).get(plain, (None, plain))
    noticed: list[tuple[Feature, bool]] = [
        ("reference", counts.references > 0),
        ("beauty", counts.markup + counts.emoji > 0),
        ("padding", counts.padding > 0),
    ]
    found = (*(feature for feature, there in noticed if there), *([error] if error else []))
    return _Features(_digest(question, original), found, has_filler(question, text))


@lru_cache(maxsize=256)
def _answer_key(question: str) -> dict[str, tuple[Feature, str]]:
    """Map each flawed version of a bundled answer to its flaw and the sound answer."""
    entry = _bundled().get(question)
    if entry is None:
        return {}
    sound = entry["target"]
    return {
        canonical(_replaced(sound, entry[field])): (feature, canonical(sound))
        for field, feature in ERROR_FEATURES.items()
    }


def _replaced(text: str, replacements: list[list[str]]) -> str:
    for right, wrong in replacements:
        text = text.replace(right, wrong)
    return text


@lru_cache(maxsize=1)
def _bundled() -> dict[str, dict[str, Any]]:
    files = [read_toml(file) for file in sorted(KEYS.glob("*.toml"))]
    return {entry["question"].strip(): entry for file in files for entry in file["questions"]}


def _digest(*texts: str) -> str:
    joined = "\x1f".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()


TALK = frozenset(
    words(
        "answer answered answers closing explanation hope paragraph pause phrase question "
        "questions read reader readers reading reads reply sentence sentences text texts thank "
        "thanks thoughts topic topics word words"
    )
)
"""Words about the text, its topic or its reader."""

ASIDE = TALK | {"here", "i", "me", "my", "nothing", "such", "this", "you", "your"}

CONTENT_LETTERS = 6
"""Fewest letters of a word that counts as a content word."""

WIDE = re.compile(r"\S {2,}\S")
MOST_WIDE = 2
"""Wide gaps between words that are taken for typing errors."""


def has_filler(question: str, text: str) -> bool:
    """Tell whether an answer contains filler sentences or unusual spacing.

    A sentence is filler if it has two words of ``ASIDE``, one of them of ``TALK``, that the
    question has not, and no long word that the question or another sentence has.

    >>> has_filler("Why do leaves fall?", "Trees save water. Thank you for reading this text.")
    True
    >>> has_filler("Why do leaves fall?", "Trees save water, so their leaves fall.")
    False
    """
    if len(WIDE.findall(text)) > MOST_WIDE:
        return True
    asked = set(words(question))
    found = [set(words(sentence)) for sentence in sentences(plain(text))]
    return any(
        len((ASIDE - asked) & sentence) > 1
        and not (TALK - asked).isdisjoint(sentence)
        and _content_words(sentence).isdisjoint(
            asked.union(*(s for s in found if s is not sentence))
        )
        for sentence in found
    )


def _content_words(sentence: set[str]) -> set[str]:
    return {word for word in sentence if len(word) >= CONTENT_LETTERS} - TALK
