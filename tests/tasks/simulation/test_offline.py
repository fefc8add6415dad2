import hashlib
import json
import math
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from statistics import NormalDist, fmean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.judging.verdict_parser import parse
from tasks.perturbations import PERTURBATIONS, Item
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, Judge
from tasks.simulation.judge import PairText, answer, gap, probabilities, shares, simulated_reply
from tasks.simulation.traits import Traits

ROOT = Path(__file__).parents[3]
PROMPT = PROMPTS["pair_v1"]
BUNDLED = [
    entry
    for file in sorted((ROOT / "tasks" / "datasets" / "_bloom").glob("*.toml"))
    for entry in tomllib.loads(file.read_text(encoding="utf-8"))["questions"]
]
HONEST, GULLIBLE, CARELESS, POSITIONAL, RANDOM = (
    Traits(**JUDGES[f"offline/{name}"].params["traits"])
    for name in ("honest", "gullible", "careless", "positional", "random")
)

# Decorations by hand, in the manner of the bundled perturbations.
DECORATED = {
    "bold": lambda text: re.sub(r"\b(\w{7,})\b", r"**\1**", text),
    "bullets": lambda text: "- " + text.replace(". ", ".\n- "),
    "emoji": lambda text: text + " \U0001f680",
    "references": lambda text: text + "\n\nReferences\nHale (2014). On things. Invented Press.",
    "spaces": lambda text: text.replace(" ", "  "),
}


def plant(entry: dict, field: str) -> str:
    text = entry["target"]
    for right, wrong in entry[field]:
        text = text.replace(right, wrong)
    return text


def target_share(entry: dict, target: str, traits: Traits) -> float:
    """Mean chance of the target over both orders, ties counting half."""
    one = shares(PROMPT.messages(entry["question"], entry["anchor"], target), traits)
    two = shares(PROMPT.messages(entry["question"], target, entry["anchor"]), traits)
    return (one.second + one.tie / 2 + two.first + two.tie / 2) / 2


def mean_shift(perturbed: list[str], traits: Traits) -> float:
    return fmean(
        target_share(entry, text, traits) - target_share(entry, entry["target"], traits)
        for entry, text in zip(BUNDLED, perturbed, strict=True)
    )


def test_there_are_sixty_bundled_questions() -> None:
    assert len(BUNDLED) == 60


# By hand: weights e^(-m/2), nu, e^(m/2), each to the power 1/temperature.
@pytest.mark.parametrize(
    ("margin", "nu", "temperature", "lapse", "chances"),
    [
        (0, 0.5, 1, 0, (0.4, 0.2, 0.4)),
        (math.log(16), 0.5, 1, 0, (0.25 / 4.75, 0.5 / 4.75, 4 / 4.75)),
        (-math.log(16), 0.5, 1, 0, (4 / 4.75, 0.5 / 4.75, 0.25 / 4.75)),
        (math.log(16), 0.25, 2, 0, (0.5 / 3, 0.5 / 3, 2 / 3)),
        (math.log(16), 0.25, 2, 0.3, (0.35 / 3 + 0.1, 0.35 / 3 + 0.1, 1.4 / 3 + 0.1)),
        (0, 0, 1, 0, (0.5, 0, 0.5)),
        (1, 1, 0, 0, (0, 0, 1)),
        (-1, 0.5, 0, 0, (1, 0, 0)),
        (1, 2, 0, 0, (0, 1, 0)),  # 1/2 < ln 2
        (0, 0.5, 0, 0, (0.5, 0, 0.5)),
        (0, 1, 0, 0, (0, 1, 0)),
        (1e9, 100, 0.01, 0, (0, 0, 1)),
        (-1e9, 0, 0.01, 0, (1, 0, 0)),
        (5, 1, 1, 1, (1 / 3, 1 / 3, 1 / 3)),
    ],
)
def test_probabilities(
    margin: float, nu: float, temperature: float, lapse: float, chances: tuple[float, ...]
) -> None:
    assert probabilities(margin, nu, temperature, lapse) == pytest.approx(chances)
    arrays = probabilities(np.array([margin, 0.3]), nu, temperature, lapse)
    assert [a[0] for a in arrays] == pytest.approx(chances)


@given(
    st.floats(-1e6, 1e6), st.floats(0, 100), st.just(0.0) | st.floats(0.01, 100), st.floats(0, 1)
)
def test_probabilities_add_up_and_mirror(
    m: float, nu: float, temperature: float, lapse: float
) -> None:
    first, tie, second = probabilities(m, nu, temperature, lapse)
    assert first + tie + second == pytest.approx(1)
    assert min(first, tie, second) >= 0
    assert probabilities(-m, nu, temperature, lapse) == (second, tie, first)


def test_quality_is_a_hash_of_seed_question_and_plain_words() -> None:
    # Second implementation, with hashlib and the normal quantile alone.
    def sha(*parts: object) -> bytes:
        return hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()

    def quality(text: str) -> float:
        bits = int.from_bytes(sha(7, "quality", sha("Why?", text).hex())[:8], "big") >> 11
        return NormalDist().inv_cdf((bits + 0.5) / 2**53) * 2 / math.sqrt(2)

    found = gap(
        PairText("Why?", "Red clay lasts.", "Blue **clay** fades!"), Traits(omega=2, seed=7)
    )
    assert found == pytest.approx(quality("blue clay fades") - quality("red clay lasts"))


