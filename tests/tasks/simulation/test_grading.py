"""Ratings by simulated judges: planted grades, and replies in the form that a prompt asks for."""

import math
from statistics import NormalDist, fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.judging.rating_parser import Scale
from tasks.prompting.prompt import Prompt
from tasks.prompts import PROMPTS
from tasks.simulation.grading import answer_quality, grade_at, rate
from tasks.simulation.traits import Traits

POINTWISE = [name for name in PROMPTS if PROMPTS[name].pointwise]
STEADY = Traits(grade_noise=0)
N = 20_000


def asked(
    prompt: Prompt, traits: Traits, answer: str = "So.", repeat: int = 0, reference: str = "Why."
) -> str:
    """Return the reply of a simulated judge, asked as the engine asks it."""
    messages = prompt.messages("Why?", answer, reference=reference)
    shown = {
        "texts": ["Why?", answer],
        "reference": reference,
        "grading": prompt.grading.model_dump(mode="json"),
    }
    return rate(messages, traits, repeat, shown)


@pytest.mark.parametrize("name", POINTWISE)
def test_replies_are_read(name: str) -> None:
    prompt = PROMPTS[name]
    for traits in (STEADY, Traits(omega=3, leniency=0.3), Traits(uniform=True)):
        replies = [asked(prompt, traits, f"Answer {n}.", n) for n in range(20)]
        assert {prompt.rate(reply).choice for reply in replies} == {"rated"}
        assert all("Simulated judge (a formula, not a model)" in reply for reply in replies)


@pytest.mark.parametrize("name", POINTWISE)
def test_malformed_replies_have_no_rating(name: str) -> None:
    prompt = PROMPTS[name]
    replies = {asked(prompt, Traits(iota=1), f"Answer {n}.") for n in range(40)}
    assert {prompt.rate(reply).choice for reply in replies} == {"invalid"}


@pytest.mark.parametrize(
    ("position", "scale", "ceiling", "grade"),
    [
        (0.5, Scale(low=1, high=10), 1, 6),  # 5.5 rounds up
        (0.49, Scale(low=1, high=10), 1, 5),
        (-2, Scale(low=1, high=10), 1, 1),
        (2, Scale(low=1, high=10), 1, 10),
        (2, Scale(low=1, high=10), 0.75, 7),  # 7.75
        (0.25, Scale(low=-1, high=1, whole=False), 1, -0.5),
        (1 / 3, Scale(low=0, high=1, whole=False), 1, 0.33),
    ],
)
def test_a_position_is_a_grade(position: float, scale: Scale, ceiling: float, grade: float) -> None:
    assert grade_at(position, scale, ceiling) == grade


@given(st.floats(-5, 5), st.integers(-20, 20), st.integers(1, 100), st.floats(0.01, 1))
def test_a_grade_is_on_the_scale(position: float, low: int, width: int, ceiling: float) -> None:
    scale = Scale(low=low, high=low + width)
    grade = grade_at(position, scale, ceiling)
    assert scale.holds(grade)
    assert grade <= max(low, low + width * ceiling)


@pytest.mark.parametrize(
    ("position", "ceiling", "grade"),
    [
        (-1, 1, 1),
        (0.2, 1, 1),  # 1.8
        (0.25, 1, 3),  # 2, half way between 1 and 3
        (0.6, 1, 3),  # 3.4
        (0.8, 1, 5),  # 4.2
        (2, 0.9, 3),  # at most 4.6
        (2, 0.1, 1),
    ],
)
def test_a_grade_is_the_nearest_one_of_a_map(position: float, ceiling: float, grade: float) -> None:
    assert grade_at(position, Scale(low=1, high=5), ceiling, (3, 1, 5)) == grade


FIVE = {"low": 1, "high": 5}
GRADES = {"poor": 1, "ok": 3, "great": 5}
WORDS = {"R": "rude", "W": "wrong"}
CRITERIA = [{"name": name, **FIVE} for name in ("clear", "true")]
MAPPED: list[tuple[str, dict[str, object], dict[str, object]]] = [
    ("single", {"scale": FIVE}, GRADES),
    ("single", {"scale": {**FIVE, "whole": False}}, {"poor": 1, "ok": 2.5}),
    ("rubric", {"criteria": CRITERIA}, GRADES),
    ("binary", {}, {"good": "pass", "bad": "fail"}),
    ("labels", {"labels": ["rude", "wrong"]}, WORDS),
    ("labels", {"labels": ["rude", "wrong"]}, {**WORDS, "-": "none"}),
]


