from collections.abc import Callable

import polars as pl

from schemas.judging import VoteLog
from schemas.results import Estimates
from warehouse.store import Saving, Warehouse

Make = Callable[..., Saving]

ALL = {"perturbation": None, "kind": None, "n": 20}


def test_what_became_of_the_ballots(warehouse: Warehouse, make: Make) -> None:
    counts = {"valid": 12, "invalid": 3, "abstain": 2, "ambiguous": 1, "missing": 2, "cached": 5}
    saved = {**ALL, "statistic": "saved_rate", "hits": 10, "n": 30, "estimate": 1 / 3}
    rows = [
        {
            **ALL,
            "statistic": f"{what}_rate",
            "hits": hits,
            "estimate": hits / 20,
            "low": hits / 40,
            "high": hits / 10,
        }
        for what, hits in counts.items()
    ]
    some = {"statistic": "valid_rate", "hits": 4, "n": 8, "estimate": 0.5}
    other = {"statistic": "asr", "n": 99, "hits": 99}
    warehouse.save([make(Estimates, *rows, saved, some, other)], run="r1", study="quick")
    found = warehouse.query(
        "select columns(c -> not contains(c, '_rate')) from mart.validity "
        "order by perturbation nulls first"
    )
    judge = {
        "study": "quick",
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "",
        "simulated": True,
        "one_vote_per_order": False,
    }
    nothing = dict.fromkeys(counts)
    assert found.to_dicts() == [
        {**judge, "perturbation": None, "needed": 20, **counts, "not_needed": 10},
        {
            **judge,
            "perturbation": "padding",
            "needed": 8,
            **nothing,
            "valid": 4,
            "not_needed": None,
        },
    ]
    rates = warehouse.query("select * from mart.validity where perturbation is null").to_dicts()[0]
    for what, hits in counts.items():
        reported = (rates[f"{what}_rate{end}"] for end in ("", "_low", "_high"))
        assert tuple(reported) == (hits / 20, hits / 40, hits / 10)
    assert rates["not_needed_rate"] == 1 / 3


def test_a_judge_that_repeats_itself_is_marked(warehouse: Warehouse, make: Make) -> None:
    vote = {
        "dataset": "d",
        "judge": "offline/honest",
        "prompt": "pair_v1",
        "wave": "",
        "arm": "control",
        "sample": "s",
        "cluster": "q",
        "shown_first": "anchor",
        "repeat": 1,
        "choice": None,
        "stopped": "deterministic",
    }
    rows = [
        {**ALL, "statistic": "valid_rate", "judge": judge} for judge in ("offline/honest", "other")
    ]
    log = Saving(VoteLog, VoteLog.of(pl.DataFrame([vote])))
    warehouse.save([make(Estimates, *rows), log], run="r1", study="quick")
    found = warehouse.query("select judge, one_vote_per_order from mart.validity order by judge")
    assert found.rows() == [("offline/honest", True), ("other", False)]
