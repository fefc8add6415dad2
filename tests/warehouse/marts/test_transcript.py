from collections.abc import Callable
from itertools import product
from typing import Any

import polars as pl

from schemas.calibration import Ratings
from schemas.curation import Questions
from schemas.judging import RATED, Ballots, Judges, Pairs, Prompts, StudyPairs, VoteLog, Votes
from warehouse.store import Saving, Warehouse


def test_a_ballot_belongs_to_the_study_that_asked_the_judge(judged: Warehouse) -> None:
    found = judged.query("select study, ballot_id from mart.transcript order by ballot_id")
    assert found.rows() == [
        ("quick", f"{pair}/{first}") for pair, first in product(("p1", "p2"), ("anchor", "target"))
    ]


def test_a_judge_of_single_answers_saw_one_alone(
    warehouse: Warehouse, make: Callable[..., Any], make_ratings: Callable[..., Any]
) -> None:
    asked = {"dataset": "d", "judge": "offline/honest", "prompt": "pair_v1", "sample": "d/1/a2"}
    ballot = {"ballot_id": "b1", "shown_first": "target"}
    vote = {"ballot_id": "b1", "choice": RATED, "raw": "[[7]]", "rating": '{"": 7}'}
    facts = [make(Questions), make(Judges), make(Prompts), make(Pairs)]
    warehouse.save([*facts, make(Ballots, ballot), make(Votes, vote)], run="r1")
    asked["ballot_id"] = "b1"
    ratings = [{**asked, "value": 7, "criterion": each} for each in ("depth", "tone")]
    studied = StudyPairs.of(pl.DataFrame({"pair_id": ["p1"]}))
    results = [Saving(Ratings, make_ratings(ratings)), Saving(StudyPairs, studied)]
    warehouse.save(results, run="r1", study="own")
    found = warehouse.query("select shown_first, rating, reply from mart.transcript")
    assert found.rows() == [("target alone", '{"": 7}', "[[7]]")]


def test_a_replicate_has_a_row_per_ballot(
    warehouse: Warehouse, make: Callable[..., Any], make_vote_log: Callable[..., Any]
) -> None:
    asked = {"dataset": "d", "judge": "offline/honest", "prompt": "pair_v1", "sample": "d/1/a2"}
    # Two votes on the control pair, so those on its replicate are asked as repeats 2 and 3.
    arms = {"control": (0, 1), "replicate": (2, 3)}
    pairs = make(Pairs, *({"pair_id": arm, "arm": arm} for arm in arms))
    names = [(arm, repeat) for arm, repeats in arms.items() for repeat in repeats]
    # Another study asked the control pair once.
    names.append(("replicate", 1))
    ballots = [
        {"ballot_id": f"{arm}{at}", "pair_id": arm, "repeat": at, "shown_first": "anchor"}
        for arm, at in names
    ]
    votes = [{"ballot_id": f"{arm}{at}", "choice": "first", "raw": f"{at}"} for arm, at in names]
    facts = [make(Questions), make(Judges), make(Prompts), pairs]
    warehouse.save([*facts, make(Ballots, *ballots), make(Votes, *votes)], run="r1")
    log = make_vote_log(
        [
            {**asked, "arm": arm, "repeat": number, "ballot_id": f"{arm}{at}"}
            for arm, repeats in arms.items()
            for number, at in enumerate(repeats)
        ]
    )
    studied = StudyPairs.of(pl.DataFrame({"pair_id": [*arms]}))
    warehouse.save([Saving(VoteLog, log), Saving(StudyPairs, studied)], run="r1", study="twice")
    found = warehouse.query("select arm, repeat, reply from mart.transcript order by arm, repeat")
    assert found.rows() == [
        ("control", 0, "0"),
        ("control", 1, "1"),
        ("replicate", 0, "2"),
        ("replicate", 1, "3"),
    ]
