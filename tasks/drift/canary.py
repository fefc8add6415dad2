"""Canary tests: permutation tests for changed replies or first-token probabilities.

For each fixed prompt, ``M = W_base + W_new - 2 X``: W is the unbiased share of equal pairs of
replies within the baseline or the new wave, X the share across both. If nothing changed, the
expectation of M is 0.

For first tokens, two replies have similarity ``s = 1 - |p - q|`` if their first tokens are equal,
p and q being the probabilities that the model gave them, else 0; W and X are then means of s within
and across waves. As s is a kernel (a tent function times equality), M is the unbiased squared
distance (MMD) of the two waves' distributions: its expectation is 0 without a change and above 0
with any change, even if no verdict changes.

Replies are permuted within prompts, which no flip of signs by cluster does, so the driver in
``tasks/inference/permutation.py`` does not serve here.
"""

from collections import Counter
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.keys import JUDGE
from tasks.inference.cluster_sums import Floats
from tasks.inference.permutation import EXHAUSTIVE, drawn_p_value
from tasks.kit.defaults import PERMUTATIONS

PLAIN = 200
"""No more draws are made if so many of the first reach the observed sum (p about .02 or more)."""

SLACK = 1e-9
"""Tolerance for rounding: equal values summed in another order differ in the last digits."""


class Null(NamedTuple):
    """Permutation distribution of M for one prompt: values and their probabilities."""

    values: Floats
    chances: Floats


def canary(counts: pl.DataFrame, seed: int = 0, draws: int = PERMUTATIONS) -> pl.DataFrame:
    """Return the mean of M over the fixed prompts of each dataset, judge, prompt and wave, with p.

    ``counts`` has one row per fixed prompt (``item``) and ``outcome``, with its frequencies
    ``base`` and ``new``. Prompts without two repeats on both sides are ``dropped``. The p-value is
    from permuting repeats within prompts, with the sum of M as the statistic: all permutations if
    there are few, else ``draws`` seeded ones, ``(1 + #) / (1 + draws)``.
    """
    items = (
        counts.group_by(*JUDGE, "item", maintain_order=True)
        .agg(
            n_base=pl.col("base").sum().cast(pl.Int64),
            n_new=pl.col("new").sum().cast(pl.Int64),
            base_pairs=(pl.col("base") * (pl.col("base") - 1)).sum(),
            new_pairs=(pl.col("new") * (pl.col("new") - 1)).sum(),
            across=(pl.col("base") * pl.col("new")).sum(),
            pooled=(pl.col("base") + pl.col("new")).sort(),
        )
        .with_columns(repeated=(pl.col("n_base") >= 2) & (pl.col("n_new") >= 2))
    )
    n, k = pl.col("n_base"), pl.col("n_new")
    m = (
        pl.col("base_pairs") / (n * (n - 1))
        + pl.col("new_pairs") / (k * (k - 1))
        - 2 * pl.col("across") / (n * k)
    )
    repeated = items.filter("repeated").with_columns(m=m)
    parts = repeated.partition_by(JUDGE, as_dict=True, maintain_order=True)
    chances = [
        {**dict(zip(JUDGE, cell, strict=True)), **_test(part, seed, draws)}
        for cell, part in parts.items()
    ]
    schema = {**repeated.select(JUDGE).schema, "p_value": pl.Float64(), "method": pl.String()}
    sums = items.group_by(JUDGE, maintain_order=True).agg(
        n=pl.col("repeated").sum(), dropped=(~pl.col("repeated")).sum()
    )
    means = repeated.group_by(JUDGE, maintain_order=True).agg(estimate=pl.col("m").mean())
    return sums.join(means, on=JUDGE, how="left").join(
        pl.DataFrame(chances, schema=schema), on=JUDGE, how="left"
    )


