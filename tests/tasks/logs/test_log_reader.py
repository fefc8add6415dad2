"""Logs as a whole: hostile content, folders, tables of one's own."""

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from flows.cli.main import main
from tasks.logs.log_description import counts_of, limits_of
from tasks.logs.log_reader import Log, read_log
from tasks.logs.ratings import annotations_of, tallies_of
from tasks.readers import bounded

VOTE = {"question_id": 1, "model_a": "x", "model_b": "y", "winner": "model_a", "judge": "expert_1"}

HUGE = "a field of 20 MB, which is made where it is tried"


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def log_of(path: Path, **more: Any) -> Log:
    log = read_log(path, **more)
    assert log is not None
    return log


def test_rows_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    rows = [
        VOTE,
        {**VOTE, "judge": None},
        {**VOTE, "judge": "humans"},
        {**VOTE, "model_a": "x vs z"},
        {**VOTE, "question_id": None},
        {**VOTE, "judge": "e" * 2000},
        {**VOTE, "judge": "=cmd|' /C calc'!A0", "winner": "<script>alert(1)</script>"},
    ]
    log = log_of(write(tmp_path / "votes.jsonl", *rows))
    assert sorted(log.left_out.values()) == [1, 1, 3]
    assert set(log.ratings["judge"]) == {"expert_1", "=cmd|' /C calc'!A0"}
    assert "invalid, which is no verdict: no winner (1)" in limits_of(log)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps(VOTE) + "\n" + json.dumps(VOTE)[:-5], "line 2: is not JSON"),
        (json.dumps(VOTE) + "\n[1]\n", "cannot be read"),
        pytest.param(HUGE, "has a row of more than 10 MB", marks=pytest.mark.slow),
        (json.dumps(VOTE)[:-1] + ', "winner": "tie"}', "duplicate key"),
        (json.dumps({**VOTE, "judge": "\ud800"}), "cannot be read"),
    ],
    ids=["truncated", "no object", "20 MB field", "key twice", "half a character"],
)
def test_damaged_tables_are_errors(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "votes.jsonl"
    if content == HUGE:
        content = json.dumps({**VOTE, "winner": "x" * 20_000_000})
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_log(path)


def test_a_truncated_parquet_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    pl.DataFrame([VOTE]).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="cannot be read"):
        read_log(path)


def test_a_truncated_gzip_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl.gz"
    packed = gzip.compress(json.dumps(VOTE).encode())
    path.write_bytes(packed)
    assert log_of(path).ratings.height == 1
    path.write_bytes(packed[:-10])
    with pytest.raises(ValueError, match=r"is gzip that is cut off: its end is missing\. Copy or"):
        read_log(path)


def test_damaged_gzip_files_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl.gz"
    numbered = "".join(json.dumps({**VOTE, "question_id": at}) + "\n" for at in range(500))
    damaged = bytearray(gzip.compress(numbered.encode()))
    damaged[200:210] = bytes(10)
    for content in (bytes(damaged), b"\x1f\x8bno such method"):
        path.write_bytes(content)
        done = CliRunner().invoke(main, ["doctor", str(path)])
        assert done.exit_code == 2
        assert done.stderr.startswith("voirdire: votes.jsonl.gz is damaged gzip (")
        assert done.stderr.count("\n") == 1


def test_an_unknown_file_is_no_log(tmp_path: Path) -> None:
    assert read_log(write(tmp_path / "votes.jsonl", {"judge": "ada", "choice": "first"})) is None


def test_a_folder_holds_what_belongs_together(tmp_path: Path) -> None:
    write(tmp_path / "human.jsonl", VOTE, {**VOTE, "judge": "author_1"})
    write(tmp_path / "judge.jsonl", {**VOTE, "judge": "gpt4"})
    (tmp_path / "LICENSE").write_text("MIT", encoding="utf-8")
    (tmp_path / "empty.jsonl").touch()
    log = log_of(tmp_path, people="expert_*")
    assert (log.files, log.skipped) == (2, ("LICENSE", "empty.jsonl"))
    assert sorted(log.ratings["judge"]) == ["expert_1", "gpt4"]
    with pytest.raises(ValueError, match="no person matches 'nobody'"):
        read_log(tmp_path, people="nobody")
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(ValueError, match="no file of this folder is a log"):
        read_log(other)


