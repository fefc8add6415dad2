from collections.abc import Callable
from datetime import UTC, datetime

from flows.running.run_row import first_row
from flows.studies import Study
from schemas.judging import Ballots, Judges, Pairs, VoteLog, Votes
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]


def test_what_people_said_and_what_is_left_out(
    stocked: Warehouse, make: Make, make_vote_log: Callable[..., object]
) -> None:
    choices = ("first", "tie", "invalid", "abstain")
    pairs = [{"pair_id": f"q{n}", "sample": f"s{n}"} for n in range(4)]
    ballots = [
        {"ballot_id": f"a{n}", "pair_id": f"q{n}", "judge": "people/ann", "prompt": "pair_v1"}
        for n in range(4)
    ]
    votes = [
        {"ballot_id": f"a{n}", "choice": choice, "seconds": seconds, "finish_reason": how}
        for n, (choice, seconds, how) in enumerate(
            [
                ("first", 10.0, "timed"),
                ("tie", 30.0, "timed"),
                ("second", 2.0, "timed"),
                ("abstain", 0.0, "untimed"),
            ]
        )
    ]
    person = {"judge": "people/ann", "provider": "people", "simulated": False}
    stocked.save(
        [make(Judges, person), make(Pairs, *pairs), make(Ballots, *ballots), make(Votes, *votes)],
        run="r1",
    )
    log = make_vote_log(
        [
            {
                "dataset": "d",
                "judge": "people/ann",
                "prompt": "pair_v1",
                "sample": f"s{n}",
                "cluster": "d/1",
                "choice": choice,
                "human": True,
            }
            for n, choice in enumerate(choices)
        ]
        + [{"dataset": "d", "judge": "offline/honest", "sample": "s0", "human": False}]
    )
    stocked.save([Saving(VoteLog, log)], run="r1", study="quick")  # type: ignore[arg-type]
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
    stocked: Warehouse, make: Make, make_vote_log: Callable[..., object]
) -> None:
    # In a file with the booth's own names too: of its votes nobody knows why they are invalid.
    person = {"judge": "people/ann", "provider": "people", "simulated": False}
    ballots = [
        {"ballot_id": f"a{n}", "pair_id": f"q{n}", "judge": "people/ann", "prompt": "pair_v1"}
        for n in range(2)
    ]
    votes = [
        {"ballot_id": f"a{n}", "choice": "first", "seconds": 1.0, "finish_reason": how}
        for n, how in enumerate(("timed", "untimed"))
    ]
    pairs = [{"pair_id": f"q{n}", "sample": f"s{n}"} for n in range(2)]
    stocked.save(
        [make(Judges, person), make(Pairs, *pairs), make(Ballots, *ballots), make(Votes, *votes)],
        run="r1",
    )
    now = datetime.now(UTC)
    row = first_row("measure", "file", Study(name="file"), now)
    stocked.start_run({**row, "state": "completed", "ended_at": now})
    for study, names in {"quick": ["people/ann"], "file": ["people/ann", "eve"]}.items():
        log = make_vote_log(
            [
                {
                    "dataset": "d",
                    "judge": name,
                    "prompt": "pair_v1",
                    "sample": f"s{n}",
                    "cluster": "d/1",
                    "choice": "invalid",
                    "human": True,
                }
                for name in names
                for n in range(2)
            ]
        )
        stocked.save([Saving(VoteLog, log)], run="r1", study=study)  # type: ignore[arg-type]
    told = "select study, judge, votes, too_fast, median_seconds from mart.people order by all"
    assert stocked.query(told).rows() == [
        ("file", "eve", 2, None, None),
        ("file", "people/ann", 2, None, None),
        ("quick", "people/ann", 2, 1, 1.0),
    ]
