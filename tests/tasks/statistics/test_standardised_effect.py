from collections.abc import Callable, Sequence
from itertools import combinations, product
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest

from schemas.judging import VoteLog
from tasks.aggregate import count_votes
from tasks.providers._offline import Traits
from tasks.providers._simulate import simulate
from tasks.statistics.mps import mps
from tasks.statistics.standardised_effect import standardised_effect

Make = Callable[..., Any]
ARMS, SIDES = ("experimental", "control"), ("anchor", "target")
Votes = dict[tuple[str, str], list[int]]


def choice(value: int, shown_first: str) -> str:
    if value == 0:
        return "tie"
    return "first" if (value == -1) == (shown_first == "anchor") else "second"


def tallies_of(make_vote_log: Make, samples: Sequence[Votes], **changes: object) -> pl.DataFrame:
    """Tallies of samples whose votes are -1, 0 and 1 by arm and side shown first."""
    return count_votes(make_vote_log(
        {"sample": f"s{i:02}", "arm": arm, "shown_first": side, "repeat": repeat,
         "choice": choice(value, side), **changes}
        for i, sample in enumerate(samples)
        for (arm, side), values in sample.items()
        for repeat, value in enumerate(values)
    ))  # fmt: skip


def one(tallies: pl.DataFrame) -> dict[str, Any]:
    (row,) = standardised_effect(tallies=tallies).to_dicts()
    return row


def steady(shift: float) -> Votes:
    """Votes that always agree: experimental all for the target, control so that it shifts."""
    control = {1.0: -1, 0.5: 0, 0.0: 1}[shift]
    values = {"experimental": 1, "control": control}
    return {(arm, side): [values[arm]] * 2 for arm, side in product(ARMS, SIDES)}


def test_docstring_example(make_vote_log: Make) -> None:
    row = one(tallies_of(make_vote_log, [steady(0.0), steady(1.0)]))
    assert row["estimate"] == pytest.approx(sqrt(0.5))
    assert (row["n"], row["mode"], row["votes_per_pair"]) == (2, "any", 4)
    # Both samples lie as far from the mean: nothing is known of how the variance varies.
    assert (row["low"], row["reason"]) == (None, "no variation between clusters: no interval")


def drawn(seed: int, samples: int, votes: int) -> list[Votes]:
    random = np.random.default_rng(seed)
    found = []
    for _ in range(samples):
        chances = {arm: random.dirichlet((1, 0.5, 1)) for arm in ARMS}
        found.append({
            (arm, side): random.choice([-1, 0, 1], size=votes, p=chances[arm]).tolist()
            for arm, side in product(ARMS, SIDES)
        })  # fmt: skip
    return found