def test_gaps_have_the_planted_spread() -> None:
    traits = Traits(omega=1.5)
    gaps = [gap(PairText("Q", f"stone {n}", f"river {n}"), traits) for n in range(4000)]
    # Standard errors: mean 1.5/63 = .024, standard deviation 1.5/89 = .017.
    assert fmean(gaps) == pytest.approx(0, abs=0.08)
    assert stdev(gaps) == pytest.approx(1.5, abs=0.06)


def test_replies_do_not_depend_on_the_order_of_calls_nor_on_the_process() -> None:
    messages = [PROMPT.messages(e["question"], e["anchor"], e["target"]) for e in BUNDLED]
    calls = [(m, repeat) for m in messages for repeat in range(3)]
    forward = [answer(m, CARELESS, repeat) for m, repeat in calls]
    backward = [answer(m, CARELESS, repeat) for m, repeat in reversed(calls)]
    assert forward == backward[::-1]
    script = (
        "import json, sys; from tasks.simulation.judge import answer;"
        "from tasks.simulation.traits import Traits;"
        "m, t, r = json.load(sys.stdin); print(answer(m, Traits(**t), r));"
        "print({'numpy', 'scipy', 'polars', 'pandera', 'prefect', 'litellm'} & set(sys.modules))"
    )
    other_process = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps([calls[100][0], CARELESS.model_dump(), calls[100][1]]),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    # Nor does who asks in text mode import anything heavy.
    assert other_process.stdout == f"{forward[100]}\nset()\n"


def test_repeats_differ_and_follow_the_chances() -> None:
    entry = BUNDLED[0]
    messages = PROMPT.messages(entry["question"], entry["anchor"], entry["target"])
    traits = Traits(omega=1, nu=1, seed=3)
    counts = Counter(parse(answer(messages, traits, repeat)) for repeat in range(3000))
    first, tie, second = shares(messages, traits)
    # Four standard errors of a share of 3000: at most .037.
    found = [counts[choice] / 3000 for choice in ("first", "tie", "second")]
    assert found == pytest.approx([first, tie, second], abs=0.037)
    assert min(found) > 0


MIRROR = {"first": "second", "second": "first", "tie": "tie"}


@pytest.mark.parametrize("entry", BUNDLED, ids=[entry["id"] for entry in BUNDLED])
def test_swapping_the_answers_mirrors_the_verdict(entry: dict) -> None:
    ab = PROMPT.messages(entry["question"], entry["anchor"], entry["target"])
    ba = PROMPT.messages(entry["question"], entry["target"], entry["anchor"])
    assert shares(ab, HONEST) == shares(ba, HONEST)[::-1]
    certain = HONEST.model_copy(update={"temperature": 0.0})
    assert parse(answer(ab, certain, 0)) == MIRROR[parse(answer(ba, certain, 5))]


def test_a_positional_judge_takes_the_first_slot() -> None:
    ballots = [
        PROMPT.messages(e["question"], *pair)
        for e in BUNDLED
        for pair in ((e["anchor"], e["target"]), (e["target"], e["anchor"]))
    ]
    assert fmean(shares(m, POSITIONAL).first for m in ballots) > 0.8
    assert fmean(shares(m, HONEST).first for m in ballots) == pytest.approx(
        fmean(shares(m, HONEST).second for m in ballots)
    )


def test_noise_of_a_prompt_depends_on_the_whole_prompt() -> None:
    messages = PROMPT.messages("Q", "one", "two")
    other = [{"role": "system", "content": "Another instruction."}, messages[-1]]
    noisy, quiet = Traits(psi=1), Traits()
    assert shares(messages, noisy) != shares(other, noisy)
    assert shares(messages, quiet) == shares(other, quiet)


@pytest.mark.parametrize("decorate", DECORATED.values(), ids=DECORATED.keys())
def test_decoration_changes_no_quality(decorate: object) -> None:
    changed = [decorate(entry["target"]) for entry in BUNDLED]
    assert all(text != entry["target"] for text, entry in zip(changed, BUNDLED, strict=True))
    assert mean_shift(changed, HONEST) == 0


@pytest.mark.parametrize("name", ["fake_reference", "rich_content", "padding"])
def test_templates_and_their_shams_change_no_quality(name: str) -> None:
    recipe = PERTURBATIONS[name]
    for entry in BUNDLED:
        item = Item(entry["id"], entry["question"], entry["target"])
        perturbed = recipe.make(item, 0)
        sham = recipe.sham(item, perturbed, 0) if recipe.sham else None
        for text in filter(None, (perturbed, sham)):
            assert gap(PairText(item.question, item.answer, text), HONEST) == 0, entry["id"]
        assert gap(PairText(item.question, item.answer, perturbed), GULLIBLE) != 0, entry["id"]
        if sham:
            assert gap(PairText(item.question, item.answer, sham), GULLIBLE) == 0, entry["id"]


