from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from schemas.curation import Answers, PerturbedAnswers, Questions
from schemas.frame import Frame
from schemas.judging import Ballots, Judges, Pairs, Prompts, StudyPairs, VoteLog, Votes
from warehouse.evidence.people import audited_studies, pairs_of, people_of
from warehouse.store import Saving, Warehouse, WarehouseError

Make = Callable[..., Saving]
ANN = {"judge": "people/ann", "provider": "people", "simulated": False}
ARM = {"arm": "experimental", "perturbation": "padding", "kind": "promote"}


def audit(warehouse: Warehouse, study: str = "quick", seed: int = 0) -> None:
    now = datetime(2026, 1, 1 + seed, tzinfo=UTC)
    warehouse.start_run(
        {
            "run": study,
            "flow": "audit",
            "study": study,
            "user": "u",
            "process": "p/1",
            "parameters": f'{{"seed": {seed}}}',
            "fingerprint": "f",
            "code_version": "1",
            "started_at": now,
            "ended_at": now,
            "state": "completed",
        }
    )


def log(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "",
        "sample": "d/1/a2",
        "cluster": "d/1",
        "shown_first": "anchor",
        "repeat": 0,
        "choice": "first",
        "human": False,
        **row,
    }


@pytest.fixture
def shelf(warehouse: Warehouse, make: Make, make_vote_log: Callable[..., Any]) -> Warehouse:
    """One sample whose perturbed text differs by seed and recipe: three pairs of one name."""
    answer = {"answer_id": "d/1/a2", "answer": "It is 4.", "slot": 2}
    versions = [
        {"answer_id": "d/1/a2", "seed": seed, "recipe": recipe, "perturbed": f"{seed}-{recipe}"}
        for seed, recipe in ((0, 1), (0, 2), (1, 1))
    ]
    texts = [{**ARM, "pair_id": f"p-{v['perturbed']}", "target": v["perturbed"]} for v in versions]
    pairs = [{}, *texts, {**ARM, "pair_id": "other", "sample": "d/2/a2", "target": "0-1"}]
    asked = [
        {},
        *({"ballot_id": f"b{n}", "pair_id": row["pair_id"]} for n, row in enumerate(texts)),
    ]
    rows = make_vote_log([log({"arm": "control"}), log(ARM)])
    savings: list[tuple[type[Frame], list[dict[str, Any]]]] = [
        (Questions, [{}]),
        (Answers, [{}, answer]),
        (PerturbedAnswers, versions),
        (Judges, [{}]),
        (Prompts, [{}]),
        (Pairs, pairs),
        (Ballots, asked),
    ]
    warehouse.save([make(model, *some) for model, some in savings], run="r")
    for study, seed, pair in (("quick", 0, "p-0-2"), ("again", 1, "p-1-1")):
        audit(warehouse, study, seed)
        own = pl.DataFrame({"pair_id": ["p1", pair]})
        savings_of_study = [Saving(StudyPairs, own), Saving(VoteLog, rows)]
        warehouse.save(savings_of_study, run="r", study=study)
    return warehouse


@pytest.mark.parametrize(("study", "pair"), [("quick", "p-0-2"), ("again", "p-1-1")])
def test_a_study_has_its_own_pairs(shelf: Warehouse, study: str, pair: str) -> None:
    assert pairs_of(shelf, study)["pair_id"].to_list() == [pair, "p1"]


def test_a_study_that_is_audited_anew_has_its_new_pairs(shelf: Warehouse) -> None:
    own = pl.DataFrame({"pair_id": ["p1", "p-0-1"]})
    shelf.save([Saving(StudyPairs, own)], run="r3", study="quick")
    assert pairs_of(shelf, "quick")["pair_id"].to_list() == ["p-0-1", "p1"]
    assert pairs_of(shelf, "again")["pair_id"].to_list() == ["p-1-1", "p1"]


def test_a_study_without_votes_is_named(shelf: Warehouse) -> None:
    assert audited_studies(shelf) == ["again", "quick"]
    audit(shelf, "empty")
    with pytest.raises(WarehouseError, match="the last audit of study 'empty' saved no votes"):
        pairs_of(shelf, "empty")


def test_people_are_those_of_the_pairs(shelf: Warehouse, make: Make) -> None:
    ballots = [
        {"ballot_id": f"a-{pair}", "pair_id": pair, "judge": "people/ann"}
        for pair in ("p1", "other")
    ]
    votes = [{"ballot_id": ballot["ballot_id"]} for ballot in ballots]
    shelf.save([make(Judges, ANN), make(Ballots, *ballots), make(Votes, {}, *votes)], run="r")
    people = people_of(shelf, pairs_of(shelf, "quick"))
    assert people.ballots["ballot_id"].to_list() == ["a-p1"]
    assert people.votes["ballot_id"].to_list() == ["a-p1"]


def test_a_part_of_a_result_is_replaced(
    shelf: Warehouse, make_vote_log: Callable[..., Any]
) -> None:
    ann = make_vote_log([log({"arm": "control", "judge": "people/ann", "human": True})])
    for choice in ("first", "tie"):
        part = ann.with_columns(choice=ann["choice"].replace("first", choice))
        shelf.save([Saving(VoteLog, part, part="human")], run="r", study="quick")
    found = shelf.query("select study, judge, choice from vote_log where human or arm = 'control'")
    assert sorted(found.rows()) == [
        ("again", "offline/honest", "first"),
        ("quick", "offline/honest", "first"),
        ("quick", "people/ann", "tie"),
    ]
