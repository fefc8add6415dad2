from collections.abc import Callable

import pytest

from flows.results.study_results import PRICES
from schemas.curation import Questions
from schemas.judging import Ballots, Judges, Pairs, Prompts, Votes
from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
Concluded = Callable[..., list[Saving]]


def test_the_jury_with_and_without_each_member(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    jury = {"judge": "jury/all"}
    rows = [
        {**jury, "statistic": "jury_mps", "estimate": 0.3, "n": 9},
        {**jury, "statistic": "jury_mps_sham", "estimate": 0.2, "low": 0.1, "high": 0.3},
        {**jury, "statistic": "jury_asr", "estimate": 0.4},
        {**jury, "statistic": "jury_size", "estimate": 1.5},
        {**jury, "statistic": "jury_correlation", "estimate": 0.5},
        {**jury, "statistic": "jury_mps_sham", "subgroup": "a", "estimate": 0.15},
        {"judge": "a", "statistic": "mps", "estimate": 0.9},
        {"judge": "a", "statistic": "mps_sham", "estimate": 0.25},
    ]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    columns = "left_out, shift, low, high, member_shift, asr, size, correlation, n"
    assert warehouse.query(f"select {columns} from mart.jury order by left_out").rows() == [
        ("a", 0.15, None, None, 0.25, None, None, None, None),
        (None, 0.2, 0.1, 0.3, None, 0.4, 1.5, 0.5, 9),
    ]


def test_a_verdict_costs_what_those_of_all_members_do(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    # Two votes a pair: a pays .01 and .03 for its votes, b .005 each, c nobody knows; the formula
    # is no member.
    judges = ("a", "b", "c", "offline/honest")
    paid = [
        ("a", 0.01),
        ("a", 0.03),
        ("b", 0.005),
        ("b", 0.005),
        ("c", None),
        ("c", 0.5),
        ("offline/honest", 0.0),
    ]
    ballots = [
        {"ballot_id": f"b{at}", "judge": judge, "repeat": at} for at, (judge, _) in enumerate(paid)
    ]
    votes = [{"ballot_id": f"b{at}", "cost_usd": usd} for at, (_, usd) in enumerate(paid)]
    facts = [
        make(Judges, *({"judge": judge} for judge in judges)),
        make(Prompts),
        make(Questions),
        make(Pairs),
        make(Ballots, *ballots),
        make(Votes, *votes),
    ]
    warehouse.save(facts, run="r1")
    shifts = [
        {"judge": judge, "statistic": "mps", "simulated": judge.startswith("offline")}
        for judge in judges
    ]
    rows = [
        {"judge": "jury/all", "statistic": "jury_mps", "subgroup": out, "simulated": False}
        for out in ("", "a", "b", "c")
    ]
    prices = warehouse.query(PRICES)
    frames = concluded(make(Estimates, *shifts, *rows), prices=prices)
    warehouse.save(frames, run="r1", study="quick")
    found = warehouse.query("select left_out, cost_usd from mart.jury order by all nulls first")
    assert found.rows() == [(None, None), ("a", None), ("b", None), ("c", pytest.approx(0.05))]
    alone = [{"judge": "jury/all", "statistic": "jury_mps", "simulated": True}]
    frames = concluded(make(Estimates, shifts[3], *alone), prices=prices)
    warehouse.save(frames, run="r1", study="quick")
    assert warehouse.query("select cost_usd from mart.jury").rows() == [(0.0,)]


def test_votes_that_nobody_asked_here_have_no_price(
    warehouse: Warehouse, make: Make, concluded: Concluded
) -> None:
    rows = [{"judge": "a", "statistic": "mps"}, {"judge": "jury/all", "statistic": "jury_mps"}]
    warehouse.save(concluded(make(Estimates, *rows)), run="r1", study="quick")
    assert warehouse.query("select cost_usd from mart.jury").rows() == [(None,)]