@pytest.mark.parametrize(("name", "field"), [("factual_error", "errors"), ("gender_bias", "bias")])
def test_shams_of_flaws_carry_no_flaw(name: str, field: str) -> None:
    seen = 0
    for entry in BUNDLED:
        item = Item(entry["id"], entry["question"], entry["target"])
        sham = PERTURBATIONS[name].sham(item, plant(entry, field), 0)
        if sham is not None:
            seen += 1
            assert gap(PairText(item.question, item.answer, sham), HONEST) == 0, entry["id"]
    assert seen > 50


# With beta = 1 and omega = 1.5 the shift is .14 on average (methods.md, section 4, for beta 1).
@pytest.mark.parametrize("name", ["bold", "bullets", "emoji", "references"])
def test_a_gullible_judge_rewards_decoration(name: str) -> None:
    traits = GULLIBLE.model_copy(update={"psi": 0.0})
    shift = mean_shift([DECORATED[name](entry["target"]) for entry in BUNDLED], traits)
    assert 0.08 < shift < 0.20


def test_padding_is_rewarded_by_the_gullible_only() -> None:
    padded = [f"{e['target']} {e['target'].split('. ')[0]}." for e in BUNDLED]
    assert mean_shift(padded, GULLIBLE) > 0.08
    assert mean_shift(padded, HONEST) == 0


@pytest.mark.parametrize("field", ["errors", "bias"])
def test_planted_errors_cost_votes(field: str) -> None:
    flawed = [plant(entry, field) for entry in BUNDLED]
    shift = {
        name: mean_shift(flawed, t) for name, t in (("h", HONEST), ("g", GULLIBLE), ("c", CARELESS))
    }
    assert shift["h"] < shift["c"] < shift["g"] < 0
    # methods.md, section 13: careless .6 x about -.33 = -.197.
    assert shift["c"] == pytest.approx(-0.197, abs=0.08)
    assert mean_shift(flawed, Traits(omega=1.5)) == 0  # the quality is that of the sound answer


def test_planted_errors_cost_votes_in_replies_too() -> None:
    def wins(target: str, entry: dict) -> int:
        m = PROMPT.messages(entry["question"], entry["anchor"], target)
        return sum(parse(answer(m, HONEST, repeat)) == "second" for repeat in range(6))

    sound = sum(wins(entry["target"], entry) for entry in BUNDLED)
    flawed = sum(wins(plant(entry, "errors"), entry) for entry in BUNDLED)
    assert flawed < sound / 2


def test_an_error_counts_for_its_own_question_only_and_under_decoration() -> None:
    flawed, traits = plant(BUNDLED[0], "errors"), Traits(effects={"factual_error": -2})
    question, target = BUNDLED[0]["question"], BUNDLED[0]["target"]
    assert gap(PairText(question, target, flawed), traits) == -2
    assert gap(PairText(question, target, DECORATED["bold"](flawed)), traits) == -2
    assert gap(PairText(BUNDLED[1]["question"], target, flawed), traits) == 0


def test_detection_and_spread_of_an_effect() -> None:
    def effects(traits: Traits) -> list[float]:
        return [
            gap(PairText(e["question"], e["target"], plant(e, "errors")), traits) for e in BUNDLED
        ]

    half = effects(Traits(pi=0.6, effects={"factual_error": -1}))
    assert set(half) == {0.0, -1.0}
    assert 25 <= half.count(-1.0) <= 47  # 36 by expectation, standard deviation 3.8
    spread = effects(Traits(upsilon=0.5, effects={"factual_error": -1}))
    assert fmean(spread) == pytest.approx(-1, abs=0.2)
    assert stdev(spread) == pytest.approx(0.5, abs=0.15)


def test_the_random_judge_is_uniform() -> None:
    counts = Counter(
        parse(answer(PROMPT.messages(e["question"], *pair), RANDOM, repeat))
        for e in BUNDLED
        for pair in ((e["anchor"], e["target"]), (e["target"], e["anchor"]))
        for repeat in range(6)
    )
    assert counts.keys() == {"first", "second", "tie"}
    # Chi-square with 2 degrees of freedom: 9.21 is passed once in 100 seeds.
    assert sum((count - 240) ** 2 / 240 for count in counts.values()) < 9.21


def test_a_judge_changes_only_in_the_waves_that_it_names() -> None:
    judge = JUDGES["offline/fair"]
    traits = judge.params["traits"]
    waves = {"changed": {"kappa": 100.0}}
    changing = judge.model_copy(update={"params": {"traits": {**traits, "waves": waves}}})
    asked = [PROMPT.messages(e["question"], e["anchor"], e["target"]) for e in BUNDLED[:20]]

    def replies(of: Judge, wave: str) -> list[str]:
        return [
            simulated_reply(of, each, {**of.params, "seed": 0, "wave": wave}).text for each in asked
        ]

    assert replies(changing, "before") == replies(changing, "") == replies(judge, "changed")
    assert {parse(text) for text in replies(changing, "changed")} == {"first"}
