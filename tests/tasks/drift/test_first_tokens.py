from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.drift.canary import canary, excess, first_token_canary, similarity

Reply = tuple[str, float]
CELL = {"dataset": "d", "judge": "j", "prompt": "p", "wave": "w"}


def frame(prompts: list[tuple[list[Reply], list[Reply]]]) -> pl.DataFrame:
    rows = [
        {**CELL, "item": f"i{at}", "first_token": token, "first_probability": p, "new": new}
        for at, sides in enumerate(prompts)
        for new, side in zip((False, True), sides, strict=True)
        for token, p in side
    ]
    return pl.DataFrame(rows, schema_overrides={"first_probability": pl.Float64})


def by_pairs(base: list[Reply], new: list[Reply]) -> float:
    """Second implementation: pair by pair."""

    def alike(one: Reply, other: Reply) -> float:
        return 1 - abs(one[1] - other[1]) if one[0] == other[0] else 0.0

    def within(side: list[Reply]) -> float:
        return float(np.mean([alike(*pair) for pair in combinations(side, 2)]))

    return within(base) + within(new) - 2 * float(np.mean([alike(a, b) for a in base for b in new]))


def test_by_hand() -> None:
    row: dict[str, Any] = first_token_canary(
        frame([([("A", 0.9)] * 2, [("A", 0.5)] * 2), ([("A", 0.9)], [("A", 0.5)] * 2)])
    ).row(0, named=True)
    # W = 1, 1, X = .6; of 6 ways to deal, 2 are as far. One baseline reply tells nothing.
    assert (row["estimate"], row["n"], row["dropped"]) == (pytest.approx(0.8), 1, 1)
    assert row["p_value"] == pytest.approx(1 / 3)
    assert row["method"] == "permutation, exhaustive"


def test_certain_tokens_are_verdicts() -> None:
    # Where each chance is 1 it is the canary of the tokens.
    prompts = [([("A", 1.0), ("B", 1.0)], [("B", 1.0)] * 3), ([("A", 1.0)] * 2, [("C", 1.0)] * 2)]
    counts = (
        frame(prompts)
        .group_by(*CELL, "item", outcome="first_token")
        .agg(base=(~pl.col("new")).sum().cast(pl.Int64), new=pl.col("new").sum().cast(pl.Int64))
    )
    columns = ("estimate", "p_value", "n", "dropped")
    mine, theirs = (
        found.select(columns).row(0)
        for found in (first_token_canary(frame(prompts)), canary(counts))
    )
    assert mine == pytest.approx(theirs)


REPLIES = st.lists(
    st.tuples(st.sampled_from("AB"), st.sampled_from([0.0, 0.25, 0.5, 1.0])), min_size=2, max_size=4
)


@settings(max_examples=40)
@given(prompts=st.lists(st.tuples(REPLIES, REPLIES), min_size=1, max_size=2))
def test_every_way_to_deal_by_second_implementation(
    prompts: list[tuple[list[Reply], list[Reply]]],
) -> None:
    found = first_token_canary(frame(prompts)).row(0, named=True)
    observed = [by_pairs(base, new) for base, new in prompts]
    assert found["estimate"] == pytest.approx(np.mean(observed))
    sums = np.zeros(1)
    for base, new in prompts:
        pooled = base + new
        dealt = [
            by_pairs(
                [pooled[i] for i in range(len(pooled)) if i not in chosen],
                [pooled[i] for i in chosen],
            )
            for chosen in combinations(range(len(pooled)), len(new))
        ]
        sums = np.add.outer(sums, dealt).ravel()
    exact = float((sums >= sum(observed) - 1e-9).mean())
    exhaustive = found["method"] == "permutation, exhaustive"
    assert found["p_value"] == pytest.approx(exact, abs=1e-9 if exhaustive else 0.02)


def test_more_ways_than_can_be_listed_are_drawn() -> None:
    draw = np.random.default_rng(1)
    base, same = ([("A", p) for p in draw.random(12)] for _ in range(2))
    moved = [("A", p / 2) for p in draw.random(12)]
    # comb(24, 12) is 2.7 million.
    quiet, loud = (
        first_token_canary(frame([(base, new)]), seed=3, draws=2000).row(0, named=True)
        for new in (same, moved)
    )
    assert quiet["method"] == "permutation, 2000 draws"
    assert quiet["p_value"] > 0.05 > loud["p_value"]


@pytest.mark.slow
def test_an_unchanged_judge_has_mean_zero_and_the_size_of_its_test() -> None:
    draw = np.random.default_rng(7)
    values, rejected = [], 0
    for _ in range(400):
        chances = draw.random((10, 6))
        tokens = draw.choice(list("AAB"), (10, 6))
        prompts = [
            (replies[:4], replies[4:])
            for row, names in zip(chances, tokens, strict=True)
            for replies in (list(zip(names.tolist(), row.tolist(), strict=True)),)
        ]
        found = first_token_canary(frame(prompts), draws=199).row(0, named=True)
        values.append(found["estimate"])
        rejected += found["p_value"] <= 0.05
    # Within three standard errors: of the mean, and of .05 in 400.
    assert abs(np.mean(values)) < 3 * np.std(values) / 20
    assert 0.05 - 3 * 0.0109 <= rejected / 400 <= 0.05 + 3 * 0.0109


def test_similarity_is_of_the_same_token_only() -> None:
    alike = similarity(np.array(["A", "A", "B"], object), np.array([0.9, 0.4, 0.9]))
    assert alike == pytest.approx(np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]))
    # A kernel: no distance is negative.
    assert np.linalg.eigvalsh(alike).min() >= 0
    assert excess(np.ones((4, 4)), np.array([[True, True, False, False]])).tolist() == [0.0]


def test_without_replies_there_is_nothing() -> None:
    assert first_token_canary(frame([([("A", 1.0)], [("A", 1.0)])])).row(0, named=True) == {
        **CELL,
        "n": 0,
        "dropped": 1,
        "estimate": None,
        "p_value": None,
        "method": None,
    }
    assert first_token_canary(frame([([("A", 1.0)], [("A", 1.0)])]).clear()).is_empty()
