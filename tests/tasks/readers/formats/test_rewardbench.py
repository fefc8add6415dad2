"""Scores of chosen and rejected answers as RewardBench writes them."""

from typing import Any

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
