from collections.abc import Callable, Sequence
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchmarks.simulated_votes import simulate
from tasks.aggregate import count_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.inference.bootstrap import formulas_only
from tasks.inference.permutation import FLIP_SEED
from tasks.simulation.traits import Traits
from tasks.statistics.heterogeneity import heterogeneity
from tasks.statistics.mps_sham import mps_sham

Make = Callable[..., Any]
ARMS, SIDES = ("control", "experimental", "sham"), ("anchor", "target")
Votes = dict[tuple[str, str], list[int]]
ROWS = ("mean_square_shift", "shift_spread", "standardised_effect")


def choice(value: int, shown_first: str) -> str:
    if value == 0:
        return "tie"
    return "first" if (value == -1) == (shown_first == "anchor") else "second"


def tallies_of(
    make_vote_log: Make, samples: Sequence[Votes], per_cluster: int = 1, **changes: object
) -> pl.DataFrame:
    """Tallies of samples whose votes are -1, 0 and 1 by arm and side shown first."""
    return count_votes(
        make_vote_log(
            {
                "sample": f"s{i:02}",
                "cluster": f"q{i // per_cluster:02}",
                "arm": arm,
                "shown_first": side,
                "repeat": repeat,
                "choice": choice(value, side),
                **changes,
            }
            for i, sample in enumerate(samples)
            for (arm, side), values in sample.items()
            for repeat, value in enumerate(values)
        )
    )


def measured(tallies: pl.DataFrame, mode: str = "balanced") -> pl.DataFrame:
    return heterogeneity(tallies=tallies, shifts=match_groups(tally_votes(tallies, mode)))


def three(tallies: pl.DataFrame, mode: str = "balanced") -> list[dict[str, Any]]:
    rows = measured(tallies, mode).sort("statistic").to_dicts()
    assert tuple(row["statistic"] for row in rows) == ROWS
    return rows


def steady(*shifts: float) -> Votes:
    """Votes that shift so much over control and sham in each order: 0, .5 or 1."""
    start = {1.0: -1, 0.5: 0, 0.0: 1}
    votes: Votes = {}
    for side, shift in zip(SIDES, shifts, strict=True):
        votes |= {("experimental", side): [1]}
        votes |= {(arm, side): [start[shift]] for arm in ("control", "sham")}
    return votes


def drawn(seed: int, samples: int, votes: int) -> list[Votes]:
    random = np.random.default_rng(seed)
    found = []
    for _ in range(samples):
        chances = {arm: random.dirichlet((1, 0.5, 1)) for arm in ARMS}
        found.append(
            {
                (arm, side): random.choice([-1, 0, 1], size=votes, p=chances[arm]).tolist()
                for arm, side in product(ARMS, SIDES)
            }
        )
    return found


def by_order(samples: Sequence[Votes], base: str) -> np.ndarray[Any, Any]:
    """Second implementation of the shifts in each order, shape (samples, 2)."""
    return np.array(
        [
            [(np.mean(s["experimental", side]) - np.mean(s[base, side])) / 2 for side in SIDES]
            for s in samples
        ]
    )


def test_docstring_example(make_vote_log: Make) -> None:
    square, spread, effect = three(tallies_of(make_vote_log, [steady(1.0, 1.0), steady(0.0, 0.0)]))
    assert (square["estimate"], square["p_value"]) == (0.5, 0.5)
    assert (spread["estimate"], spread["n"], spread["votes_per_pair"]) == (0.5, 2, 2)
    assert effect["estimate"] == pytest.approx(1.0)
    assert {row["mode"] for row in (square, spread, effect)} == {"balanced"}


