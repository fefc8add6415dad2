from collections.abc import Callable
from datetime import UTC, datetime

from flows.running.readiness import SPENT
from flows.running.run_row import first_row
from flows.studies import make_study
from schemas.judging import Ballots, Judges, Pairs, Votes
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_votes_and_money_by_run_and_judge(stocked: Warehouse, make: Make) -> None:
    second = {"pair_id": "p2", "arm": "sham", "perturbation": "padding", "kind": "promote"}
    ballots = make(
        Ballots,
        {"pair_id": "p2"},  # the same asking as of p1: one ballot_id, so one vote
        {"ballot_id": "b2", "repeat": 1},
        {"ballot_id": "b3", "repeat": 2},
        {"ballot_id": "b4", "judge": "a/b"},
    )
    tokens = {"prompt_tokens": 100, "completion_tokens": 20}
    votes = make(
        Votes,
        {**tokens, "ballot_id": "b2", "cost_usd": 0.5, "seconds": 1.0},
        {**tokens, "ballot_id": "b3", "cost_usd": 0.25, "seconds": 4.0},
        {"ballot_id": "b4", "cost_usd": None},
    )
    judge = make(Judges, {"judge": "a/b", "simulated": False})
    stocked.save([judge, make(Pairs, second), ballots, votes], run="r2")
    found = stocked.query(
        "select run, judge, simulated, votes, prompt_tokens, completion_tokens, cost_usd, "
        "median_seconds from mart.cost order by run, judge"
    )
    assert found.rows() == [
        ("r1", "offline/honest", True, 1, None, None, None, 0.5),
        ("r2", "a/b", False, 1, None, None, None, 0.5),
        ("r2", "offline/honest", True, 2, 200, 40, 0.75, 2.5),
    ]


def test_what_a_study_has_cost_leaves_out_votes_of_people(stocked: Warehouse, make: Make) -> None:
    now = datetime.now(UTC)
    row = first_row("audit", "r2", make_study("quick", {}), now)
    stocked.start_run({**row, "study": "two", "state": "completed"})
    person = make(Judges, {"judge": "people/ann", "provider": "people"})
    ballots = make(
        Ballots,
        {"ballot_id": "b2", "repeat": 1},
        {"ballot_id": "b3", "repeat": 2},
        {"ballot_id": "b4", "judge": "people/ann"},
    )
    votes = make(
        Votes,
        {"ballot_id": "b2", "cost_usd": 0.5},
        {"ballot_id": "b3", "cost_usd": 0.25},
        {"ballot_id": "b4", "cost_usd": None},
    )
    stocked.save([person, ballots, votes], run="r2")
    assert stocked.query(SPENT, ["two"]).item() == 0.75
    unpriced = make(Judges, {"judge": "a/b", "simulated": False})
    more = make(Ballots, {"ballot_id": "b5", "judge": "a/b"})
    cast = make(Votes, {"ballot_id": "b5", "cost_usd": None})
    stocked.save([unpriced, more, cast], run="r2")
    assert stocked.query(SPENT, ["two"]).item() is None


def test_one_unknown_price_makes_the_sum_unknown(stocked: Warehouse, make: Make) -> None:
    ballots = make(Ballots, {"ballot_id": "b2", "repeat": 1}, {"ballot_id": "b3", "repeat": 2})
    votes = make(Votes, {"ballot_id": "b2", "cost_usd": 0.5}, {"ballot_id": "b3", "cost_usd": None})
    stocked.save([ballots, votes], run="r2")
    assert stocked.query("select cost_usd from mart.cost where run = 'r2'").rows() == [(None,)]
