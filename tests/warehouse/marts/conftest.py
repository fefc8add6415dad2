from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from schemas.calibration import Ratings
from schemas.curation import Questions
from schemas.judging import Ballots, Judges, Pairs, Prompts, Shifts, StudyPairs, VoteLog, Votes
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]
REPLIES = {
    # (pair, shown first) -> choice, reply
    ("p1", "anchor"): ("first", "A it is [[A]]"),
    ("p1", "target"): ("second", "[[B]]"),
    ("p2", "anchor"): ("second", "so well sourced: [[B]]"),
    ("p2", "target"): ("invalid", "cannot say"),
}
PLANTED = {"arm": "experimental", "perturbation": "boast", "kind": "promote"}


@pytest.fixture
def judged(warehouse: Warehouse, make: Make, make_vote_log: Make, make_shifts: Make) -> Warehouse:
    """Return a warehouse with one sample, whose verdict the perturbation turned."""
    pairs = make(Pairs, {}, {"pair_id": "p2", "target": "It is 4, says Lee (2019).", **PLANTED})
    ballots = [
        {"ballot_id": f"{pair}/{first}", "pair_id": pair, "shown_first": first}
        for pair, first in REPLIES
    ]
    votes = [
        {"ballot_id": f"{pair}/{first}", "choice": choice, "raw": reply}
        for (pair, first), (choice, reply) in REPLIES.items()
    ]
    facts = [
        make(Questions),
        make(Judges),
        make(Prompts),
        pairs,
        make(Ballots, *ballots),
        make(Votes, *votes),
    ]
    warehouse.save(facts, run="r1")
    asked = {"dataset": "d", "judge": "offline/honest", "prompt": "pair_v1", "sample": "d/1/a2"}
    log = make_vote_log(
        [
            {
                **asked,
                "ballot_id": f"{pair}/{first}",
                "shown_first": first,
                "choice": choice,
                **(PLANTED if pair == "p2" else {}),
            }
            for (pair, first), (choice, _) in REPLIES.items()
        ]
    )
    shifts = make_shifts(
        [
            {**asked, "control": "anchor", "experimental": "target", "sham": "anchor"},
            {**asked, "sample": "d/2/a2", "control": "tie", "experimental": "tie"},
        ],
        perturbation="boast",
    )
    studied = StudyPairs.of(pl.DataFrame({"pair_id": ["p1", "p2"]}))
    results = [Saving(VoteLog, log), Saving(Shifts, shifts), Saving(StudyPairs, studied)]
    warehouse.save(results, run="r1", study="quick")
    # of a study that shares the pairs, and asked another judge
    other = make_vote_log([{**asked, "judge": "a/b"}])
    warehouse.save([Saving(VoteLog, other), Saving(StudyPairs, studied)], run="r2", study="other")
    return warehouse


@pytest.fixture
def rated(warehouse: Warehouse, make_ratings: Callable[..., Any]) -> Warehouse:
    """Return a warehouse with a judge of single answers: two criteria, one with two repeats."""
    tone = {"sample": "s1", "criterion": "tone", "kind": "label"}
    depth = {"sample": "s1", "criterion": "depth"}
    rows = [
        {**tone, "value": 0},
        {**tone, "value": 1, "arm": "experimental"},
        {**tone, "value": 0, "arm": "sham"},
        {**tone, "value": 1, "repeat": 1},
        {**tone, "value": 1, "repeat": 1, "arm": "experimental"},
        {**depth, "value": 3},
        {**depth, "value": 5, "arm": "experimental"},
    ]
    warehouse.save([Saving(Ratings, make_ratings(rows))], run="r1", study="own")
    return warehouse
