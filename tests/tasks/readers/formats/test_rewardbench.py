"""Scores of chosen and rejected answers as RewardBench writes them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main
from tasks.logs.log_reader import read_log
from tasks.logs.results import results_of_log


def test_the_higher_score_wins(read: Any, rated: Any) -> None:
    rows = [
        {"chosen": 1.5, "rejected": 0.5},
        {"chosen": -1.0, "rejected": 2.0},
        {"chosen": 1.0, "rejected": 1.0},
        {"chosen": None, "rejected": 1.0},
    ]
    log = read(rows, "my-model_all.jsonl")
    assert rated(log, "item", "judge", "label", "invalid") == [
        ("/0", "my-model", "target", None),
        ("/1", "my-model", "anchor", None),
        ("/2", "my-model", "tie", None),
        ("/3", "my-model", None, "a score is missing"),
    ]
    estimates = results_of_log(log, "balanced").estimates
    # one of four votes names the chosen answer, of three valid ones
    found = {row["statistic"]: (row["hits"], row["n"]) for row in estimates.to_dicts()}
    assert found["accuracy"] == (1, 4)
    assert found["accuracy_valid"] == (1, 3)
    assert found["valid_rate"] == (3, 4)
    assert not {"first_pick_share", "position_consistency", "accuracy_12"} & {*found}


def test_named_columns(read: Any, rated: Any) -> None:
    row = {"id": 7, "subset": "chat", "model": "rm", "scores_chosen": 2, "scores_rejected": 1}
    assert rated(read([row]), "item", "judge", "category", "label") == [
        ("chat/7", "rm", "chat", "target")
    ]


COLUMNS: dict[str, Any] = {
    "chat_template": "tulu",
    "id": [1, 2, 3],
    "model": "org/rm",
    "results": [1, 0, 0],
    "scores_chosen": [0.7, 1.0, None],
    "scores_rejected": [0.2, 1.5, 0.0],
    "subset": ["chat", "chat", "code"],
    "text_chosen": ["a", "b", "c"],
}


@pytest.mark.parametrize("indent", [4, None])
@pytest.mark.parametrize("wrap", [False, True])
def test_one_object_of_columns_has_a_row_per_value(
    tmp_path: Path, rated: Any, indent: int | None, *, wrap: bool
) -> None:
    columns = dict(COLUMNS)
    if wrap:
        for name in ("scores_chosen", "scores_rejected"):
            columns[name] = [[each] for each in columns[name]]
    file = tmp_path / "rm.json"
    file.write_text(json.dumps(columns, indent=indent), encoding="utf-8")
    log = read_log(file)
    assert rated(log, "item", "judge", "category", "label", "invalid") == [
        ("chat/1", "org/rm", "chat", "target", None),
        ("chat/2", "org/rm", "chat", "anchor", None),
        ("code/3", "org/rm", "code", None, "a score is missing"),
    ]
    done = CliRunner().invoke(main, ["doctor", str(file)])
    assert "RewardBench results, 3 rows" in " ".join(done.stdout.split())


def test_accuracy_and_agreement_beyond_chance_say_on_how_many_items_they_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    file = tmp_path / "rm.jsonl"
    # Of 60 items 10 are unreadable, 40 right and 10 wrong: 40 of 60, and 2 x 40 / 50 - 1.
    chosen = [None] * 10 + [2] * 40 + [0] * 10
    lines = [
        json.dumps({"id": at, "scores_chosen": score, "scores_rejected": 1})
        for at, score in enumerate(chosen)
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    done = CliRunner().invoke(main, ["measure", str(file)])
    assert done.exit_code == 0, done.output
    assert re.search(
        r"^rm .* \.67 \[\S+ \S+ of 60 +\.60 \[\S+ \S+ of 50$", done.stdout, re.MULTILINE
    )
    said = " ".join(done.stdout.split())
    assert "one that cannot be read does not. beyond chance: how far the verdicts" in said
    file.write_text("\n".join(lines[10:]), encoding="utf-8")
    whole = CliRunner().invoke(main, ["measure", str(file)]).stdout
    assert re.search(r"^rm .* \.80 \[\S+ \S+ +\.60 \[\S+ \S+$", whole, re.MULTILINE)


def test_an_object_of_one_row_is_that_row(tmp_path: Path, rated: Any) -> None:
    file = tmp_path / "one.json"
    row = {"id": "x", "scores_chosen": [0.7], "scores_rejected": 0.2}
    file.write_text(json.dumps(row, indent=4), encoding="utf-8")
    assert rated(read_log(file), "item", "judge", "label") == [("/x", "one", "target")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"id": [1, 2]},
            "differ in their number of rows (id 2, subset 3, scores_chosen 3, scores_rejected 3)",
        ),
        ({"scores_rejected": 0.5}, "scores_chosen 3, scores_rejected 1)"),
        ({"scores_rejected": [[1, 2], [3, 4], [5]]}, "scores that are no numbers (2)"),
        ({"scores_chosen": [{}, 1, 2]}, "no numbers (1), the first is '{}'"),
    ],
)
def test_other_columns_are_errors(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    file = tmp_path / "rm.json"
    file.write_text(json.dumps(COLUMNS | change, indent=4), encoding="utf-8")
    done = CliRunner().invoke(main, ["measure", str(file)])
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())


def test_rows_of_texts_are_errors(read: Any) -> None:
    with pytest.raises(ValueError, match=r"scores that are no numbers \(4\)"):
        read([{"prompt": "p", "chosen": "a", "rejected": "b"}] * 2)
