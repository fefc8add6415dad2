"""Copies of rows are counted once and said to be left out, in all formats that name their rows."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main

Row = dict[str, Any]
HEAD = {"version": 2, "status": "success", "eval": {}, "results": {}, "stats": {}}


def doctor(path: Path) -> Result:
    return CliRunner().invoke(main, ["doctor", str(path)])


def reported(path: Path) -> str:
    done = doctor(path)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def inspect_ai(path: Path, rows: list[Row]) -> None:
    path.write_text(json.dumps({**HEAD, "samples": rows}), encoding="utf-8")


def archive(path: Path, rows: list[Row]) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", json.dumps(HEAD))
        for at, row in enumerate(rows):
            file.writestr(f"samples/{at}.json", json.dumps(row))


def lines(path: Path, rows: list[Row]) -> None:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def promptfoo(path: Path, rows: list[Row]) -> None:
    results = {"version": 3, "results": rows, "stats": {}}
    path.write_text(json.dumps({"results": results, "config": {}}), encoding="utf-8")


SAMPLE = {"id": "q0", "epoch": 1, "uuid": "u0", "scores": {"m": {"value": float("nan")}}}
RESULT = {
    "id": "r0",
    "testIdx": 0,
    "promptIdx": 0,
    "provider": {"id": "m"},
    "gradingResult": {
        "componentResults": [{"pass": True, "assertion": {"type": "llm-rubric", "value": "?"}}]
    },
}
PREFERENCE = {
    "instruction": "Do.",
    "output_1": "One.",
    "output_2": "Two.",
    "generator_1": "a",
    "generator_2": "b",
    "annotator": "gpt4",
    "preference": 2.0,
    "raw_completion": "M",
    "time_per_example": 1.5,
}
GAMES = {
    "question_id": "q0",
    "model": "mine",
    "judge": "gpt",
    "games": [{"judgment": "[[A>B]]", "score": "A>B"}, {"judgment": "[[B>A]]", "score": "B>A"}],
}
SCORES = {"id": 1, "subset": "chat", "scores_chosen": 1.0, "scores_rejected": 0.5}
GRADE = {
    "question_id": 1,
    "model": "mine",
    "judge": ["gpt", "single"],
    "user_prompt": "?",
    "judgment": "Rating: [[7]]",
    "score": 7,
    "turn": 1,
    "tstamp": 1.5,
}
DUEL = {
    "question_id": 1,
    "model_1": "a",
    "model_2": "b",
    "g1_winner": "model_1",
    "g2_winner": "model_1",
    "judge": ["gpt", "pair"],
    "g1_judgment": "[[A]]",
    "g2_judgment": "[[B]]",
    "turn": 1,
    "tstamp": 1.5,
}
CASES: dict[str, tuple[Any, str, Row, Row]] = {
    "Inspect AI": (inspect_ai, "log.json", SAMPLE, {"epoch": 2, "uuid": "u1"}),
    "Inspect AI archive": (archive, "log.eval", SAMPLE, {"epoch": 2, "uuid": "u1"}),
    "promptfoo": (promptfoo, "log.json", RESULT, {"id": "r1"}),
    "AlpacaEval": (lines, "log.jsonl", PREFERENCE, {"time_per_example": 2.5}),
    "Arena-Hard": (lines, "log.jsonl", GAMES, {"games": [{"judgment": "?", "score": "A=B"}]}),
    "RewardBench": (lines, "log.jsonl", SCORES, {"id": 2}),
    "FastChat grades": (lines, "log.jsonl", GRADE, {"tstamp": 2.5}),
    "FastChat pairs": (lines, "log.jsonl", DUEL, {"tstamp": 2.5}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_copy_is_left_out_and_a_repeat_is_kept(tmp_path: Path, name: str) -> None:
    write, file, row, other = CASES[name]
    path = tmp_path / file
    write(path, [row, row | other])
    once = reported(path)
    assert "copies" not in once
    write(path, [row, row | other, row, row])
    assert "left out: copies of earlier rows (2)" in reported(path)
    # The numbers are those without the copies.
    assert (
        reported(path).split(" - ", 1)[1].replace(" - left out: copies of earlier rows (2)", "")
        == once.split(" - ", 1)[1]
    )


FOLDERS = {
    name: case
    for name, case in CASES.items()
    if name in {"AlpacaEval", "Arena-Hard", "FastChat grades", "FastChat pairs"}
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_copy_in_another_file_of_a_folder_is_left_out(tmp_path: Path, name: str) -> None:
    write, _, row, other = CASES[name]
    folder = tmp_path / "logs"
    folder.mkdir()
    write(folder / "one.jsonl", [row])
    write(folder / "two.jsonl", [row | other])
    once = reported(folder)
    assert "copies" not in once
    write(folder / "two.jsonl", [row, row | other, row])
    assert "left out: copies of earlier rows (2)" in reported(folder)
    assert (
        reported(folder).split(" - ", 1)[1].replace(" - left out: copies of earlier rows (2)", "")
        == once.split(" - ", 1)[1]
    )


@pytest.mark.parametrize("name", ["Inspect AI", "Inspect AI archive", "promptfoo"])
def test_a_file_that_is_a_copy_of_another_is_left_out(tmp_path: Path, name: str) -> None:
    write, file, row, other = CASES[name]
    folder = tmp_path / "logs"
    folder.mkdir()
    write(folder / file, [row, row | other])
    once = reported(folder)
    assert "copies" not in once
    (folder / f"again-{file}").write_bytes((folder / file).read_bytes())
    assert "left out: copies of earlier rows (2)" in reported(folder)
    assert (
        reported(folder).split(" - ", 1)[1].replace(" - left out: copies of earlier rows (2)", "")
        == once.split(" - ", 1)[1]
    )


def test_equal_scores_of_judges_named_after_their_files_are_no_copies(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    lines(folder / "one.jsonl", [SCORES])
    lines(folder / "two.jsonl", [SCORES])
    assert "copies" not in reported(folder)
    assert "judges one, two" in reported(folder)


def test_a_sample_with_two_contents_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    inspect_ai(path, [SAMPLE, SAMPLE | {"scores": {"m": {"value": "C"}}}])
    done = doctor(path)
    assert done.exit_code == 2
    assert "1 with the uuid of an earlier one and different content, the first is 'u0'" in (
        done.stderr
    )


def test_equal_ratings_without_a_time_or_reply_are_repeats(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    human = {name: PREFERENCE[name] for name in PREFERENCE if name[:4] not in ("raw_", "time")}
    lines(path, [human, human])
    assert "copies" not in reported(path)
