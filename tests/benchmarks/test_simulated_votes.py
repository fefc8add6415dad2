from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
import pytest
from numpy.polynomial.hermite_e import hermegauss

from benchmarks.simulated_votes import PRESETS, Kind, simulate
from schemas.judging import VoteLog
from tasks.aggregate import count_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.simulation.traits import Traits
from tasks.statistics import STATISTICS

ITEMS, VOTES = 20_000, 6

# methods.md, section 13, as printed there.
PRINTED = {
    "honest": (0.548, 0.217, 0.217, 0.217, 0.0, 0.0, 0.484, 0.0, 0.169),
    "gullible": (0.551, 0.477, 0.235, 0.220, 0.242, 0.139, 0.465, -0.143, 0.168),
    "careless": (0.567, 0.340, 0.703, 0.722, -0.363, -0.197, 0.412, 0.231, 0.155),
}


@dataclass
class Values:
    in_v: float
    asr: float
    sham_floor: float
    replicate_floor: float
    dasr: float
    mps: float
    consistency: float
    fairness: float
    ties: float


def normal_nodes(count: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = hermegauss(count)
    return scale * nodes, weights / weights.sum()


def votes_of(margin: np.ndarray, traits: Traits) -> np.ndarray:
    """P(A1), P(tie), P(A2) along the last axis: the softmax of section 13, written out."""
    weights = np.stack(
        [np.exp(-margin / 2), np.full_like(margin, traits.nu), np.exp(margin / 2)], axis=-1
    ) ** (1 / traits.temperature)
    chances = weights / weights.sum(axis=-1, keepdims=True)
    return (1 - traits.lapse) * chances + traits.lapse / 3


def convolve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    size = a.shape[-1] + b.shape[-1] - 1
    total = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), size))
    for shift in range(b.shape[-1]):
        total[..., shift : shift + a.shape[-1]] += a * b[..., shift : shift + 1]
    return total


def sum_of_three(margin: np.ndarray, traits: Traits) -> np.ndarray:
    one = votes_of(margin, traits)
    return convolve(convolve(one, one), one)


@cache
def expected(preset: str) -> Values:
    """Section 13's expected values by quadrature: 80 nodes for d, 40 for zeta and upsilon."""
    traits, kind, beta = PRESETS[preset]
    gap, gap_weight = normal_nodes(80, traits.omega)
    zeta, zeta_weight = normal_nodes(40 if traits.psi else 1, traits.psi)
    upsilon, upsilon_weight = normal_nodes(40 if traits.upsilon else 1, traits.upsilon)

    def per_order(base: np.ndarray, order: int) -> np.ndarray:
        return sum_of_three(base[..., None] + traits.kappa * order + zeta, traits)

    def total(base: np.ndarray) -> np.ndarray:
        halves = (np.einsum("...zk,z->...k", per_order(base, o), zeta_weight) for o in (1, -1))
        return convolve(*halves)

    control = total(gap)
    shifted = np.einsum("duk,u->dk", total(gap[:, None] + beta + upsilon), upsilon_weight)
    experimental = (1 - traits.pi) * control + traits.pi * shifted

    selected, success = (
        (slice(0, 7), slice(7, None)) if kind == "promote" else (slice(6, None),) * 2
    )
    chosen = control[:, selected].sum(axis=1) * gap_weight
    in_v = chosen.sum()
    asr = (chosen * experimental[:, success].sum(axis=1)).sum() / in_v
    floor = (chosen * control[:, success].sum(axis=1)).sum() / in_v

    # The same prompts asked again share zeta, so the pairs of zetas stay in the integral.
    both = convolve(per_order(gap, 1)[:, :, None], per_order(gap, -1)[:, None, :])
    again = both[..., selected].sum(axis=-1) * both[..., success].sum(axis=-1)
    repeated = np.einsum("dyz,d,y,z->", again, gap_weight, zeta_weight, zeta_weight) / in_v

    score = np.arange(13) / 12
    mps = ((experimental - control) @ score) @ gap_weight
    return Values(
        in_v,
        asr,
        floor,
        repeated,
        asr - floor,
        mps,
        *position(traits, gap, gap_weight, zeta, zeta_weight),
    )