@pytest.mark.parametrize("form", ["pointer", "pattern"])
@pytest.mark.parametrize(("kind", "keys", "meanings"), MAPPED)
def test_replies_are_texts_of_the_map(
    form: str, kind: str, keys: dict[str, object], meanings: dict[str, object]
) -> None:
    rubric = kind == "rubric"
    pattern = {
        "pattern": r"(?m)^(\w+) = (\w+)$" if rubric else r"Verdict: ([\w, -]+)\.",
        "example": "{criterion} = {verdict}" if rubric else "So. Verdict: {verdict}.",
    }
    verdict = {"map": meanings, **({"pointer": "/items/0/g"} if form == "pointer" else pattern)}
    user = "{question}{answer}"
    given = {"prompt": "mine", "kind": kind, "source": "", "user": user, "verdict": verdict}
    prompt = Prompt.model_validate({**given, **keys})
    replies = [asked(prompt, Traits(uniform=True), f"Answer {n}.", n) for n in range(40)]
    rated = [prompt.rate(reply) for reply in replies]
    assert {each.choice for each in rated} == {"rated"}
    assert len({each.as_json for each in rated}) >= min(2, len(meanings))


def test_planted_effects_move_the_quality() -> None:
    plain, padded = "x" * 500, "x" * 1000
    assert answer_quality("Why?", plain, STEADY, None) == 0
    long = STEADY.model_copy(update={"lam": 2.0})
    assert answer_quality("Why?", padded, long, None) == pytest.approx(2 * math.log(2))
    likes = STEADY.model_copy(update={"effects": {"beauty": 1.5}})
    assert answer_quality("Why?", f"# Sky\n\n- {plain[7:]}", likes, None) == pytest.approx(
        1.5, abs=0.1
    )
    reads = STEADY.model_copy(update={"reference_weight": 3.0})
    reference = "Rayleigh scattering of sunlight."  # three long words
    said = "Scattering of sunlight by the air."
    assert answer_quality("Why?", said, reads, reference) == pytest.approx(2.0)
    assert answer_quality("Why?", said, reads, None) == 0


@pytest.mark.slow
def test_planted_leniency_and_noise_are_recovered() -> None:
    # Position: normal with mean .5 + leniency and variance (slope * omega)^2 / 2 + noise^2, as a
    # pair's gap of quality has variance omega^2.
    traits = Traits(seed=3, omega=1.5, leniency=0.1, grade_noise=0.08)
    spread = math.hypot(0.1 * 1.5 / math.sqrt(2), 0.08)
    place = NormalDist(0.6, spread)
    prompt = PROMPTS["binary_v1"]
    passed = [
        prompt.rate(asked(prompt, traits, f"Answer {n}.")).values[""] is True for n in range(N)
    ]
    assert fmean(passed) == pytest.approx(1 - place.cdf(0.5), abs=0.015)
    prompt = PROMPTS["single_v1"]
    grades = [prompt.rate(asked(prompt, traits, f"Answer {n}.")).values[""] for n in range(N)]
    # Grade g: position within half a grade of (g - 1) / 9.
    chances = {
        g: (1 if g == 10 else place.cdf((g - 0.5) / 9))
        - (0 if g == 1 else place.cdf((g - 1.5) / 9))
        for g in range(1, 11)
    }
    mean = sum(g * chance for g, chance in chances.items())
    assert fmean(map(float, grades)) == pytest.approx(mean, abs=0.05)  # type: ignore[arg-type]
    assert grades.count(10.0) / N == pytest.approx(chances[10], abs=0.015)


def test_a_label_that_the_answer_mentions_is_chosen() -> None:
    prompt = PROMPTS["labels_v1"]
    traits = STEADY.model_copy(update={"mention": 3.0, "pass_at": 0.7})
    answer = "It names a wrong fact. And it is unclear."
    assert prompt.rate(asked(prompt, traits, answer)).values == {"": ("wrong fact", "unclear")}
    assert prompt.rate(asked(prompt, traits, "All is well.")).values == {"": ()}
