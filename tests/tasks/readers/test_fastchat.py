"""Folders with questions and answers in FastChat's format."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main
from tasks.curate import import_dataset
from tasks.readers.questions import load_own


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def answers_of(model: str, *texts: str) -> list[dict[str, Any]]:
    return [
        {
            "question_id": 81 + at,
            "answer_id": f"{model}{at}",
            "model_id": model,
            "choices": [{"index": 0, "turns": [text, f"{text} Still."]}],
            "tstamp": 1.5,
        }
        for at, text in enumerate(texts)
    ]


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Return two questions in the layout of MT-Bench, with the answers of two models."""
    folder = tmp_path / "bench"
    write(
        folder / "question.jsonl",
        {"question_id": 81, "category": "writing", "turns": ["Why?", "And now?"]},
        {"question_id": 82, "category": "math", "turns": ["2 + 2?", "+ 1?"], "reference": ["4"]},
    )
    write(folder / "model_answer" / "vicuna.jsonl", *answers_of("vicuna", "So.", "Five."))
    write(folder / "model_answer" / "alpaca.jsonl", *answers_of("alpaca", "Because.", "Four."))
    write(folder / "reference_answer" / "gpt-4.jsonl", *answers_of("gpt-4", "Thus."))
    (folder / "LICENSE").write_text("MIT", encoding="utf-8")
    return folder


def test_a_folder_gives_second_turns_with_the_first_ones_before(bench: Path) -> None:
    (bench / "reference_answer" / "gpt-4.jsonl").unlink()
    found = load_own(bench, turn=2)
    assert found.questions.select("question_id", "category", "question").rows() == [
        ("bench/81/turn_2", "writing", "And now?"),
        ("bench/82/turn_2", "math", "+ 1?"),
    ]
    assert [json.loads(text) for text in found.questions["context"]] == [
        {"turn 1": ["Why?", "Because.", "So.", None]},
        {"turn 1": ["2 + 2?", "Four.", "Five.", "4"]},
    ]
    assert found.answers.select("author", "answer").rows()[:2] == [
        ("alpaca", "Because. Still."),
        ("vicuna", "So. Still."),
    ]
    assert found.known["turn"].unique().to_list() == ["2"]


def test_an_empty_reference_is_none(bench: Path) -> None:
    write(
        bench / "question.jsonl",
        {"question_id": 81, "turns": ["Why?", "And now?"], "reference": ["", "So."]},
        {"question_id": 82, "turns": ["2 + 2?", "+ 1?"], "reference": ["4", ""]},
    )
    (bench / "reference_answer" / "gpt-4.jsonl").unlink()
    assert load_own(bench).questions["reference"].to_list() == [None, "4"]
    second = load_own(bench, turn=2).questions
    assert second["reference"].to_list() == ["So.", None]
    assert [json.loads(text)["turn 1"][3] for text in second["context"]] == [None, "4"]


def test_a_folder_is_found_by_its_name(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bench.parent)
    assert import_dataset("bench").questions.equals(import_dataset(str(bench)).questions)
    # A dataset that is so called comes first.
    Path("bloom").mkdir()
    assert import_dataset("bloom").questions.height == 60


def test_a_folder_is_a_dataset_of_first_turns(bench: Path) -> None:
    found = load_own(bench)
    columns = ("question_id", "dataset", "category", "question", "reference")
    assert found.questions.select(columns).rows() == [
        ("bench/81", "bench", "writing", "Why?", "Thus."),
        ("bench/82", "bench", "math", "2 + 2?", "4"),
    ]
    assert found.answers.select("author", "answer").rows() == [
        ("alpaca", "Because."),
        ("vicuna", "So."),
        ("alpaca", "Four."),
        ("vicuna", "Five."),
    ]


def test_an_answer_that_is_missing_is_an_error(bench: Path) -> None:
    write(bench / "model_answer" / "vicuna.jsonl", *answers_of("vicuna", "So."))
    with pytest.raises(ValueError, match="question '82' has no answer of 'vicuna'"):
        load_own(bench)


@pytest.mark.parametrize("choices", [None, [], [1], [{}], [{"turns": "x"}], [{"turns": [1]}]])
def test_answers_of_another_form_are_errors(bench: Path, choices: object) -> None:
    rows = [{**row, "choices": choices} for row in answers_of("vicuna", "So.", "Five.")]
    write(bench / "model_answer" / "vicuna.jsonl", *rows)
    with pytest.raises(ValueError, match=r"has no answer of 'vicuna'|must be text"):
        load_own(bench)


def test_three_models_are_too_many(bench: Path) -> None:
    write(bench / "model_answer" / "x.jsonl", *answers_of("x", "A.", "B."))
    with pytest.raises(ValueError, match=r"3 files of answers \(alpaca, vicuna, x\)"):
        load_own(bench)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("question.jsonl", "question.jsonl: FastChat questions, 2 rows."),
        ("model_answer/vicuna.jsonl", "vicuna.jsonl: FastChat answers of vicuna, 2 rows."),
        ("reference_answer/gpt-4.jsonl", "FastChat reference answers of gpt-4, 1 row."),
        ("", "FastChat questions and answers, 2 questions, answers of alpaca, vicuna."),
    ],
)
def test_doctor_says_what_it_is_and_which_command_takes_it(
    bench: Path, name: str, said: str
) -> None:
    done = CliRunner().invoke(main, ["doctor", str(bench / name)])
    assert done.exit_code == 0, done.output
    reported = " ".join(done.stdout.split())
    assert said in reported
    assert "`voirdire audit --dataset FOLDER/`" in reported


def test_there_is_nothing_to_measure_in_it(bench: Path) -> None:
    done = CliRunner().invoke(main, ["measure", str(bench / "question.jsonl")])
    assert done.exit_code == 2
    assert "There is nothing to measure in it" in " ".join(done.stderr.split())


def test_questions_of_mt_bench_are_recognised(reference_data: Path) -> None:
    folder = reference_data / "mt_bench"
    for name, said in (
        ("question.jsonl", "FastChat questions, 80 rows"),
        ("reference_answer_gpt-4.jsonl", "FastChat reference answers of gpt-4"),
    ):
        done = CliRunner().invoke(main, ["doctor", str(folder / name)])
        assert said in " ".join(done.stdout.split())
