from collections.abc import Callable
from typing import Any

import polars as pl

from schemas.curation import Questions
from schemas.judging import Ballots, Judges, Pairs, Prompts, StudyPairs, VoteLog, Votes
from schemas.results import Drifts
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]
REPLIES = {
    # wave, shown first, repeat -> choice
    ("n1", "anchor", 0): "first",
    ("n1", "target", 0): "second",
    ("n1", "target", 1): "tie",
    ("n2", "anchor", 0): "tie",
    ("n2", "target", 0): "second",
    ("n2", "target", 2): "first",
    ("n0", "anchor", 0): "second",
}


def test_both_replies_to_what_two_waves_asked(
    warehouse: Warehouse, make: Make, make_vote_log: Make
) -> None:
    """Repeat 1 is in the baseline only, repeat 2 in the new wave only; n0 is not the baseline."""
    ids = {key: "/".join(map(str, key)) for key in REPLIES}
    ballots = [
        {"ballot_id": ids[key], "wave": key[0], "shown_first": key[1], "repeat": key[2]}
        for key in REPLIES
    ]
    votes = [
        {"ballot_id": ids[key], "choice": choice, "raw": f"{choice} in {key[0]}"}
        for key, choice in REPLIES.items()
    ]
    # Other grades with the same winner are no other verdict.
    for vote, grade in ((votes[1], 1), (votes[4], 2)):
        vote["rating"] = f'{{"first": {grade}, "second": 9}}'
    facts = [make(Questions), make(Judges), make(Prompts), make(Pairs)]
    warehouse.save([*facts, make(Ballots, *ballots), make(Votes, *votes)], run="r1")
    asked = {"dataset": "d", "judge": "offline/honest", "prompt": "pair_v1", "sample": "d/1/a2"}
    log = make_vote_log(
        [
            {**asked, **ballot, "choice": vote["choice"]}
            for ballot, vote in zip(ballots, votes, strict=True)
            if ballot["wave"] == "n2"
        ]
    )
    studied = StudyPairs.of(pl.DataFrame({"pair_id": ["p1"]}))
    # Several measures compare the same two waves.
    drifts = make(Drifts, {}, {"measure": "position_drift", "perturbation": None})
    results = [Saving(VoteLog, log), Saving(StudyPairs, studied), drifts]
    warehouse.save(results, run="r1", study="nightly")
    found = warehouse.query(
        "select shown_first, choice_before, reply_before, choice, reply, changed, base, wave "
        "from mart.waves_compared order by shown_first"
    )
    assert found.rows() == [
        ("anchor", "first", "first in n1", "tie", "tie in n2", True, "n1", "n2"),
        ("target", "second", "second in n1", "second", "second in n2", False, "n1", "n2"),
    ]
