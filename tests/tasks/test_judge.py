from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.judging import Ballots
from tasks.judge import SHARD, Design, draw_ballots, shards

Make = Callable[..., Any]
PROMPT = "pair_v1"
BALANCED = Design(votes_per_pair=6, mode="balanced", wave="", seed=1)
PAPER = Design(votes_per_pair=6, mode="paper", wave="", seed=1)
SLOT = ["pair_id", "judge", "prompt", "wave", "shown_first", "repeat"]


def test_balanced_orders(make_pairs: Make, make_judges: Make) -> None:
    ballots = draw_ballots(make_pairs([{}]), make_judges([{}]), PROMPT, BALANCED)
    assert ballots.select("shown_first", "repeat").rows() == [
        ("anchor", 0), ("anchor", 1), ("anchor", 2), ("target", 0), ("target", 1), ("target", 2),
    ]  # fmt: skip
    assert ballots["ballot_id"].n_unique() == 6
    assert ballots.select("pair_id", "judge", "prompt", "wave").unique().rows() == [
        ("p1", "ada", PROMPT, "")
    ]


@pytest.mark.parametrize("votes", [1, 3, 5])
def test_odd_votes_cannot_be_balanced(make_pairs: Make, make_judges: Make, votes: int) -> None:
    design = BALANCED._replace(votes_per_pair=votes)
    with pytest.raises(ValueError, match=rf"votes_per_pair \({votes}\) must be even"):
        draw_ballots(make_pairs([{}]), make_judges([{}]), PROMPT, design)
    paper = PAPER._replace(votes_per_pair=votes)
    assert draw_ballots(make_pairs([{}]), make_judges([{}]), PROMPT, paper).height == votes


def test_paper_positions_are_drawn(make_pairs: Make, make_judges: Make) -> None:
    pairs = make_pairs([{"pair_id": f"p{n:03}", "question": f"Why {n}?"} for n in range(200)])
    ballots = draw_ballots(pairs, make_judges([{}]), PROMPT, PAPER)
    assert ballots.group_by("pair_id").len()["len"].unique().to_list() == [6]
    # Repeats are counted within each order, as in the balanced schedule.
    within = ballots.group_by("pair_id", "shown_first").agg(pl.col("repeat").sort(), n=pl.len())
    assert all(repeats == list(range(n)) for *_, repeats, n in within.rows())
    # 1200 fair coins: 600 and a standard error of 17.
    assert 520 < (ballots["shown_first"] == "anchor").sum() < 680
    # Number of anchors among six is binomial, not always three: P(3) = 5/16.
    anchors = ballots.group_by("pair_id").agg((pl.col("shown_first") == "anchor").sum())
    assert 30 < (anchors["shown_first"] == 3).sum() < 95
    other = draw_ballots(pairs, make_judges([{}]), PROMPT, PAPER._replace(seed=2))
    assert not other.select(SLOT).equals(ballots.select(SLOT))
    assert draw_ballots(pairs, make_judges([{}]), PROMPT, PAPER).equals(ballots)


def test_the_id_holds_all_that_can_change_the_reply(make_pairs: Make, make_judges: Make) -> None:
    def ids(
        pair: dict[str, Any] | None = None,
        judge: dict[str, Any] | None = None,
        design: Design = BALANCED,
    ) -> set[str]:
        ballots = draw_ballots(make_pairs([pair or {}]), make_judges([judge or {}]), PROMPT, design)
        return set(ballots["ballot_id"])

    assert ids() == ids()
    changes: list[dict[str, Any]] = [
        {"pair": {"question": "How?"}}, {"pair": {"anchor": "No."}}, {"pair": {"target": "No."}},
        {"judge": {"model": "other"}}, {"judge": {"params": '{"temperature":1}'}},
        {"judge": {"provider": "other"}}, {"design": BALANCED._replace(wave="2024-11-13")},
    ]  # fmt: skip
    for change in changes:
        assert ids().isdisjoint(ids(**change)), change
    # What the judge does not see does not matter, so votes are shared between studies.
    for same in ({"pair_id": "p9"}, {"dataset": "x"}, {"arm": "sham"}, {"sample": "x"}):
        assert ids(same) == ids()
    assert ids(judge={"judge": "another name"}) == ids()


def test_more_votes_ask_for_the_new_ones_only(make_pairs: Make, make_judges: Make) -> None:
    pairs, judges = make_pairs([{}]), make_judges([{}])
    two, six = (
        set(draw_ballots(pairs, judges, PROMPT, BALANCED._replace(votes_per_pair=n))["ballot_id"])
        for n in (2, 6)
    )
    assert two < six


def test_control_seen_from_both_sides_is_asked_once(make_pairs: Make, make_judges: Make) -> None:
    pairs = make_pairs(
        [
            {"pair_id": "one", "anchor": "Because.", "target": "Therefore."},
            {"pair_id": "two", "anchor": "Therefore.", "target": "Because."},
        ]
    )
    ballots = draw_ballots(pairs, make_judges([{}]), PROMPT, BALANCED)
    assert (ballots.height, ballots["ballot_id"].n_unique()) == (12, 6)
    key = ["pair_id", "shown_first", "repeat"]
    first = ballots.sort(key).filter(pair_id="one", shown_first="anchor")["ballot_id"]
    assert ballots.sort(key).filter(pair_id="two", shown_first="target")["ballot_id"].equals(first)


def test_every_judge_gets_every_pair(make_pairs: Make, make_judges: Make) -> None:
    pairs = make_pairs([{"pair_id": "one"}, {"pair_id": "two", "question": "How?"}])
    judges = make_judges([{}, {"judge": "bea", "model": "offline/bea"}])
    ballots = draw_ballots(pairs, judges, PROMPT, BALANCED)
    assert set(ballots.group_by("pair_id", "judge").len()["len"]) == {6}
    assert ballots["ballot_id"].n_unique() == 24


def test_no_pairs_or_no_judges_give_no_ballots(make_pairs: Make, make_judges: Make) -> None:
    assert draw_ballots(make_pairs([]), make_judges([{}]), PROMPT, BALANCED).is_empty()
    assert draw_ballots(make_pairs([{}]), make_judges([]), PROMPT, BALANCED).is_empty()


def test_shards_hold_one_judge_and_each_ballot_once(make_ballots: Make) -> None:
    rows = [
        {"ballot_id": f"{judge}{n}", "pair_id": f"p{n:04}", "judge": judge}
        for judge, count in (("ada", SHARD + 1), ("bea", 3))
        for n in range(count)
    ]
    again = [{"ballot_id": "ada0", "pair_id": "elsewhere", "judge": "ada"}]
    parts = shards(make_ballots(rows + again))
    assert sorted(part.height for part in parts) == [1, 3, SHARD]
    assert all(part["judge"].n_unique() == 1 for part in parts)
    ids = pl.concat(parts)["ballot_id"]
    assert ids.n_unique() == len(ids) == SHARD + 4


def test_nothing_waiting_gives_no_shards() -> None:
    assert shards(Ballots.empty()) == []


@settings(max_examples=20)
@given(st.integers(0, 600), st.integers(1, 3))
def test_shards_lose_nothing(make_ballots: Make, count: int, judges: int) -> None:
    ballots = make_ballots(
        {"ballot_id": f"b{n}", "pair_id": f"p{n}", "judge": f"j{n % judges}"} for n in range(count)
    )
    parts = shards(ballots)
    assert sorted(b for part in parts for b in part["ballot_id"]) == sorted(ballots["ballot_id"])
    assert all(0 < part.height <= SHARD for part in parts)
