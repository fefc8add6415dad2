"""Votes on pairs as FastChat writes them; counts equal to the published ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main


def row(**changes: Any) -> dict[str, Any]:
    return {
        "question_id": 81,
        "model_a": "vicuna",
        "model_b": "alpaca",
        "winner": "model_a",
        "judge": "expert_1",
        "turn": 1,
        **changes,
    }


def test_winners_people_and_judges(read: Any, rated: Any) -> None:
    log = read(
        [
            row(),
            row(winner="model_b", judge="author_2"),
            row(winner="tie (inconsistent)", judge=["gpt-4", "pair-v2"]),
            row(winner="error", judge="gpt4_pair"),
            row(turn=2, judge=""),
        ]
    )
    # the anchor is the first model by name, alpaca
    names = ("judge", "human", "prompt", "label", "value", "inconsistent", "invalid")
    assert rated(log, *names) == [
        ("author_2", True, "none", "anchor", 0.0, False, None),
        ("expert_1", True, "none", "target", 1.0, False, None),
        ("gpt-4", False, "pair-v2", "tie", 0.5, True, None),
        ("gpt4_pair", False, "unknown", None, None, False, "no winner"),
    ]
    assert set(log.ratings["dataset"]) == {"log/turn1"}
    assert set(log.ratings["item"]) == {"81/alpaca/vicuna"}
    assert dict(log.left_out) == {"ratings without the name of a judge or person": 1}
    assert log.votes.is_empty()


def test_a_pair_shown_the_other_way_round_is_the_same_item(read: Any, rated: Any) -> None:
    log = read([row(), row(model_a="alpaca", model_b="vicuna", winner="model_b", judge="expert_2")])
    assert {(item, label) for item, label in rated(log, "item", "label")} == {
        ("81/alpaca/vicuna", "target")
    }


@pytest.fixture(scope="module")
def measured(reference_data: Path) -> list[dict[str, Any]]:
    """Return what one command measures of the votes that were published with MT-bench."""
    wanted = [f"--only={name}" for name in ("s1_micro", "s2_micro", "win_rate")]
    words = ["measure", str(reference_data / "mt_bench_votes"), "--people", "expert_*", *wanted]
    done = CliRunner().invoke(main, [*words, "--format", "json"])
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_published_agreement(reference_data: Path, measured: list[dict[str, Any]]) -> None:
    gold = json.loads((reference_data / "mt_bench_votes/gold.json").read_text(encoding="utf-8"))
    found = {
        f"gpt4-pair~human|{row['dataset'].split('/')[1]}|{row['statistic'][:2].upper()}": row
        for row in measured
        if row["judge"] == "gpt4_pair" and row["statistic"] in {"s1_micro", "s2_micro"}
    }
    assert found.keys() == gold.keys()
    for name, cell in gold.items():
        assert (found[name]["hits"], found[name]["n"]) == (cell["agree"], cell["total"])


@pytest.mark.parametrize(("judge", "file"), [("gpt4_pair", "gpt4_pair"), ("humans", "human")])
def test_win_rates(
    reference_data: Path, measured: list[dict[str, Any]], judge: str, file: str
) -> None:
    votes = reference_data / "mt_bench_votes" / f"{file}.jsonl"
    # the second implementation: wins and halves of ties over all pairs of a model
    wins: dict[tuple[str, str], list[float]] = {}
    for line in votes.read_text(encoding="utf-8").splitlines():
        vote = json.loads(line)
        if vote["judge"].startswith("author"):
            continue
        for side, other in (("model_a", "model_b"), ("model_b", "model_a")):
            score = {side: 1.0, other: 0.0}.get(vote["winner"], 0.5)
            wins.setdefault((f"turn{vote['turn']}", vote[side]), []).append(score)
    found = {
        (row["dataset"].split("/")[1], row["subgroup"]): (row["estimate"], row["n"])
        for row in measured
        if row["judge"] == judge
        and row["statistic"] == "win_rate"
        and " vs " not in row["subgroup"]
    }
    assert found == {
        key: (pytest.approx(sum(scores) / len(scores)), len(scores)) for key, scores in wins.items()
    }
    assert len(found) == 12
