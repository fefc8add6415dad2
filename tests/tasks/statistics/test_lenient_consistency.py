from collections.abc import Callable
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.aggregate import count_votes
from tasks.statistics.lenient_consistency import lenient_consistency
from tasks.statistics.position_consistency import position_consistency

Make = Callable[..., Any]
CHOICE = st.sampled_from(["first", "second", "tie", "invalid", None])


def measured(log: pl.DataFrame) -> dict[str, Any]:
    (row,) = lenient_consistency(tallies=count_votes(log)).to_dicts()
    return row


def test_docstring_example(make_vote_log: Make, votes: Make) -> None:
    pairs = [("first", "second"), ("first", "first"), ("first", "invalid")]
    row = measured(make_vote_log(votes(pairs)))
    assert (row["estimate"], row["hits"], row["n"], row["dropped"]) == (0.6, 3, 5, 1)


def test_a_vote_whose_other_order_was_never_asked_is_left_alone(
    make_vote_log: Make, votes: Make
) -> None:
    rows = [*votes([("first", "first")]), {"sample": "s9", "choice": "first"}]
    assert measured(make_vote_log(rows))["n"] == 2


def test_no_valid_vote_is_null(make_vote_log: Make, votes: Make) -> None:
    row = measured(make_vote_log(votes([("invalid", None)])))
    assert (row["estimate"], row["n"], row["dropped"]) == (None, 0, 2)
    assert lenient_consistency(tallies=count_votes(make_vote_log([]))).is_empty()


def test_only_the_first_count_where_asked_one_by_one(make_vote_log: Make, votes: Make) -> None:
    rows = [*votes([("first", "invalid")] * 2), *votes([("first", "first")] * 2, repeat=1)]
    rows[-1] |= {"choice": None, "stopped": "pair"}
    row = measured(make_vote_log(rows))
    assert (row["estimate"], row["n"]) == (1.0, 2)


@settings(max_examples=12)
@given(st.lists(st.tuples(CHOICE, CHOICE), min_size=1, max_size=20))
def test_by_votes_and_never_stricter(
    make_vote_log: Make, votes: Make, pairs: list[tuple[str | None, str | None]]
) -> None:
    same = {"first": "second", "second": "first", "tie": "tie"}
    counted = [
        same.get(other or "", vote) == vote
        for a, b in pairs
        for vote, other in ((a, b), (b, a))
        if vote in same
    ]
    log = make_vote_log(votes(pairs))
    row = measured(log)
    assert (row["n"], row["hits"] or 0) == (len(counted), sum(counted))
    strict = (
        position_consistency(tallies=count_votes(log))
        .filter(statistic="position_consistency")["estimate"]
        .item()
    )
    if strict is not None:
        assert row["estimate"] >= strict - 1e-12
