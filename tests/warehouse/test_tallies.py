"""Votes counted in the warehouse and votes counted in a frame give the same tallies."""

from collections.abc import Callable
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from schemas.judging import Tallies, VoteLog
from tasks.aggregate import count_votes
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]
KEYS = {
    "dataset": ["d", "e"],
    "judge": ["ada", "'--"],
    "prompt": ["p", "q"],
    "wave": ["", "2"],
    "sample": ["s1", "s2"],
    "arm": ["control", "experimental"],
    "shown_first": ["anchor", "target"],
    "repeat": [0, 12],
}
CHOICES = ("first", "second", "tie", "invalid", "abstain", "ambiguous", None)
BALLOTS = st.dictionaries(
    st.tuples(*(st.sampled_from(values) for values in KEYS.values())),
    st.sampled_from(CHOICES),
    min_size=1,
    max_size=16,
)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return Warehouse(Path(tmp_path_factory.mktemp("tallies")) / "w.duckdb")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BALLOTS)
def test_counts_are_those_of_a_frame(
    shelf: Warehouse, make_vote_log: Make, ballots: dict[tuple[Any, ...], str | None]
) -> None:
    log = make_vote_log(
        [
            {
                **dict(zip(KEYS, keys, strict=True)),
                "choice": choice,
                "label": "tie",
                "anchor_length": 10 + len(keys[0]),
                "target_length": 20,
                "anchor_author": "ant",
                "target_author": "bee",
                "human_score": 0.5,
                "label_chance": 0.2,
                "category": "sums",
            }
            for keys, choice in ballots.items()
        ]
    )
    shelf.save([Saving(VoteLog, log)], run="r", study="study")
    found = Tallies.of(shelf.tallies("study"))
    order = [*list(KEYS)[:6], "perturbation"]
    assert_frame_equal(found.sort(order), count_votes(log).sort(order), check_column_order=False)


@pytest.mark.parametrize("last", [7, 8, 31, 32, 126])
def test_counts_do_not_depend_on_the_numbers_of_repeats(
    shelf: Warehouse, make_vote_log: Make, last: int
) -> None:
    """A set of repeats is an integer whose size follows from the last of them."""

    def log(last: int) -> Any:
        ballots = product(["anchor", "target"], [0, last], ["p", "q"], ["s1", "s2", "s3"])
        choices = cycle(["first", "tie", "second", "first", "invalid", "second", "tie"])
        keys = ("shown_first", "repeat", "prompt", "sample")
        return make_vote_log(
            [
                {**dict(zip(keys, ballot, strict=True)), "choice": choice, "label": "target"}
                for ballot, choice in zip(ballots, choices, strict=False)
            ]
        )

    shelf.save([Saving(VoteLog, log(last))], run="r", study="study")
    found = Tallies.of(shelf.tallies("study"))
    assert_frame_equal(found, count_votes(log(1)), check_row_order=False)
    assert_frame_equal(found, count_votes(log(last)), check_row_order=False)


def test_what_is_known_of_answers_stands_beside_control_pairs(make_vote_log: Make) -> None:
    known = {
        "anchor_length": 11,
        "target_length": 22,
        "anchor_markup": 3,
        "target_markup": 4,
        "anchor_author": "ant",
        "target_author": "bee",
        "human_score": 1.0,
        "label_chance": 0.25,
        "category": "sums",
    }
    rows = [{"judge": judge, **known} for judge in ("ada", "bob")]
    rows += [{"arm": "experimental", **known}, {"sample": "s2"}]
    tallies = count_votes(make_vote_log(rows)).sort("sample", "arm", "judge")
    reported = [
        None if all(v is None for v in row) else row for row in tallies.select(list(known)).rows()
    ]
    assert reported == [tuple(known.values())] * 2 + [None, None]