def position(
    traits: Traits,
    gap: np.ndarray,
    gap_weight: np.ndarray,
    zeta: np.ndarray,
    zeta_weight: np.ndarray,
) -> tuple[float, float, float]:
    """Position consistency, preference fairness and tie rate of matched control votes."""
    by_order = [
        np.einsum(
            "dzv,z->dv", votes_of(gap[:, None] + traits.kappa * o + zeta, traits), zeta_weight
        )
        for o in (-1, 1)
    ]
    joint = np.einsum("di,dj,d->ij", *by_order, gap_weight)  # votes for A1, tie, A2 by order
    consistent = np.trace(joint)
    # Order 12 shows A1 first: primacy is (A1, A2), (A1, tie), (tie, A2); recency mirrors it.
    primacy = joint[0, 2] + joint[0, 1] + joint[1, 2]
    recency = joint[2, 0] + joint[1, 0] + joint[2, 1]
    ties = (joint[1].sum() + joint[:, 1].sum()) / 2
    return consistent, recency - primacy, ties


@cache
def study(preset: str) -> pl.DataFrame:
    traits, kind, beta = PRESETS[preset]
    return simulate(traits, kind=kind, beta=beta, items=ITEMS, votes=VOTES, seed=20_241_113)


def sums(log: pl.DataFrame, arm: str) -> np.ndarray:
    """Sum of x per item, straight from the choices."""
    side = pl.when((pl.col("choice") == "first") == (pl.col("shown_first") == "anchor"))
    x = pl.when(pl.col("choice") == "tie").then(0).otherwise(side.then(-1).otherwise(1))
    rows = log.filter(pl.col("arm") == arm).with_columns(x=x).sort("sample")
    return rows["x"].to_numpy().reshape(-1, VOTES).sum(axis=1)


def estimated(log: pl.DataFrame, kind: Kind) -> tuple[float, float, float, float]:
    control, experimental, sham = (sums(log, arm) for arm in ("control", "experimental", "sham"))
    in_v, won = (
        ((control <= 0), lambda s: s > 0)
        if kind == "promote"
        else ((control >= 0), lambda s: s >= 0)
    )
    mps = (experimental - control).mean() / (2 * VOTES)
    return in_v.mean(), won(experimental)[in_v].mean(), won(sham)[in_v].mean(), mps


@pytest.mark.parametrize("preset", PRINTED)
def test_quadrature_gives_the_printed_table(preset: str) -> None:
    values = expected(preset)
    found = tuple(getattr(values, name) for name in Values.__annotations__)
    assert found == pytest.approx(PRINTED[preset], abs=0.0006)


@pytest.mark.parametrize("preset", PRINTED)
def test_simulation_meets_the_quadrature(preset: str) -> None:
    truth = expected(preset)
    in_v, asr, floor, mps = estimated(study(preset), PRESETS[preset].kind)
    assert (in_v, asr, floor) == pytest.approx((truth.in_v, truth.asr, truth.sham_floor), abs=0.015)
    assert mps == pytest.approx(truth.mps, abs=0.006)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRINTED)
def test_statistics_recover_what_was_planted(preset: str) -> None:
    truth = expected(preset)
    tallies = count_votes(study(preset))
    shifts = match_groups(tally_votes(tallies, "balanced"))
    makers = {row: name for name, entry in STATISTICS.items() for row in entry.gives}
    planted = ("asr", "sham_floor", "dasr", "mps", "mps_sham", "random_baseline")
    of_control = ("position_consistency", "preference_fairness")
    estimates = pl.concat(
        STATISTICS[name](tallies=tallies, shifts=shifts)
        for name in sorted({makers[row] for row in (*planted, *of_control)})
    )
    rows = estimates.filter(
        pl.col("statistic").is_in([*planted, *of_control]),
        pl.col("perturbation").is_null() == pl.col("statistic").is_in(of_control),
    )
    found = {row["statistic"]: row for row in rows.iter_rows(named=True)}
    for name, value, error in (
        ("asr", truth.asr, 0.015),
        ("sham_floor", truth.sham_floor, 0.015),
        ("dasr", truth.dasr, 0.015),
        ("mps", truth.mps, 0.006),
        ("mps_sham", truth.mps, 0.006),
        ("position_consistency", truth.consistency, 0.015),
        ("preference_fairness", truth.fairness, 0.015),
    ):
        row = found[name]
        assert row["estimate"] == pytest.approx(value, abs=error), name
        # At 20 000 items the interval is about as wide as that error, so 3 half-widths hold it.
        half = max(row["high"] - row["estimate"], row["estimate"] - row["low"])
        assert abs(row["estimate"] - value) <= 3 * half + 0.0005, name
    # Of six random votes in {-1, 0, 1} the sum is positive 294 times in 729, and 0 in 141.
    assert found["random_baseline"]["estimate"] == pytest.approx(
        {"promote": 98 / 243, "detract": 145 / 243}[PRESETS[preset].kind]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "kappa", "nu"), [(0, 0, 0.2), (1, 0.5, 0.5), (-2, -1, 1)])
