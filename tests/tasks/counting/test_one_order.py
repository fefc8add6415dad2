"""Logs in which every pair was seen in one order, as AlpacaEval's annotators see them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.contingency_tables import StratifiedTable

from tasks.aggregate import count_votes
from tasks.counting.contests import match_models
from tasks.counting.order_halves import BY_LABEL, BY_MODEL, ONE_HALF
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.inference.bootstrap import formulas_only
from tasks.kit.defaults import Thresholds, limited_by
from tasks.statistics import STATISTICS

Make = Callable[..., Any]
JUDGE = ("dataset", "judge", "prompt", "wave")


def pairs(cells: Sequence[tuple[str, str, str, int]]) -> list[dict[str, Any]]:
    """Return votes of pairs with the baseline: model, who stands first, choice, and how many."""
    rows = []
    for model, side, choice, many in cells:
        for number in range(many):
            sample = f"{model}/{side}/{choice}/{number}"
            rows.append(
                {
                    "sample": sample,
                    "cluster": sample,
                    "shown_first": side,
                    "choice": choice,
                    "anchor_author": "base",
                    "target_author": model,
                }
            )
    return rows


def simulated(
    gaps: Sequence[float], kappa: float, n: int, seed: int, *, studies: int = 1
) -> list[dict[str, Any]]:
    """Return votes of the judge of methods, section 13, on models against one baseline."""
    random = np.random.default_rng(seed)
    rows = []
    for study, (model, gap) in [(s, m) for s in range(studies) for m in enumerate(gaps)]:
        target_first = random.random(n) < 0.5
        shift = random.normal(gap, 1.5, n) + np.where(target_first, kappa, -kappa)
        wins = random.random(n) < 1 / (1 + np.exp(-shift))
        rows += [
            {
                "judge": f"j{study:04}",
                "sample": f"{model}/{i}",
                "cluster": f"q{i}",
                "shown_first": "target" if first else "anchor",
                "choice": "first" if won == first else "second",
                "anchor_author": "base",
                "target_author": f"m{model}",
            }
            for i, (first, won) in enumerate(zip(target_first, wins, strict=True))
        ]
    return rows


def measured(name: str, log: pl.DataFrame) -> pl.DataFrame:
    tallies = count_votes(log)  # type: ignore[arg-type]
    verdicts = tally_votes(tallies, "balanced")
    frames = {
        "tallies": tallies,
        "contests": match_models(tallies),
        "shifts": match_groups(verdicts),
    }
    with formulas_only():
        return STATISTICS[name](**frames)


def row(found: pl.DataFrame, statistic: str, subgroup: str = "") -> dict[str, Any]:
    (one,) = found.filter(statistic=statistic, subgroup=subgroup).to_dicts()
    return one


LOG = [
    ("m", "anchor", "first", 30),
    ("m", "anchor", "second", 20),
    ("m", "target", "first", 180),
    ("m", "target", "second", 20),
]


def test_a_win_rate_is_the_mean_of_both_halves(make_vote_log: Make) -> None:
    # m wins 20 of 50 shown second and 180 of 200 shown first: .40 and .90, mean .65; pooled: .80.
    rate = row(measured("win_rate", make_vote_log(pairs(LOG))), "win_rate", "m")
    assert rate["estimate"] == pytest.approx(0.65)
    assert (rate["n"], rate["clusters"], rate["dropped"]) == (250, 250, 0)
    # variance (.4 .6 / 49 + .9 .1 / 199) / 4, so about .65 +- 1.96 * .0366
    half = (rate["high"] - rate["low"]) / 2
    assert half == pytest.approx(1.96 * ((0.24 / 49 + 0.09 / 199) / 4) ** 0.5, rel=0.05)
    assert "assuming random orders" in rate["method"]
    base = row(measured("win_rate", make_vote_log(pairs(LOG))), "win_rate", "base")
    assert base["estimate"] == pytest.approx(0.35)


def test_questions_in_both_halves_count_once(make_vote_log: Make) -> None:
    # Twelve questions with a pair in either order: Welch's degrees of freedom would be 22.
    log = make_vote_log(
        {
            "sample": f"{number}/{side}",
            "cluster": f"q{number}",
            "shown_first": side,
            "choice": "first" if (number + at) % 3 else "second",
            "anchor_author": "base",
            "target_author": "m",
        }
        for number in range(12)
        for at, side in enumerate(("anchor", "target"))
    )
    assert row(measured("win_rate", log), "win_rate", "m")["df"] == pytest.approx(11)
    assert row(measured("win_rate", make_vote_log(pairs(LOG))), "win_rate", "m")["df"] > 48


def test_the_position_effect_compares_pairs_of_the_same_models(make_vote_log: Make) -> None:
    # Odds of the target 180/20 when first, 20/30 when second: 1/2 ln(9 * 1.5) = 1.301.
    found = row(measured("position_effect", make_vote_log(pairs(LOG))), "position_kappa")
    assert found["estimate"] == pytest.approx(0.5 * np.log(13.5))
    # Woolf: half of sqrt(1/180 + 1/20 + 1/20 + 1/30), here with G / (G - 1)
    woolf = 0.5 * (1 / 180 + 1 / 20 + 1 / 20 + 1 / 30) ** 0.5
    assert found["standard_error"] == pytest.approx(woolf, rel=0.01)
    assert found["p_value"] < 1e-6
    assert "assuming random orders" in found["method"]


def test_the_position_effect_of_several_models_is_mantels_and_haenszels(
    make_vote_log: Make,
) -> None:
    log = make_vote_log(simulated((3.0, 0.0, -1.0), -1.0, 150, seed=3))
    found = row(measured("position_effect", log), "position_kappa")
    won = (pl.col("choice") == "first") == (pl.col("shown_first") == "target")
    tables = []
    for _, own in log.group_by("target_author", maintain_order=True):
        counts = [
            own.filter(pl.col("shown_first") == side, won if target else ~won).height
            for side in ("target", "anchor")
            for target in (True, False)
        ]
        tables.append(np.array(counts, float).reshape(2, 2))
    wanted = StratifiedTable(tables)
    assert found["estimate"] == pytest.approx(np.log(wanted.oddsratio_pooled) / 2)
    # Their error takes votes as independent (Robins, Breslow and Greenland).
    assert found["standard_error"] == pytest.approx(wanted.logodds_pooled_se / 2, rel=0.1)


def test_who_always_picks_the_first_slot_has_an_effect(make_vote_log: Make) -> None:
    log = [("m", "anchor", "first", 40), ("m", "target", "first", 40)]
    found = row(measured("position_effect", make_vote_log(pairs(log))), "position_kappa")
    # .5 added to all four counts: 1/2 ln((40.5 / .5)^2) = 4.394, SE 1/2 sqrt(2 / 40.5 + 2 / .5)
    assert found["estimate"] == pytest.approx(np.log(81))
    assert found["standard_error"] == pytest.approx(
        0.5 * (2 / 40.5 + 4) ** 0.5 * (80 / 79) ** 0.5, rel=1e-3
    )
    assert ".5 added" in found["method"]


@pytest.mark.parametrize("side", ["anchor", "target"])
def test_one_slot_for_all_tells_nothing(make_vote_log: Make, side: str) -> None:
    log = make_vote_log(pairs([("m", side, "first", 30), ("m", side, "second", 30)]))
    assert row(measured("win_rate", log), "win_rate", "m")["reason"] == ONE_HALF
    assert (
        row(
            measured(
                "length_controlled",
                log.with_columns(anchor_length=pl.int_range(60), target_length=30),
            ),
            "length_controlled",
            "m",
        )["reason"]
        == ONE_HALF
    )
    found = row(measured("position_effect", log), "position_kappa")
    assert found["estimate"] is None
    assert "no two pairs of the same models" in found["reason"]


def test_an_order_that_depends_on_the_models_makes_it_null(make_vote_log: Make) -> None:
    log = make_vote_log(
        pairs(
            [
                ("good", "target", "first", 90),
                ("good", "anchor", "first", 10),
                ("bad", "target", "second", 10),
                ("bad", "anchor", "first", 90),
            ]
        )
    )
    found = measured("win_rate", log).filter(statistic="win_rate")
    assert found["estimate"].null_count() == found.height > 0
    assert found["reason"].unique().to_list() == [BY_MODEL.format(".001")]
    assert row(measured("position_effect", log), "position_kappa")["reason"] == BY_MODEL.format(
        ".001"
    )


def test_a_study_sets_the_level_of_that_test(make_vote_log: Make) -> None:
    # 6 of 10 and 4 of 10: chi-square .8, p .37
    log = make_vote_log(
        pairs(
            [
                ("good", "target", "first", 6),
                ("good", "anchor", "first", 4),
                ("bad", "target", "second", 4),
                ("bad", "anchor", "first", 6),
            ]
        )
    )
    usual = measured("win_rate", log).filter(statistic="win_rate")
    assert usual["estimate"].null_count() < usual.height
    with limited_by(Thresholds(order_alpha=0.5)):
        strict = measured("win_rate", log).filter(statistic="win_rate")
    assert strict["reason"].unique().to_list() == [BY_MODEL.format(".5")]


def test_an_order_that_depends_on_the_right_verdict_makes_it_null(make_vote_log: Make) -> None:
    log = make_vote_log(pairs(LOG)).with_columns(
        label=pl.when(pl.col("shown_first") == "target")
        .then(pl.lit("target"))
        .otherwise(pl.lit("anchor"))
    )
    assert row(measured("position_effect", log), "position_kappa")["reason"] == BY_LABEL.format(
        ".001"
    )


@pytest.mark.slow
def test_random_orders_are_seldom_doubted(make_vote_log: Make) -> None:
    log = make_vote_log(simulated((2.0, 0.0, -1.0, 0.5), 1.0, 60, seed=4, studies=150))
    found = measured("position_effect", log).filter(statistic="position_kappa")
    assert found["estimate"].null_count() <= 1


@pytest.mark.slow
def test_rates_and_effects_hold_what_was_planted(make_vote_log: Make) -> None:
    studies, gaps = 200, (2.0, 0.0)
    log = make_vote_log(simulated(gaps, -1.2, 142, seed=5, studies=studies))
    found = measured("win_rate", log)
    wins = found.filter(statistic="win_rate")
    random = np.random.default_rng(0)
    planted = []
    for model, gap in enumerate(gaps):
        latent = random.normal(gap, 1.5, 200_000)
        truth = np.mean([1 / (1 + np.exp(-latent - way)) for way in (-1.2, 1.2)])
        rates = wins.filter(subgroup=f"m{model}")
        assert rates["estimate"].mean() == pytest.approx(truth, abs=0.01)
        held = rates.select(pl.lit(truth).is_between("low", "high").mean()).item()
        # .95 and three standard errors of 200 studies
        assert held >= 0.95 - 3 * 0.0154
        planted.append(truth)
    between = found.filter(statistic="win_rate_difference", subgroup="m0 vs m1")
    held = between.select(pl.lit(planted[0] - planted[1]).is_between("low", "high").mean()).item()
    assert held >= 0.95 - 3 * 0.0154
    quiet = make_vote_log(simulated((1.0, 0.0), 0.0, 142, seed=6, studies=studies))
    none = measured("position_effect", quiet).filter(statistic="position_kappa")
    assert 0.05 - 3 * 0.0154 <= (none["p_value"] < 0.05).mean() <= 0.05 + 3 * 0.0154


def test_shifts_compare_arms_in_the_same_order(make_vote_log: Make) -> None:
    arms = {"control": {}, "experimental": {"perturbation": "p", "kind": "promote"}}
    # Sample: order in control, order in the experimental arm, and what was chosen there.
    samples = [("anchor", "anchor", "second")] * 6 + [("anchor", "anchor", "first")] * 4
    samples += [("target", "target", "first")] * 8 + [("target", "target", "second")] * 2
    samples += [("anchor", "target", "first")] * 3
    rows = []
    for number, (before, after, choice) in enumerate(samples):
        own = {"sample": f"s{number}", "cluster": f"s{number}"}
        lost = "first" if before == "anchor" else "second"
        rows.append(own | {"arm": "control", "shown_first": before, "choice": lost})
        rows.append(
            own
            | arms["experimental"]
            | {"arm": "experimental", "shown_first": after, "choice": choice}
        )
    log = make_vote_log(rows)
    # Anchor first 6 of 10 turn to the target, target first 8 of 10: (.6 + .8) / 2.
    found = row(measured("mps", log), "mps")
    assert (found["estimate"], found["n"], found["dropped"]) == (pytest.approx(0.7), 20, 3)
    # variance: a quarter of .24 / 9 and .16 / 9 together
    assert found["standard_error"] == pytest.approx((0.4 / 9 / 4) ** 0.5)
    assert found["p_value"] < 1e-5
    assert row(measured("asr", log), "asr")["estimate"] is None


def test_people_and_pairs_in_both_orders_stay_as_they_are(make_vote_log: Make) -> None:
    people = make_vote_log(pairs(LOG)).with_columns(human=pl.lit(value=True))
    # A person is taken at that word: 200 of 250.
    assert row(measured("win_rate", people), "win_rate", "m")["estimate"] == pytest.approx(0.8)
    both = pairs([("m", "anchor", "first", 30)])
    both += [{**vote, "shown_first": "target", "choice": "second"} for vote in both]
    rate = row(measured("win_rate", make_vote_log(both)), "win_rate", "base")
    assert (rate["estimate"], rate["n"]) == (1.0, 30)
    assert "halves" not in rate["method"]


def test_strength_and_length_control_hold_the_order_equal(make_vote_log: Make) -> None:
    log = make_vote_log(simulated((0.0,), 1.5, 400, seed=7)).with_columns(
        anchor_length=pl.int_range(pl.len()) * 37 % 400, target_length=200
    )
    # Two thirds of those with the target first: pooled, the target would win more than half.
    some = log.filter((pl.col("shown_first") == "target") | (pl.int_range(pl.len()) % 2 == 0))
    pooled = (
        some.filter((pl.col("choice") == "first") == (pl.col("shown_first") == "target")).height
        / some.height
    )
    assert pooled > 0.55
    rate = row(measured("length_controlled", some), "length_controlled", "m0")
    assert rate["estimate"] == pytest.approx(0.5, abs=0.06)
    strength = row(measured("style_controlled", some), "bt_strength", "m0")
    assert strength["estimate"] == pytest.approx(0.0, abs=0.2)