def halves(votes: Sequence[int]) -> list[tuple[float, float]]:
    """Means of both halves for every way to split votes, the first half the smaller."""
    places = range(len(votes))
    return [
        (np.mean([votes[i] for i in half]), np.mean([votes[i] for i in places if i not in half]))
        for half in map(set, combinations(places, len(votes) // 2))
    ]


def half_scores(sample: Votes) -> list[tuple[float, float]]:
    """Both half-scores of the shift for every split of a sample's votes."""
    signs = [0.25 if arm == "experimental" else -0.25 for arm, _ in sample]
    return [
        tuple(sum(s * part[k] for s, part in zip(signs, split, strict=True)) for k in (0, 1))
        for split in product(*(halves(votes) for votes in sample.values()))
    ]  # type: ignore[misc]


@pytest.mark.parametrize("votes", [2, 3])
def test_closed_form_is_the_mean_over_all_splits(make_vote_log: Make, votes: int) -> None:
    # Second implementation: the covariance of half-scores averaged over every way to split. The
    # samples are split apart, so sums over all combinations of their splits factor.
    samples = drawn(seed=4, samples=6, votes=votes)
    scores = [np.array(half_scores(sample)) for sample in samples]
    n = len(samples)
    products = sum((s[:, 0] * s[:, 1]).mean() for s in scores)
    means = np.array([s.mean(axis=0) for s in scores])
    across = means[:, 0].sum() * means[:, 1].sum() - (means[:, 0] * means[:, 1]).sum()
    covariance = (products - (products + across) / n) / (n - 1)
    expected = means[:, 0].mean() / sqrt(covariance)
    assert one(tallies_of(make_vote_log, samples))["estimate"] == pytest.approx(expected, abs=1e-9)


def test_closed_form_is_what_random_splits_lead_to(make_vote_log: Make) -> None:
    # Second implementation: numpy's covariance of half-scores under 4000 random splits.
    samples = drawn(seed=9, samples=25, votes=4)
    random = np.random.default_rng(1)
    values = np.array([[sample[key] for key in product(ARMS, SIDES)] for sample in samples])
    sign = np.array([1, 1, -1, -1]) / 4
    found = []
    for _ in range(4000):
        mixed = random.permuted(values, axis=2)
        first, second = (mixed[:, :, half].mean(axis=2) @ sign for half in (slice(2), slice(2, 4)))
        found.append(np.cov(first, second)[0, 1])
    row = one(tallies_of(make_vote_log, samples))
    mean = (values.mean(axis=2) @ sign).mean()
    error = np.std(found) / sqrt(len(found))
    assert (mean / row["estimate"]) ** 2 == pytest.approx(np.mean(found), abs=4 * error)
    assert error < 0.01 * np.mean(found)


def test_its_p_value_is_that_of_the_mean(make_vote_log: Make, make_shifts: Make) -> None:
    samples = drawn(seed=2, samples=40, votes=4)
    row = one(tallies_of(make_vote_log, samples))
    scores = [{f"{arm}_score": np.mean([(np.mean(s[arm, side]) + 1) / 2 for side in SIDES])
               for arm in ARMS} for s in samples]  # fmt: skip
    expected = mps(shifts=make_shifts(scores)).to_dicts()[0]
    assert row["p_value"] == pytest.approx(expected["p_value"])
    assert row["method"] == "Donner and Zou"
    assert row["low"] < row["estimate"] < row["high"]


def test_too_few_votes_all_noise_and_early_stops_are_null(make_vote_log: Make) -> None:
    single = {key: votes[:1] for key, votes in steady(1.0).items()}
    row = one(tallies_of(make_vote_log, [single] * 3))
    assert (row["estimate"], row["dropped"]) == (None, 3)
    assert row["reason"].startswith("no two samples have two valid votes")
    row = one(tallies_of(make_vote_log, [steady(0.5)] * 3))
    assert row["estimate"] is row["p_value"] is None
    assert row["reason"] == "shifts differ no more between samples than the noise of votes explains"
    samples = [steady(0.0), steady(0.5), steady(1.0)]
    tallies = tallies_of(make_vote_log, samples).with_columns(stopped=pl.lit(1, pl.Int64))
    row = one(tallies)
    assert (row["estimate"], row["low"]) == (None, None)
    assert row["reason"].startswith("votes were stopped early")
    assert standardised_effect(tallies=count_votes(make_vote_log([]))).is_empty()


def test_invalid_votes_drop_a_sample(make_vote_log: Make) -> None:
    samples = [steady(0.0), steady(0.5), steady(1.0)]
    rows = [{"sample": f"s{i:02}", "arm": arm, "shown_first": side, "repeat": r,
             "choice": choice(v, side) if (i, r) != (1, 0) else "invalid"}
            for i, s in enumerate(samples) for (arm, side), vs in s.items()
            for r, v in enumerate(vs)]  # fmt: skip
    row = one(count_votes(make_vote_log(rows)))
    assert (row["n"], row["dropped"], row["estimate"]) == (2, 1, pytest.approx(sqrt(0.5)))


def test_columns_may_be_categorical_and_rows_in_any_order(make_vote_log: Make) -> None:
    tallies = tallies_of(make_vote_log, drawn(seed=5, samples=12, votes=3))
    text = [c for c, t in tallies.schema.items() if t == pl.String]
    assert one(tallies.with_columns(pl.col(text).cast(pl.Categorical))) == one(tallies)
    back = one(tallies.reverse())
    assert back == {k: pytest.approx(v) if type(v) is float else v for k, v in one(tallies).items()}


def test_interval_rules_out_the_truth_no_oftener_than_it_says() -> None:
    # Effects differ between samples by two logits. The truth is that of 10 000 items.
    def tallies(items: int, seeds: range) -> pl.DataFrame:
        traits = Traits(omega=1, nu=0.5, upsilon=2)
        logs = [simulate(traits, kind="promote", beta=1, items=items, votes=4, seed=seed,
                         judge=f"j{seed}") for seed in seeds]  # fmt: skip
        return count_votes(VoteLog.of(pl.concat(logs)))

    truth = one(tallies(10_000, range(1)))["estimate"]
    rows = standardised_effect(tallies=tallies(142, range(500, 580)))
    missed = (rows["low"] > truth) | (rows["high"] < truth)
    # .05 with a standard error of .024 at 80 studies: above .13 once in 1000.
    assert missed.fill_null(value=False).mean() <= 0.13
    assert rows["low"].null_count() < 20
