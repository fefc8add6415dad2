from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from schemas.results import Estimates
from tasks.aggregate import count_votes
from tasks.counting.cells import UNEQUAL
from tasks.inference.bootstrap import formulas_only, weights
from tasks.inference.quantiles import widened
from tasks.statistics import STATISTICS
from tasks.statistics.judge_mean import ALL, KEPT, NOBODY

Make = Callable[..., Any]
Row = dict[str, Any]


@pytest.fixture
def judge_mean(make_vote_log: Make) -> Callable[..., dict[tuple[str, str], Row]]:
    """Return a function of shifts and votes to rows by statistic and subgroup."""

    def run(shifts: pl.DataFrame, votes: list[Row] | None = None) -> dict[tuple[str, str], Row]:
        tallies = count_votes(make_vote_log(votes or [{}]))
        found = STATISTICS["judge_mean"](shifts=shifts, tallies=tallies)
        assert Estimates.of(found).equals(found)
        return {(row["statistic"], row["subgroup"]): row for row in found.to_dicts()}

    return run


def of(judge: str, hits: str, arm: str = "experimental", **more: Any) -> list[Row]:
    """Return a row per letter: 1 a win over a control of anchor, 0 none."""
    return [
        {
            "judge": judge,
            "sample": f"s{at}",
            "control": "anchor",
            arm: "target" if hit == "1" else "anchor",
            **more,
        }
        for at, hit in enumerate(hits)
    ]


def test_the_mean_of_rates_by_hand(make_shifts: Make, judge_mean: Make) -> None:
    rows = [*of("ada", "1100"), *of("bob", "1000")]
    found = judge_mean(make_shifts(rows))["mean_asr", ""]
    assert (found["judge"], found["estimate"], found["n"], found["clusters"]) == (ALL, 0.375, 4, 4)
    # u = (k_g - R v_g) / v: ada .125 .125 -.125 -.125, bob .1875 -.0625 three times; their means
    # .15625 .03125 -.09375 -.09375 have squares that sum to .04296875; var = 4/3 of it = .0572917.
    # n = .375 * .625 / .0572917 / (t / z)^2 = 4.0909 / (3.18245 / 1.95996)^2 = 1.55165.
    assert (found["low"], found["high"]) == (
        pytest.approx(0.04586, abs=1e-5),
        pytest.approx(0.88221, abs=1e-5),
    )


@pytest.mark.slow
def test_a_shared_error_does_not_average_out(make_shifts: Make, judge_mean: Make) -> None:
    one = judge_mean(make_shifts(of("ada", "110100" * 4)))["mean_asr", ""]
    same = judge_mean(make_shifts([r for j in "abcd" for r in of(j, "110100" * 4)]))["mean_asr", ""]
    apart = judge_mean(make_shifts([*of("ada", "110100" * 4), *of("bob", "001011" * 4)]))[
        "mean_asr", ""
    ]
    assert (same["low"], same["high"]) == (pytest.approx(one["low"]), pytest.approx(one["high"]))
    assert apart["high"] - apart["low"] < one["high"] - one["low"]


def test_the_error_is_that_of_a_joint_bootstrap(make_shifts: Make, judge_mean: Make) -> None:
    random = np.random.default_rng(7)
    arms = {judge: random.random((60, 3)) < 0.5 + 0.1 * at for at, judge in enumerate("abc")}
    words = np.array(["anchor", "target"])
    rows = [
        {
            "judge": judge,
            "sample": f"s{at}",
            "control": words[int(c)],
            "experimental": words[int(e)],
            "sham": words[int(s)],
            "has_sham": True,
        }
        for judge, table in arms.items()
        for at, (c, e, s) in enumerate(table)
    ]
    found = judge_mean(make_shifts(rows))
    num, den = {}, {}
    for judge, table in arms.items():
        c, e, s = table.T
        v = (~c).astype(float), (~s).astype(float)
        num[judge] = (v[0] * (e * 1.0 - s) + v[1] * (e * 1.0 - c)) / 2
        den[judge] = (v[0] + v[1]) / 2
    drawn = np.concatenate(
        [np.mean([(w @ num[j]) / (w @ den[j]) for j in arms], axis=0) for w in weights(60)]
    )
    point = np.mean([num[j].sum() / den[j].sum() for j in arms])
    row = found["mean_dasr", ""]
    assert row["estimate"] == pytest.approx(point)
    # The bootstrap errs by 1.6 % with 2000 draws, and linearisation by some in 60 clusters.
    assert row["standard_error"] == pytest.approx(drawn.std(), rel=0.1)
    shift = np.mean([table[:, 1] * 1.0 - table[:, 2] for table in arms.values()], axis=0)
    # Where each judge has all samples, the mean shift is the mean of one column.
    assert found["mean_shift", ""]["standard_error"] == pytest.approx(
        shift.std(ddof=1) / np.sqrt(60)
    )


