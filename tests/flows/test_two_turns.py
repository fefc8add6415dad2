"""FastChat's judge prompts about the second turn of a conversation, as a user audits with them."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warehouse.store import Warehouse

Voirdire = Callable[..., Any]
pytestmark = [pytest.mark.served, pytest.mark.slow]

MULTI = ("pair-v2", "pair-math-v1", "single-v1", "single-math-v1")
ALL = [*MULTI, *(f"{name}-multi-turn" for name in MULTI)]
ASKED = ("--judge", "offline/fair", "--perturbation", "fake_reference")
COLUMNS = ("question", "anchor", "target", "reference")


def table(file: Path, *, earlier: bool) -> str:
    """Write three questions, with the turn before or without."""
    names = [*COLUMNS, *(f"{name}_1" for name in COLUMNS if earlier)]
    with file.open("w", encoding="utf-8", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(["question_id", *names])
        rows.writerows([f"q{n}", *(f"The {name} of row {n}." for name in names)] for n in range(3))
    return str(file)


def test_all_eight_prompts_are_used(
    voirdire: Voirdire, tmp_path: Path, reference_data: Path
) -> None:
    prompts = tmp_path / "voirdire" / "prompts"
    prompts.mkdir(parents=True)
    shutil.copy(reference_data / "mt_bench" / "judge_prompts.jsonl", prompts)
    data = table(tmp_path / "two.csv", earlier=True)
    given = [word for name in ALL for word in ("--prompt", name)]
    done = voirdire("audit", "--dataset", data, "--name", "two", *ASKED, *given)
    assert done.returncode == 0, done.stderr
    # Four prompts of pairs: 2 votes on 3 questions in 3 arms. Four of single answers: also the
    # anchor of each control pair.
    assert f"{4 * 18 + 4 * 24} ballots: 0 from the warehouse" in done.stdout
    assert "ignored" not in done.stderr
    one = table(tmp_path / "one.csv", earlier=False)
    refused = voirdire("audit", "--dataset", one, "--name", "one", *ASKED, "--prompt", ALL[-1])
    said = " ".join(refused.stderr.split())
    assert refused.returncode == 2
    assert "shows {question_1}, which 3 of 3 questions of dataset" in said
    assert "Choose a judge prompt for one turn, or add columns 'question_1'" in said


def bench(folder: Path) -> str:
    """Write three questions of two turns, and the answers of two models, as FastChat does."""
    (folder / "model_answer").mkdir(parents=True)
    questions = [{"question_id": n, "turns": [f"Why {n}?", f"And {n}?"]} for n in range(3)]
    files = {"question": questions}
    for model in ("ant", "bee"):
        files[f"model_answer/{model}"] = [
            {"question_id": n, "model_id": model, "choices": [{"turns": [f"{model} {n}.", model]}]}
            for n in range(3)
        ]
    for name, rows in files.items():
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return f"{folder}/"


def test_a_folder_gives_the_turn_that_the_prompts_judge(
    voirdire: Voirdire, tmp_path: Path, reference_data: Path, warehouse: Warehouse
) -> None:
    prompts = tmp_path / "voirdire" / "prompts"
    prompts.mkdir(parents=True)
    shutil.copy(reference_data / "mt_bench" / "judge_prompts.jsonl", prompts)
    data = bench(tmp_path / "bench")
    for turn, prompt in (("1", "single-v1"), ("2", "single-v1-multi-turn")):
        words = ("audit", "--dataset", data, "--name", f"turn{turn}", *ASKED, "--prompt", prompt)
        # Three targets in three arms and three anchors, twice each; then nothing more.
        for said in (" 24 cast", "Nothing has changed since"):
            done = voirdire(*words)
            assert done.returncode == 0, done.stderr
            assert said in " ".join(done.stdout.split())
        turns = "select distinct turn from ratings where study = ?"
        assert warehouse.query(turns, [f"turn{turn}"])["turn"].to_list() == [turn]
    asked = warehouse.query("select question, context from questions where context is not null")
    assert asked.sort("question").row(0) == (
        "And 0?",
        json.dumps({"turn 1": ["Why 0?", "ant 0.", "bee 0.", None]}),
    )
