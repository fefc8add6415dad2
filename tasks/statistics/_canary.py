"""Did the answers to fixed prompts change? A permutation test of match rates (methods, section 10).

Per prompt ``M = W_base + W_new - 2 X``: the unbiased shares of equal pairs within the repeats of
the baseline, within the new ones, and across. M is 0 in the mean if nothing changed.
"""

from collections import Counter
from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.defaults import PERMUTATIONS

EXHAUSTIVE = 4096
"""Up to so many sums of the prompts' values are all gone through."""

PLAIN = 200
"""Of the first draws so many at or above what was found are enough: p is about .02 or more."""

SLACK = 1e-9
"""Sums of equal values in another order differ in their last digits."""

CANARY = ("dataset", "judge", "prompt", "wave")


class Null(NamedTuple):
    """What M of a prompt may be if its repeats are dealt anew, and how likely."""

    values: NDArray[np.float64]
    chances: NDArray[np.float64]


def canary(counts: pl.DataFrame, seed: int = 0, draws: int = PERMUTATIONS) -> pl.DataFrame:
    """Return, per dataset, judge, prompt and wave, the mean of M over its fixed prompts, and its p.

    ``counts`` has one row per fixed prompt (``item``) and ``outcome``: how often it came in the
    ``base`` and how often as ``new``. Prompts without two repeats on both sides are ``dropped``.
    The p-value is of the sum of M when repeats are dealt anew within prompts: of all ways if there
    are few, else of ``draws`` seeded ones, ``(1 + #) / (1 + draws)``.
    """
    items = (
        counts.group_by(*CANARY, "item", maintain_order=True)
        .agg(
            n_base=pl.col("base").sum().cast(pl.Int64),
            n_new=pl.col("new").sum().cast(pl.Int64),
            base_pairs=(pl.col("base") * (pl.col("base") - 1)).sum(),
            new_pairs=(pl.col("new") * (pl.col("new") - 1)).sum(),
            across=(pl.col("base") * pl.col("new")).sum(),
            pooled=(pl.col("base") + pl.col("new")).sort(),
        )
        .with_columns(told=(pl.col("n_base") >= 2) & (pl.col("n_new") >= 2))
    )
    n, k = pl.col("n_base"), pl.col("n_new")
    m = (
        pl.col("base_pairs") / (n * (n - 1))
        + pl.col("new_pairs") / (k * (k - 1))
        - 2 * pl.col("across") / (n * k)
    )
    told = items.filter("told").with_columns(m=m)
    kinds = told.group_by(*CANARY, "pooled", "n_new", maintain_order=True).agg(number=pl.len())
    chances = [
        {**dict(zip(CANARY, cell, strict=True)), **_test(cell, told, kinds, seed, draws)}
        for cell in told.select(CANARY).unique(maintain_order=True).iter_rows()
    ]
    schema = {**told.select(CANARY).schema, "p_value": pl.Float64(), "method": pl.String()}
    sums = items.group_by(CANARY, maintain_order=True).agg(
        n=pl.col("told").sum(), dropped=(~pl.col("told")).sum()
    )
    means = told.group_by(CANARY, maintain_order=True).agg(estimate=pl.col("m").mean())
    return sums.join(means, on=CANARY, how="left").join(
        pl.DataFrame(chances, schema=schema), on=CANARY, how="left"
    )


def _test(
    cell: tuple[str, ...], told: pl.DataFrame, kinds: pl.DataFrame, seed: int, draws: int
) -> dict[str, float | str]:
    mine = pl.all_horizontal(pl.col(c) == value for c, value in zip(CANARY, cell, strict=True))
    total = float(told.filter(mine).select(pl.col("m").sum()).item())
    nulls = [
        (null_of(tuple(pooled), n_new), number)
        for pooled, n_new, number in kinds.filter(mine)
        .sort("n_new", "pooled")
        .select("pooled", "n_new", "number")
        .iter_rows()
    ]
    ways = 1
    for null, number in nulls:
        ways = min(ways * len(null.values) ** min(number, 64), EXHAUSTIVE + 1)
    if ways <= EXHAUSTIVE:
        return {"p_value": _all_ways(nulls, total), "method": "permutation, exhaustive"}
    random = np.random.default_rng(seed)
    done = above = 0
    for part in (min(draws, PERMUTATIONS), max(0, draws - PERMUTATIONS)):
        if above < PLAIN:
            above += _above(nulls, total, random, part)
            done += part
    return {"p_value": (1 + above) / (1 + done), "method": f"permutation, {done} draws"}


def _above(
    nulls: list[tuple[Null, int]], total: float, random: np.random.Generator, draws: int
) -> int:
    """Count the draws whose sum is no smaller than what was found."""
    sums = np.zeros(draws)
    for null, number in nulls:
        sums += random.multinomial(number, null.chances, size=draws) @ null.values
    return int((sums >= total - SLACK).sum())


def _all_ways(nulls: list[tuple[Null, int]], total: float) -> float:
    values, chances = np.zeros(1), np.ones(1)
    for null, number in nulls:
        for _ in range(number if len(null.values) > 1 else 0):
            values = np.add.outer(values, null.values).ravel()
            chances = np.multiply.outer(chances, null.chances).ravel()
    values += sum(number * null.values[0] for null, number in nulls if len(null.values) == 1)
    return min(1.0, float(chances[values >= total - SLACK].sum()))


@lru_cache(maxsize=4096)
def null_of(pooled: tuple[int, ...], n_new: int) -> Null:
    """Return the distribution of M when ``n_new`` of the pooled repeats are dealt to the new side.

    M is a sum over outcomes of which ``w`` of ``c`` go there, in ``comb(c, w)`` ways; times the
    numbers of pairs it is whole, so equal values meet exactly.

    Examples
    --------
    Two of four repeats, two of which say a and two b: 2 of 6 ways split them by outcome, M = 2,
    4 mix them, M = -1.

    >>> null_of((2, 2), 2)
    Null(values=array([-1.,  2.]), chances=array([0.66666667, 0.33333333]))
    """
    n, k = sum(pooled) - n_new, n_new
    states = Counter({(0, 0): 1})
    for c in pooled:
        dealt: Counter[tuple[int, int]] = Counter()
        for (taken, value), ways in states.items():
            for w in range(min(c, k - taken) + 1):
                b = c - w
                term = (
                    b * (b - 1) * k * (k - 1)
                    + w * (w - 1) * n * (n - 1)
                    - 2 * b * w * (n - 1) * (k - 1)
                )
                dealt[taken + w, value + term] += ways * comb(c, w)
        states = dealt
    ended = Counter({value: ways for (taken, value), ways in states.items() if taken == k})
    values = sorted(ended)
    whole = n * (n - 1) * k * (k - 1)
    ways_in_all = comb(n + k, k)
    return Null(
        np.array([value / whole for value in values]),
        np.array([ended[value] / ways_in_all for value in values]),
    )