def test_who_is_left_out_does_not_count(make_shifts: Make, judge_mean: Make) -> None:
    rows = make_shifts([*of("ada", "1100" * 5), *of("bob", "0000" * 5)])
    votes = [
        {"judge": judge, "sample": f"s{at}", "shown_first": side, "choice": choice}
        for at in range(20)
        for judge, choices in (("ada", ("first", "second")), ("bob", ("tie", "tie")))
        for side, choice in zip(("anchor", "target"), choices, strict=True)
    ]
    found = judge_mean(rows, votes)
    assert (found["mean_asr", ""]["estimate"], found["mean_asr", KEPT]["estimate"]) == (0.25, 0.5)
    votes = [{**vote, "choice": "tie"} for vote in votes]
    assert judge_mean(rows, votes)["mean_asr", KEPT]["reason"] == NOBODY
    assert ("mean_asr", KEPT) not in judge_mean(rows)


def test_rates_of_unequal_votes_have_no_mean(make_shifts: Make, judge_mean: Make) -> None:
    rows = make_shifts([*of("ada", "1100"), *of("bob", "1000", votes=2)])
    found = judge_mean(rows)
    assert (found["mean_asr", ""]["estimate"], found["mean_asr", ""]["reason"]) == (None, UNEQUAL)
    assert found["mean_shift", ""]["estimate"] == 0.375


def test_nothing_to_average(make_shifts: Make, judge_mean: Make) -> None:
    found = judge_mean(make_shifts([{"sample": "s1", "control": "target", "experimental": "tie"}]))
    row = found["mean_asr", ""]
    assert (row["estimate"], row["n"], row["reason"] is not None) == (None, 0, True)
    one = judge_mean(make_shifts(of("ada", "1")))["mean_asr", ""]
    assert (one["estimate"], one["low"], one["reason"]) == (
        1.0,
        None,
        "a single cluster: no interval",
    )


def test_people_have_no_part_in_it(make_shifts: Make, judge_mean: Make) -> None:
    models = [*of("ada", "1100"), *of("bob", "1000")]
    alone = judge_mean(make_shifts(models))
    person = of("people/ann", "1")
    votes = [{"judge": judge, "human": judge == "people/ann"} for judge in ("ada", "people/ann")]
    assert judge_mean(make_shifts([*models, *person]), votes) == alone


def test_formulas_have_no_part_in_it_unless_all_are(make_shifts: Make, judge_mean: Make) -> None:
    real = [*of("ada", "1100", simulated=False), *of("bob", "1000", simulated=None)]
    toy = of("toy", "111111", simulated=True)
    found = judge_mean(make_shifts([*real, *toy]))
    assert found == judge_mean(make_shifts(real))
    assert (found["mean_asr", ""]["estimate"], found["mean_asr", ""]["simulated"]) == (0.375, None)
    # Per perturbation, as of the jury: here the only other judge did not see it.
    alone = judge_mean(make_shifts([*toy, *of("ada", "0", perturbation="aaa")]))
    assert alone["mean_asr", ""]["estimate"] == 1.0
    both = judge_mean(make_shifts([*toy, *of("doll", "000000", simulated=True)]))
    assert (both["mean_asr", ""]["estimate"], both["mean_asr", ""]["simulated"]) == (0.5, True)


def test_the_bootstrap_beside_it_draws_all_judges_alike(
    make_shifts: Make, judge_mean: Make
) -> None:
    hits = {"ada": "1101001011", "bob": "1001001000"}
    rows = [row for judge, letters in hits.items() for row in of(judge, letters)]
    found = judge_mean(make_shifts(rows))["mean_asr", ""]
    table = np.array([[int(hit) for hit in letters] for letters in hits.values()], float)
    drawn = np.concatenate([(some @ table.T / 10).mean(axis=1) for some in weights(10)])
    level = float(widened(0.95, 10))
    ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    assert (found["boot_low"], found["boot_high"]) == pytest.approx(tuple(ends))
    assert found["boot_low"] < found["estimate"] < found["boot_high"]
    with formulas_only():
        bare = judge_mean(make_shifts(rows))["mean_asr", ""]
    assert (bare["boot_low"], bare["low"]) == (None, found["low"])
    one = judge_mean(make_shifts(rows, cluster="q"))["mean_asr", ""]
    assert (one["boot_low"], one["level"]) == (None, None)


def test_a_draw_needs_every_judge(make_shifts: Make, judge_mean: Make) -> None:
    # Bob counts in one question of three: .30 of the draws are without it.
    rows = [
        *of("ada", "110"),
        *of("bob", "1"),
        *({**row, "control": "target"} for row in of("bob", "000")[1:]),
    ]
    found = judge_mean(make_shifts(rows))["mean_asr", ""]
    table = np.array([1.0, 1.0, 0.0])
    every = np.concatenate(list(weights(3)))
    drawn = ((every @ table / 3) + 1)[every[:, 0] > 0] / 2
    level = float(widened(0.95, 3))
    ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    assert (found["boot_low"], found["boot_high"]) == pytest.approx(tuple(ends))
