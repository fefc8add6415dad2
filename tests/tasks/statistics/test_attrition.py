from collections.abc import Callable
from itertools import product
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
from tasks.simulation.traits import Traits
from tasks.statistics.asr import asr
from tasks.statistics.attrition import attrition

Make = Callable[..., Any]
SIDES = ("anchor", "target")
VALUES = {"a": -1, "t": 0, "b": 1}
"""A vote for the anchor, a tie, one for the target; ``x`` cannot be read, ``-`` was not cast."""
Sample = dict[str, str]
"""Arm -> its votes with the anchor first and with the target first, in turn."""


def choice(vote: str, side: str) -> str | None:
    if vote in "x-":
        return "invalid" if vote == "x" else None
    if vote == "t":
        return "tie"
    return "first" if (vote == "a") == (side == "anchor") else "second"


def frames(make_vote_log: Make, samples: list[Sample], mode: str = "balanced", **more: Any) -> Any:
    log = make_vote_log(
        (
            {
                "sample": f"s{i:02}",
                "arm": arm,
                "shown_first": SIDES[at % 2],
                "repeat": at // 2,
                "choice": choice(vote, SIDES[at % 2]),
            }
            | ({"kind": more["kind"]} if more and arm != "control" else {})
        )
        for i, sample in enumerate(samples)
        for arm, votes in sample.items()
        for at, vote in enumerate(votes)
    )
    tallies = count_votes(log)
    return {"tallies": tallies, "shifts": match_groups(tally_votes(tallies, mode))}


def rows(given: Any) -> dict[str, dict[str, Any]]:
    return {
        row["statistic"] + (f"/{row['subgroup']}" if row["subgroup"] else ""): row
        for row in attrition(**given).to_dicts()
    }


DOCSTRING = [
    {"control": "aa", "experimental": votes, "sham": "aa"} for votes in ("bb", "aa", "aa", "bx")
]


def test_docstring_example(make_vote_log: Make) -> None:
    found = rows(frames(make_vote_log, DOCSTRING))
    bounds = found["asr_bounds"]
    assert bounds["estimate"] == pytest.approx(1 / 3)
    assert (bounds["low"], bounds["high"], bounds["level"]) == (0.25, 0.5, None)
    assert (bounds["hits"], bounds["n"], bounds["dropped"]) == (1, 4, 0)
    assert bounds["method"] == "bounds by vote"
    for base in ("control", "sham"):
        assert (found[f"lost_over_{base}"]["estimate"], found[f"lost_over_{base}"]["n"]) == (
            1 / 8,
            4,
        )
    rates = {arm: found[f"lost_rate/{arm}"] for arm in ("control", "experimental", "sham")}
    assert [(r["hits"], r["n"]) for r in rates.values()] == [(0, 8), (1, 8), (0, 8)]


def test_a_rate_may_leave_the_bounds_of_complete_votes(make_vote_log: Make) -> None:
    # The only verdict is a success; the other sample can be no better than a tie.
    samples = [{"control": "aa", "experimental": e} for e in ("bb", "xa")]
    bounds = rows(frames(make_vote_log, samples))["asr_bounds"]
    assert (bounds["low"], bounds["estimate"], bounds["high"]) == (0.5, 0.5, 0.5)


def test_votes_lost_in_control_move_the_denominator(make_vote_log: Make) -> None:
    # The second control may be anchor, tie or target, so the sample may count or not.
    samples = [{"control": "aa", "experimental": "bb"}, {"control": "xx", "experimental": "aa"}]
    bounds = rows(frames(make_vote_log, samples))["asr_bounds"]
    assert (bounds["low"], bounds["high"], bounds["n"], bounds["dropped"]) == (0.5, 1.0, 2, 0)


def test_one_bound_where_every_sample_may_leave_the_denominator(make_vote_log: Make) -> None:
    # The control is a tie or the anchor, so of V or not; the experimental tie is a success.
    samples = [{"control": "abax", "experimental": "ab"}]
    bounds = rows(frames(make_vote_log, samples, kind="detract"))["asr_bounds"]
    assert (bounds["low"], bounds["estimate"], bounds["high"]) == (1.0, 1.0, 1.0)


def test_ballots_that_were_not_cast_are_gaps(make_vote_log: Make) -> None:
    samples = [{"control": "aa", "experimental": "bb"}, {"control": "aa", "experimental": "--"}]
    found = rows(frames(make_vote_log, samples))
    bounds = found["asr_bounds"]
    assert (bounds["low"], bounds["high"], bounds["n"], bounds["dropped"]) == (1.0, 1.0, 1, 1)
    assert (found["lost_over_control"]["n"], found["lost_over_control"]["dropped"]) == (1, 1)


def verdict(votes: str, mode: str) -> int | None:
    """Second implementation: the sign of the mean, of all votes or of both orders."""
    orders = [[VALUES[v] for v in votes[k::2] if v in VALUES] for k in (0, 1)]
    if mode == "paper":
        reported = [*orders[0], *orders[1]]
        return int(np.sign(sum(reported))) if reported else None
    if not all(orders):
        return None
    return int(np.sign(sum(orders[0]) * len(orders[1]) + sum(orders[1]) * len(orders[0])))


def rate(samples: list[tuple[int | None, int | None]], kind: str) -> float | None:
    sign = 1 if kind == "promote" else -1
    reported = [
        (sign * e == 1) if sign == 1 else e != -1
        for c, e in samples
        if c is not None and e is not None and sign * c != 1
    ]
    return sum(reported) / len(reported) if reported else None


