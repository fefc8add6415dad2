"""Votes on single answers as ratings."""

import json
from collections.abc import Callable
from typing import Any

import polars as pl

from schemas.curation import Known
from schemas.judging import Ballots
from tasks.judge import Design, draw_ballots
from tasks.judging.rated_votes import NONE, OFF, REFUSED, SEVERAL, rate_votes

Make = Callable[..., Any]
TWICE = Design(votes_per_pair=2, mode="balanced", wave="", seed=1)
PAIR = {"sample": "demo/1/a2", "cluster": "demo/1", "anchor": "One.", "target": "Two."}


def _rated(
    prompt: str,
    choices: list[tuple[str, dict[str, Any] | None]],
    make: tuple[Make, Make, Make],
    **reported: Any,
) -> pl.DataFrame:
    """Return ratings of a control pair whose ballots got these choices, in order."""
    make_pairs, make_judges, make_votes = make
    pairs, judges = make_pairs([PAIR]), make_judges([{}])
    ballots = draw_ballots(pairs, judges, prompt, TWICE)
    order = ballots.sort("shown_first", "repeat", descending=[True, False])["ballot_id"]
    votes = make_votes(
        [
            {"ballot_id": ballot, "choice": choice, "rating": rating and json.dumps(rating)}
            for ballot, (choice, rating) in zip(order, choices, strict=False)
        ]
    )
    waiting = reported.pop("waiting", order)
    return rate_votes(pairs, ballots, judges, votes, waiting=waiting, **reported)


def test_a_grade(make_pairs: Make, make_judges: Make, make_votes: Make) -> None:
    choices = [("rated", {"": 7.0}), ("invalid", {"": 11.0}), ("ambiguous", None)]
    make = (make_pairs, make_judges, make_votes)
    found = _rated("single_v1", choices, make)
    # The last ballot, of the anchor, has no vote.
    columns = ("item", "side", "repeat", "criterion", "kind", "label", "value", "invalid")
    assert found.select(columns).rows() == [
        ("demo/1/a2", "target", 0, None, "number", "7", 7.0, None),
        ("demo/1/a2", "target", 1, None, "number", None, None, OFF),
        ("demo/1/a2/anchor", "anchor", 0, None, "number", None, None, SEVERAL),
    ]
    ends = ("lowest", "highest", "weight", "passes_at", "human", "arm", "sample", "cached")
    assert found.select(ends).unique().rows() == [
        (1.0, 10.0, None, None, False, "control", "demo/1/a2", False)
    ]
    cached = _rated("single_v1", choices, make, waiting=pl.Series([], dtype=pl.String))
    assert cached["cached"].all()


def test_pass_and_fail(make_pairs: Make, make_judges: Make, make_votes: Make) -> None:
    choices = [("rated", {"": True}), ("rated", {"": False}), ("abstain", None), ("invalid", None)]
    found = _rated("binary_v1", choices, (make_pairs, make_judges, make_votes))
    assert found.select("kind", "label", "value", "invalid").rows() == [
        ("label", "pass", 1.0, None),
        ("label", "fail", 0.0, None),
        ("label", None, None, REFUSED),
        ("label", None, None, NONE),
    ]
    assert found["passes_at"].to_list() == [1.0] * 4


def test_a_rubric_keeps_the_criteria_that_were_read(
    make_pairs: Make, make_judges: Make, make_votes: Make
) -> None:
    choices = [("invalid", {"correct": 5.0, "complete": 9.0})]
    found = _rated("rubric_v1", choices, (make_pairs, make_judges, make_votes))
    assert found.select("criterion", "value", "weight", "invalid").rows() == [
        ("clear", None, 1.0, NONE),
        ("complete", None, 1.0, OFF),
        ("correct", 5.0, 2.0, None),
    ]


def test_each_label_is_a_criterion(make_pairs: Make, make_judges: Make, make_votes: Make) -> None:
    choices = [("rated", {"": ["unclear"]}), ("invalid", None)]
    found = _rated("labels_v1", choices, (make_pairs, make_judges, make_votes))
    first = found.filter(repeat=0)
    assert dict(first.select("criterion", "label").rows()) == {
        "wrong fact": "no",
        "incomplete": "no",
        "off topic": "no",
        "unclear": "yes",
        "stereotype": "no",
    }
    assert found.filter(repeat=1)["invalid"].to_list() == [NONE] * 5


