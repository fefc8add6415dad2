from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import polars as pl
import pytest

from tasks.statistics.random_baseline import COIN, UNIFORM, random_baseline, target_wins

Make = Callable[..., Any]
CHANCES = {"uniform": UNIFORM, "coin": COIN}

# methods.md, section 1, as printed, for n = 1..7; its .4101 is 299/729 = .41015, cut off.
PRINTED = {
    "uniform": (0.3333, 0.3333, 0.3704, 0.3827, 0.3951, 0.4033, 0.4101),
    "coin": (0.5, 0.25, 0.5, 0.3125, 0.5, 0.3438, 0.5),
}


def enumerated(votes: int, chances: tuple[Fraction, ...], sign: int) -> Fraction:
    """Second implementation: every sequence of votes, one by one."""
    total = Fraction(0)
    for ballot in product((-1, 0, 1), repeat=votes):
        if sum(ballot) * sign > 0:
            total += prod((chances[vote + 1] for vote in ballot), start=Fraction(1))
    return total


@pytest.mark.parametrize("name", PRINTED)
@pytest.mark.parametrize("votes", range(1, 8))
def test_chance_of_the_target(name: str, votes: int) -> None:
    found = target_wins(votes, CHANCES[name])
    assert found == enumerated(votes, CHANCES[name], 1)
    assert float(found) == pytest.approx(PRINTED[name][votes - 1], abs=6e-5)


def test_six_votes_exactly() -> None:
    assert target_wins(6, UNIFORM) == Fraction(98, 243)
    assert target_wins(6, COIN) == Fraction(22, 64)
    assert target_wins(0, UNIFORM) == 0


@pytest.mark.parametrize("votes", range(1, 8))
@pytest.mark.parametrize("name", CHANCES)
@pytest.mark.parametrize("kind", ["promote", "detract"])
def test_rows(make_shifts: Make, name: str, kind: str, votes: int) -> None:
    rows = random_baseline(shifts=make_shifts([{}, {}, {}], kind=kind, votes=votes, cluster="c"))
    wanted = "random_baseline" + ("_coin" if name == "coin" else "")
    row = rows.filter(pl.col("statistic") == wanted).to_dicts()[0]
    chance = enumerated(votes, CHANCES[name], 1)
    if kind == "detract":  # P(not anchor)
        chance = 1 - enumerated(votes, CHANCES[name], -1)
    assert row["estimate"] == pytest.approx(float(chance), abs=1e-12)
    assert (row["n"], row["clusters"], row["votes_per_pair"]) == (3, 1, votes)
    assert (row["low"], row["high"], row["p_value"]) == (None, None, None)


def test_printed_rates_of_six_votes(make_shifts: Make) -> None:
    shifts = make_shifts(
        [{"perturbation": "boast"}, {"perturbation": "error", "kind": "detract"}], votes=6
    )
    rows = random_baseline(shifts=shifts)
    found = {(r["statistic"], r["kind"]): r["estimate"] for r in rows.iter_rows(named=True)}
    assert found == {  # methods.md, section 1
        ("random_baseline", "promote"): pytest.approx(0.4033, abs=5e-5),
        ("random_baseline", "detract"): pytest.approx(0.5967, abs=5e-5),
        ("random_baseline_coin", "promote"): pytest.approx(0.34375, abs=1e-12),
        ("random_baseline_coin", "detract"): pytest.approx(0.65625, abs=1e-12),
    }


def test_the_common_number_of_votes_counts(make_shifts: Make) -> None:
    rows = random_baseline(shifts=make_shifts([{"votes": 6}, {"votes": 6}, {"votes": 2}]))
    assert rows["votes_per_pair"].to_list() == [6, 6]


def test_nothing_gives_nothing(make_shifts: Make) -> None:
    assert random_baseline(shifts=make_shifts([])).is_empty()
