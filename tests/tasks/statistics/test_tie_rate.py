from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tasks.aggregate import count_votes
from tasks.statistics.tie_rate import tie_rate

Make = Callable[..., Any]


def votes(choices: list[str | None], **more: object) -> list[dict[str, Any]]:
    return [
        {"sample": f"s{number:03}", "choice": choice, **more}
        for number, choice in enumerate(choices)
    ]


def measured(log: pl.DataFrame, perturbation: str | None = None) -> dict[str, Any]:
    rows = tie_rate(tallies=count_votes(log)).to_dicts()
    (row,) = (row for row in rows if row["perturbation"] == perturbation)
    return row


def test_docstring_example(make_vote_log: Make) -> None:
    row = measured(make_vote_log(votes(["first", "tie", "tie", "second", "invalid"])))
    assert (row["estimate"], row["hits"], row["n"], row["dropped"]) == (0.5, 2, 4, 1)
    # Variance 4/3 * 4 * .25 / 16 = 1/12 over 1/16: worth three votes. Wilson with 1.5 of 3:
    # .5 -+ 1.96 sqrt(.25 / 3 + 3.8415 / 36) / (1 + 3.8415 / 3) = .5 -+ .3747.
    assert (row["low"], row["high"]) == pytest.approx((0.1253, 0.8747), abs=5e-5)


def test_arms_are_kept_apart(make_vote_log: Make) -> None:
    log = make_vote_log(
        [
            *votes(["tie", "first"]),
            *votes(["tie"] * 2, arm="experimental"),
            *votes(["first"] * 2, arm="sham"),
        ]
    )
    assert (measured(log)["estimate"], measured(log, "boast")["estimate"]) == (0.5, 1.0)


def test_only_the_first_count_where_asked_one_by_one(make_vote_log: Make) -> None:
    rows = [
        *votes(["first", "tie"]),
        *votes([None, "tie"], repeat=1),
        *votes(["first", "tie"], shown_first="target"),
        *votes([None, "tie"], repeat=1, shown_first="target"),
    ]
    for row in rows:
        if row["choice"] is None:
            row["stopped"] = "pair"
    assert (measured(make_vote_log(rows))["estimate"], measured(make_vote_log(rows))["n"]) == (
        0.5,
        4,
    )


@pytest.mark.parametrize("choices", [["invalid"], [None, "abstain"]])
def test_no_valid_vote_is_null(make_vote_log: Make, choices: list[str | None]) -> None:
    row = measured(make_vote_log(votes(choices)))
    assert (row["estimate"], row["dropped"]) == (None, len(choices))
    assert row["reason"].startswith("nothing qualifies: ")
    assert tie_rate(tallies=count_votes(make_vote_log([]))).is_empty()
