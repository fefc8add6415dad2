import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.judging import Ballots
from tasks import judge as judging
from tasks.judge import SHARD, Design, askings, draw_ballots, judge_table, shards
from tasks.prompting.prompt import Prompt
from tasks.prompts import PROMPTS, variants_of
from tasks.providers import JUDGES, Judge, Provider, ProviderFile

Make = Callable[..., Any]
PROMPT = "pair_v1"
BALANCED = Design(votes_per_pair=6, mode="balanced", wave="", seed=1)
PAPER = Design(votes_per_pair=6, mode="paper", wave="", seed=1)
SLOT = ["pair_id", "judge", "prompt", "wave", "shown_first", "repeat"]


def test_balanced_orders(make_pairs: Make, make_judges: Make) -> None:
    ballots = draw_ballots(make_pairs([{}]), make_judges([{}]), PROMPT, BALANCED)
    assert ballots.select("shown_first", "repeat").rows() == [
        ("anchor", 0),
        ("anchor", 1),
        ("anchor", 2),
        ("target", 0),
        ("target", 1),
        ("target", 2),
    ]
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
        {"pair": {"question": "How?"}},
        {"pair": {"anchor": "No."}},
        {"pair": {"target": "No."}},
        {"judge": {"model": "other"}},
        {"judge": {"params": '{"temperature":1}'}},
        {"judge": {"provider": "other"}},
        {"design": BALANCED._replace(wave="2024-11-13")},
    ]
    for change in changes:
        assert ids().isdisjoint(ids(**change)), change
    # What the judge does not see does not matter, so votes are shared between studies.
    for same in ({"pair_id": "p9"}, {"dataset": "x"}, {"arm": "sham"}, {"sample": "x"}):
        assert ids(same) == ids()
    assert ids(judge={"judge": "another name"}) == ids()


BALLOTS = {
    "binary_v1": "28ad83e347fa",
    "labels_v1": "c3e2277566e7",
    "pair_json_v1": "24b711bdb9dd",
    "pair_json_v2": "609c89b32deb",
    "pair_v1": "796e6a081c4a",
    "pair_v2": "445d77d08540",
    "pair_verdict_v1": "6783dc540310",
    "pair_verdict_v2": "3e68e9f9e46c",
    "rubric_v1": "ff591ce242dc",
    "single_reference_v1": "ac16be61e720",
    "single_v1": "04395912d72d",
}
"""Digest of the ids of a pair's ballots under each bundled prompt and its variants."""


def test_ballots_of_bundled_prompts_keep_their_ids(make_pairs: Make, make_judges: Make) -> None:
    # Votes that are in a warehouse are found by these ids, so a new version must not change them.
    found = {}
    for name in BALLOTS:
        reworded = [
            {"pair_id": f"w{variant}", "arm": "reworded", "perturbation": variant}
            for variant in variants_of(name)
        ]
        pairs = make_pairs([{}, *reworded])
        design = BALANCED._replace(votes_per_pair=2)
        ids = draw_ballots(pairs, make_judges([{}]), name, design)["ballot_id"].sort()
        found[name] = hashlib.sha256("".join(ids).encode()).hexdigest()[:12]
    assert found == BALLOTS
    assert {*BALLOTS} == {*PROMPTS} - {*PROMPTS.own}


Changes = tuple[str, dict[str, Any]]
POINTER = {"pointer": "/better", "map": {"A": "first", "B": "second"}}
CHANGING: list[Changes] = [
    ("provider", {"api_base": "http://127.0.0.1:9/v1"}),
    ("provider", {"api_base_variable": "DESK_API_BASE"}),
    ("provider", {"repeat_as_seed": True}),
    ("judge", {"provider": "other"}),
    ("judge", {"model": "openai/other"}),
    ("judge", {"params": {"temperature": 1}}),
    ("judge", {"system": "Be strict."}),
    ("prompt", {"verdict": "json"}),
    ("prompt", {"verdict": "json", "reason": False}),
    # The request is the same, but a vote holds what was read.
    ("prompt", {"verdict": POINTER}),
    ("prompt", {"verdict": POINTER, "response_format": {"type": "json_object"}}),
    ("prompt", {"system": "Compare well."}),
    ("prompt", {"user": "{question} First: {answer_a} Second: {answer_b}"}),
]
KEEPING: list[Changes] = [
    ("provider", {"key_variable": "OTHER_API_KEY"}),
    ("provider", {"variables": ["OTHER"]}),
    ("provider", {"serve": "a.module"}),
    ("provider", {"concurrency": 1}),
    ("provider", {"requests_per_minute": 1}),
    ("provider", {"tokens_per_minute": 1}),
    ("provider", {"timeout_seconds": 1.0}),
    ("provider", {"attempts": 1}),
    ("provider", {"pause_seconds": 1.0}),
    ("provider", {"max_reply_bytes": 1000}),
    ("judge", {"judge": "desk/other"}),
    ("judge", {"concurrency": 1}),
    ("judge", {"requests_per_minute": 1}),
    ("judge", {"tokens_per_minute": 1}),
    ("judge", {"about": "Another."}),
    ("judge", {"usd_per_million": {"prompt": 1, "completion": 1}}),
    ("judge", {"mode": "batch"}),
    # With nothing to drop; what is dropped, see below.
    ("judge", {"unsupported": "drop"}),
    ("prompt", {"prompt": "other"}),
    ("prompt", {"source": "other"}),
    ("prompt", {"variants": {"mild": {"system": "Please compare."}}}),
]
# What simulates is no model, and other kinds of prompts show one answer.
SINGLE = {"kind", "scale", "criteria", "labels", "passes", "fails"}
APART = {("provider", "simulated"), *(("prompt", field) for field in SINGLE)}


