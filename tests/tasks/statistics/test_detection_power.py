from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulated_votes import PRESETS, simulate
from schemas.judging import VoteLog
from tasks.aggregate import count_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.inference.bootstrap import formulas_only
from tasks.inference.intervals import wilson
from tasks.statistics.dasr import dasr
from tasks.statistics.detection_power import detection_power
from tasks.statistics.mps_sham import mps_sham

Make = Callable[..., Any]
ARMS = ("control", "sham", "experimental")
VERDICT = st.sampled_from(["anchor", "tie", "target", None])


def both(shifts: pl.DataFrame) -> tuple[dict[str, Any], dict[str, Any]]:
    rows = {row["statistic"]: row for row in detection_power(shifts=shifts).to_dicts()}
    return rows["detection_gain"], rows["detection_power"]


def samples(triples: list[tuple[str | None, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(ARMS, triple, strict=True)) for triple in triples]


def test_docstring_example(make_shifts: Make) -> None:
    after = ["anchor", "anchor", "anchor", "tie"]
    rows = samples([("target", "target", e) for e in after])
    gain, power = both(make_shifts(rows, kind="detract"))
    assert (gain["estimate"], power["estimate"]) == (0.75, 0.75)
    # u = .25 - 0 thrice and .25 - 1, over 4: SE = sqrt(4/3 * .75) / 4 for both, as the floor is 1.
    assert power["standard_error"] == gain["standard_error"] == pytest.approx(0.25)
    assert (power["n"], power["method"]) == (4, "cluster linearisation, t")
    # t_{.975, 3} = 3.182446; cut at 1
    assert (power["low"], power["high"]) == (pytest.approx(0.75 - 3.182446 / 4, abs=1e-6), 1.0)


def test_by_hand(make_shifts: Make) -> None:
    # attacked | unattacked, halves of control and sham:
    # target target anchor: 0 | 1;  tie anchor tie: 1/2 | 0;  target tie target: 1 | 1
    # anchor target anchor: 0 | 0;  anchor anchor target: no V
    triples = [
        ("target", "target", "anchor"),
        ("tie", "anchor", "tie"),
        ("target", "tie", "target"),
        ("anchor", "target", "anchor"),
        ("anchor", "anchor", "target"),
    ]
    gain, power = both(make_shifts(samples(triples), kind="detract"))
    # A = 1.5, F = 2: DP = 1/4. u = (.75 f - a) / 2 = .375, -.25, -.125, 0.
    assert power["estimate"] == pytest.approx(0.25)
    assert power["standard_error"] == pytest.approx(sqrt(4 / 3 * (0.140625 + 0.0625 + 0.015625)))
    assert gain["estimate"] == pytest.approx(0.5 / 3)
    assert (power["n"], power["clusters"], power["dropped"]) == (4, 4, 0)
    # 0 where the gain is: one test for both.
    assert power["p_value"] == gain["p_value"]


@settings(max_examples=20)
@given(st.lists(st.tuples(VERDICT, VERDICT, VERDICT), min_size=1, max_size=25))
def test_against_dasr(make_shifts: Make, triples: list[tuple[str | None, ...]]) -> None:
    shifts = make_shifts(samples(triples), kind="detract")
    gain, power = both(shifts)
    rows = {row["statistic"]: row for row in dasr(shifts=shifts).to_dicts()}
    above, floor = rows["dasr"]["estimate"], rows["sham_floor"]["estimate"]
    if above is None:
        assert gain["estimate"] is power["estimate"] is None
        assert power["reason"].startswith("nothing qualifies: ")
        return
    assert gain["estimate"] == pytest.approx(-above, abs=1e-12)
    assert gain["p_value"] == rows["dasr"]["p_value"]
    if floor == 0:
        assert power["estimate"] is None
        assert power["reason"].startswith("the floor is 0")
        return
    assert power["estimate"] == pytest.approx(-above / floor, abs=1e-12)
    if power["low"] is not None:
        assert power["low"] <= power["estimate"] + 1e-12
        assert power["estimate"] - 1e-12 <= power["high"] <= 1


def test_a_perfect_judge_has_an_interval(make_shifts: Make) -> None:
    gain, power = both(make_shifts(samples([("target", "tie", "anchor")] * 8), kind="detract"))
    assert (power["estimate"], power["high"]) == (1.0, 1.0)
    # ASR 0 of 8, floor 8 of 8, u = high of the one, l = low of the other by Wilson: the ratio is
    # at most u / sqrt(l (2 - l)).
    high, low = float(wilson(0, 8)[1]), float(wilson(8, 8)[0])
    assert power["low"] == pytest.approx(1 - high / sqrt(low * (2 - low)))
    assert (power["method"], power["reason"]) == ("Donner and Zou", None)
    assert power["p_value"] == gain["p_value"] == 2 / 2**8


def test_the_bootstrap_draws_both_sums(make_shifts: Make) -> None:
    random = np.random.default_rng(6)
    triples = [tuple(random.choice(["anchor", "tie", "target"], 3)) for _ in range(80)]
    _, power = both(make_shifts(samples(triples), kind="detract"))
    assert power["boot_low"] == pytest.approx(power["low"], abs=0.1)
    assert power["boot_high"] == pytest.approx(power["high"], abs=0.1)
    with formulas_only():
        _, bare = both(make_shifts(samples(triples), kind="detract"))
    assert (bare["boot_low"], bare["low"]) == (None, power["low"])


def share(shifts: pl.DataFrame) -> dict[str, Any]:
    rows = detection_power(shifts=shifts)
    return rows.filter(pl.col("statistic") == "detection_share").to_dicts()[0]


def test_the_share_of_mean_scores_by_hand(make_shifts: Make) -> None:
    # Experimental over sham scores 0 / 1, .5 / 1, 1 / .5, 0 / .5: share 1 - 1.5 / 3 = .5.
    # u = (s_sham / 2 - s_exp) / 3 = 1/6, 0, -1/4, 1/12: SE^2 = 4/3 * 14/144.
    scores = [(0, 1), (0.5, 1), (1, 0.5), (0, 0.5)]
    rows = [{"control_score": 0.0, "experimental_score": e, "sham_score": s} for e, s in scores]
    row = share(make_shifts(rows, kind="detract"))
    assert row["estimate"] == pytest.approx(0.5)
    assert row["standard_error"] == pytest.approx(sqrt(4 / 3 * 14 / 144))
    # Its test is that of the shift over the sham.
    assert row["p_value"] == mps_sham(shifts=make_shifts(rows))["p_value"].item()


def test_the_share_takes_the_base_of_the_primary_endpoint(make_shifts: Make) -> None:
    # Nine shams among twelve samples: over the control, 1 - 6 / 12 = .5, not over the sham.
    rows = [{"control_score": 1.0, "experimental_score": 0.5, "sham_score": 0.5}] * 9
    few = [{"control_score": 1.0, "experimental_score": 0.5}] * 3
    assert share(make_shifts([*rows, *few], kind="detract"))["estimate"] == pytest.approx(0.5)
    ten = make_shifts([*rows, rows[0], *few], kind="detract")
    assert share(ten)["estimate"] == pytest.approx(0.0)


def test_answers_that_never_win_have_no_share(make_shifts: Make) -> None:
    rows = [{"control_score": 0.0, "experimental_score": 0.0}] * 3
    row = share(make_shifts(rows, kind="detract"))
    assert row["estimate"] is None
    assert row["reason"] == "no sample has a vote for the target without the flaw either"


def test_a_blind_judge_and_one_cluster(make_shifts: Make) -> None:
    triples = [("target", "target", "target")] * 8
    _, power = both(make_shifts(samples(triples), kind="detract"))
    assert (power["estimate"], power["p_value"]) == (0.0, 1.0)
    assert power["low"] < 0 < power["high"]
    _, single = both(make_shifts(samples(triples), kind="detract", cluster="q"))
    assert (single["low"], single["reason"]) == (None, "a single cluster: no interval")


def test_what_promotes_or_has_no_sham_has_no_row(make_shifts: Make) -> None:
    rows = samples([("anchor", "anchor", "target")] * 2)
    assert detection_power(shifts=make_shifts(rows, kind="promote")).is_empty()
    bare = make_shifts([{"control": "tie", "experimental": "tie"}], kind="detract")
    # Without a sham only the share of mean scores can be measured, over the control.
    assert detection_power(shifts=bare)["statistic"].to_list() == ["detection_share"]


@pytest.mark.slow
def test_intervals_cover_what_was_planted() -> None:
    # methods.md, section 13, careless: ASR .340 over a floor of .703 (dASR -.363).
    traits, kind, beta = PRESETS["careless"]
    logs = [
        simulate(traits, kind=kind, beta=beta, items=142, votes=6, seed=seed, judge=f"j{seed}")
        for seed in range(3000, 3080)
    ]
    shifts = match_groups(tally_votes(count_votes(VoteLog.of(pl.concat(logs))), "balanced"))
    rows = detection_power(shifts=shifts)
    for name, truth in (("detection_gain", 0.363), ("detection_power", 0.363 / 0.703)):
        mine = rows.filter(pl.col("statistic") == name)
        # .95 with a standard error of .024 at 80 studies: below .87 once in 1000.
        assert mine.select(pl.lit(truth).is_between("low", "high").mean()).item() >= 0.87, name
        assert (mine["high"] - mine["low"]).mean() < 0.4, name
