"""How many more questions would decide an inconclusive gate (methods, section 17)."""

from typing import Any

import numpy as np
import polars as pl

from schemas.results import IN_LOGITS
from tasks.inference.quantiles import normal_below, normal_quantile
from tasks.kit.defaults import ALPHA, POWER, limits

MOST_TIMES = 10
"""No number beyond this many times the questions asked is named: the estimate is too rough."""
TRIED_PER_TENFOLD = 399
"""Numbers of questions that are tried, between those asked and ten times as many."""


def more_questions(gates: pl.DataFrame, most_times: int = MOST_TIMES) -> pl.Series:
    """Return the fewest further questions after which a gate is decided with a chance of 80 %.

    The estimate from n questions is uncertain, with standard error s. After N questions in all it
    is expected to be normal around today's with variance ``s^2 (1 - n / N)``, and its interval
    narrower by ``sqrt(n / N)``. The chance is that of the values at which the gate would be
    decided, either way. (A fixed true value, as in a power analysis, would name too few questions:
    the estimates that seem nearly decided are those that err most.)

    An effect is decided outside its minimum (and the interval at the level of its adjusted p-value)
    or if its 90 % interval lies within; drift, if its interval lies within; other gates, if their
    interval excludes the limit, and shares of flaws if it lies below *overlooks* or above
    *detects*. Where no question differs from another, as if no reply is invalid, the same intervals
    decide, for certain: their half-width is ``z^2 / (n + z^2)``, of a position gap half of that, of
    a change in proportion to the largest one possible (2 for shifts).

    Parameters
    ----------
    gates
        Columns of ``judged_gates``. ``odds`` is the effect in logits beside a shift or gap: if it
        reaches its own minimum, the shift need not. ``clusters`` is the number of questions that
        count, ``questions`` that of all: a pair of which both votes are ties has no position.
    most_times
        How many times the questions asked are tried.

    Returns
    -------
    Series
        Null where no number up to ``most_times`` the questions asked decides with this chance: a
        shift with the other direction over the control is no bias, and one within the limit stays
        inconclusive while its spread says that single questions may be moved, or while the votes
        that cannot be read may turn it. More questions do not bring replies that did not come.

    References
    ----------
    O'Hagan, Stevens & Campbell (2005), Assurance in clinical trial design, Pharm. Stat. 4, 187-201.
    """
    if gates.is_empty():
        return pl.Series(dtype=pl.Int64)
    value, low, high, limit, asked = (
        _column(gates, name) for name in ("value", "low", "high", "tolerance", "clusters")
    )
    # How many times as wide an interval is whose level is that of the adjusted p-value.
    adjusted = gates.select(
        pl.when(pl.col("p_adjusted") > 0).then(pl.col("p_value") / pl.col("p_adjusted"))
    )
    level = ALPHA * adjusted.to_series().fill_null(1.0).to_numpy()[:, None]
    wider = normal_quantile(1 - level / 2) / Z
    flag = {name: gates.select(is_so).to_series().to_numpy()[:, None] for name, is_so in _flags()}
    tried = np.geomspace(1, most_times, round(TRIED_PER_TENFOLD * np.log10(most_times)) + 1)
    totals = np.maximum(np.ceil(asked * tried), asked + 1)
    narrower = np.sqrt(asked / totals)
    above, beneath = (high - value) * narrower, (value - low) * narrower
    half = (above + beneath) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = np.where(flag["drift"], _column(gates, "standard_error"), (high - low) / 2 / Z)
        error = whole * np.sqrt(1 - asked / totals)

        def below(bound: Any) -> Any:
            return normal_below((bound - value) / error)

        outside = np.maximum(np.where(flag["by_odds"], 0.0, limit), wider * half)
        inside = np.minimum(limit - np.where(flag["drift"], 1.0, NARROWER) * half, outside)
        moved = np.where(
            flag["opposite"] | flag["drift"], 0.0, 1 - below(outside) + below(-outside)
        )
        still = np.where(flag["uneven"] | (inside <= 0), 0.0, below(inside) - below(-inside))
        lower = np.where(flag["flaw"], limits().overlooks_below, limit)
        excluded = below(lower - above) + 1 - below(limit + beneath)
        chance = np.where(flag["two_sided"], moved + still, excluded)
        reach = np.maximum(high - value, value - low)
        distance = np.abs(np.where(flag["two_sided"], np.abs(value), value) - limit)
        # The gap of a question is at most a half; the largest change is what its interval says.
        largest = np.where(flag["drift"], reach * (asked + Z**2) / Z**2, 1.0)
        most = np.where(flag["position"], 2.0, 1 / largest)
        needed = asked * _odds(most * reach) / _odds(most * distance)
        needed *= np.where(flag["two_sided"] & ~flag["drift"], NARROWER**2, 1.0)
    constant = flag["constant"] & (most * reach < 1)
    decided = np.where(constant, totals >= needed, chance >= POWER)
    # Where one further question or none would decide, the number of questions is not the problem.
    already = np.where(constant, asked >= needed, decided[:, :1])
    stays = flag["stays"] | (already & (asked >= limits().fewest_questions))
    decided &= totals >= limits().fewest_questions
    first = decided.argmax(axis=1)[:, None]
    more = np.take_along_axis(totals - asked, first, axis=1)
    # About the same share of further questions will count. People may label those asked already.
    every = np.where(flag["labelled"], asked, np.maximum(_column(gates, "questions"), asked))
    share = np.divide(asked, every, out=np.ones_like(asked), where=asked > 0)
    spare = normal_quantile(POWER) * np.sqrt(more * (1 - share))
    more = np.ceil((more + spare) / share)[:, 0]
    known = decided.any(axis=1) & ~stays[:, 0]
    return pl.Series(np.where(known, more, np.nan)).fill_nan(None).cast(pl.Int64)


