"""Each planted effect moves its own perturbation and no other (methods.md, section 13)."""

from typing import Any

import polars as pl
import pytest

from tasks.datasets import DATASETS
from tasks.perturb import perturb
from tasks.prompts import PROMPTS
from tasks.simulation.judge import shares
from tasks.simulation.traits import Traits

FEATURES = {
    "fake_reference": "reference",
    "rich_content": "beauty",
    "padding": "padding",
    "factual_error": "factual_error",
    "gender_bias": "gender_bias",
}
Pairs = dict[str, list[tuple[str, str, str, str, str | None]]]


@pytest.fixture(scope="module")
def texts() -> Pairs:
    """Per perturbation: question, anchor, target, perturbed target and sham of ten questions."""
    questions, answers, versions, _ = DATASETS["bloom"].load(None)
    anchors = answers.filter(slot=1).select("question_id", anchor="answer")
    targets = answers.filter(slot=2).select("question_id", "answer_id", target="answer")
    rows = questions.join(anchors, on="question_id").join(targets, on="question_id")
    made: Pairs = {}
    for name in FEATURES:
        changed = perturb(questions, answers, versions, name, 0).drop("question_id")
        chosen = rows.join(changed, on="answer_id").sort("answer_id").gather_every(6)
        made[name] = chosen.select("question", "anchor", "target", "perturbed", "sham").rows()
    return made


def score(traits: Traits, question: str, anchor: str, target: str) -> float:
    """The exact expected score of the target over both orders."""
    form = PROMPTS["pair_v1"]
    ahead = shares(form.messages(question, anchor, target), traits)
    behind = shares(form.messages(question, target, anchor), traits)
    return ((ahead.second + ahead.tie / 2) + (behind.first + behind.tie / 2)) / 2


def shift(traits: Traits, rows: list[tuple[Any, ...]], which: int) -> float:
    moved = [
        score(traits, row[0], row[1], row[which]) - score(traits, row[0], row[1], row[2])
        for row in rows
        if row[which] is not None
    ]
    return sum(moved) / len(moved) if moved else 0.0


@pytest.mark.parametrize("planted", FEATURES)
def test_each_effect_moves_its_own_perturbation_only(texts: Pairs, planted: str) -> None:
    shifts = {}
    for beta in (0.5, 1.5):
        traits = Traits(omega=1.5, nu=0.5, kappa=0.4, seed=7, effects={FEATURES[planted]: beta})
        shifts[beta] = {name: shift(traits, rows, 3) for name, rows in texts.items()}
        shams = {name: shift(traits, rows, 4) for name, rows in texts.items()}
        # Without prompt noise the sham and the other perturbations change nothing at all.
        assert shams == pytest.approx(dict.fromkeys(texts, 0.0), abs=1e-12)
        others = {name: moved for name, moved in shifts[beta].items() if name != planted}
        assert others == pytest.approx(dict.fromkeys(others, 0.0), abs=1e-12)
    assert 0.02 < shifts[0.5][planted] < shifts[1.5][planted]


@pytest.mark.parametrize("knob", [{"kappa": 2.0}, {"nu": 2.0}, {"lapse": 0.3}, {"temperature": 2}])
def test_other_knobs_plant_no_bias(texts: Pairs, knob: dict[str, float]) -> None:
    traits = Traits(omega=1.5, seed=7, **{"nu": 0.5, **knob})
    shifts = pl.Series([shift(traits, rows, 3) for rows in texts.values()])
    assert shifts.abs().max() == pytest.approx(0.0, abs=1e-12)


def test_length_preference_moves_what_is_longer(texts: Pairs) -> None:
    traits = Traits(omega=1.5, nu=0.5, seed=7, lam=1.0)
    assert shift(traits, texts["padding"], 3) > 0.05
    # A sham of equal length moves as much as the reference: there is nothing above it.
    rows = texts["fake_reference"]
    assert shift(traits, rows, 3) == pytest.approx(shift(traits, rows, 4), abs=0.01)
