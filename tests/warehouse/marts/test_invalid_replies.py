from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pytest

from schemas.calibration import Ratings
from schemas.curation import Questions
from schemas.judging import (
    CHOICES,
    RATED,
    VALID,
    WITHOUT_VERDICT,
    Ballots,
    Judges,
    Pairs,
    Prompts,
    StudyPairs,
    Votes,
)
from warehouse.store import Saving, Warehouse


def test_replies_without_a_verdict(judged: Warehouse) -> None:
    found = judged.query(
        "select study, arm, choice, reply, target, reason from mart.invalid_replies"
    )
    assert found.rows() == [
        ("quick", "experimental", "invalid", "cannot say", "It is 4, says Lee (2019).", None)
    ]


@pytest.mark.parametrize("choice", [*CHOICES, RATED])
def test_every_choice_has_a_verdict_or_is_listed(judged: Warehouse, choice: str) -> None:
    with duckdb.connect(str(judged.path)) as connection:
        connection.execute("update votes set choice = $choice", {"choice": choice})
    found = judged.query("select distinct choice from mart.invalid_replies")
    assert found["choice"].to_list() == [choice] * (choice in WITHOUT_VERDICT)
    assert (choice in WITHOUT_VERDICT) == (choice not in {*VALID, RATED})


def test_why_a_single_answer_has_no_rating(
    warehouse: Warehouse, make: Callable[..., Any], make_ratings: Callable[..., Any]
) -> None:
    asked = {"dataset": "d", "judge": "offline/honest", "prompt": "pair_v1", "sample": "d/1/a2"}
    ballot = {"ballot_id": "b1", "shown_first": "target"}
    vote = {"ballot_id": "b1", "choice": "invalid", "raw": "[[depth: 4.5]] [[wit: 2]]"}
    facts = [make(Questions), make(Judges), make(Prompts), make(Pairs)]
    warehouse.save([*facts, make(Ballots, ballot), make(Votes, vote)], run="r1")
    reasons = {"tone": "no rating", "depth": "a fraction", "wit": None}
    ratings = [
        {**asked, "criterion": criterion, "invalid": why, "value": None if why else 2, **ballot}
        for criterion, why in reasons.items()
    ]
    studied = StudyPairs.of(pl.DataFrame({"pair_id": ["p1"]}))
    results = [Saving(Ratings, make_ratings(ratings)), Saving(StudyPairs, studied)]
    warehouse.save(results, run="r1", study="own")
    found = warehouse.query("select reply, reason from mart.invalid_replies")
    assert found.rows() == [("[[depth: 4.5]] [[wit: 2]]", "depth: a fraction; tone: no rating")]