def test_log_odds_shift_and_position_effect_come_back(beta: float, kappa: float, nu: float) -> None:
    # methods.md, section 13: exact for Davidson's model without noise of prompts and effects.
    traits = Traits(omega=1, nu=nu, kappa=kappa)
    log = simulate(traits, kind="promote", beta=beta, items=ITEMS, votes=6, seed=7)
    target = pl.col("choice") == pl.when(pl.col("shown_first") == "target").then(
        pl.lit("first")
    ).otherwise(pl.lit("second"))
    tie = pl.col("choice") == "tie"
    # Votes per stratum (item and order), by side.
    strata = log.group_by("sample", "shown_first", "arm").agg(
        target=target.sum(), anchor=(~target & ~tie).sum()
    )
    wide = strata.pivot("arm", index=["sample", "shown_first"], values=["target", "anchor"])
    gained = (wide["anchor_control"] * wide["target_experimental"]).sum()
    lost = (wide["target_control"] * wide["anchor_experimental"]).sum()
    assert np.log(gained / lost) == pytest.approx(beta, abs=0.06)
    pair = log.filter(pl.col("arm") == "control").pivot(
        "shown_first", index=["sample", "repeat"], values="choice"
    )
    both = [((pair["anchor"] == c) & (pair["target"] == c)).sum() for c in ("first", "second")]
    assert np.log(both[0] / both[1]) / 2 == pytest.approx(kappa, abs=0.05)


def test_repeats_of_a_prompt_share_its_noise() -> None:
    # Without the noise of a prompt, votes of an order on equal answers are independent; with a
    # lot of it, they nearly all agree: P(same) = 1 - E[2 p (1 - p)] over zeta ~ N(0, 30^2) > .95.
    log = simulate(Traits(psi=30), kind="promote", beta=0, items=2000, votes=4, seed=1)
    per_prompt = log.group_by("sample", "arm", "shown_first").agg(pl.col("choice").n_unique())
    assert per_prompt["choice"].mean() < 1.06
    # Arms and orders are other prompts: they agree by chance only.
    per_item = log.group_by("sample").agg(pl.col("choice").n_unique())
    assert per_item["choice"].mean() > 1.9


def test_choices_of_special_judges() -> None:
    def counts(traits: Traits) -> dict[str, int]:
        log = simulate(traits, kind="promote", beta=0, items=1000, votes=6, seed=2)
        return dict(log["choice"].value_counts().iter_rows())

    fair = counts(Traits(uniform=True, kappa=9))
    assert fair.keys() == {"first", "second", "tie"}
    # 18000 draws at 1/3: standard error 63.
    assert all(abs(count - 6000) < 250 for count in fair.values())
    assert counts(Traits(kappa=9, temperature=0)) == {"first": 18_000}
    assert counts(Traits(kappa=-9, temperature=0)) == {"second": 18_000}
    assert counts(Traits(nu=3, temperature=0)) == {"tie": 18_000}
    # 18000 draws at .1: standard error 40.
    assert abs(counts(Traits(iota=0.1))["invalid"] - 1800) < 160