@pytest.mark.parametrize("base", ["sham", "control"])
@pytest.mark.parametrize("votes", [1, 3])
def test_against_numpy(make_vote_log: Make, base: str, votes: int) -> None:
    samples = drawn(seed=5, samples=24, votes=votes)
    if base == "control":  # too few shams to be the endpoint
        for sample in samples[5:]:
            del sample["sham", "anchor"], sample["sham", "target"]
    one, two = by_order(samples, base).T
    square, spread, effect = three(tallies_of(make_vote_log, samples))
    mean = (one + two).mean() / 2
    variance = (one * two).mean() - mean**2
    assert square["estimate"] == pytest.approx((one * two).mean())
    assert spread["estimate"] == pytest.approx(sqrt(max(variance, 0)))
    assert effect["estimate"] == pytest.approx(mean / sqrt(variance))
    assert spread["method"].startswith("cluster bootstrap")
    assert spread["method"].endswith("over the sham") == (base == "sham")
    # Second implementation of the bootstrap: 2000 draws of samples.
    random = np.random.default_rng(1)
    at = random.integers(0, 24, (2000, 24))
    means, squares = ((one + two) / 2)[at].mean(axis=1), (one * two)[at].mean(axis=1)
    low, high = np.quantile(np.sqrt(np.maximum(squares - means**2, 0)), [0.025, 0.975])
    assert (spread["low"], spread["high"]) == (
        pytest.approx(low, abs=0.03),
        pytest.approx(high, abs=0.03),
    )


@pytest.mark.parametrize("per_cluster", [1, 2])
def test_p_value_of_all_sign_flips(make_vote_log: Make, per_cluster: int) -> None:
    # Second implementation: every pattern of signs, one for each cluster.
    samples = drawn(seed=8, samples=10 * per_cluster, votes=1)
    products = by_order(samples, "sham").prod(axis=1).reshape(10, per_cluster).sum(axis=1)
    flipped = [np.dot(signs, products) for signs in product((1, -1), repeat=10)]
    expected = np.mean([total >= products.sum() - 1e-9 for total in flipped])
    square, _, _ = three(tallies_of(make_vote_log, samples, per_cluster))
    assert square["p_value"] == pytest.approx(expected)
    assert "sign flips by cluster" in square["method"]
    assert square["seed"] == FLIP_SEED


def test_drawn_sign_flips_are_seeded_and_near_the_exact(make_vote_log: Make) -> None:
    samples = drawn(seed=3, samples=14, votes=1)
    products = by_order(samples, "sham").prod(axis=1)
    flipped = np.array(list(product((1, -1), repeat=14))) @ products
    exact = (flipped >= products.sum() - 1e-9).mean()
    tallies = tallies_of(make_vote_log, samples)
    square, _, _ = three(tallies)
    assert square["p_value"] == pytest.approx(exact, abs=4 * sqrt(exact * (1 - exact) / 9999))
    assert three(tallies)[0] == square


def test_effect_has_the_p_value_of_the_mean(make_vote_log: Make) -> None:
    tallies = tallies_of(make_vote_log, drawn(seed=2, samples=40, votes=2))
    shifts = match_groups(tally_votes(tallies, "balanced"))
    _, spread, effect = three(tallies)
    expected = mps_sham(shifts=shifts).to_dicts()[0]
    assert effect["p_value"] == pytest.approx(expected["p_value"], rel=1e-6)
    assert effect["method"] == "Donner and Zou, over the sham"
    assert effect["low"] < effect["estimate"] < effect["high"]
    assert effect["estimate"] == pytest.approx(expected["estimate"] / spread["estimate"])


def test_orders_that_agree_no_more_than_by_chance(make_vote_log: Make) -> None:
    # Products of 1, -1/4: mean shift 1/2 in all, so the mean square lies below its square.
    square, spread, effect = three(tallies_of(make_vote_log, [steady(1.0, 0.0)] * 12))
    assert (square["estimate"], spread["estimate"]) == (0.0, 0.0)
    assert effect["estimate"] is effect["p_value"] is None
    assert effect["reason"] == (
        "shifts differ no more between samples than the noise of votes explains"
    )


