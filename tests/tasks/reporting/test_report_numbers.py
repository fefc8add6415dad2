from collections.abc import Callable
from typing import Any

import polars as pl

from schemas.results import Estimates
from tasks.reporting.comparison_rows import NumbersTable, all_rows

Make = Callable[..., Any]


def test_a_row_of_the_mart_tells_what_it_rests_on(make_estimates: Make) -> None:
    found = make_estimates([{"estimate": 0.25, "low": 0.1, "high": 0.4, "p_value": 0.01, "n": 9}])
    reported = {
        "p_adjusted": 0.02,
        "adjustment": "Benjamini-Hochberg, all cells (F1)",
        "finding": "biased",
        "design": "balanced",
        "floor": "sham",
        "votes": 1234,
        "invalid_rate": 0.0125,
        "epoch": 2,
        "seed": 20240612,
        "study_seed": 0,
        "code_version": "0.1.0+abc",
        "prompt_digest": "d1gest",
    }
    every = found.with_columns(**{k: pl.lit(v) for k, v in reported.items()})
    (row,) = all_rows(every).rows
    assert [text.text for text in row.texts[-3:]] == [".010", ".020", "none"]
    assert row.finding.text == (
        "adjusted by Benjamini-Hochberg, all cells (F1); finding: biased; balanced orders; "
        "floor: sham; 1\u202f234 valid votes; .01 invalid; epoch 2; seed 20240612; study seed 0; "
        "prompt plain d1gest; code 0.1.0+abc"
    )
    # What all rows rest on is written once.
    both = all_rows(pl.concat([every, every.with_columns(votes=9, seed=None)]))
    assert [row.finding.text for row in both.rows] == [
        "1\u202f234 valid votes; seed 20240612",
        "9 valid votes",
    ]
    assert both.shared == (
        "adjusted by Benjamini-Hochberg, all cells (F1); finding: biased; balanced orders; "
        "floor: sham; .01 invalid; epoch 2; study seed 0; prompt plain d1gest; code 0.1.0+abc"
    )


def test_nothing_is_shared_by_no_rows() -> None:
    assert all_rows(Estimates.empty()) == NumbersTable([], "")


def test_of_two_judges_each_has_its_own_mark(make_estimates: Make) -> None:
    rows = [
        {"judge": "gpt"},
        {"judge": "toy", "simulated": True},
        {"judge": "gpt", "statistic": "mps_contrast", "subgroup": "toy", "simulated": True},
        {"judge": "gpt", "statistic": "win_rate", "subgroup": "toy"},
        {"judge": "judges", "statistic": "fleiss_kappa", "simulated": True},
    ]
    found = all_rows(make_estimates(rows)).rows
    assert [
        (row.judge, row.simulated, row.texts[1].text.rpartition(", ")[2])
        for row in found
        if row.texts[0].text in {"mps_contrast", "win_rate", "fleiss_kappa"}
    ] == [
        ("judges (some simulated)", False, "boast"),
        ("gpt", False, "toy (simulated)"),
        ("gpt", False, "toy"),
    ]


def test_an_estimate_alone_has_one_line(make_estimates: Make) -> None:
    (row,) = all_rows(make_estimates([{"estimate": 0.25}])).rows
    assert row.finding.text == ""
    assert row.texts[-2].text == ""
