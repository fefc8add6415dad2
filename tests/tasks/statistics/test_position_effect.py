import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.discrete.conditional_models import ConditionalLogit

from benchmarks.simulated_votes import simulate
from schemas.judging import VoteLog
from tasks.aggregate import count_votes
from tasks.inference.bootstrap import formulas_only
from tasks.simulation.traits import Traits
from tasks.statistics.position_effect import position_effect

Make = Callable[..., Any]
EVERY = "position_kappa"
FF, SS, AGREE, LOST = ("first", "first"), ("second",) * 2, ("first", "second"), ("invalid", "first")


def measured(log: pl.DataFrame, perturbation: str | None = None) -> dict[str, dict[str, Any]]:
    rows = position_effect(tallies=count_votes(log)).to_dicts()
    return {row["statistic"]: row for row in rows if row["perturbation"] == perturbation}


def test_docstring_example(make_vote_log: Make, votes: Make) -> None:
    rows = measured(make_vote_log(votes([FF] * 8 + [SS] * 2 + [AGREE] * 5 + [LOST])))
    once, every = rows["position_kappa_once"], rows["position_kappa"]
    assert once["estimate"] == every["estimate"] == pytest.approx(math.log(4) / 2)
    assert once["standard_error"] == pytest.approx(math.sqrt(1 / 8 + 1 / 2) / 2)
    # Clusters of one match each: (1/8)^2 eight times and (1/2)^2 twice. Five that agree add 0, but
    # are clusters that were asked: G / (G - 1) = 15/14.
    assert every["standard_error"] == pytest.approx(math.sqrt(15 / 14 * (1 / 8 + 1 / 2)) / 2)
    assert once["low"] == pytest.approx(once["estimate"] - 1.959964 * once["standard_error"])
    # 2 (1 - Phi(.693147 / .395285 = 1.753541)), from tables .0795.
    assert once["p_value"] == pytest.approx(0.0795, abs=5e-5)
    for row in rows.values():
        assert (row["hits"], row["n"], row["clusters"], row["dropped"]) == (8, 10, 10, 1)
    (ten,) = (
        r for n, r in measured(make_vote_log(votes([FF] * 8 + [SS] * 2))).items() if n == EVERY
    )
    assert ten["standard_error"] == pytest.approx(math.sqrt(10 / 9 * (1 / 8 + 1 / 2)) / 2)
    # FF - SS is 1 eight times and -1 twice: mean .6, SE sqrt((1 - .36) / 9), t = 2.25. Of nine
    # degrees of freedom, tables: t = 2.262 has .05, t = 2.25 .0510.
    assert ten["p_value"] == pytest.approx(0.0510, abs=5e-5)
    assert ten["p_value"] == pytest.approx(stats.ttest_1samp([1] * 8 + [-1] * 2, 0).pvalue)


def test_clusters_are_the_unit(make_vote_log: Make, votes: Make) -> None:
    log = make_vote_log(votes([FF, FF, FF, SS, FF, SS], cluster=list("aaabbc")))
    for row in measured(log).values():
        # A = 4, B = 2; clusters (3, 0), (1, 1), (0, 1): differences 3/4, -1/4, -1/2. They have 3, 2
        # and 1 of six matches, so their squares weigh 1 / (1 - 1/2), 1 / (1 - 1/3), 1 / (1 - 1/6).
        expected = math.sqrt(2 * 9 / 16 + 3 / 2 * 1 / 16 + 6 / 5 * 1 / 4) / 2
        assert row["standard_error"] == pytest.approx(expected)
        assert row["method"] == "cluster linearisation, t"
        # q = 1/2, 1/6, 1/30: df = 1 / (14/36 + (7/10)^2 - 251/900) = 5/3.
        assert row["df"] == pytest.approx(5 / 3)
        half = stats.t.ppf(0.975, 5 / 3) * expected
        assert row["high"] - row["estimate"] == pytest.approx(half, rel=1e-4)
        # FF - SS is 3, 0 and -1, of 3, 2 and 1 matches 2 of 6: off by 2, -2/3 and -4/3.
        t = 2 / math.sqrt(2 * 4 + 3 / 2 * 4 / 9 + 6 / 5 * 16 / 9)
        assert row["p_value"] == pytest.approx(2 * stats.t.sf(t, 5 / 3))


