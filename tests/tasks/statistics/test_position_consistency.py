from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.judging import CHOICES
from tasks.aggregate import count_votes
from tasks.statistics.position_consistency import position_consistency

Make = Callable[..., Any]
SHARES = ("position_consistency", "primacy", "recency")

# Vote with the anchor first, with the target first: what it is, by methods.md, section 5.
OUTCOME = {
    ("first", "second"): "position_consistency",
    ("second", "first"): "position_consistency",
    ("tie", "tie"): "position_consistency",
    ("first", "first"): "primacy",
    ("first", "tie"): "primacy",
    ("tie", "first"): "primacy",
    ("second", "second"): "recency",
    ("second", "tie"): "recency",
    ("tie", "second"): "recency",
}
CHOICE = st.sampled_from([*CHOICES, None])


def matches(pairs: Sequence[tuple[str | None, str | None]], **more: object) -> list[dict[str, Any]]:
    return [
        {"sample": f"s{number:03}", "shown_first": side, "choice": choice, **more}
        for number, pair in enumerate(pairs)
        for side, choice in zip(("anchor", "target"), pair, strict=True)
    ]


def measured(log: pl.DataFrame, perturbation: str | None = None) -> dict[str, dict[str, Any]]:
    rows = position_consistency(tallies=count_votes(log)).to_dicts()
    return {row["statistic"]: row for row in rows if row["perturbation"] == perturbation}


@pytest.mark.parametrize("pair", OUTCOME)
def test_each_pair_of_votes(make_vote_log: Make, pair: tuple[str, str]) -> None:
    rows = measured(make_vote_log(matches([pair])))
    found = {name: rows[name]["estimate"] for name in SHARES}
    assert found == {name: float(name == OUTCOME[pair]) for name in SHARES}
    fairness = {"position_consistency": 0.0, "primacy": -1.0, "recency": 1.0}[OUTCOME[pair]]
    assert rows["preference_fairness"]["estimate"] == fairness


def test_docstring_example(make_vote_log: Make) -> None:
    rows = measured(
        make_vote_log(matches([("first", "second"), ("first", "first"), ("second", "tie")]))
    )
    assert [rows[name]["estimate"] for name in SHARES] == pytest.approx([1 / 3] * 3)
    assert rows["preference_fairness"]["estimate"] == 0.0
    # Deviations 0, -1, 1: SE = sqrt(3/2 * 2) / 3 = .577350.
    assert rows["preference_fairness"]["standard_error"] == pytest.approx(0.577350, abs=5e-7)
    assert (rows["primacy"]["hits"], rows["primacy"]["n"]) == (1, 3)


def test_all_nine_pairs_of_votes(make_vote_log: Make) -> None:
    rows = measured(make_vote_log(matches(list(OUTCOME))))
    assert [(rows[name]["hits"], rows[name]["n"]) for name in SHARES] == [(3, 9)] * 3


def test_votes_of_equal_repeat_are_matched(make_vote_log: Make) -> None:
    rows = [
        {"shown_first": side, "repeat": repeat, "choice": choice}
        for repeat, pair in enumerate([("first", "second"), ("second", "second")])
        for side, choice in zip(("anchor", "target"), pair, strict=True)
    ]
    found = measured(make_vote_log(rows))
    assert (found["position_consistency"]["hits"], found["recency"]["hits"]) == (1, 1)
    assert (found["recency"]["n"], found["recency"]["clusters"]) == (2, 1)
    assert found["recency"]["reason"] == "a single cluster: no interval"


@pytest.mark.parametrize("lost", ["invalid", "abstain", "ambiguous", None])
def test_matches_without_two_valid_votes_are_dropped(make_vote_log: Make, lost: str | None) -> None:
    pairs = [("first", "first"), (lost, "first"), ("first", lost), (lost, lost)]
    rows = measured(make_vote_log(matches(pairs)))
    assert {(r["n"], r["dropped"]) for r in rows.values()} == {(1, 3)}
    assert rows["primacy"]["estimate"] == 1.0


def test_no_valid_match_is_null_with_a_reason(make_vote_log: Make) -> None:
    for row in measured(make_vote_log(matches([("invalid", "first")]))).values():
        assert (row["estimate"], row["n"], row["dropped"]) == (None, 0, 1)
        assert row["reason"].startswith("nothing qualifies: ")


def test_arms_are_kept_apart_and_shams_left_out(make_vote_log: Make) -> None:
    log = make_vote_log(
        [
            *matches([("first", "first")]),
            *matches([("second", "second")], arm="experimental"),
            *matches([("first", "second")], arm="experimental", perturbation="emoji"),
            *matches([("tie", "tie")] * 5, arm="sham"),
        ]
    )
    assert measured(log)["primacy"]["hits"] == 1
    assert measured(log, "boast")["recency"]["hits"] == 1
    assert measured(log, "emoji")["position_consistency"]["hits"] == 1
    assert {row["n"] for row in position_consistency(tallies=count_votes(log)).to_dicts()} == {1}
    assert measured(log)["primacy"]["kind"] is None
    assert measured(log, "boast")["primacy"]["kind"] == "promote"


def test_votes_in_one_order_match_nothing(make_vote_log: Make) -> None:
    row = measured(make_vote_log([{"choice": "first"}]))["position_consistency"]
    assert (row["estimate"], row["n"], row["dropped"]) == (None, 0, 0)
    assert row["reason"].startswith("nothing qualifies: ")
    assert position_consistency(tallies=count_votes(make_vote_log([]))).is_empty()


@settings(max_examples=30)
@given(st.lists(st.tuples(CHOICE, CHOICE), min_size=1, max_size=25))
def test_against_counting(make_vote_log: Make, pairs: list[tuple[str | None, str | None]]) -> None:
    rows = measured(make_vote_log(matches(pairs)))
    named = [OUTCOME[a, b] for a, b in pairs if (a, b) in OUTCOME and a and b]
    n = len(named)
    assert {(row["n"], row["dropped"]) for row in rows.values()} == {(n, len(pairs) - n)}
    assert [rows[name]["hits"] for name in SHARES] == [named.count(name) for name in SHARES]
    if n:
        # The rescaled form of Shi et al., recency share minus primacy share of n.
        fairness = (named.count("recency") - named.count("primacy")) / n
        assert rows["preference_fairness"]["estimate"] == pytest.approx(fairness, abs=1e-12)
        assert sum(rows[name]["estimate"] for name in SHARES) == pytest.approx(1)


def test_exchanging_the_slots_mirrors_primacy_and_recency(make_vote_log: Make) -> None:
    pairs: list[tuple[str | None, str | None]] = [
        ("first", "first"),
        ("first", "tie"),
        ("second", "second"),
        ("first", "second"),
    ]
    other = {"first": "second", "second": "first", "tie": "tie"}
    mirrored: list[tuple[str | None, str | None]] = [
        (other[a or "tie"], other[b or "tie"]) for a, b in pairs
    ]
    before, after = (measured(make_vote_log(matches(p))) for p in (pairs, mirrored))
    assert before["primacy"]["hits"] == after["recency"]["hits"] == 2
    fairness = [rows["preference_fairness"]["estimate"] for rows in (before, after)]
    assert fairness == [-0.25, 0.25]
