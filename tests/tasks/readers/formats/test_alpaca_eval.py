"""Annotations as AlpacaEval writes them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.logs.ratings import contests_of
from tasks.logs.reading import read_log
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
    [(item, texts)] = log.texts.rows()
    assert item in set(log.ratings.filter("human")["item"])
    assert json.loads(texts) == {"question": "A?", "anchor": "Red.", "target": "Blue."}
    monkeypatch.setattr(formats, "MOST_WITH_TEXTS", 2)
    assert read(rows).texts.is_empty()


def test_an_array_is_read_like_lines(tmp_path: Path) -> None:
    row = '{"instruction":"a","generator_1":"x","generator_2":"y","annotator":"j","preference":2}'
    path = tmp_path / "annotations.json"
    path.write_text(f"[\n{row},\n{row}]", encoding="utf-8")
    log = read_log(path)
    assert log is not None
    assert log.titles == ("AlpacaEval annotations",)
    assert log.ratings["repeat"].to_list() == [0, 1]
