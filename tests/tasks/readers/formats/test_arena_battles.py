"""Battles of the arena, as Parquet with nested counts."""

from pathlib import Path
from typing import Any

import polars as pl

from tasks.logs.log_reader import read_log


def test_sizes_follow_the_models(tmp_path: Path, rated: Any) -> None:
    counts = {
        "header_count_a": {"h1": 1, "h2": 2},
        "list_count_a": {"ordered": 0, "unordered": 4},
        "bold_count_a": {"**": 5},
        "header_count_b": {"h1": 0, "h2": 0},
        "list_count_b": {"ordered": 1, "unordered": 0},
        "bold_count_b": {"**": 0},
        "sum_assistant_a_tokens": 300,
        "sum_assistant_b_tokens": 40,
    }
    battles = pl.DataFrame(
        {
            "id": ["x", "y", "z"],
            "model_a": ["zeta", "alpha", "alpha"],
            "model_b": ["alpha", "zeta", "zeta"],
            "winner": ["model_a", "both_bad", "?"],
            "conv_metadata": [counts] * 3,
        }
    )
    path = tmp_path / "battles.parquet"
    battles.write_parquet(path)
    log = read_log(path)
    assert log is not None
    names = ("item", "label", "anchor_author", "anchor_header", "target_header", "target_list")
    # alpha is the anchor: in x it was model_b, with no heading
    assert rated(log, *names, "anchor_bold") == [
        ("x", "target", "alpha", 0, 3, 4, 0),
        ("y", "tie", "alpha", 3, 0, 1, 5),
        ("z", None, "alpha", 3, 0, 1, 5),
    ]
    assert log.ratings["invalid"].to_list() == [None, None, "no winner"]
    lengths = rated(log, "item", "anchor_length", "target_length")
    assert lengths == [("x", 40, 300), ("y", 300, 40), ("z", 300, 40)]
    assert log.ratings["human"].all()


def test_a_battle_of_an_unknown_model_is_no_verdict(tmp_path: Path) -> None:
    battles = {"id": ["x", "y"], "model_a": ["zeta", None], "model_b": ["alpha"] * 2}
    path = tmp_path / "battles.parquet"
    pl.DataFrame(battles | {"winner": ["model_a", "model_b"]}).write_parquet(path)
    log = read_log(path)
    assert log is not None
    assert log.ratings.select("item", "label", "invalid").rows() == [
        ("x", "target", None),
        ("y", None, "no name of a model"),
    ]