def _test(repeated: pl.DataFrame, seed: int, draws: int) -> dict[str, float | str]:
    total = float(repeated["m"].sum())
    kinds = repeated.group_by("pooled", "n_new").agg(number=pl.len()).sort("n_new", "pooled")
    nulls = [(null_of(tuple(pooled), n_new), number) for pooled, n_new, number in kinds.iter_rows()]
    ways = 1
    for null, number in nulls:
        ways = min(ways * len(null.values) ** min(number, 64), EXHAUSTIVE + 1)
    if ways <= EXHAUSTIVE:
        return {"p_value": _enumerated_p_value(nulls, total), "method": "permutation, exhaustive"}
    random = np.random.default_rng(seed)
    done = above = 0
    for part in (min(draws, PERMUTATIONS), max(0, draws - PERMUTATIONS)):
        if above < PLAIN:
            above += _count_extreme(nulls, total, random, part)
            done += part
    return {"p_value": drawn_p_value(above, done), "method": f"permutation, {done} draws"}


def _count_extreme(
    nulls: list[tuple[Null, int]], total: float, random: np.random.Generator, draws: int
) -> int:
    """Count the draws whose sum reaches the observed one."""
    sums = np.zeros(draws)
    for null, number in nulls:
        sums += random.multinomial(number, null.chances, size=draws) @ null.values
    return int((sums >= total - SLACK).sum())


def _enumerated_p_value(nulls: list[tuple[Null, int]], total: float) -> float:
    values, chances = np.zeros(1), np.ones(1)
    for null, number in nulls:
        for _ in range(number if len(null.values) > 1 else 0):
            values = np.add.outer(values, null.values).ravel()
            chances = np.multiply.outer(chances, null.chances).ravel()
    values += sum(number * null.values[0] for null, number in nulls if len(null.values) == 1)
    return min(1.0, float(chances[values >= total - SLACK].sum()))


@lru_cache(maxsize=4096)
def null_of(pooled: tuple[int, ...], n_new: int) -> Null:
    """Return the distribution of M when ``n_new`` of the pooled repeats go to the new side.

    M is a sum over outcomes; ``w`` of the ``c`` repeats with an outcome go there in ``comb(c, w)``
    ways. Multiplied by the numbers of pairs M is an integer, so equal values are merged exactly.

    Examples
    --------
    Two of four repeats go there, and two say a, two say b: 2 of 6 ways separate the outcomes (M =
    2), 4 mix them (M = -1).

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


MOST_WAYS = 5000
"""Most permutations of a prompt's replies that are enumerated; beyond, they are sampled."""

AT_ONCE = 100_000


def first_token_canary(
    replies: pl.DataFrame, seed: int = 0, draws: int = PERMUTATIONS
) -> pl.DataFrame:
    """Return the mean of M over the fixed prompts of each dataset, judge, prompt and wave, with p.

    Parameters
    ----------
    replies
        One row per reply: the columns of ``JUDGE``, ``item`` (the fixed prompt), ``first_token``,
        ``first_probability`` in [0, 1], and ``new``: true for the new wave, false for the baseline.
    seed, draws
        For permutations of replies within prompts, unless all are enumerated:
        p = ``(1 + #) / (1 + draws)``.

    Returns
    -------
    DataFrame
        Columns of ``JUDGE``, ``n`` prompts, ``dropped`` (those without two replies on both sides),
        ``estimate``, ``p_value`` and ``method``.

    References
    ----------
    methods.md, section 10. Gretton et al. (2012), JMLR 13, 723-773 (the unbiased estimate).

    Examples
    --------
    The same token at .9, .9 and then .5, .5: W = 1, 1, X = .6, M = .8.
    """
    schema = {
        **dict.fromkeys(JUDGE, pl.String()),
        "n": pl.Int64(),
        "dropped": pl.Int64(),
        "estimate": pl.Float64(),
        "p_value": pl.Float64(),
        "method": pl.String(),
    }
    rows = [
        {**dict(zip(JUDGE, key, strict=True)), **_cell(cell, seed, draws)}
        for key, cell in replies.sort(*JUDGE, "item", "new", "first_token", "first_probability")
        .partition_by(JUDGE, as_dict=True, maintain_order=True)
        .items()
    ]
    return pl.DataFrame(rows, schema=schema)