@pytest.fixture
def draw(make_pairs: Make, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Return ids and requests of the ballots of one judge, with changes to what asks it."""

    def draw(
        dropped: list[str] | None = None, **changes: dict[str, Any]
    ) -> tuple[set[str], list[Any]]:
        provider = Provider(**changes.get("provider", {}))
        named = {"judge": "desk/one", "provider": "desk", "model": "openai/one", "params": {}}
        judge = Judge(**{**named, **changes.get("judge", {})})
        form = {
            "prompt": "plain",
            "kind": "pair",
            "source": "here",
            "system": "Compare.",
            "user": "{question} {answer_a} {answer_b}",
        }
        prompt = Prompt(**{**form, **changes.get("prompt", {})})
        files = {judge.provider: ProviderFile(provider=provider, judges={})}
        monkeypatch.setattr(judging, "PROVIDERS", files)
        monkeypatch.setattr(judging, "JUDGES", {judge.judge: judge})
        monkeypatch.setitem(PROMPTS.files, prompt.prompt, Path("here.toml"))
        monkeypatch.setitem(PROMPTS._loaded, prompt.prompt, prompt)
        monkeypatch.setattr(judging, "provider_of", lambda _: provider)
        pairs = make_pairs([{}])
        named_dropped = {judge.judge: dropped} if dropped else {}
        ballots = draw_ballots(
            pairs, judge_table([judge.judge]), prompt.prompt, BALANCED, named_dropped
        )
        sent = [(messages, params) for _, messages, params in askings(ballots, pairs)]
        return set(ballots["ballot_id"]), sent

    monkeypatch.setenv("DESK_API_BASE", "http://127.0.0.1:8/v1")
    return draw


@pytest.mark.parametrize(("what", "change"), CHANGING)
def test_what_changes_a_request_changes_the_id(
    what: str, change: dict[str, Any], draw: Make
) -> None:
    assert draw(**{what: change})[0].isdisjoint(draw()[0])


@pytest.mark.parametrize(("what", "change"), KEEPING)
def test_what_changes_no_request_keeps_the_id(
    what: str, change: dict[str, Any], draw: Make
) -> None:
    assert draw(**{what: change}) == draw()


def test_every_field_is_known_to_change_requests_or_not() -> None:
    models = {"provider": Provider, "judge": Judge, "prompt": Prompt}
    fields = {(what, field) for what, model in models.items() for field in model.model_fields}
    tried = {(what, field) for what, change in CHANGING + KEEPING for field in change}
    assert tried | APART == fields


def test_a_seed_of_the_judge_says_what_is_sent(draw: Make) -> None:
    seeded = {"params": {"seed": 7}}
    assert draw(judge=seeded) == draw(judge=seeded, provider={"repeat_as_seed": True})
    assert draw(judge=seeded)[0].isdisjoint(draw(judge={"params": {"seed": 8}})[0])
    assert [params for _, params in draw(provider={"repeat_as_seed": True})[1]] == [
        {"seed": repeat} for repeat in (0, 1, 2, 0, 1, 2)
    ]


def test_a_model_at_three_efforts_is_three_judges(draw: Make) -> None:
    efforts = ("low", "medium", "high")
    drawn = [
        draw(judge={"judge": f"desk/{effort}", "params": {"reasoning_effort": effort}})[0]
        for effort in efforts
    ]
    assert [len(ids) for ids in drawn] == [BALANCED.votes_per_pair] * 3
    assert len(set().union(*drawn)) == 3 * BALANCED.votes_per_pair


def test_what_is_dropped_is_no_part_of_the_id(draw: Make) -> None:
    plain = {"params": {"max_tokens": 9}}
    dropping = {"params": {"max_tokens": 9, "temperature": 1}, "unsupported": "drop"}
    assert draw(judge=dropping)[0].isdisjoint(draw(judge=plain)[0])
    assert draw(["temperature"], judge=dropping)[0] == draw(judge=plain)[0]
    # what another version of litellm drops is another request
    assert draw(["max_tokens"], judge=dropping)[0] == draw(judge={"params": {"temperature": 1}})[0]


def test_a_dropped_seed_is_no_part_of_the_id(draw: Make) -> None:
    provider, drop = {"repeat_as_seed": True}, {"unsupported": "drop"}
    assert draw(["seed"], provider=provider, judge=drop)[0] == draw()[0]
    assert draw(provider=provider, judge=drop)[0] == draw(provider=provider)[0]


def test_a_form_that_is_not_sent_is_no_part_of_the_id(draw: Make) -> None:
    drop, prompt = {"unsupported": "drop"}, {"verdict": "json"}
    asked = draw(judge=drop, prompt=prompt)[0]
    assert asked == draw(prompt=prompt)[0]
    bare = draw(["response_format"], judge=drop, prompt=prompt)[0]
    assert bare.isdisjoint(asked)
    assert bare == draw()[0]


def test_only_judges_that_drop_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def look_up(these: Any) -> list[list[str]]:
        asked.extend(these)
        return [["seed"], []][: len(these)]

    params = {"temperature": 0}
    some = {
        name: Judge(
            judge=name,
            provider="desk",
            model=f"openai/{name}",
            params=params,
            unsupported="drop" if name != "c" else "error",
        )
        for name in "abc"
    }
    provider = Provider(repeat_as_seed=True)
    monkeypatch.setattr(judging, "JUDGES", some)
    monkeypatch.setattr(
        judging, "PROVIDERS", {"desk": ProviderFile(provider=provider, judges=some)}
    )
    monkeypatch.setattr(judging, "refused_params", look_up)
    assert judging.dropped_params(["a", "b", "c"], PROMPT) == {"a": ["seed"]}
    assert asked == [(f"openai/{name}", {"temperature": 0, "seed": 0}) for name in "ab"]
    assert judging.dropped_params(["c"], PROMPT) == {}


def test_keys_of_earlier_votes_stay(draw: Make) -> None:
    draw()
    assert judge_table(["desk/one"])["params"].to_list() == ["{}"]


def test_equal_numbers_have_one_key(draw: Make) -> None:
    params = [
        {"temperature": zero, "extra_body": {"of": [one, 0.5, True]}, "seed": 3}
        for zero, one in ((0, 1), (0.0, 1.0), (-0.0, 1))
    ]
    keys = [draw(judge={"params": each})[0] for each in params]
    assert keys[0] == keys[1] == keys[2]
    assert draw(judge={"params": {**params[0], "temperature": 0.5}})[0] != keys[0]


def test_a_simulated_judge_keeps_its_key() -> None:
    judge = JUDGES["offline/honest"]
    assert judge_table([judge.judge])["params"].to_list() == [
        json.dumps(judge.params, sort_keys=True)
    ]


def test_more_votes_ask_for_the_new_ones_only(make_pairs: Make, make_judges: Make) -> None:
    pairs, judges = make_pairs([{}]), make_judges([{}])
    two, six = (
        set(draw_ballots(pairs, judges, PROMPT, BALANCED._replace(votes_per_pair=n))["ballot_id"])
        for n in (2, 6)
    )
    assert two < six


@pytest.mark.parametrize("design", [BALANCED, PAPER])
def test_replicates_ask_anew(make_pairs: Make, make_judges: Make, design: Design) -> None:
    again = {"pair_id": "p2", "arm": "replicate"}
    pairs = make_pairs([{}, again])
    ballots = draw_ballots(pairs, make_judges([{}]), PROMPT, design)
    control, repeated = (ballots.filter(pair_id=name) for name in ("p1", "p2"))
    assert control.height == repeated.height == 6
    assert ballots["ballot_id"].n_unique() == 12
    alone = draw_ballots(make_pairs([{}]), make_judges([{}]), PROMPT, design)
    assert control.equals(alone)
    if design is BALANCED:
        # The same as what six more votes on control would ask.
        more = draw_ballots(
            make_pairs([{}]), make_judges([{}]), PROMPT, design._replace(votes_per_pair=12)
        )
        assert set(ballots["ballot_id"]) == set(more["ballot_id"])


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
