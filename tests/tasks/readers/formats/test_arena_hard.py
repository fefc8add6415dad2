"""Judgments as Arena-Hard writes them, in both versions."""

from typing import Any

FIELDS = ("judge", "anchor_author", "target_author", "sample", "shown_first", "choice")


def test_version_0_1(read: Any) -> None:
    games = [
        {"user_prompt": "...", "judgment": "...", "score": "A>>B"},
        {"user_prompt": "...", "judgment": "...", "score": None},
    ]
    log = read([{"question_id": "q1", "model": "mine", "judge": "gpt-4", "games": games}])
    assert set(log.votes.select(FIELDS).rows()) == {
        ("gpt-4", "baseline", "mine", "q1/baseline/mine", "anchor", "first"),
        ("gpt-4", "baseline", "mine", "q1/baseline/mine", "target", "invalid"),
    }


def test_version_2(read: Any) -> None:
    row = {
        "uid": "u1",
        "category": "hard_prompt",
        "judge": "gpt-4.1",
        "model": "mine",
        "baseline": "o3-mini",
        "games": [
            {"score": "A=B", "judgment": {}, "prompt": []},
            {"score": "B>A", "judgment": {}, "prompt": []},
        ],
    }
    log = read([row, {**row, "uid": "u2", "games": row["games"][:1]}])
    assert set(log.votes.select(FIELDS).rows()) == {
        ("gpt-4.1", "o3-mini", "mine", "u1/o3-mini/mine", "anchor", "tie"),
        ("gpt-4.1", "o3-mini", "mine", "u1/o3-mini/mine", "target", "second"),
        ("gpt-4.1", "o3-mini", "mine", "u2/o3-mini/mine", "anchor", "tie"),
    }
    assert set(log.votes["category"]) == {"hard_prompt"}


def test_judgments_without_a_game_are_counted(read: Any) -> None:
    played = {"question_id": "q1", "model": "mine", "judge": "ada", "games": [{"score": "A>B"}]}
    unplayed = [
        {**played, "question_id": f"q{n}", "games": [] if n % 2 else None} for n in (2, 3, 4)
    ]
    log = read([played, *unplayed])
    assert log.votes.height == 1
    assert log.left_out == {"judgments without a game": 3}
