"""Rows of estimates from coefficients and their bootstrap refits."""

from typing import Any

import numpy as np

from tasks.statistics._bootstrap import FORMULAS, by_chance
from tasks.statistics._intervals import ALIKE, LEVEL, SINGLE
from tasks.statistics._logistic import Floats
from tasks.statistics._quantiles import t_quantile

UNSTABLE = "more than a tenth of the bootstrap draws have no finite fit: no interval"
TIES = "all contests are ties: nothing to fit"
ROUNDING = 1e-12
METHOD = "cluster bootstrap with refit, t"
Row = dict[str, Any]


def logit_row(value: float, draws: Floats | None, clusters: float) -> Row:
    """Return an estimate in log-odds with its t interval and percentiles of the draws.

    ``clusters`` of one size have the degrees of freedom of those that were drawn.
    """
    if clusters < 2:
        return {"estimate": value, "method": "none", "reason": SINGLE}
    row: Row = {"estimate": value, "df": clusters - 1}
    if draws is None:
        return row | {"method": "none", "reason": UNSTABLE if by_chance() else FORMULAS}
    error = float(draws.std(ddof=1)) * _missed(clusters)
    if error < ROUNDING:
        return row | {"method": "none", "reason": ALIKE}
    half = float(t_quantile(clusters - 1, (1 + LEVEL) / 2)) * error
    tails = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return row | {
        "low": value - half, "high": value + half, "standard_error": error,
        "boot_low": float(tails[0]), "boot_high": float(tails[1]), "level": LEVEL,
        "method": METHOD,
    }  # fmt: skip


def rate_row(value: float, draws: Floats | None, clusters: float) -> Row:
    """Return the same as a rate: all ends are turned from log-odds, the error is that of rates."""
    row = logit_row(value, draws, clusters)
    ends = ("estimate", "low", "high", "boot_low", "boot_high")
    row |= {end: expit(row[end]) for end in ends if end in row}
    if "standard_error" in row and draws is not None:
        spread = float((1 / (1 + np.exp(-draws))).std(ddof=1))
        row["standard_error"] = spread * _missed(clusters)
    return row


def _missed(clusters: float) -> float:
    """Return by how much draws of few clusters vary less than what they are drawn from."""
    return float(np.sqrt(clusters / (clusters - 1)))


def expit(value: float) -> float:
    """Turn log-odds into a rate."""
    return float(1 / (1 + np.exp(-value)))
