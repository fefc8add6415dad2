"""Annotations as AlpacaEval writes them."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from flows.cli.main import main
from tasks.logs.log_reader import read_log
from tasks.logs.ratings import contests_of
from tasks.readers import formats


def test_preferences(read: Any, rated: Any) -> None:
    row = {
        "instruction": "Name a colour.",
        "output_1": "Red.",
        "output_2": "Blue.",
        "generator_1": "base",
        "generator_2": "mine",
        "dataset": "helpful_base",
        "datasplit": "eval",
        "annotator": "weighted_gpt4",
        "preference": 1.8,
        "raw_completion": "m",
    }
    values = [1.8, 1.0, 1.5, None, 3.0, float("nan")]
    rows = [{**row, "instruction": f"{at}", "preference": value} for at, value in enumerate(values)]
    log = read(rows)
    assert sorted(rated(log, "label", "value", "invalid"), key=str) == sorted(
        [
            ("target", pytest.approx(0.8), None),
            ("anchor", 0.0, None),
            ("tie", 0.5, None),
            (None, None, "no preference"),
            (None, None, "preference outside 1 to 2"),
            (None, None, "no preference"),
        ],
        key=str,
    )
    # the win rate of AlpacaEval is the mean preference: (.8 + 0 + .5) / 3
    assert contests_of(log.ratings)["score"].mean() == pytest.approx(1.3 / 3)
    assert log.notes == ("order not recorded: no position statistics",)


def test_texts_are_those_that_people_compared(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = {"output_1": "Red.", "output_2": "Blue.", "generator_1": "base", "generator_2": "mine"}
    rows = [
        {**pair, "instruction": text, "annotator": who, "preference": 1}
        for text, who in (("A?", "human_1"), ("A?", "gpt"), ("B?", "gpt"))
    ]
    log = read(rows)
    [(item, texts)] = log.texts.select("item", "texts").rows()
    assert item in set(log.ratings.filter("human")["item"])
    assert json.loads(texts) == {"question": "A?", "anchor": "Red.", "target": "Blue."}
    monkeypatch.setattr(formats, "MOST_WITH_TEXTS", 2)
    assert read(rows).texts.is_empty()


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_lengths_are_characters_of_the_outputs(tmp_path: Path, suffix: str) -> None:
    texts = [("Rød.", "A longer text."), ("", "\N{SNOWMAN}\N{GRINNING FACE}"), (None, "x")]
    rows = [
        {
            "instruction": str(at),
            "output_1": one,
            "output_2": two,
            "generator_1": "base",
            "generator_2": "mine",
            "annotator": "gpt",
            "preference": 1.5,
        }
        for at, (one, two) in enumerate(texts)
    ]
    path = tmp_path / f"annotations.{suffix}"
    table = pl.DataFrame(rows)
    write = {"json": table.write_json, "csv": table.write_csv, "parquet": table.write_parquet}
    write[suffix](path)
    log = read_log(path)
    assert log is not None
    found = log.ratings.sort("target_length").select("anchor_length", "target_length").rows()
    # An empty cell of CSV is unknown.
    assert found == [(None, 1), (None if suffix == "csv" else 0, 2), (4, 14)]


def test_length_controlled_win_rates_need_no_other_columns(tmp_path: Path) -> None:
    """The longer output wins 12 of 16 contests, so at equal lengths the models are alike."""
    rows = [
        {
            "instruction": f"Question {at}?",
            "output_1": "x" * (200 if at % 2 else 100),
            "output_2": "x" * (100 if at % 2 else 200),
            "generator_1": "base",
            "generator_2": "mine",
            "annotator": "gpt",
            "preference": 1 + (at % 2 == at % 8 // 6),
        }
        for at in range(16)
    ]
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    done = CliRunner().invoke(
        main, ["measure", str(path), "--only", "length_controlled", "--format", "json"]
    )
    assert done.exit_code == 0, done.output
    found = {
        row["subgroup"]: row["estimate"]
        for row in json.loads(done.stdout)
        if row["statistic"] == "length_controlled"
    }
    assert found["mine"] == pytest.approx(0.5, abs=1e-6)


def test_an_array_is_read_like_lines(tmp_path: Path) -> None:
    row = '{"instruction":"a","generator_1":"x","generator_2":"y","annotator":"j","preference":2}'
    path = tmp_path / "annotations.json"
    path.write_text(f"[\n{row},\n{row}]", encoding="utf-8")
    log = read_log(path)
    assert log is not None
    assert log.titles == ("AlpacaEval annotations",)
    assert log.ratings["repeat"].to_list() == [0, 1]


@pytest.mark.parametrize("command", ["doctor", "measure"])
def test_first_rows_without_an_annotator_are_left_out_and_counted(
    tmp_path: Path, command: str
) -> None:
    row = {
        "instruction": "Name a colour.",
        "output_1": "Red.",
        "output_2": "Blue.",
        "generator_1": "base",
        "generator_2": "mine",
        "preference": 2.0,
    }
    rows = [row, row, *({**row, "instruction": str(at), "annotator": "gpt"} for at in range(3))]
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    done = CliRunner().invoke(main, [command, str(path)])
    assert done.exit_code == 0, done.output
    reported = " ".join(done.output.split())
    assert "AlpacaEval annotations, 5 rows, 3 ratings, judge gpt" in reported
    assert "3 verdicts without an order" in reported
    assert "left out: ratings without the name of a judge or person (2)" in reported
