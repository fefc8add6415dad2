from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from tasks.aggregate import count_votes
from tasks.statistics.first_pick_share import first_pick_share

Make = Callable[..., Any]
CHOICE = st.sampled_from(["first", "second", "tie", "invalid"])


def measured(log: pl.DataFrame, perturbation: str | None = None) -> dict[str, dict[str, Any]]:
    rows = first_pick_share(tallies=count_votes(log)).to_dicts()
    return {row["statistic"]: row for row in rows if row["perturbation"] == perturbation}


def test_docstring_example(make_vote_log: Make, votes: Make) -> None:
    rows = measured(
        make_vote_log(votes([("first", "first"), ("first", "second"), ("tie", "invalid")]))
    )
    share, gap = rows["first_pick_share"], rows["position_gap"]
    assert (share["estimate"], share["hits"], share["n"], share["dropped"]) == (0.75, 3, 4, 1)
    assert gap["estimate"] == 0.25
    # First less second is 2 and 0 of two votes each, 1 a cluster more or less than half of the
    # sum: SE = sqrt(2 * (1 + 1)) / 4 = .5 for first less second, so .25.
    assert gap["standard_error"] == pytest.approx(0.25)


def test_exact_test_of_the_docstring(make_vote_log: Make, votes: Make) -> None:
    pairs = [("first", "first")] * 4 + [("tie", "first")] * 2 + [("second", "tie")]
    row = measured(make_vote_log(votes([*pairs, ("tie", "tie")])))["primacy_test"]
    assert (row["estimate"], row["hits"], row["n"]) == (pytest.approx(5 / 7), 6, 7)
    assert row["p_value"] == pytest.approx(0.125)


@pytest.mark.parametrize(("primacy", "recency"), [(0, 2), (5, 0), (0, 9), (4, 4), (13, 4)])
def test_exact_test_against_scipy(
    make_vote_log: Make, votes: Make, primacy: int, recency: int
) -> None:
    pairs = [("first", "tie")] * primacy + [("second", "second")] * recency
    row = measured(make_vote_log(votes(pairs)))["primacy_test"]
    test = binomtest(primacy, primacy + recency)
    interval = test.proportion_ci(0.95, "exact")
    assert row["p_value"] == pytest.approx(test.pvalue)
    assert (row["low"], row["high"]) == pytest.approx((2 * interval.low - 1, 2 * interval.high - 1))


def test_gap_against_scipy(make_vote_log: Make, votes: Make) -> None:
    # With equal numbers of votes per question the t of the ratio is that of a mean.
    pairs = [("first", "first")] * 7 + [("second", "second")] * 2 + [("first", "second")] * 6
    row = measured(make_vote_log(votes(pairs)))["position_gap"]
    means = np.array([0.5] * 7 + [-0.5] * 2 + [0.0] * 6)
    test = ttest_1samp(means, 0)
    assert row["p_value"] == pytest.approx(test.pvalue)
    assert (row["low"], row["high"]) == pytest.approx(tuple(test.confidence_interval(0.95)))


def test_only_repeat_0_is_tested_and_all_votes_shared(make_vote_log: Make, votes: Make) -> None:
    log = make_vote_log(
        [
            *votes([("first", "first"), ("second", "second")]),
            *votes([("first", "first")] * 2, repeat=1),
            *votes([("second", "second")] * 2, arm="experimental"),
            *votes([("first", "first")] * 2, arm="sham"),
        ]
    )
    rows = measured(log)
    assert (rows["first_pick_share"]["hits"], rows["first_pick_share"]["n"]) == (6, 8)
    assert (rows["primacy_test"]["hits"], rows["primacy_test"]["n"]) == (1, 2)
    assert measured(log, "boast")["position_gap"]["estimate"] == -0.5


def test_conflicts_of_one_cluster_are_not_independent(make_vote_log: Make, votes: Make) -> None:
    row = measured(make_vote_log(votes([("first", "first")] * 3, cluster="aab")))["primacy_test"]
    assert (row["estimate"], row["p_value"], row["low"]) == (1.0, None, None)
    assert "not independent" in row["reason"]


def test_the_gap_is_the_share_less_half_in_every_draw_too(make_vote_log: Make, votes: Make) -> None:
    pairs = [("first", "first")] * 8 + [("first", "second")] * 5 + [("second", "second")] * 3
    rows = measured(make_vote_log(votes(pairs)))
    share, gap = rows["first_pick_share"], rows["position_gap"]
    for end in ("boot_low", "boot_high"):
        assert gap[end] == pytest.approx(share[end] - 0.5, abs=1e-9)