def test_a_mapped_table_of_ratings(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    path.write_text("id,verdict,reviewed\n1,pass,fail\n2,fail,\n3,,pass\n", encoding="utf-8")
    log = log_of(path, mapping={"item": "id", "label": "verdict", "human_label": "reviewed"})
    assert log.ratings.select("item", "judge", "human", "label", "invalid").rows() == [
        ("1", "people", True, "fail", None),
        ("1", "verdict", False, "pass", None),
        ("2", "verdict", False, "fail", None),
        ("3", "people", True, "pass", None),
        ("3", "verdict", False, None, "no rating"),
    ]


def test_a_mapped_table_with_dotted_paths(tmp_path: Path) -> None:
    path = tmp_path / "grades.parquet"
    rows = [{"s": {"id": f"q{at}", "grades": [at, 9]}, "by": "ada"} for at in range(3)]
    pl.DataFrame(rows).write_parquet(path)
    log = log_of(path, mapping={"item": "s.id", "value": "s.grades.0", "judge": "by"})
    assert log.ratings.select("item", "judge", "kind", "value").rows() == [
        ("q0", "ada", "number", 0.0),
        ("q1", "ada", "number", 1.0),
        ("q2", "ada", "number", 2.0),
    ]
    assert counts_of(log).select("ratings", "invalid", "mean").rows() == [(3, 0, 1.0)]


def test_a_mapped_table_of_votes(tmp_path: Path) -> None:
    row = {"q": 1, "first": "anchor", "pick": "second", "m": "ada", "gold": "target"}
    path = write(tmp_path / "votes.jsonl", row, {**row, "q": 2, "pick": "?"})
    names = {"item": "q", "shown_first": "first", "choice": "pick", "judge": "m", "right": "gold"}
    log = log_of(path, mapping=names)
    assert log.votes.select("judge", "sample", "choice", "label").rows() == [
        ("ada", "1", "second", "target"),
        ("ada", "2", "invalid", "target"),
    ]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"itm": "id"}, "--map has no column 'itm'"),
        ({"item": "nothing", "label": "verdict"}, "has no field 'nothing' to map"),
        ({"label": "verdict"}, "must name the column item"),
        ({"item": "id"}, "must name label or value"),
    ],
)
def test_a_wrong_map_is_an_error(tmp_path: Path, mapping: dict[str, str], message: str) -> None:
    path = tmp_path / "tickets.csv"
    path.write_text("id,verdict\n1,pass\n", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_log(path, mapping=mapping)


def test_repeats_count_as_one_item(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    rows = ["a,pass", "a,pass", "a,fail", "b,pass", "b,fail", "c,"]
    path.write_text("\n".join(["id,verdict", *rows, ""]), encoding="utf-8")
    ratings = log_of(path, mapping={"item": "id", "label": "verdict"}).ratings
    # of a the majority, of b neither, of c there is none
    labels = annotations_of(ratings)
    assert labels.select("item", "label", "votes").rows() == [("a", "pass", 2)]
    counted = tallies_of(ratings).select("sample", "planned", "voted", "invalid")
    assert sorted(counted.rows()) == [("a", 3, 3, 0), ("b", 2, 2, 0), ("c", 1, 1, 1)]


@pytest.mark.parametrize(
    ("fourth", "labels"),
    # 8 / 3 counts as 3, 2.5 as 3; if one grade is no whole number, the means stay as they are.
    [("3", [("a", "3", 3.0), ("b", "3", 3.0)]), ("2.5", [("a", "2.5", 2.5), ("b", "2.5", 2.5)])],
)
def test_means_of_repeated_whole_grades_are_grades(
    tmp_path: Path, fourth: str, labels: list[tuple[str, str, float]]
) -> None:
    path = tmp_path / "grades.csv"
    rows = ["a,3", "a,2", f"a,{fourth}", "b,2", "b,3"]
    path.write_text("\n".join(["id,grade", *rows, ""]), encoding="utf-8")
    ratings = log_of(path, mapping={"item": "id", "value": "grade"}).ratings
    assert annotations_of(ratings).select("item", "label", "value").rows() == labels
    exact = annotations_of(ratings, exact=True)["value"].to_list()
    assert exact == pytest.approx([(5 + float(fourth)) / 3, 2.5])


GRADE = {"question_id": 1, "model": "x", "judge": ["gpt", "single"], "judgment": "?"}
NUMBERED: dict[str, tuple[dict[str, Any], str]] = {
    "fastchat_single": (GRADE, "score"),
    "langfuse": (
        {"name": "kind", "source": "EVAL", "dataType": "NUMERIC", "traceId": "t"},
        "value",
    ),
    "langsmith": (
        {"run_id": "r", "key": "kind", "value": None, "feedback_source": {"type": "model"}},
        "score",
    ),
    "rewardbench": ({"id": 1, "subset": "chat", "scores_rejected": 0.5}, "scores_chosen"),
    "alpaca_eval": (
        {
            "instruction": "?",
            "output_1": "a",
            "output_2": "b",
            "generator_1": "x",
            "generator_2": "y",
            "annotator": "gpt",
        },
        "preference",
    ),
}


@pytest.mark.parametrize("name", NUMBERED)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "NaN", "1e999", "<b>7</b>"])
def test_what_is_no_number_is_invalid(tmp_path: Path, name: str, value: object) -> None:
    row, field = NUMBERED[name]
    good = {**row, field: 1.0, "question_id": 2, "traceId": "u", "run_id": "s", "id": 2}
    good = {key: content for key, content in good.items() if key in {*row, field}}
    path = write(tmp_path / "log.jsonl", good, {**row, field: value})
    log = log_of(path)
    assert log.ratings["value"].drop_nulls().is_finite().all()
    assert log.ratings["invalid"].count() == 1