def test_what_people_say_of_the_target(
    make_pairs: Make, make_judges: Make, make_votes: Make
) -> None:
    known = Known.of(
        pl.DataFrame(
            {
                "sample": ["demo/1/a2"],
                "target_author": ["ada"],
                "label_chance": [0.25],
                "human_values": [json.dumps({"label": 1.0, "unclear": 0.0})],
            }
        )
    )
    categories = pl.DataFrame({"question_id": ["demo/1"], "category": ["sums"]})
    reported = {"known": known, "categories": categories}
    make = (make_pairs, make_judges, make_votes)
    choices = [("rated", {"": True})] * 4
    found = _rated("binary_v1", choices, make, **reported)
    columns = ("side", "human_value", "label_chance", "category", "target_author")
    assert found.select(columns).rows() == [
        ("target", 1.0, 0.25, "sums", "ada"),
        ("target", 1.0, 0.25, "sums", "ada"),
        ("anchor", None, None, "sums", "ada"),
        ("anchor", None, None, "sums", "ada"),
    ]
    found = _rated("labels_v1", [("rated", {"": []})], make, **reported)
    graded = found.filter(pl.col("human_value").is_not_null())
    assert graded.select("criterion", "human_value").rows() == [("unclear", 0.0)]


def test_verdicts_go_with_labels_of_people_and_grades_with_grades(
    make_pairs: Make, make_judges: Make, make_votes: Make
) -> None:
    for prompt, said, expected in (
        ("binary_v1", [{"label": 1.0, "grade": 3.0}], 1.0),
        ("binary_v1", [{"grade": 3.0}], 3.0),
        # Where some answers have a pass or fail, a grade of another one is none.
        ("binary_v1", [{"grade": 3.0}, {"label": 0.0}], None),
        ("single_v1", [{"label": 1.0, "grade": 3.0}], 3.0),
        ("single_v1", [{"label": 4.0}], 4.0),
        # Where some answers have a grade, a pass of another one is none, and nowhere is it a 1.
        ("single_v1", [{"label": 1.0}, {"grade": 3.0}], None),
        ("single_v1", [{"label": 1.0}, {"label": 0.0}], None),
    ):
        samples = [f"demo/{at}/a2" for at in range(1, len(said) + 1)]
        texts = [json.dumps(each) for each in said]
        known = Known.of(pl.DataFrame({"sample": samples, "human_values": texts}))
        rating = {"": True if prompt == "binary_v1" else 5}
        make = (make_pairs, make_judges, make_votes)
        found = _rated(prompt, [("rated", rating)] * 2, make, known=known)
        assert found.filter(side="target")["human_value"].unique().to_list() == [expected]


def test_repeats_of_a_replicate_begin_at_0(
    make_pairs: Make, make_judges: Make, make_votes: Make
) -> None:
    again = {**PAIR, "pair_id": "p2", "arm": "replicate", "perturbation": None, "kind": None}
    pairs, judges = make_pairs([PAIR, again]), make_judges([{}])
    ballots = draw_ballots(pairs, judges, "single_v1", TWICE)
    # The target twice and the anchor twice in control, and the target twice again.
    assert ballots.group_by("pair_id", "shown_first").len().sort(
        "pair_id", "shown_first"
    ).rows() == [
        ("p1", "anchor", 2),
        ("p1", "target", 2),
        ("p2", "target", 2),
    ]
    assert ballots["ballot_id"].n_unique() == 6
    assert ballots.filter(pair_id="p2")["repeat"].to_list() == [2, 3]
    votes = make_votes([{"ballot_id": each, "choice": "invalid"} for each in ballots["ballot_id"]])
    found = rate_votes(pairs, ballots, judges, votes, waiting=ballots["ballot_id"])
    assert found.filter(arm="replicate")["repeat"].to_list() == [0, 1]


def test_a_question_with_one_answer_has_no_ballot_of_an_anchor(
    make_pairs: Make, make_judges: Make
) -> None:
    pairs = make_pairs([{**PAIR, "anchor": ""}])
    odd = TWICE._replace(votes_per_pair=3)
    ballots = draw_ballots(pairs, make_judges([{}]), "binary_v1", odd)
    assert ballots["shown_first"].to_list() == ["target"] * 3


def test_no_ballots_no_ratings(make_pairs: Make, make_judges: Make, make_votes: Make) -> None:
    nothing = pl.Series([], dtype=pl.String)
    found = rate_votes(
        make_pairs([PAIR]), Ballots.empty(), make_judges([{}]), make_votes([{}]), waiting=nothing
    )
    assert found.is_empty()