@pytest.mark.parametrize(("pair", "sign"), [(FF, 1), (SS, -1)])
def test_an_empty_count_is_flagged(
    make_vote_log: Make, votes: Make, pair: tuple[str, str], sign: int
) -> None:
    rows = measured(make_vote_log(votes([pair] * 6)))
    for row in rows.values():
        assert row["estimate"] == pytest.approx(sign * math.log(6.5 / 0.5) / 2)
        assert ".5 added to both counts" in row["method"]
    assert rows["position_kappa_once"]["standard_error"] == pytest.approx(
        math.sqrt(1 / 6.5 + 1 / 0.5) / 2
    )
    # Six clusters of 1 / 6.5, and 1 / .5 for the count that has no clusters.
    assert rows["position_kappa"]["standard_error"] == pytest.approx(
        math.sqrt(6 / 5 * 6 / 6.5**2 + 2) / 2
    )


def test_too_little_is_null_with_a_reason(make_vote_log: Make, votes: Make) -> None:
    for row in measured(make_vote_log(votes([AGREE, LOST, ("tie", "tie")]))).values():
        assert (row["estimate"], row["n"], row["p_value"]) == (None, 0, None)
        assert (row["reason"], row["method"]) == (
            "on no pair are two votes, one in each order, for the same slot",
            "none",
        )
    for row in measured(make_vote_log(votes([FF, FF, SS, AGREE], cluster=list("aaab")))).values():
        assert row["estimate"] == pytest.approx(math.log(2) / 2)
        assert (row["low"], row["reason"]) == (None, "a single cluster: no interval")
    for row in measured(make_vote_log(votes([FF, SS] * 2, cluster=list("aabb")))).values():
        assert (row["estimate"], row["low"], row["level"]) == (0.0, None, None)
        assert row["reason"] == "no variation between clusters: no interval"
    assert position_effect(tallies=count_votes(make_vote_log([]))).is_empty()


def test_the_bootstrap_stands_beside_and_costs_nothing_if_not_wanted(
    make_vote_log: Make, votes: Make
) -> None:
    log = make_vote_log(votes([FF] * 30 + [SS] * 15 + [AGREE] * 45))
    row = measured(log)[EVERY]
    # 90 clusters: percentiles are near the formula's ends, .35 -+ 1.987 sqrt(1/30 + 1/15) / 2.
    assert row["boot_low"] == pytest.approx(row["low"], abs=0.08)
    assert row["boot_high"] == pytest.approx(row["high"], abs=0.08)
    with formulas_only():
        bare = measured(log)[EVERY]
    assert (bare["boot_low"], bare["low"]) == (None, row["low"])


def test_clusters_that_differ_alike_are_tested_by_the_log_ratio(
    make_vote_log: Make, votes: Make
) -> None:
    # FF - SS is 1 in each of ten clusters of three matches: no paired t. A = 15, B = 5;
    # u = 2/15 - 1/5 five times and 1/15 five times: SE^2 = 10/9 (10/225) / 4.
    pairs = [FF, FF, SS] * 5 + [FF, AGREE, AGREE] * 5
    cluster = [name for name in "abcdefghij" for _ in range(3)]
    row = measured(make_vote_log(votes(pairs, cluster=cluster)))[EVERY]
    error = math.sqrt(10 / 9 * 10 / 225) / 2
    assert row["standard_error"] == pytest.approx(error)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(math.log(3) / 2 / error, 9))


