"""What commands say of logs of other tools: numbers within their range, and what they rest on."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main


def run(*words: object, code: int = 0) -> str:
    """Return the output of a command, its lines joined by one blank."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.mark.parametrize("judge", ["pass pass pass", "pass fail pass"])
def test_kappa_is_at_least_minus_one(tmp_path: Path, judge: str) -> None:
    path = tmp_path / "labels.csv"
    rows = [f"{a},{b}" for a, b in zip(judge.split(), ["pass", "fail", "pass"], strict=True)]
    path.write_text("\n".join(["judge,human", *rows, ""]), encoding="utf-8")
    done = CliRunner().invoke(main, ["calibrate", str(path), "--no-save", "--format", "json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)[0]["with_people"]["measures"]
    [kappa] = [row for row in found if row["statistic"] == "kappa"]
    # One verdict only: with h at most .94 (Wilson, one of three, two independent ones) and q .66
    # the formula gives less than -1. All agree: the lower end is that of the agreement, above -1.
    if judge == "pass pass pass":
        assert kappa["low"] == -1
    assert -1 <= kappa["low"] <= kappa["estimate"] <= kappa["high"] <= 1


def test_agreement_with_a_column_of_labels_names_the_labels(tmp_path: Path) -> None:
    rows = [
        {"id": at, "subset": "chat", "scores_chosen": 0.5, "scores_rejected": at % 2}
        for at in range(16)
    ]
    said = run("measure", lines(tmp_path / "rb.jsonl", rows))
    # The right answer wins half of the pairs: no better than by chance.
    assert "no ratings of people: agreement with people cannot be computed" in said
    assert "Agreement with the labels is inconclusive" in said
    assert "Agreement with people is" not in said


def test_doctor_and_measure_give_the_same_mean_of_repeated_items(tmp_path: Path) -> None:
    # Item a has 1, 1, 1 and 5, item b 4: the mean of items is (2 + 4) / 2, that of ratings 12 / 5.
    path = tmp_path / "grades.csv"
    path.write_text("id,grade\na,1\na,1\na,1\na,5\nb,4\n", encoding="utf-8")
    for command in ("doctor", "measure"):
        said = run(command, path, "--map=item=id", "--map=value=grade")
        assert "grade 5 0 3.00" in said
        assert "In the mean, the ratings of an item that is repeated count as one." in said


GAME = {"question_id": 1, "model_1": "a", "model_2": "b", "judge": ["gpt", "pair"], "turn": 1}


def test_rows_are_those_of_the_file(tmp_path: Path) -> None:
    games = [
        GAME | {"question_id": at, "g1_winner": "model_1", "g2_winner": "tie"} for at in range(3)
    ]
    pairs = lines(tmp_path / "pairs.jsonl", games)
    assert "FastChat pairwise judgments, 3 rows, 6 votes, judge gpt" in run("doctor", pairs)
    path = tmp_path / "both.csv"
    path.write_text("id,said,person\na,pass,pass\nb,fail,\n", encoding="utf-8")
    maps = ("--map=item=id", "--map=label=said", "--map=human_label=person")
    assert "mapped table, 2 rows, 3 ratings, judge said" in run("doctor", path, *maps)


def test_the_line_of_malformed_json_is_named(tmp_path: Path) -> None:
    game = GAME | {"g1_winner": "tie", "g2_winner": "tie"}
    path = lines(tmp_path / "pairs.jsonl", [game, game])
    path.write_text(f'{path.read_text()}\n{{"question_id": \n{json.dumps(game)}\n')
    assert "pairs.jsonl, line 3: is not JSON (Expecting value, column 16)." in run(
        "doctor", path, code=2
    )


@pytest.mark.parametrize("name", ["log.json", "log.jsonl", "log.csv"])
def test_a_row_that_is_too_long_is_an_error(tmp_path: Path, name: str) -> None:
    row = {
        "instruction": "x" * 40_000_000,
        "generator_1": "a",
        "generator_2": "b",
        "annotator": "gpt",
        "preference": 1,
    }
    path = tmp_path / name
    if name == "log.csv":
        head = dict.fromkeys(row, "?") | {"preference": 1}
        rows = (head, head, row)
        text = "\n".join(",".join(map(str, each.values())) for each in rows)
        path.write_text(f"{','.join(row)}\n{text}\n", encoding="utf-8")
    else:
        path.write_text(json.dumps([row] if name == "log.json" else row), encoding="utf-8")
    assert "has a row of more than 1" in run("doctor", path, code=2)


def test_winners_that_are_none_are_named(tmp_path: Path) -> None:
    games = [
        GAME | {"g1_winner": "model_1", "g2_winner": "weird\n" + "x" * 500},
        GAME | {"g1_winner": "model_3", "g2_winner": "error", "question_id": 2},
    ]
    said = run("doctor", lines(tmp_path / "pairs.jsonl", games))
    # All three are counted once: two of them are named, as a part of them.
    assert "among the invalid, values that name no winner: 'model_3' (1)" in said
    assert r"'weird\nxxx" in said
    assert "x" * 100 not in said
    assert "no verdict (3)" in said
    vote = {"question_id": 1, "model_a": "a", "model_b": "b", "judge": "expert_1"}
    votes = lines(tmp_path / "votes.jsonl", [vote | {"winner": "model_c"}])
    assert "among the invalid, values that name no winner: 'model_c' (1)" in run("doctor", votes)


def test_an_unknown_source_of_scores_is_named(tmp_path: Path) -> None:
    row = {"id": "1", "name": "good", "value": 1, "dataType": "NUMERIC", "traceId": "t"}
    rows = [row | {"id": f"{at}", "source": ("EVALUATOR", "API")[at % 2]} for at in range(3)]
    strange = "scores of source 'EVALUATOR', which is neither EVAL nor ANNOTATION (2)"
    known = row | {"id": "9", "source": "EVAL"}
    said = run("doctor", lines(tmp_path / "scores.jsonl", [*rows, known]))
    assert strange in said
    assert "scores of source API: a program's or a user's" in said


@pytest.mark.parametrize("command", ["doctor", "measure", "calibrate"])
def test_a_log_without_a_row_that_can_be_used_is_an_error(tmp_path: Path, command: str) -> None:
    row = {"id": "1", "name": "good", "value": 1, "dataType": "NUMERIC", "traceId": "t"}
    rows = [row | {"id": f"{at}", "source": ("EVALUATOR", "API")[at % 2]} for at in range(3)]
    said = run(command, lines(tmp_path / "scores.jsonl", rows), code=2)
    assert "scores.jsonl (Langfuse scores): no row can be used" in said
    assert "which is neither EVAL nor ANNOTATION (2)" in said
    assert "which the log does not tell apart (1)" in said


@pytest.mark.parametrize("command", ["doctor", "measure"])
def test_a_log_that_names_no_judge_is_an_error(tmp_path: Path, command: str) -> None:
    game = GAME | {"g1_winner": "tie", "g2_winner": "tie", "judge": None}
    said = run(command, lines(tmp_path / "pairs.jsonl", [game]), code=2)
    assert "no row that can be used names its judge" in said
    assert "`--map item=ID --map label=L`" in said


def test_the_readable_version_of_promptfoo_is_named(tmp_path: Path) -> None:
    log = {"results": {"version": 4, "results": []}, "config": {}}
    said = run("doctor", lines(tmp_path / "log.json", [log]), code=2)
    assert "version 4; version 3 is readable" in said
    assert "whose `promptfoo export` writes version 3" in said
    assert "newer" not in said


def test_an_unreadable_set_of_labels_is_shown(tmp_path: Path) -> None:
    sets = [[0, 1, 0], [1, 1, 0], [0, 0, 1]]
    people = {who: {f"i{at}": each for at, each in enumerate(sets)} for who in ("ada", "bob")}
    judge = {"gpt": {"i0": sets[0], "i1": "rude and loud", "i2": sets[2]}}
    files = [tmp_path / "people.json", tmp_path / "judges.json"]
    for file, labels in zip(files, (people, judge), strict=True):
        file.write_text(json.dumps(labels), encoding="utf-8")
    words = ("--humans", files[0], "--judges", files[1], "--metric", "jaccard", "--no-save")
    said = run("calibrate", *words)
    assert "rude and loud" in said
    assert '"?"' not in said


def test_names_of_metrics_and_epsilons_break_at_underscores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    sets = {f"i{at}": [["rude"], ["rude", "loud"], []][at % 3] for at in range(40)}
    files = [tmp_path / "people.json", tmp_path / "judges.json"]
    judges = {f"llm_judge_{at}": sets for at in range(2)}
    for file, labels in zip(files, (dict.fromkeys(("ada", "bob"), sets), judges), strict=True):
        file.write_text(json.dumps(labels), encoding="utf-8")
    words = ("--metric", "jaccard", "--all-metrics", "--no-save")
    done = CliRunner().invoke(
        main, ["calibrate", "--humans", str(files[0]), "--judges", str(files[1]), *words]
    )
    assert done.exit_code == 0, done.output
    table = done.stdout.split("Winning rates by metric")[1]
    head = table.split("accuracy")[0].split()
    assert "multiplicative" in head
    assert "llm_judge_0" in table


def test_grades_in_a_folder_of_verdicts_on_pairs_miss_no_reply(tmp_path: Path) -> None:
    """FastChat keeps both forms in one folder; people gave verdicts on pairs, and grades or not."""
    folder, turn = tmp_path / "bench", {"turn": 1}
    folder.mkdir()
    pair = {"model_1": "a", "model_2": "b", "judge": ["ada", "pair"], **turn}
    one = {"model": "a", "judge": ["ada", "single"], **turn}
    person = {"model_a": "a", "model_b": "b", "judge": "expert_1", **turn}
    each = [{"question_id": at} for at in range(4)]
    won = {"g1_winner": "model_1", "g2_winner": "model_1"}
    lines(folder / "pairs.jsonl", [pair | at | won for at in each])
    graded = {"user_prompt": "Rate.", "judgment": "Rating: [[7]]", "score": 7}
    lines(folder / "single.jsonl", [one | at | graded for at in each])
    lines(folder / "people.jsonl", [person | at | {"winner": "model_a"} for at in each])
    for command in (("calibrate", folder, "--no-save"), ("measure", folder)):
        said = " ".join(run(*command).split())
        assert "4 items compared" in said
        assert "without a reply" not in said
        assert "without a label" not in said
