"""Position bias in the three words."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.aggregate import count_votes
from tasks.conclude import conclude
from tasks.counting.contests import match_models
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.gates.scorecard import scorecard
from tasks.inference.bootstrap import formulas_only
from tasks.statistics import STATISTICS

Make = Callable[..., Any]
READS = ("first_pick_share", "position_effect", "position_consistency")


def found(make_estimates: Make, **changes: Any) -> dict[str, Any]:
    """Return the finding of a judge with a gap and an effect, each with its interval."""
    gap = {
        "statistic": "position_gap",
        "estimate": 0.0,
        "low": -0.03,
        "high": 0.03,
        "standard_error": 0.015,
        "p_value": 1.0,
        "n": 400,
        "clusters": 200,
    }
    effect = {
        "statistic": "position_kappa",
        "estimate": 0.0,
        "low": -0.2,
        "high": 0.2,
        "standard_error": 0.1,
        "p_value": 1.0,
        "n": 90,
        "clusters": 80,
    }
    consistency = {"statistic": "position_consistency", "estimate": 0.7, "n": 200}
    rows = [
        row
        | {k.removeprefix(f"{name}_"): v for k, v in changes.items() if k.startswith(f"{name}_")}
        for name, row in (("gap", gap), ("effect", effect), ("pc", consistency))
    ]
    about = {"perturbation": None, "kind": None, "mode": "any", "subgroup": ""}
    (row,) = conclude(make_estimates(rows, **about)).to_dicts()
    return row


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "no relevant bias"),
        ({"gap_estimate": 0.41, "gap_p_value": 1e-6}, "biased"),
        # Sure, but below both minima: neither biased nor without bias.
        ({"gap_estimate": 0.04, "gap_p_value": 0.01}, "inconclusive"),
        # Easy pairs: the gap cannot move, the effect does.
        ({"gap_estimate": 0.02, "gap_p_value": 0.01, "effect_estimate": 0.6}, "biased"),
        # ... in the other direction than the gap it is no support.
        (
            {
                "gap_estimate": -0.02,
                "gap_p_value": 0.01,
                "effect_estimate": 0.6,
                "effect_low": 0.2,
                "effect_high": 1.0,
            },
            "inconclusive",
        ),
        # A gap within its minimum is enough, unless the effect is large for certain.
        ({"effect_estimate": 0.6, "effect_low": 0.1, "effect_high": 1.1}, "inconclusive"),
        ({"effect_estimate": 0.6, "effect_low": -0.1, "effect_high": 1.3}, "no relevant bias"),
        ({"effect_estimate": 0.2, "effect_low": 0.1, "effect_high": 0.3}, "no relevant bias"),
        ({"effect_standard_error": 0.4}, "no relevant bias"),
        # 1.653 (t, 199 df) * .03 is .0496, and * .031 is above .05
        ({"gap_standard_error": 0.03}, "no relevant bias"),
        ({"gap_standard_error": 0.031}, "inconclusive"),
        (
            {"effect_estimate": None, "effect_standard_error": None, "effect_n": 0},
            "no relevant bias",
        ),
        ({"gap_clusters": 9}, None),
        # One order per pair: the gap decides nothing.
        (
            {"pc_n": 0, "pc_estimate": None, "gap_estimate": -0.3, "gap_p_value": 1e-9},
            "no relevant bias",
        ),
        (
            {"pc_n": 0, "pc_estimate": None, "effect_estimate": -1.2, "effect_p_value": 1e-9},
            "biased",
        ),
        ({"pc_n": 0, "pc_estimate": None, "effect_estimate": None, "effect_reason": "why"}, None),
    ],
)
def test_words(make_estimates: Make, changes: dict[str, Any], word: str | None) -> None:
    row = found(make_estimates, **changes)
    assert row["finding"] == word
    assert (row["kind"], row["perturbation"], row["mode"]) == ("position", None, "any")
    assert (word is None) <= bool(row["reason"])


def test_the_reason_names_the_effect_in_logits_where_it_decides(make_estimates: Make) -> None:
    wide = {"effect_estimate": 0.6, "effect_low": -0.1, "effect_high": 1.3}
    certain = wide | {"effect_low": 0.1, "effect_high": 1.1}
    biased = {"gap_estimate": 0.02, "gap_p_value": 0.01} | certain
    large = "significant, and large enough by the effect in logits:"
    for changes, reason in (
        (
            {"effect_standard_error": 0.4} | wide,
            "based on the gap: too few verdicts depend on the order to bound the effect in logits",
        ),
        (certain, "the effect in logits says otherwise: .60 [.10, 1.10]"),
        (biased, f"{large} .60 [.10, 1.10], limit .25"),
        ({"gap_estimate": 0.41, "gap_p_value": 1e-6}, None),
        ({}, None),
    ):
        assert found(make_estimates, **changes)["reason"] == reason


def test_the_family_is_of_judges_alone(make_estimates: Make) -> None:
    about = {"perturbation": None, "kind": None, "mode": "any", "subgroup": "", "clusters": 50}
    gaps = [
        {"statistic": "position_gap", "judge": f"j{i}", "estimate": 0.1, "p_value": p}
        for i, p in enumerate((0.01, 0.03))
    ]
    shift = {
        "statistic": "mps",
        "judge": "j0",
        "perturbation": "p",
        "kind": "promote",
        "mode": "balanced",
        "estimate": 0.1,
        "p_value": 0.02,
    }
    rows = conclude(make_estimates([*gaps, shift], **about))
    adjusted = {(r["judge"], r["kind"]): r["p_adjusted"] for r in rows.to_dicts()}
    # Benjamini-Hochberg by hand: .01 * 2 / 1, .03 * 2 / 2; the shift is alone in its family.
    assert adjusted == {("j0", "position"): 0.02, ("j1", "position"): 0.03, ("j0", "promote"): 0.02}


def concluded(log: pl.DataFrame) -> pl.DataFrame:
    tallies = count_votes(log)  # type: ignore[arg-type]
    frames = {
        "tallies": tallies,
        "contests": match_models(tallies),
        "shifts": match_groups(tally_votes(tallies, "balanced")),
    }
    with formulas_only():
        return conclude(pl.concat(STATISTICS[name](**frames) for name in READS))  # type: ignore[arg-type]


def pairs(choices: dict[tuple[str, str], int], judge: str = "j") -> list[dict[str, Any]]:
    """Return votes: the choices with the anchor and the target first, and how many such pairs."""
    numbered = [pair for pair, many in choices.items() for _ in range(many)]
    return [
        {
            "judge": judge,
            "sample": f"s{i}",
            "cluster": f"s{i}",
            "shown_first": side,
            "choice": choice,
        }
        for i, pair in enumerate(numbered)
        for side, choice in zip(("anchor", "target"), pair, strict=True)
    ]


def test_who_always_picks_the_first_slot_is_biased(make_vote_log: Make) -> None:
    # SmolLM2 on the 12 questions of the study `local`: 2 of 2^12 flips are as far from 0.
    (row,) = concluded(make_vote_log(pairs({("first", "first"): 12}))).to_dicts()
    assert (row["finding"], row["estimate"]) == ("biased", 0.5)
    assert row["p_value"] == pytest.approx(2**-11)


def test_a_judge_without_conflicts_has_no_relevant_bias(make_vote_log: Make) -> None:
    log = pairs({("first", "second"): 200, ("second", "first"): 200})
    (row,) = concluded(make_vote_log(log)).to_dicts()
    assert row["finding"] == "no relevant bias"
    assert "based on the gap only" in row["reason"]


def test_the_gate_goes_by_the_finding(make_vote_log: Make, make_estimates: Make) -> None:
    log = pairs({("first", "first"): 60, ("second", "first"): 20, ("first", "second"): 20})
    findings = concluded(make_vote_log(log))
    gates = scorecard(make_estimates([]), findings)  # type: ignore[arg-type]
    verdicts = dict(gates.select("gate", "verdict").rows())
    assert verdicts == {"position": "fail", "discernment": "inconclusive"}
    reasons = dict(gates.select("gate", "reason").rows())
    assert reasons["discernment"] == "no flawed answer was shown"


def simulated(kappa: float, questions: int, studies: int, seed: int) -> list[dict[str, Any]]:
    """Return two votes on each question by the judge of methods, section 13, nu .5, omega 1.5."""
    random = np.random.default_rng(seed)
    rows = []
    for study in range(studies):
        quality = random.normal(0, 1.5, questions)
        for side, order in (("anchor", -1), ("target", 1)):
            latent = quality + kappa * order
            weights = np.exp(np.stack([-latent / 2, np.full(questions, np.log(0.5)), latent / 2]))
            ends = (weights / weights.sum(axis=0)).cumsum(axis=0)
            drawn = (random.random(questions) > ends).sum(axis=0)
            own, other = ("first", "second") if side == "target" else ("second", "first")
            rows += [
                {
                    "judge": f"j{study}",
                    "sample": f"s{i}",
                    "cluster": f"s{i}",
                    "shown_first": side,
                    "choice": (other, "tie", own)[vote],
                }
                for i, vote in enumerate(drawn)
            ]
    return rows


@pytest.mark.slow
def test_few_fair_judges_are_called_biased(make_vote_log: Make) -> None:
    rows = concluded(make_vote_log(simulated(0.0, 142, 200, seed=1)))
    share = (rows["p_value"] < 0.05).mean()
    assert abs(share - 0.05) <= 3 * 0.0154
    strong = concluded(make_vote_log(simulated(1.0, 142, 40, seed=2)))
    assert (strong["finding"] == "biased").mean() > 0.9
