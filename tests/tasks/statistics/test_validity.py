from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.judging import CHOICES
from tasks.aggregate import count_votes
from tasks.statistics.validity import OUTCOMES, SAVED, validity

Make = Callable[..., Any]
FIVE = ("valid_rate", "invalid_rate", "abstain_rate", "ambiguous_rate", "missing_rate")


def measured(
    log: pl.DataFrame, perturbation: str | None = None, **frames: pl.DataFrame
) -> dict[str, dict[str, Any]]:
    rows = validity(tallies=count_votes(log), **frames).to_dicts()
    return {row["statistic"]: row for row in rows if row["perturbation"] == perturbation}


def ballots(choices: list[str | None], **more: object) -> list[dict[str, Any]]:
    return [{"repeat": n, "choice": choice, **more} for n, choice in enumerate(choices)]


def test_docstring_example(make_vote_log: Make) -> None:
    rows = measured(make_vote_log(ballots(["first", "tie", "invalid", None])))
    assert [rows[name]["estimate"] for name in FIVE] == [0.5, 0.25, 0.0, 0.0, 0.25]
    assert {(row["n"], row["dropped"], row["votes_per_pair"]) for row in rows.values()} == {
        (4, 0, 4)
    }
    assert rows["valid_rate"]["hits"] == 2


@pytest.mark.parametrize(
    ("choice", "outcome"),
    [
        ("first", "valid_rate"),
        ("second", "valid_rate"),
        ("tie", "valid_rate"),
        ("invalid", "invalid_rate"),
        ("abstain", "abstain_rate"),
        ("ambiguous", "ambiguous_rate"),
        (None, "missing_rate"),
    ],
)
def test_each_choice(make_vote_log: Make, choice: str | None, outcome: str) -> None:
    rows = measured(make_vote_log([{"choice": choice}]))
    assert {name: rows[name]["estimate"] for name in FIVE} == {
        name: float(name == outcome) for name in FIVE
    }


def test_the_whole_judge_and_each_perturbation(make_vote_log: Make) -> None:
    log = make_vote_log(
        [
            *ballots(["first", "invalid"]),
            *ballots(["tie", "tie"], arm="experimental"),
            *ballots(["invalid", "tie"], arm="sham"),
            *ballots(["abstain", None], arm="experimental", perturbation="emoji"),
        ]
    )
    assert measured(log)["invalid_rate"]["hits"] == 2
    assert measured(log)["invalid_rate"]["n"] == 8
    assert measured(log, "boast")["invalid_rate"]["estimate"] == 0.25
    assert measured(log, "emoji")["abstain_rate"]["estimate"] == 0.5
    assert measured(log, "emoji")["valid_rate"]["n"] == 2


def test_perturbations_do_not_add_up_to_votes_per_pair(make_vote_log: Make) -> None:
    # Two ballots a pair in every arm, whatever the number of perturbations.
    log = make_vote_log(
        [
            *ballots(["first", "first"]),
            *(
                ballot
                for name in ("boast", "emoji", "padding")
                for ballot in ballots(["tie", "tie"], arm="experimental", perturbation=name)
            ),
        ]
    )
    assert set(validity(tallies=count_votes(log))["votes_per_pair"]) == {2}


def test_cached_votes(make_vote_log: Make) -> None:
    known = (True, False, None, False)
    log = make_vote_log({"cached": cached, "repeat": n} for n, cached in enumerate(known))
    cached = measured(log)["cached_rate"]
    assert cached["estimate"] == pytest.approx(1 / 3)
    assert (cached["n"], cached["dropped"]) == (3, 1)


def test_unknown_is_null_not_zero(make_vote_log: Make) -> None:
    cached = measured(make_vote_log([{"cached": None}]))["cached_rate"]
    assert (cached["estimate"], cached["n"], cached["dropped"]) == (None, 0, 1)
    assert cached["reason"].startswith("nothing qualifies: ")


@settings(max_examples=25)
@given(st.lists(st.sampled_from([*CHOICES, None]), min_size=1, max_size=30))
def test_five_outcomes_sum_to_one(make_vote_log: Make, choices: list[str | None]) -> None:
    rows = measured(make_vote_log({"sample": f"s{n}", "choice": c} for n, c in enumerate(choices)))
    assert set(rows) == {*OUTCOMES, SAVED}
    assert sum(rows[name]["hits"] for name in FIVE) == len(choices)
    assert sum(rows[name]["estimate"] for name in FIVE) == pytest.approx(1)


def test_ballots_that_were_not_needed_are_no_part_of_the_other_shares(make_vote_log: Make) -> None:
    left_out = {"choice": None, "stopped": "pair"}
    rows = measured(
        make_vote_log(
            [
                {"sample": "s1"},
                {"sample": "s1", "repeat": 1, **left_out},
                {"sample": "s2", "choice": None},
                {"sample": "s2", "repeat": 1, **left_out},
            ]
        )
    )
    assert (rows["saved_rate"]["hits"], rows["saved_rate"]["n"]) == (2, 4)
    assert (rows["missing_rate"]["hits"], rows["missing_rate"]["n"]) == (1, 2)
    assert rows["valid_rate"]["estimate"] == 0.5


def test_nothing_gives_nothing(make_vote_log: Make) -> None:
    assert validity(tallies=count_votes(make_vote_log([]))).is_empty()


def test_a_reply_that_rates_several_criteria_is_one_ballot(
    make_vote_log: Make, make_ratings: Make
) -> None:
    refused = {"value": None, "invalid": "abstain"}
    ratings = make_ratings(
        [
            {"sample": "i1", "criterion": "tone", "value": 3.0},
            {"sample": "i1", "criterion": "depth", "value": 4.0},
            {"sample": "i2", "criterion": "tone", "value": 3.0},
            {"sample": "i2", "criterion": "depth", "value": None},
            {"sample": "i3", "criterion": "tone", **refused},
            {"sample": "i3", "criterion": "depth", **refused},
        ]
    )
    rows = measured(make_vote_log([]), ratings=ratings)
    assert {name: rows[name]["hits"] for name in FIVE} == {
        **dict.fromkeys(FIVE, 1),
        "ambiguous_rate": 0,
        "missing_rate": 0,
    }
    assert rows["valid_rate"]["n"] == 3


def test_criteria_of_a_log_are_asked_one_by_one(make_vote_log: Make, make_ratings: Make) -> None:
    ratings = make_ratings(
        [
            {"sample": "i1", "criterion": "tone", "value": 3.0},
            {"sample": "i1", "criterion": "depth", "value": None},
        ]
    )
    log = ratings.with_columns(sample=pl.lit(None, pl.String))
    rows = measured(make_vote_log([]), ratings=log)
    assert (rows["valid_rate"]["hits"], rows["valid_rate"]["n"]) == (1, 2)


def test_ballots_of_another_wording_do_not_count(make_vote_log: Make, make_ratings: Make) -> None:
    ratings = make_ratings(
        [
            {"sample": "i1", "value": 3.0},
            {"sample": "i2", "value": 4.0},
            {"sample": "i1", "arm": "reworded", "value": None},
        ]
    )
    rows = measured(make_vote_log([]), ratings=ratings)
    assert (rows["valid_rate"]["hits"], rows["valid_rate"]["n"]) == (2, 2)
