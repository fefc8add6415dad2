"""Results of LLMBar; accuracies equal to the published ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main


def test_both_orders_are_votes(read: Any) -> None:
    row = {
        "subset": "LLMBar/Natural",
        "judge": "ChatGPT",
        "prompt": "CoT",
        "item": 0,
        "label": 2,
        "winner_order1": "2",
        "winner_order2": None,
    }
    log = read([row])
    names = ("dataset", "sample", "label", "shown_first", "choice")
    assert set(log.votes.select(names).rows()) == {
        ("log/LLMBar/Natural", "0", "target", "anchor", "second"),
        ("log/LLMBar/Natural", "0", "target", "target", "invalid"),
    }


def test_published_accuracies_by_one_command(reference_data: Path) -> None:
    folder = reference_data / "llmbar"
    gold = json.loads((folder / "gold.json").read_text(encoding="utf-8"))
    names = {
        "correct_False": "accuracy_12",
        "correct_True": "accuracy_21",
        "correct_both": "both_right",
    }
    words = [word for name in (*names.values(), "accuracy") for word in ("--only", name)]
    path = folder / "votes.jsonl.gz"
    done = CliRunner().invoke(main, ["measure", str(path), *words, "--format", "json"])
    assert done.exit_code == 0, done.output
    found: dict[tuple[str, str], dict[str, Any]] = {
        (
            f"{row['dataset'].removeprefix('votes/')}|{row['judge']}|{row['prompt']}",
            row["statistic"],
        ): row
        for row in json.loads(done.stdout)
    }
    assert len(gold) == 89
    for run, expected in gold.items():
        for key, name in names.items():
            row = found[run, name]
            text = expected["published_statistics_json"][key]
            assert text.startswith(f"{row['hits']} / {row['n']} = "), (run, key)
        mean = found[run, "accuracy"]["estimate"]
        assert mean == pytest.approx(expected["computed"]["acc_mean"], abs=1e-9)