def test_balanced_orders_vary_less_than_votes(make_vote_log: Make, votes: Make) -> None:
    # Pairs judged alike in both orders give one vote to each slot: no spread but for the other 2.
    pairs = [("first", "second")] * 18 + [("first", "first"), ("second", "second")]
    share = measured(make_vote_log(votes(pairs)))["first_pick_share"]
    # u = 1, -1: var = 20/19 * 2 / 40^2; Wilson of single votes would be .5 -+ .148.
    assert share["estimate"] == 0.5
    assert share["high"] - 0.5 == pytest.approx(2.0930 * (20 / 19 * 2) ** 0.5 / 40, rel=0.02)


def test_one_share_in_all_clusters(make_vote_log: Make, votes: Make) -> None:
    always = measured(make_vote_log(votes([("first", "first")] * 12)))
    gap, share = always["position_gap"], always["first_pick_share"]
    assert (gap["estimate"], gap["high"]) == (0.5, 0.5)
    # 24 votes in clusters of two are worth 12: Wilson's low end is 12 / (12 + 1.96^2).
    assert share["low"] == pytest.approx(12 / (12 + 1.959964**2), abs=1e-6)
    # First in all of 12 clusters, second in none, see test_intervals; a gap is half of that.
    assert gap["low"] == pytest.approx((1 - 2**0.5 * 3.841459 / 15.841459) / 2, abs=1e-6)
    assert gap["p_value"] == 2.0**-11
    alike = measured(make_vote_log(votes([("first", "second")] * 12)))
    never = alike["position_gap"]
    # The share says of the same votes what the gap does.
    share = alike["first_pick_share"]
    assert share["low"] == pytest.approx(0.5 + never["low"])
    assert share["high"] == pytest.approx(0.5 + never["high"])
    assert (never["estimate"], never["p_value"]) == (0.0, 1.0)
    assert never["high"] == -never["low"] == pytest.approx(3.841459 / 15.841459 / 2, abs=1e-6)
    assert never["method"] == "Newcombe"


def test_too_little_is_null_with_a_reason(make_vote_log: Make, votes: Make) -> None:
    ties = measured(make_vote_log(votes([("tie", "tie"), ("invalid", "tie")])))
    assert [row["estimate"] for row in ties.values()] == [None] * 3
    assert ties["primacy_test"]["reason"] == "no match of repeat 0 is inconsistent"
    assert ties["position_gap"]["reason"].startswith("nothing qualifies: ")
    one = make_vote_log([{"sample": f"s{n}", "choice": "first"} for n in range(12)])
    for name in ("first_pick_share", "position_gap"):
        row = measured(one)[name]
        assert (row["estimate"], row["n"]) == (None, 0)
        assert "one order only" in row["reason"]
    assert first_pick_share(tallies=count_votes(make_vote_log([]))).is_empty()


@settings(max_examples=12)
@given(st.lists(st.tuples(CHOICE, CHOICE), min_size=1, max_size=20))
def test_exchanging_the_slots_turns_the_sign(
    make_vote_log: Make, votes: Make, pairs: list[tuple[str, str]]
) -> None:
    other = {"first": "second", "second": "first", "tie": "tie", "invalid": "invalid"}
    before = measured(make_vote_log(votes(pairs)))
    after = measured(make_vote_log(votes([(other[a], other[b]) for a, b in pairs])))
    for name in ("position_gap", "primacy_test"):
        if before[name]["estimate"] is None:
            assert after[name]["estimate"] is None
            continue
        assert after[name]["estimate"] == pytest.approx(-before[name]["estimate"])
        assert after[name]["p_value"] == pytest.approx(before[name]["p_value"])
        if before[name]["low"] is not None:
            assert after[name]["low"] == pytest.approx(-before[name]["high"])


def test_a_single_conflict_has_no_interval(make_vote_log: Make, votes: Make) -> None:
    row = measured(make_vote_log(votes([("first", "first"), ("tie", "tie")])))["primacy_test"]
    assert (row["estimate"], row["n"], row["clusters"]) == (1.0, 1, 1)
    assert (row["low"], row["high"], row["p_value"]) == (None, None, None)
    assert row["reason"] == "a single cluster: no interval"
