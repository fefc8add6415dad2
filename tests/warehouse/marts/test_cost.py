from collections.abc import Callable
from datetime import UTC, datetime

import polars as pl

from flows.cli.questions import questions
from flows.publishing.pages import COSTS
from flows.running.readiness import SPENT
from flows.running.run_row import first_row
from flows.studies import make_study
from schemas.judging import Ballots, Judges, Pairs, Prompts, Votes
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


def test_a_shared_vote_is_charged_once_wherever_costs_are_shown(
    stocked: Warehouse, make: Make
) -> None:
    """To the first judge by name and, of its prompts, to the first: in no case to a mix of both."""
    row = first_row("audit", "r2", make_study("quick", {}), datetime.now(UTC))
    stocked.start_run({**row, "study": "two", "state": "completed"})
    judges = [make(Judges, {"judge": name, "simulated": False}) for name in ("a/b", "c/d")]
    prompts = [make(Prompts, {"prompt": name}) for name in ("long", "brief")]
    ballots = make(
        Ballots,
        {"ballot_id": "b2", "judge": "c/d", "prompt": "brief"},
        {"ballot_id": "b2", "judge": "a/b", "prompt": "pair_v1"},
        {"ballot_id": "b2", "judge": "a/b", "prompt": "long"},
        {"ballot_id": "b3", "judge": "c/d", "prompt": "brief", "repeat": 1},
    )
    cast = [{"ballot_id": "b2", "cost_usd": 0.5}, {"ballot_id": "b3", "cost_usd": 0.25}]
    stocked.save([*judges, *prompts, ballots, make(Votes, *cast)], run="r2")
    found = "select judge, prompt, votes, cost_usd from mart.cost where run = 'r2' order by judge"
    charged = [("a/b", "long", 1, 0.5), ("c/d", "brief", 1, 0.25)]
    assert stocked.query(found).rows() == charged
    assert stocked.query(COSTS, ["", "two"]).sort("judge").rows() == charged
    assert stocked.query(SPENT, ["two"]).item() == 0.75
    asked = questions()["cost_per_judge_per_night"].sql
    nights = stocked.query(asked, {"study": "two", "days": 9999}).sort("judge")
    assert nights.select("judge", "votes", "cost_usd").rows() == [
        ("a/b", 1, 0.5),
        ("all", 2, 0.75),
        ("c/d", 1, 0.25),
    ]


def test_a_run_with_several_prompts_is_of_the_day_on_which_it_began(
    stocked: Warehouse, make: Make
) -> None:
    """Votes without a wave are of a day; what one run asks a judge is not split at midnight."""
    row = first_row("audit", "r2", make_study("quick", {}), datetime.now(UTC))
    stocked.start_run({**row, "study": "two", "state": "completed"})
    judge = make(Judges, {"judge": "a/b", "simulated": False})
    ballots = make(
        Ballots,
        {"ballot_id": "b2", "judge": "a/b"},
        {"ballot_id": "b3", "judge": "a/b", "prompt": "long"},
    )
    times = (datetime(2026, 3, 1, 23, 55, tzinfo=UTC), datetime(2026, 3, 2, 0, 10, tzinfo=UTC))
    cast = [
        {"ballot_id": ballot, "cost_usd": 0.5, "cast_at": when}
        for ballot, when in zip(("b2", "b3"), times, strict=True)
    ]
    stocked.save([judge, make(Prompts, {"prompt": "long"}), ballots, make(Votes, *cast)], run="r2")
    asked = questions()["cost_per_judge_per_night"].sql
    nights = stocked.query(asked, {"study": "two", "days": 9999})
    assert nights.select(pl.col("night").cast(pl.String), "judge", "votes", "cost_usd").rows() == [
        ("2026-03-01", "all", 2, 1.0),
        ("2026-03-01", "a/b", 2, 1.0),
    ]


def test_one_unknown_price_makes_the_sum_unknown(stocked: Warehouse, make: Make) -> None:
    ballots = make(Ballots, {"ballot_id": "b2", "repeat": 1}, {"ballot_id": "b3", "repeat": 2})
    votes = make(Votes, {"ballot_id": "b2", "cost_usd": 0.5}, {"ballot_id": "b3", "cost_usd": None})
    stocked.save([ballots, votes], run="r2")
    assert stocked.query("select cost_usd from mart.cost where run = 'r2'").rows() == [(None,)]