@pytest.mark.parametrize("value", [1e308, -1e308, 1.1e12])
def test_numbers_too_large_to_be_squared_are_no_grades(tmp_path: Path, value: float) -> None:
    row, field = NUMBERED["langfuse"]
    rows = [{**row, "id": at, "traceId": f"t{at}", field: 1 + at % 5} for at in range(20)]
    path = write(tmp_path / "log.jsonl", *rows, {**row, "id": 99, field: value})
    log = log_of(path)
    assert sorted(log.ratings["value"].drop_nulls()) == sorted(row[field] for row in rows)
    assert "a number beyond 1000000000000, which is no grade (1)" in "\n".join(limits_of(log))
    for command in ("doctor", "measure"):
        done = CliRunner().invoke(main, [command, str(path)])
        assert done.exit_code == 0, done.output
        assert "Warning" not in done.output


def test_a_gzip_bomb_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_FILE", 1_000_000)
    monkeypatch.setattr(bounded, "MOST_GZIP_RATIO", 50)
    path = tmp_path / "votes.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(VOTE).encode() + b" " * 10_000_000))
    assert path.stat().st_size < 20_000
    with pytest.raises(ValueError, match="unpacks to more than 1000000 bytes, the maximum"):
        read_log(path)


@pytest.mark.parametrize("text", ["[[1, 2]]", "[{}]", '[[{"id": 1}]]'])
def test_rows_without_fields_are_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep.json"
    path.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(main, ["measure", str(path), "--map", "item=id", "--map", "label=id"])
    assert done.exit_code == 2
    reported = " ".join(done.stderr.split())
    assert "has no field 'id' to map; its first row is empty or not an object" in reported
    assert "Write each row as an object with its fields" in reported