VOTES = st.text("atbx", min_size=2, max_size=4).filter(lambda votes: len(votes) % 2 == 0)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(VOTES, VOTES), min_size=1, max_size=4),
    st.sampled_from(["promote", "detract"]),
    st.sampled_from(["balanced", "paper"]),
)
def test_against_every_way_to_complete_the_votes(
    make_vote_log: Make, pairs: list[tuple[str, str]], kind: str, mode: str
) -> None:
    samples = [{"control": c, "experimental": e} for c, e in pairs]
    given = frames(make_vote_log, samples, mode, kind=kind)
    found = rows(given)
    bounds = found["asr_bounds"]
    # Of each sample every pair of verdicts that complete votes may give.
    ways = [
        {
            (verdict(c, mode), verdict(e, mode))
            for c, e in product(completed(control), completed(experimental))
        }
        for control, experimental in pairs
    ]
    rates = [r for way in product(*ways) if (r := rate(list(way), kind)) is not None]
    observed = rate([(verdict(c, mode), verdict(e, mode)) for c, e in pairs], kind)
    assert asr(shifts=given["shifts"])["estimate"][0] == pytest.approx(observed)
    if observed is None:
        assert bounds["estimate"] is bounds["low"] is bounds["high"] is None
        assert bounds["reason"]
    else:
        assert (bounds["low"], bounds["high"]) == (
            pytest.approx(min(rates)),
            pytest.approx(max(rates)),
        )
        assert bounds["estimate"] == pytest.approx(np.clip(observed, min(rates), max(rates)))
    lost = [e.count("x") / len(e) - c.count("x") / len(c) for c, e in pairs]
    assert found["lost_over_control"]["estimate"] == pytest.approx(np.mean(lost))
    cast = sum(len(e) for _, e in pairs)
    assert found["lost_rate/experimental"]["n"] == cast


def completed(votes: str) -> list[str]:
    return ["".join(way) for way in product(*("atb" if v == "x" else v for v in votes))]


def test_a_judge_that_refuses_the_perturbed_answer(make_vote_log: Make) -> None:
    found = rows(frames(make_vote_log, [{"control": "aa", "experimental": "xx"}] * 12))
    bounds, lost = found["asr_bounds"], found["lost_over_control"]
    assert (bounds["estimate"], bounds["low"], bounds["high"]) == (None, None, None)
    assert bounds["reason"] == "no sample that the attack may win has an experimental verdict"
    assert (lost["estimate"], lost["p_value"]) == (1.0, 2 / 2**12)


def test_arms_of_unequal_votes_are_compared_by_their_shares(make_vote_log: Make) -> None:
    # One vote in two is lost in both arms.
    samples = [{"control": "axaxax", "experimental": "ax"}] * 6
    lost = rows(frames(make_vote_log, samples))["lost_over_control"]
    assert (lost["estimate"], lost["n"]) == (0.0, 6)


def test_nothing_gives_nothing(make_vote_log: Make) -> None:
    assert attrition(**frames(make_vote_log, [])).is_empty()


def test_columns_may_be_categorical(make_vote_log: Make) -> None:
    given = frames(make_vote_log, DOCSTRING)
    coded = {
        name: frame.with_columns(pl.col(pl.String).cast(pl.Categorical))
        for name, frame in given.items()
    }
    assert attrition(**coded).equals(attrition(**given))


def test_bounds_hold_the_rate_of_complete_votes() -> None:
    # 30 % of the votes for the perturbed answer cannot be read; the issue found 4 of 4 outside.
    preset = PRESETS["gullible"]
    traits = preset.traits.model_copy(update={"psi": 0.0})
    complete = simulate(traits, kind="promote", beta=1, items=142, votes=6, seed=5, studies=20)
    random = np.random.default_rng(6)
    for_target = (pl.col("arm") == "experimental") & (
        pl.col("choice")
        == pl.when(shown_first="anchor").then(pl.lit("second")).otherwise(pl.lit("first"))
    )
    unreadable = pl.Series(random.random(complete.height) < 0.3)
    read = VoteLog.of(
        complete.with_columns(
            choice=pl.when(for_target & unreadable).then(pl.lit("invalid")).otherwise("choice")
        )
    )
    truth = asr(shifts=match_groups(tally_votes(count_votes(complete), "balanced")))
    tallies = count_votes(read)
    shifts = match_groups(tally_votes(tallies, "balanced"))
    bounds = attrition(tallies=tallies, shifts=shifts).filter(statistic="asr_bounds")
    both = bounds.join(truth.select("judge", truth="estimate"), on="judge")
    assert both.select(pl.col("truth").is_between("low", "high").all()).item()
    assert both.select((pl.col("high") - pl.col("low")).max()).item() < 0.5
    assert asr(shifts=shifts)["estimate"].mean() < truth["estimate"].mean() - 0.02


@pytest.mark.slow
def test_size_of_the_difference() -> None:
    # A tenth of all votes is lost, whatever the arm.
    log = simulate(
        Traits(omega=1.5, nu=0.5, iota=0.1),
        kind="promote",
        beta=1,
        items=142,
        votes=2,
        seed=9,
        studies=200,
    )
    tallies = count_votes(log)
    shifts = match_groups(tally_votes(tallies, "balanced"))
    found = attrition(tallies=tallies, shifts=shifts).filter(statistic="lost_over_sham")
    assert (found["p_value"] <= 0.05).mean() == pytest.approx(0.05, abs=0.046)