def similarity(tokens: NDArray[np.object_], chances: Floats) -> Floats:
    """Return the matrix of similarities between replies.

    Examples
    --------
    >>> similarity(np.array(["A", "A", "B"], object), np.array([1.0, 0.75, 0.75]))[0].tolist()
    [1.0, 0.75, 0.0]
    """
    near: Floats = 1 - np.abs(chances[:, None] - chances[None, :])
    same: NDArray[np.bool_] = tokens[:, None] == tokens[None, :]
    return near * same


def excess(alike: Floats, new: NDArray[np.bool_]) -> Floats:
    """Return M for each row of ``new``, a mask of the replies in the new wave."""
    far, total = new.astype(np.float64), alike.sum()
    k = far.sum(axis=1)
    n = far.shape[1] - k
    toward = far @ alike
    within = (toward * far).sum(axis=1)
    across = toward.sum(axis=1) - within
    # Subtract each reply's similarity of 1 with itself.
    rest: Floats = (total - within - 2 * across - n) / (n * (n - 1))
    rest += (within - k) / (k * (k - 1)) - 2 * across / (n * k)
    return rest


def _cell(cell: pl.DataFrame, seed: int, draws: int) -> dict[str, float | int | str | None]:
    random = np.random.default_rng(seed)
    observed, nulls, dropped = 0.0, [], 0
    for item in cell.partition_by("item", maintain_order=True):
        new = item["new"].to_numpy()
        if min(int(new.sum()), int((~new).sum())) < 2:
            dropped += 1
            continue
        alike = similarity(
            item["first_token"].to_numpy().astype(object),
            item["first_probability"].to_numpy().astype(np.float64),
        )
        observed += float(excess(alike, new[None])[0])
        nulls.append((alike, int(new.sum())))
    counts = {"n": len(nulls), "dropped": dropped}
    if not nulls:
        return {**counts, "estimate": None, "p_value": None, "method": None}
    return {
        **counts,
        "estimate": observed / len(nulls),
        **_test_tokens(nulls, observed, random, draws),
    }


def _test_tokens(
    nulls: list[tuple[Floats, int]], observed: float, random: np.random.Generator, draws: int
) -> dict[str, float | str]:
    ways = 1
    for alike, k in nulls:
        ways = min(ways * comb(len(alike), k), EXHAUSTIVE + 1)
    if ways <= EXHAUSTIVE:
        sums = np.zeros(1)
        for alike, k in nulls:
            sums = np.add.outer(sums, excess(alike, _combinations(len(alike), k))).ravel()
        p_value = float((sums >= observed - SLACK).mean())
        return {"p_value": p_value, "method": "permutation, exhaustive"}
    sums = np.zeros(draws)
    for alike, k in nulls:
        sums += _sampled(alike, k, random, draws)
    above = int((sums >= observed - SLACK).sum())
    return {"p_value": drawn_p_value(above, draws), "method": f"permutation, {draws} draws"}


def _combinations(size: int, k: int) -> NDArray[np.bool_]:
    chosen = np.array(list(combinations(range(size), k)))
    ways = np.zeros((len(chosen), size), dtype=np.bool_)
    np.put_along_axis(ways, chosen, values=True, axis=1)
    return ways


def _sampled(alike: Floats, k: int, random: np.random.Generator, draws: int) -> Floats:
    size = len(alike)
    if comb(size, k) <= MOST_WAYS:
        values = excess(alike, _combinations(size, k))
        drawn: Floats = values[random.integers(0, len(values), draws)]
        return drawn
    step = max(1, AT_ONCE // size)
    return np.concatenate(
        [
            excess(alike, random.random((min(step, draws - start), size)).argsort(axis=1) < k)
            for start in range(0, draws, step)
        ]
    )
