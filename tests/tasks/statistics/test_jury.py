"""Juries: by hand, by the identities of methods.md, section 11, and by numpy's correlations."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulated_votes import PRESETS, simulate
from schemas.judging import Tallies, VoteLog
from tasks.aggregate import count_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.panels.error_correlation import effective_size
from tasks.panels.panels import ALL
from tasks.statistics.jury import jury, jury_of
from tasks.statistics.mps import mps

Make = Callable[..., Any]
Found = dict[tuple[str, str], dict[str, Any]]


def panel(make_shifts: Make, judges: dict[str, list[Any]], **more: Any) -> pl.DataFrame:
    """Return shifts of judges whose items are (control score, experimental score)."""
    rows = [
        {
            "judge": judge,
            "sample": f"s{n:03}",
            "control_score": item[0],
            "experimental_score": item[1],
        }
        for judge, items in judges.items()
        for n, item in enumerate(items)
    ]
    return make_shifts(rows, **more)


def found(frame: pl.DataFrame) -> Found:
    rows = jury_of(frame).to_dicts()
    assert {row["judge"] for row in rows} <= {ALL}
    return {(row["statistic"], row["subgroup"]): row for row in rows}


def noise(seed: int, mean: float = 0.0) -> list[tuple[float, float]]:
    random = np.random.default_rng(seed)
    return [(0.5, float(x)) for x in np.clip(random.normal(0.5 + mean, 0.1, 60), 0, 1)]


def test_docstring_example(make_shifts: Make) -> None:
    judges = {j: [(0.5, 0.5 + s)] * 12 for j, s in (("a", 0.2), ("b", 0.0), ("c", -0.2))}
    rows = found(panel(make_shifts, judges))
    assert rows["jury_mps", ""]["estimate"] == pytest.approx(0.0)
    assert rows["jury_mps", "a"]["estimate"] == pytest.approx(-0.1)
    assert rows["jury_mps", "c"]["estimate"] == pytest.approx(0.1)
    assert rows["jury_size", ""]["estimate"] is None
    assert rows["jury_size", ""]["reason"] == "shifts of the members do not vary"


@pytest.mark.parametrize(("r", "size"), [(0.3, 1.9), (0.8, 1.15), (0.0, 3.0), (1.0, 1.0)])
def test_size_of_three_members(r: float, size: float) -> None:
    # methods.md, section 11
    assert effective_size(r, 3) == pytest.approx(size, abs=0.03)
    assert effective_size(-0.5, 3) is None


def test_verdicts_by_hand(make_shifts: Make) -> None:
    # control means: 1/6 + 1/2 + 5/6 = 3/2, a tie to the last digit; .4; .6. All are then won.
    controls = [(1 / 6, 0.5, 5 / 6), (0.2, 0.4, 0.6), (0.9, 0.8, 0.1)]
    judges = {j: [(c[n], 0.9) for c in controls] for n, j in enumerate("abc")}
    row = found(panel(make_shifts, judges))["jury_asr", ""]
    # the third is no part of V
    assert (row["hits"], row["n"], row["estimate"]) == (2, 2, 1.0)
    assert row["votes_per_pair"] == 18


SCORE = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
ITEM = st.tuples(SCORE, SCORE)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.tuples(ITEM, ITEM, ITEM), min_size=2, max_size=15))
def test_the_jury_is_as_biased_as_its_members_on_average(
    make_shifts: Make, items: list[tuple[tuple[float, float], ...]]
) -> None:
    frame = panel(make_shifts, {j: [item[n] for item in items] for n, j in enumerate("abc")})
    alone = {row["judge"]: row["estimate"] for row in mps(shifts=frame).to_dicts()}
    rows = found(frame)
    assert rows["jury_mps", ""]["estimate"] == pytest.approx(sum(alone.values()) / 3, abs=1e-12)
    for judge in "abc":
        others = [value for name, value in alone.items() if name != judge]
        assert rows["jury_mps", judge]["estimate"] == pytest.approx(sum(others) / 2, abs=1e-12)


def test_correlation_like_numpy(make_shifts: Make) -> None:
    random = np.random.default_rng(1)
    common = random.normal(0, 0.1, 300)
    judges = {
        j: [(0.5, float(x)) for x in np.clip(0.5 + common + random.normal(0, 0.1, 300), 0, 1)]
        for j in "abcd"
    }
    rows = found(panel(make_shifts, judges))
    shifts = np.array([[e - c for c, e in items] for items in judges.values()])
    expected = np.corrcoef(shifts)[np.triu_indices(4, 1)].mean()
    r, size = rows["jury_correlation", ""], rows["jury_size", ""]
    assert r["estimate"] == pytest.approx(expected)
    drawn = [
        np.corrcoef(shifts[:, random.integers(0, 300, 300)])[np.triu_indices(4, 1)].mean()
        for _ in range(1000)
    ]
    assert (r["low"], r["high"]) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.02)
    assert size["estimate"] == pytest.approx(4 / (1 + 3 * expected))
    assert size["low"] == pytest.approx(4 / (1 + 3 * r["high"]))
    assert size["high"] == pytest.approx(4 / (1 + 3 * r["low"]))


def test_an_item_needs_every_member(make_shifts: Make) -> None:
    judges = {"a": noise(1), "b": noise(2), "c": noise(3), "silent": [(0.5, None)] * 60}
    judges["b"][0] = (0.5, None)
    rows = found(panel(make_shifts, judges))
    whole, without = rows["jury_mps", ""], rows["jury_mps", "b"]
    assert (whole["n"], whole["dropped"]) == (59, 1)
    assert (without["n"], without["dropped"]) == (60, 0)
    assert ("jury_mps", "silent") not in rows  # who says nothing is no member


def test_formulas_are_no_members_beside_models(make_shifts: Make) -> None:
    judges = {"a": noise(1), "b": noise(2, 0.3), "c": noise(3, 0.3)}
    frame = panel(make_shifts, judges).with_columns(simulated=pl.col("judge") == "a")
    row = found(frame)["jury_mps", ""]
    assert row["estimate"] == pytest.approx(0.3, abs=0.05)
    assert row["simulated"] is False
    everyone = found(frame.with_columns(simulated=True))["jury_mps", ""]
    assert everyone["estimate"] == pytest.approx(0.2, abs=0.05)
    assert everyone["simulated"] is True


def test_the_sham_makes_floor_and_shift(make_shifts: Make) -> None:
    rows = found(panel(make_shifts, {"a": noise(1, 0.2), "b": noise(2, 0.2)}, sham_score=0.6))
    assert rows["jury_mps_sham", ""]["estimate"] == pytest.approx(0.1, abs=0.05)
    assert rows["jury_sham_floor", ""]["estimate"] == 1.0
    assert {part for _, part in rows} == {""}  # of two members none can be left out


def test_too_little_says_why(make_shifts: Make) -> None:
    one = panel(make_shifts, {"a": noise(1)})
    assert jury_of(one).is_empty()
    assert jury(shifts=make_shifts([]), tallies=Tallies.empty()).is_empty()
    apart = panel(make_shifts, {"a": [(0.5, 0.6), (0.5, None)], "b": [(0.5, None), (0.5, 0.6)]})
    rows = found(apart)
    for name in ("jury_mps", "jury_asr", "jury_size"):
        assert rows[name, ""]["estimate"] is None
        assert rows[name, ""]["reason"].startswith("nothing qualifies: ")
    single = panel(make_shifts, {"a": noise(1), "b": noise(2)}, cluster="q")
    row = found(single)["jury_size", ""]
    assert row["estimate"] is not None
    assert (row["low"], row["reason"]) == (None, "a single cluster: no interval")
    mirrored = {"a": noise(1), "b": [(0.5, 1 - e) for _, e in noise(1)]}
    row = found(panel(make_shifts, mirrored))["jury_size", ""]
    assert (row["estimate"], row["n"]) == (None, 0)
    assert row["reason"] == "errors of the members cancel out: the size has no bound"
    opposed = {"a": noise(1), "b": [*([(0.5, 1 - e) for _, e in noise(1)][:50]), *noise(1)[50:]]}
    row = found(panel(make_shifts, opposed))["jury_correlation", ""]
    assert -1 < row["low"] < row["estimate"] < row["high"] < 0


def test_order_of_rows_and_types_of_keys_do_not_matter(make_shifts: Make) -> None:
    frame = panel(make_shifts, {"a": noise(1), "b": noise(2), "c": noise(3)})
    other = frame.sample(fraction=1, shuffle=True, seed=1).with_columns(
        pl.col("judge", "sample", "cluster", "perturbation", "kind", "mode").cast(pl.Categorical)
    )
    nobody = Tallies.empty()
    assert jury(shifts=other, tallies=nobody).equals(jury(shifts=frame, tallies=nobody))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("betas", "truth"), [((1, 1, 1), 0.137), ((1, 0, 0), 0.046), ((1, 0, -1), 0.0)]
)
def test_shared_bias_stays_and_opposite_biases_cancel(betas: tuple[int, ...], truth: float) -> None:
    # methods.md, section 11
    traits = PRESETS["gullible"].traits
    logs = [
        simulate(traits, kind="promote", beta=beta, items=1500, votes=6, seed=n, judge=f"judge {n}")
        for n, beta in enumerate(betas)
    ]
    shifts = match_groups(tally_votes(count_votes(VoteLog.of(pl.concat(logs))), "balanced"))
    assert found(shifts)["jury_mps_sham", ""]["estimate"] == pytest.approx(truth, abs=0.015)


def test_moving_away_from_a_flaw_is_no_error(make_shifts: Make) -> None:
    judges = {j: [(0.5, 0.1), (0.6, 0.3), (0.7, 0.1)] for j in "abc"}
    rows = found(panel(make_shifts, judges).with_columns(kind=pl.lit("detract")))
    for name in ("jury_correlation", "jury_size"):
        row = rows[name, ""]
        assert (row["estimate"], row["low"]) == (None, None)
        assert row["reason"] == "a good judge reacts to the flaw, so shifts are not errors"
    assert rows["jury_mps", ""]["estimate"] == pytest.approx(-1.3 / 3)


def test_people_are_no_members(make_shifts: Make, make_vote_log: Make) -> None:
    judges = {"a": noise(1), "b": noise(2), "Ann": noise(3, 0.4)}
    frame = panel(make_shifts, judges)
    votes = [{"judge": judge, "human": judge == "Ann"} for judge in judges]
    rows = jury(shifts=frame, tallies=count_votes(make_vote_log(votes)))
    models = jury_of(frame.filter(pl.col("judge") != "Ann"))
    # Only the catalogue knows what rows declare.
    declared = ("family", "unit", "null_value", "floor", "seed")
    assert rows.drop(declared).equals(models.drop(declared))
    nobody = jury(shifts=frame, tallies=Tallies.empty())
    assert nobody.filter(statistic="jury_mps", subgroup="Ann").height == 1


def test_flips_are_those_of_the_jury(make_shifts: Make) -> None:
    # Scores of two members: means .75 -> .25, .5 -> 1, .5 -> .5
    judges = {"a": [(1.0, 0.5), (0.0, 1.0), (0.0, 0.0)], "b": [(0.5, 0.0), (1.0, 1.0), (1.0, 1.0)]}
    rows = found(panel(make_shifts, judges))
    hits = {name: rows[f"jury_flips_{name}", ""]["hits"] for name in ("up", "down")}
    assert hits == {"up": 1, "down": 1}
    assert rows["jury_robustness_rate", ""]["estimate"] == pytest.approx(1 / 3)
    assert rows["jury_flip_direction", ""]["estimate"] == 0.0
