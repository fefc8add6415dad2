from collections.abc import Callable
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
from tasks.statistics.category_shift import category_shift
from tasks.statistics.mps_sham import mps_sham

Make = Callable[..., Any]
SIDES = ("anchor", "target")


def frames(make_vote_log: Make, shifts: list[tuple[str | None, float, str]]) -> dict[str, Any]:
    """One sample per category, shift over control and sham (-1, 0, 1) and cluster."""
    log = make_vote_log(
        {
            "sample": f"s{i:03}",
            "cluster": cluster,
            "arm": arm,
            "shown_first": side,
            "category": category,
            "choice": "tie"
            if (arm == "experimental" or not shift)
            else "first"
            if (side == "anchor") == (shift > 0)
            else "second",
        }
        for i, (category, shift, cluster) in enumerate(shifts)
        for arm in ("control", "experimental", "sham")
        for side in SIDES
    )
    tallies = count_votes(log)
    return {"tallies": tallies, "shifts": match_groups(tally_votes(tallies, "balanced"))}


def parts(rows: pl.DataFrame) -> tuple[dict[str, Any], dict[str, Any]]:
    reported = rows.to_dicts()
    by_category = {r["subgroup"]: r for r in reported if r["statistic"] == "category_shift"}
    (spread,) = [r for r in reported if r["statistic"] == "category_spread"]
    return by_category, spread


def test_docstring_example(make_vote_log: Make) -> None:
    # A tie after a control of 0 or 1 moves the score by .5.
    samples = [(("easy", "hard")[i % 2], (1, -1)[i % 2], f"q{i:02}") for i in range(20)]
    by_category, spread = parts(category_shift(**frames(make_vote_log, samples)))
    assert {name: row["estimate"] for name, row in by_category.items()} == {
        "easy": 0.5,
        "hard": -0.5,
    }
    assert spread["estimate"] == pytest.approx(0.5)
    assert (spread["n"], spread["clusters"], spread["dropped"]) == (20, 20, 0)
    assert spread["method"] == "wild cluster bootstrap"
    assert spread["seed"] == FLIP_SEED
    # All ten signs alike in both categories: 4 of 2^20 patterns, seldom among 9999.
    assert spread["p_value"] < 0.001


def test_p_value_against_a_loop(make_vote_log: Make) -> None:
    # Second implementation: signs drawn anew, cluster by cluster.
    random = np.random.default_rng(4)
    names = ["a"] * 12 + ["b"] * 15 + ["c"] * 11
    moved = random.choice([-1, 0, 1], size=38, p=[0.2, 0.4, 0.4])
    samples = [
        (name, int(m), f"q{i:02}") for i, (name, m) in enumerate(zip(names, moved, strict=True))
    ]
    _, spread = parts(category_shift(**frames(make_vote_log, samples)))
    shift = moved / 2
    where = [np.array([name == own for name in names]) for own in "abc"]

    def between(values: Any) -> float:
        return sum(w.sum() * (values[w].mean() - values.mean()) ** 2 for w in where) / 38

    assert spread["estimate"] == pytest.approx(np.sqrt(between(shift)))
    residual = shift - shift.mean()
    flipped = [between(residual * random.choice([-1, 1], size=38)) for _ in range(4000)]
    expected = np.mean(np.array(flipped) >= between(residual) - 1e-12)
    assert spread["p_value"] == pytest.approx(expected, abs=0.04)
    assert 0.001 < expected < 0.999


def test_small_and_mixed_categories(make_vote_log: Make) -> None:
    big = [(("a", "b")[i % 2], i % 3 - 1, f"q{i:02}") for i in range(24)]
    few = [("c", 1, f"r{i}") for i in range(9)] + [(None, 1, "r9"), ("a", 0, "t"), ("b", 1, "t")]
    by_category, spread = parts(category_shift(**frames(make_vote_log, big + few)))
    # c is shown, and is too small to be tested; a question of two categories has none.
    assert (by_category["c"]["n"], by_category["a"]["n"], by_category["b"]["n"]) == (9, 12, 12)
    assert (spread["n"], spread["dropped"], spread["clusters"]) == (24, 12, 24)
    _, spread = parts(category_shift(**frames(make_vote_log, few + big[::2])))
    assert spread["estimate"] is spread["p_value"] is None
    assert spread["reason"] == "fewer than two categories that have enough questions each"


def test_one_category_has_the_shift_of_all(make_vote_log: Make) -> None:
    samples = [("a", i % 3 - 1, f"q{i:02}") for i in range(15)]
    given = frames(make_vote_log, samples)
    by_category, _ = parts(category_shift(**given))
    (whole,) = mps_sham(shifts=given["shifts"]).to_dicts()
    for name in ("estimate", "low", "high", "p_value", "n"):
        assert by_category["a"][name] == whole[name], name


def test_without_categories_or_votes_there_is_nothing(make_vote_log: Make) -> None:
    assert category_shift(**frames(make_vote_log, [(None, 1, "q")] * 1)).is_empty()
    nothing = frames(make_vote_log, [])
    assert category_shift(**nothing).is_empty()


def test_without_chance_there_is_no_test(make_vote_log: Make) -> None:
    samples = [(("a", "b")[i % 2], i % 3 - 1, f"q{i:02}") for i in range(24)]
    with formulas_only():
        _, spread = parts(category_shift(**frames(make_vote_log, samples)))
    assert spread["estimate"] is not None
    assert spread["p_value"] is None


def test_columns_may_be_categorical(make_vote_log: Make) -> None:
    samples = [(("a", "b")[i % 2], i % 3 - 1, f"q{i:02}") for i in range(24)]
    given = frames(make_vote_log, samples)
    coded = {
        name: frame.with_columns(pl.col(pl.String).cast(pl.Categorical))
        for name, frame in given.items()
    }
    assert category_shift(**coded).equals(category_shift(**given))


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "expected"), [(0.0, 0.05), (1.0, 1.0)])
def test_size_and_power_where_categories_are_unequal(beta: float, expected: float) -> None:
    # Easy pairs (omega 4) in 110 questions, hard ones (.3) in 32: the spread of shifts differs.
    many = 200
    logs = [
        simulate(
            Traits(omega=omega, nu=0.5, psi=0.5),
            kind="promote",
            beta=sign * beta,
            items=items,
            votes=6,
            seed=int(omega * 10),
            studies=many,
        )
        .with_columns(
            pl.format("{}{}", pl.lit(name), column).alias(column)
            for column in ("sample", "cluster")
        )
        .with_columns(category=pl.lit(name))
        for name, omega, items, sign in (("easy", 4.0, 110, 1), ("hard", 0.3, 32, -1))
    ]
    tallies = count_votes(pl.concat(logs))  # type: ignore[arg-type]
    shifts = match_groups(tally_votes(tallies, "balanced"))
    rows = category_shift(tallies=tallies, shifts=shifts).filter(statistic="category_spread")
    error = 3 * (0.05 * 0.95 / many) ** 0.5
    assert (rows["p_value"] <= 0.05).mean() == pytest.approx(expected, abs=error)