def test_repeats_and_arms(make_vote_log: Make, votes: Make) -> None:
    log = make_vote_log(
        [
            *votes([FF, SS, SS]),
            *votes([FF, FF, SS], repeat=1),
            *votes([SS, SS, FF], arm="experimental"),
            *votes([FF] * 3, arm="sham"),
        ]
    )
    found = {name: (row["hits"], row["n"]) for name, row in measured(log).items()}
    assert found == {"position_kappa": (3, 6), "position_kappa_once": (1, 3)}
    assert {(r["hits"], r["n"]) for r in measured(log, "boast").values()} == {(1, 3)}


def test_votes_asked_one_by_one_count_once(make_vote_log: Make, votes: Make) -> None:
    rows = [*votes([FF, SS, SS]), *votes([FF, FF, SS], repeat=1)]
    rows[-1] |= {"stopped": "pair", "choice": None}
    assert {(r["hits"], r["n"]) for r in measured(make_vote_log(rows)).values()} == {(1, 3)}


@settings(max_examples=10)
@given(st.lists(st.sampled_from([FF, SS, AGREE, LOST]), min_size=1, max_size=20))
def test_exchanging_the_slots_turns_the_sign(
    make_vote_log: Make, votes: Make, pairs: list[tuple[str, str]]
) -> None:
    other = {"first": "second", "second": "first", "invalid": "invalid"}
    turned = [(other[a], other[b]) for a, b in pairs]
    for before, after in zip(
        *(measured(make_vote_log(votes(p))).values() for p in (pairs, turned)), strict=True
    ):
        if before["estimate"] is None:
            assert after["estimate"] is None
        else:
            assert after["estimate"] == pytest.approx(-before["estimate"])
            assert after["standard_error"] == pytest.approx(before["standard_error"])


@pytest.mark.slow
@pytest.mark.parametrize("kappa", [-0.6, 0.4])
def test_a_planted_effect_is_recovered_whatever_the_gaps(kappa: float) -> None:
    for mu, omega, nu in ((0.0, 0.5, 0.2), (1.0, 2.0, 1.0)):
        traits = Traits(omega=omega, nu=nu, kappa=kappa)
        log = simulate(traits, kind="promote", beta=1, items=3000, votes=4, seed=11, mu=mu)
        for perturbation in (None, "planted"):
            for row in measured(log, perturbation).values():
                assert abs(row["estimate"] - kappa) < 4 * row["standard_error"]
                assert row["standard_error"] < 0.08


@pytest.mark.slow
def test_intervals_cover_the_planted_effect() -> None:
    traits = Traits(omega=1.5, nu=0.5, kappa=0.4)
    logs = [
        simulate(
            traits,
            kind="promote",
            beta=0,
            items=160,
            votes=6,
            seed=seed,
            clusters=40,
            shared=0.5,
            judge=f"simulated/{seed}",
        ).filter(pl.col("arm") == "control")
        for seed in range(150)
    ]
    rows = position_effect(tallies=count_votes(VoteLog.of(pl.concat(logs))))
    for name in ("position_kappa", "position_kappa_once"):
        held = rows.filter(statistic=name).select(pl.lit(0.4).is_between("low", "high").mean())
        assert 0.896 <= held.item() <= 1.0, name  # .95 less three standard errors at 150


def test_against_the_conditional_logit_of_statsmodels(make_vote_log: Make, votes: Make) -> None:
    # Order has the coefficient 2 kappa; pairs judged alike in both orders tell nothing about it.
    pairs = [FF] * 9 + [SS] * 4
    target = np.array([[a == "second", b == "first"] for a, b in pairs], dtype=float)
    order = np.tile([0.0, 1.0], len(pairs))
    item = np.repeat(np.arange(len(pairs)), 2)
    fit = ConditionalLogit(target.ravel(), order[:, None], groups=item).fit(disp=False)
    row = measured(make_vote_log(votes([*pairs, *[AGREE] * 7])))["position_kappa_once"]
    assert row["estimate"] == pytest.approx(fit.params[0] / 2, abs=1e-4)
    assert row["standard_error"] == pytest.approx(fit.bse[0] / 2, abs=1e-4)