def test_a_sample_needs_both_orders(make_vote_log: Make) -> None:
    whole = [steady(1.0, 1.0), steady(0.0, 0.0), steady(0.5, 0.5)]
    half = {key: votes for key, votes in steady(1.0, 1.0).items() if key[1] == "anchor"}
    for row in three(tallies_of(make_vote_log, [*whole, half])):
        assert (row["n"], row["dropped"]) == (3, 1)
    for row in three(tallies_of(make_vote_log, [half] * 3)):
        assert (row["estimate"], row["dropped"]) == (None, 3)
        assert row["reason"] == "no sample has a valid vote in each order of both arms"
    nothing = count_votes(make_vote_log([]))
    assert measured(nothing).is_empty()


def test_votes_that_were_stopped_count_once(make_vote_log: Make) -> None:
    samples = [steady(1.0, 1.0), steady(0.0, 0.0), steady(0.5, 0.5)]
    plain = three(tallies_of(make_vote_log, samples))
    twice = [{key: votes * 2 for key, votes in sample.items()} for sample in samples]
    tallies = tallies_of(make_vote_log, twice).with_columns(stopped=pl.lit(1, pl.Int64))
    for row, before in zip(three(tallies), plain, strict=True):
        assert row["estimate"] == before["estimate"]


def test_without_chance_the_interval_is_by_formula(make_vote_log: Make) -> None:
    tallies = tallies_of(make_vote_log, drawn(seed=2, samples=40, votes=2))
    with formulas_only():
        square, spread, _ = three(tallies)
    assert square["p_value"] is None
    assert spread["method"].startswith("cluster linearisation, t")
    assert 0 <= spread["low"] <= spread["estimate"] <= spread["high"]


def test_columns_may_be_categorical_and_rows_in_any_order(make_vote_log: Make) -> None:
    tallies = tallies_of(make_vote_log, drawn(seed=5, samples=12, votes=3))
    shifts = match_groups(tally_votes(tallies, "balanced"))
    plain = heterogeneity(tallies=tallies, shifts=shifts)
    coded = [
        frame.with_columns(pl.col(pl.String).cast(pl.Categorical)) for frame in (tallies, shifts)
    ]
    assert heterogeneity(tallies=coded[0], shifts=coded[1]).equals(plain)
    for mine, back in zip(three(tallies.reverse()), three(tallies), strict=True):
        assert mine == {k: pytest.approx(v) if type(v) is float else v for k, v in back.items()}


def studies(beta: float, items: int, votes: int, many: int, **more: Any) -> pl.DataFrame:
    """Studies in which half of the questions are moved by ``beta`` logits, half against."""
    traits = Traits(omega=1.5, nu=0.5, kappa=0.4, psi=0.5)
    logs = [
        simulate(
            traits,
            kind="promote",
            beta=sign * beta,
            items=items // 2,
            votes=votes,
            seed=700 + number,
            studies=many,
            **more,
        ).with_columns(
            pl.format("{}{}", pl.lit(number), column).alias(column)
            for column in ("sample", "cluster")
        )
        for number, sign in enumerate((1, -1))
    ]
    return measured(count_votes(pl.concat(logs)))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("beta", "items", "votes", "expected"),
    # methods.md, section 16: simulated size .04 to .07, power .49 and .99.
    [(0.0, 142, 2, 0.05), (1.5, 142, 2, 0.49), (1.5, 142, 6, 0.99)],
)
def test_size_and_power(beta: float, items: int, votes: int, expected: float) -> None:
    many = 200
    square = studies(beta, items, votes, many).filter(statistic="mean_square_shift")
    error = sqrt(expected * (1 - expected) / many)
    assert (square["p_value"] <= 0.05).mean() == pytest.approx(expected, abs=3 * error)


@pytest.mark.slow
def test_size_where_samples_share_their_question() -> None:
    square = studies(0.0, 160, 2, 200, clusters=10, shared=0.5).filter(
        statistic="mean_square_shift"
    )
    assert (square["p_value"] <= 0.05).mean() == pytest.approx(0.05, abs=0.046)
