from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from schemas.results import Drifts
from tasks.aggregate import count_votes
from tasks.drift.waves import waves_of

Make = Callable[..., Any]
DRIFT = {
    "mode": "any",
    "measure": "position_drift",
    "level": 0.01,
    "minimum": 0.05,
    "n": 40,
    "clusters": 40,
}


@pytest.mark.parametrize(
    ("shown", "design"),
    [
        ([("s1", "anchor"), ("s1", "target")], "balanced"),
        # As often in each order, but not each pair.
        ([("s1", "anchor"), ("s2", "target")], "random"),
    ],
)
def test_a_balanced_design_shows_each_pair_in_both_orders(
    make_vote_log: Make, shown: list[tuple[str, str]], design: str
) -> None:
    log = make_vote_log([{"sample": sample, "shown_first": first} for sample, first in shown])
    found = waves_of(count_votes(log), Drifts.empty())
    assert found.select("design", "epoch").rows() == [(design, None)]


def test_an_alert_begins_an_epoch(make_vote_log: Make) -> None:
    log = make_vote_log([{"wave": wave} for wave in ("n1", "n2", "n3", "n4")])
    cell = log.select("dataset", "judge", "prompt").row(0, named=True)
    drifts = [
        {"wave": "n2", "base": "n1", "epoch": 1, "state": "suspect"},
        {"wave": "n3", "base": "n1", "epoch": 1, "state": "alert"},
        {"wave": "n4", "base": "n3", "epoch": 2, "state": "quiet"},
    ]
    found = waves_of(
        count_votes(log), Drifts.of(pl.DataFrame([{**cell, **DRIFT, **row} for row in drifts]))
    )
    assert found.select("wave", "epoch").rows() == [("n1", 1), ("n2", 1), ("n3", 2), ("n4", 2)]
