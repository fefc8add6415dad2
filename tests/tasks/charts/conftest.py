"""Literal frames for charts."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from schemas.results import Drifts, Estimates, Findings

CELL = {
    "dataset": "bloom",
    "prompt": "pair_v1",
    "wave": "",
    "mode": "balanced",
    "kind": "promote",
    "perturbation": "padding",
    "simulated": False,
}
Rows = list[dict[str, Any]]


@pytest.fixture
def make_findings() -> Callable[[Rows], pl.DataFrame]:
    defaults = CELL | {
        "statistic": "mps",
        "estimate": 0.1,
        "low": 0.05,
        "high": 0.15,
        "minimum": 0.05,
        "p_value": 0.001,
        "p_adjusted": 0.002,
        "finding": "biased",
    }
    return lambda rows: Findings.of(
        pl.DataFrame([defaults | row for row in rows], infer_schema_length=None)
    )


@pytest.fixture
def make_estimates() -> Callable[[Rows], pl.DataFrame]:
    defaults = CELL | {
        "statistic": "asr",
        "subgroup": "",
        "estimate": 0.5,
        "low": 0.4,
        "high": 0.6,
        "level": 0.95,
        "n": 60,
        "clusters": 60,
        "dropped": 0,
        "votes_per_pair": 2,
        "method": "Wilson",
    }
    return lambda rows: Estimates.of(
        pl.DataFrame([defaults | row for row in rows], infer_schema_length=None)
    )


@pytest.fixture
def make_drifts() -> Callable[[Rows], pl.DataFrame]:
    defaults = CELL | {
        "judge": "a",
        "measure": "mps_drift",
        "epoch": 1,
        "base": "n0",
        "estimate": 0.02,
        "level": 0.011,
        "minimum": 0.05,
        "n": 60,
        "clusters": 60,
        "state": "quiet",
    }
    return lambda rows: Drifts.of(
        pl.DataFrame([defaults | row for row in rows], infer_schema_length=None)
    )
