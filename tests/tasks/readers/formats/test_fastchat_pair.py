"""Judgments of both orders as FastChat writes them."""

from typing import Any

import pytest


def test_a_row_is_two_votes(read: Any) -> None:
    row = {
        "question_id": 81,
        "model_1": "vicuna",
        "model_2": "alpaca",
        "g1_winner": "model_1",
        "g2_winner": "model_2",
        "judge": ["gpt-4", "pair-v2"],
        "g1_user_prompt": "...",
        "g1_judgment": "[[A]]",
        "g2_user_prompt": "...",
        "g2_judgment": "[[A]]",
        "turn": 1,
        "tstamp": 1.5,
    }
    other = {**row, "question_id": 82, "g1_winner": "tie", "g2_winner": "error", "turn": 2}
    log = read([row, other])
    # vicuna, the target, was shown first and won; then alpaca was shown first and won
    names = ("dataset", "judge", "prompt", "sample", "shown_first", "choice", "repeat")
    assert set(log.votes.select(names).rows()) == {
        ("log/turn1", "gpt-4", "pair-v2", "81/alpaca/vicuna", "target", "first", 0),
        ("log/turn1", "gpt-4", "pair-v2", "81/alpaca/vicuna", "anchor", "first", 0),
        ("log/turn2", "gpt-4", "pair-v2", "82/alpaca/vicuna", "target", "tie", 0),
        ("log/turn2", "gpt-4", "pair-v2", "82/alpaca/vicuna", "anchor", "invalid", 0),
    }
    assert log.notes == ()


def test_copies_of_rows_are_counted(read: Any) -> None:
    row = {
        "question_id": 81,
        "model_1": "vicuna",
        "model_2": "alpaca",
        "g1_winner": "model_1",
        "g2_winner": "model_1",
        "judge": ["gpt-4", "pair-v2"],
        "g1_judgment": "[[A]]",
        "g2_judgment": "[[B]]",
        "turn": 1,
        "tstamp": 1.5,
    }
    log = read([row, row, {**row, "tstamp": 2.5}, row])
    assert dict(log.left_out) == {"copies of earlier rows": 2}
    assert log.votes.group_by("shown_first").len()["len"].to_list() == [2, 2]
    # Rows with neither a time nor a reply cannot be distinguished from repeats.
    names = [name for name in row if name not in {"tstamp", "g1_judgment", "g2_judgment"}]
    bare = {name: row[name] for name in names}
    log = read([bare, bare])
    assert (dict(log.left_out), log.votes.height) == ({}, 4)


@pytest.mark.parametrize("judge", [[], {}, [None, "pair-v2"], [""], None])
def test_a_judge_without_a_name_is_counted(read: Any, judge: Any) -> None:
    row = {
        "question_id": 81,
        "model_1": "vicuna",
        "model_2": "alpaca",
        "g1_winner": "model_1",
        "g2_winner": "model_1",
        "g1_judgment": "[[A]]",
        "g2_judgment": "[[A]]",
        "turn": 1,
    }
    named = {**row, "judge": ["gpt-4", "pair-v2"]}
    log = read([named, {**row, "question_id": 82, "judge": judge}])
    assert {*log.votes["judge"]} == {"gpt-4"}
    assert log.left_out["votes without the name of a judge or person"] == 2
