"""A log in which every pair was seen in one order, and quality is unbalanced, as AlpacaEval's."""

import json
import math
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli.main import main


@pytest.mark.parametrize(("models", "seed"), [(1, 0), (1, 1), (1, 2), (8, 0)])
def test_position_never_passes_where_nearly_all_votes_are_for_one_side(
    tmp_path: Path, models: int, seed: int
) -> None:
    draw = random.Random(seed)
    votes = [
        {
            "judge": "ada",
            "sample": f"m{model}/{question}",
            "cluster": f"q{question}",
            "arm": "control",
            "shown_first": side,
            "repeat": 0,
            "anchor_author": "base",
            "target_author": f"m{model}",
            # The target leads by 4.5 logits, and whatever stands second gains 1.5.
            "choice": _choice(draw, side),
        }
        for model in range(models)
        for question in range(805)
        for side in [draw.choice(["anchor", "target"])]
    ]
    path = tmp_path / "votes.jsonl"
    path.write_text("".join(json.dumps(vote) + "\n" for vote in votes), encoding="utf-8")
    words = ["measure", str(path), "--only", "scorecard", "--format", "json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    (gate,) = [row for row in json.loads(done.stdout) if row["gate"] == "position"]
    # The gap hides it: first picks are (sigmoid(-6) + sigmoid(3)) / 2 = .478, give or take .018.
    gap = sum(vote["choice"] == "first" for vote in votes) / len(votes) - 0.5
    assert abs(gap) < 0.08
    assert gate["verdict"] != "pass"


def _choice(draw: random.Random, side: str) -> str:
    second_wins = 1.5 + (4.5 if side == "anchor" else -4.5)
    return "second" if draw.random() < 1 / (1 + math.exp(-second_wins)) else "first"