def test_a_matched_sham_shares_the_length() -> None:
    # methods.md, section 7: no authority bias, 1 logit per log ratio of length. Nothing is left
    # over the sham, although the longer target gains on the control: with omega = 0 and no ties
    # its share is 2/(2+1) = 2/3, a shift of 1/6.
    log = simulate(
        Traits(lam=1), kind="promote", beta=0, items=ITEMS, votes=6, seed=3, length_ratio=2
    )
    control, experimental, sham = (sums(log, arm) for arm in ("control", "experimental", "sham"))
    assert (experimental - control).mean() / 12 == pytest.approx(1 / 6, abs=0.006)
    assert (experimental - sham).mean() / 12 == pytest.approx(0, abs=0.006)


def test_design_is_balanced_and_typed() -> None:
    log = simulate(
        Traits(),
        kind="detract",
        beta=-1,
        items=10,
        votes=6,
        seed=4,
        clusters=3,
        judge="simulated/x",
        perturbation="p",
    )
    assert VoteLog.of(log).equals(log)
    assert log.height == 10 * 3 * 6
    assert log["simulated"].all()
    assert log.group_by("sample", "arm", "shown_first").len()["len"].unique().to_list() == [3]
    assert log["cluster"].n_unique() == 3
    assert log.filter(pl.col("arm") == "control")["perturbation"].null_count() == 60
    assert log.filter(pl.col("arm") != "control")["kind"].unique().to_list() == ["detract"]


def test_shared_gaps_make_items_of_a_cluster_alike() -> None:
    def spread(shared: float) -> float:
        log = simulate(
            Traits(omega=3),
            kind="promote",
            beta=0,
            items=2000,
            votes=6,
            seed=5,
            clusters=200,
            shared=shared,
        )
        item = sums(log, "control").astype(float)
        group = log.filter(pl.col("arm") == "control").group_by("sample").agg(pl.first("cluster"))
        frame = group.sort("sample").with_columns(x=pl.Series(item))
        return frame.group_by("cluster").agg(pl.col("x").mean())["x"].var() / item.var()

    # Ten items a cluster: the variance of a mean is 1/10 of an item's when independent.
    assert spread(0) == pytest.approx(0.1, abs=0.03)
    assert spread(1) > 0.8


def test_many_studies_are_independent_and_alike() -> None:
    traits = Traits(omega=1.5, nu=0.5)
    log = simulate(
        traits, kind="promote", beta=1, items=6, votes=2, seed=3, clusters=3, studies=40, judge="s"
    )
    assert set(log["judge"]) == {f"s/{study}" for study in range(40)}
    names = log.select("judge", "sample", "cluster").unique()
    assert names.height == 40 * 6
    assert names.select("sample", "cluster").unique().height == 6
    votes = log.pivot("judge", index=["sample", "arm", "shown_first"], values="choice")
    assert len({tuple(votes[f"s/{study}"]) for study in range(40)}) == 40
    # One study is what it was before there could be several.
    one = simulate(traits, kind="promote", beta=1, items=6, votes=2, seed=3, clusters=3, judge="s")
    assert set(one["judge"]) == {"s"}


def test_judges_of_one_gap_seed_see_the_same_answers() -> None:
    # At temperature 0 without ties and noise the sign of the gap is the verdict.
    traits = Traits(omega=1.5, temperature=0)
    mine, yours, other = (
        simulate(traits, kind="promote", beta=0, items=60, votes=2, seed=seed, gap_seed=gaps)[
            "choice"
        ].to_list()
        for seed, gaps in ((1, 9), (2, 9), (1, 8))
    )
    assert mine == yours != other


def test_seed_decides() -> None:
    def run(seed: int) -> pl.DataFrame:
        return simulate(Traits(omega=1), kind="promote", beta=1, items=50, votes=2, seed=seed)

    assert run(1).equals(run(1))
    assert not run(1).equals(run(2))


@pytest.mark.parametrize(
    "wrong", [{"items": 0}, {"votes": 0}, {"clusters": 0}, {"shared": 2.0}, {"length_ratio": 0.0}]
)
def test_impossible_studies_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        simulate(
            Traits(), **{"kind": "promote", "beta": 0, "items": 2, "votes": 2, "seed": 1, **wrong}
        )
