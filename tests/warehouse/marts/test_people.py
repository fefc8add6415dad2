from collections.abc import Callable
from typing import Any

from flows.results.vote_summary import voters_in, voters_of_file
from schemas.conclusions import Voters
from schemas.judging import Ballots, Judges, Pairs, VoteLog, Votes
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]
PERSON = {"judge": "people/ann", "provider": "people", "simulated": False}


def cast(stocked: Warehouse, make: Make, *votes: tuple[str, float, str]) -> None:
    """Save a person's votes on control pairs: choice, seconds, and how they were measured."""
    numbers = range(len(votes))
    pairs = [{"pair_id": f"q{n}", "sample": f"s{n}"} for n in numbers]
    ballots = [
        {"ballot_id": f"a{n}", "pair_id": f"q{n}", "judge": "people/ann", "prompt": "pair_v1"}
        for n in numbers
    ]
    rows = [
        {"ballot_id": f"a{n}", "choice": choice, "seconds": seconds, "finish_reason": how}
        for n, (choice, seconds, how) in enumerate(votes)
    ]
    stocked.save(
        [make(Judges, PERSON), make(Pairs, *pairs), make(Ballots, *ballots), make(Votes, *rows)],
        run="r1",
    )


def log_of(judge: str, *choices: str) -> list[dict[str, Any]]:
    return [
        {
            "dataset": "d",
            "judge": judge,
            "prompt": "pair_v1",
            "sample": f"s{n}",
            "cluster": "d/1",
            "choice": choice,
            "human": True,
        }
        for n, choice in enumerate(choices)
    ]


def test_what_people_said_and_what_is_left_out(
    stocked: Warehouse, make: Make, make_vote_log: Callable[..., Any]
) -> None:
    timed = [("first", 10.0, "timed"), ("tie", 30.0, "timed"), ("second", 2.0, "timed")]
    cast(stocked, make, *timed, ("abstain", 0.0, "untimed"))
    rows = log_of("people/ann", "first", "tie", "invalid", "abstain")
    model = {"dataset": "d", "judge": "offline/honest", "sample": "s0", "human": False}
    log = make_vote_log([*rows, model])
    found = voters_in(log, stocked.read(Pairs), stocked)
    stocked.save([Saving(VoteLog, log), Saving(Voters, found)], run="r1", study="quick")
    assert stocked.query("select * from mart.people").to_dicts() == [
        {
            "study": "quick",
            "dataset": "d",
            "judge": "people/ann",
            "arm": "control",
            "perturbation": None,
            "votes": 4,
            "counted": 2,
            "too_fast": 1,
            "not_familiar": 1,
            "median_seconds": 10.0,
        }
    ]


def test_a_vote_without_seconds_is_never_too_fast(
    stocked: Warehouse, make: Make, make_vote_log: Callable[..., Any]
) -> None:
    # In a file with the booth's own names too: of its votes nobody knows why they are invalid.
    cast(stocked, make, ("first", 1.0, "timed"), ("first", 1.0, "untimed"))
    of_ann = log_of("people/ann", "invalid", "invalid")
    of_eve = log_of("eve", "invalid", "invalid")
    pairs = stocked.read(Pairs)
    booth = voters_in(make_vote_log(of_ann), pairs, stocked)
    filed = voters_of_file(make_vote_log([*of_ann, *of_eve]))
    stocked.save([Saving(Voters, booth)], run="r1", study="quick")
    stocked.save([Saving(Voters, filed)], run="r1", study="file")
    reported = "select study, judge, votes, too_fast, median_seconds from mart.people order by all"
    assert stocked.query(reported).rows() == [
        ("file", "eve", 2, None, None),
        ("file", "people/ann", 2, None, None),
        ("quick", "people/ann", 2, 1, 1.0),
    ]
