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


CONVERSATION = '''
kind = "binary"
source = "mine"
system = """The answer {answer} ends this conversation:
{turns}"""
user = "Reply with {{verdict}}: [[pass]] or [[fail]]."
'''


def test_a_prompt_shows_the_conversation_before_the_answer(
    voirdire: Voirdire, tmp_path: Path
) -> None:
    file = tmp_path / "voirdire" / "prompts" / "chat.toml"
    file.parent.mkdir(parents=True)
    file.write_text(CONVERSATION)
    data = tmp_path / "two.csv"
    data.write_text("question_1,answer_1,question,answer\nWhere?,Here.,Why?,So.\n")
    words = ("audit", "--dataset", str(data), "--name", "chat", *ASKED, "--prompt", "chat")
    done = voirdire(*words)
    assert done.returncode == 0, done.stderr
    assert "6 ballots: 0 from the warehouse" in done.stdout
    data.write_text("question,answer\nWhy?,So.\n")
    refused = voirdire(*words)
    assert refused.returncode == 2
    assert "shows {turns}, which 1 of 1 question of" in " ".join(refused.stderr.split())
    file.write_text(CONVERSATION.replace("{turns}", "{trns}"))
    refused = voirdire(*words)
    assert refused.returncode == 2
    assert "system: {trns} is not a placeholder. Placeholders: {question}, {answer}, " in (
        " ".join(refused.stderr.split())
    )


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


@pytest.fixture
def mt_bench(tmp_path: Path, reference_data: Path) -> Path:
    """Return MT-Bench's questions and references as they are, with answers of two models."""
    source = reference_data / "mt_bench"
    folder, prompts = tmp_path / "mtb", tmp_path / "voirdire" / "prompts"
    for place in (folder / "model_answer", folder / "reference_answer", prompts):
        place.mkdir(parents=True)
    shutil.copy(source / "judge_prompts.jsonl", prompts)
    shutil.copy(source / "question.jsonl", folder)
    given = source / "reference_answer_gpt-4.jsonl"
    shutil.copy(given, folder / "reference_answer" / "gpt-4.jsonl")
    for model in ("ant", "bee"):
        rows = [
            {"question_id": n, "model_id": model, "choices": [{"turns": [f"{model} {n}.", model]}]}
            for n in range(81, 161)
        ]
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / "model_answer" / f"{model}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_mt_bench_is_audited_as_it_is(voirdire: Voirdire, mt_bench: Path) -> None:
    # Two votes on 80 targets in three arms; of single answers also on 80 anchors.
    for prompt, asked in (("single-v1", 640), ("pair-v2", 480), ("single-v1-multi-turn", 640)):
        words = ("audit", "--dataset", str(mt_bench), "--name", prompt, *ASKED, "--prompt", prompt)
        done = voirdire(*words)
        assert done.returncode == 0, done.stderr
        assert f"{asked} ballots: 0 from the warehouse" in done.stdout


def test_questions_with_a_reference_are_audited_alone(voirdire: Voirdire, mt_bench: Path) -> None:
    words = ("audit", "--dataset", str(mt_bench), "--name", "math", *ASKED, "--prompt")
    refused = voirdire(*words, "single-math-v1")
    said = " ".join(refused.stderr.split())
    assert refused.returncode == 2
    assert "shows {reference}, which 41 of 80 questions" in said
    assert f"name a copy of {mt_bench} whose question.jsonl has only those" in said
    asked = mt_bench / "question.jsonl"
    math = [line for line in asked.read_text("utf-8").splitlines() if '"category": "math"' in line]
    asked.write_text("\n".join(math), encoding="utf-8")
    done = voirdire(*words, "single-math-v1")
    assert done.returncode == 0, done.stderr