def _flags() -> list[tuple[str, pl.Expr]]:
    """Return what a gate is, and what stands in the way of deciding it."""
    value, size, limit = pl.col("value"), pl.col("value").abs(), pl.col("tolerance")
    in_logits = ((pl.col("gate") == "bias") & (pl.col("measure") == IN_LOGITS)).fill_null(
        value=False
    )
    shift_limit = pl.when(in_logits).then(limits().minimum_shift).otherwise(limit)
    flaw = (pl.col("gate") == "bias") & (pl.col("kind") == "detract")
    effect = pl.col("gate").is_in(["bias", "position"]) & ~flaw
    drift = pl.col("gate") == "drift"
    odds = pl.col("odds")
    by_odds = (odds.abs() >= limits().minimum_log_odds) & (odds.sign() == value.sign())
    least = limits().minimum_spread / limits().minimum_shift * shift_limit
    uneven = (pl.col("shift_spread") >= least) & (pl.col("spread_p") < limits().spread_alpha)
    flags = {
        "flaw": flaw,
        "drift": drift,
        "position": pl.col("gate") == "position",
        "labelled": pl.col("gate") == "agreement",
        "two_sided": effect | drift,
        "by_odds": effect & by_odds & (limit < limits().minimum_log_odds),
        "opposite": effect & (size >= limit) & (pl.col("control") * value < 0),
        "uneven": effect & uneven,
        "constant": pl.col("standard_error").is_null() & value.is_in([0.0, 1.0]),
        # More questions do not remove a bias that differs between questions, nor bring the replies
        # that did not come; invalid votes may turn a shift by as much as their share.
        "stays": pl.col("finding").is_in(["overlooks", "rewards", "mixed", "biased"])
        | pl.col("no_reply").is_not_null()
        | (effect & is_doubtful() & (in_logits | (size - pl.col("most_lost") <= limit))),
    }
    return [(name, expression.fill_null(value=False)) for name, expression in flags.items()]


def is_doubtful() -> pl.Expr:
    """Tell whether a finding must hold in both worst cases of the invalid votes."""
    lost = pl.col("lost_finding").is_not_null() | (pl.col("most_lost") > limits().most_lost)
    return lost.fill_null(value=False)


def _column(gates: pl.DataFrame, name: str) -> Any:
    numbers = gates.select(pl.col(name).cast(pl.Float64).fill_null(float("nan")))
    return numbers.to_series().to_numpy()[:, None]


def _odds(share: Any) -> Any:
    return share / (1 - share)


Z = float(normal_quantile(1 - ALPHA / 2))
NARROWER = float(normal_quantile(1 - ALPHA)) / Z
"""Half-width of a 90 % interval in units of that of a 95 % interval."""
