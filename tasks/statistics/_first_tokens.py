"""Did the chances of a reply's first token change? The canary's M with a similarity of numbers.

Two replies are as similar as ``s = 1 - |p - q|``, p and q the chances that the model gave to their
first token, if that is the same token, and not at all (0) if it is another. Per prompt ``M =
W_base + W_new - 2 X`` as of verdicts, W and X the means of s within and across the waves. As s is a
kernel (a tent times equality), M is the unbiased squared distance of the two waves' distributions:
0 in the mean without a change, above 0 with any, also where no verdict turns.
"""

from itertools import combinations
from math import comb

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.defaults import PERMUTATIONS
from tasks.statistics._canary import CANARY, EXHAUSTIVE, SLACK

MOST_WAYS = 5000
"""Up to so many ways to deal a prompt's replies are all known; of more, some are drawn."""

AT_ONCE = 100_000
Floats = NDArray[np.float64]


def first_token_canary(
    replies: pl.DataFrame, seed: int = 0, draws: int = PERMUTATIONS
) -> pl.DataFrame:
    """Return, per dataset, judge, prompt and wave, the mean of M over its fixed prompts, and its p.

    Parameters
    ----------
    replies
        One row per reply: the columns of ``CANARY``, ``item`` (the fixed prompt), ``first_token``,
        ``first_probability`` in [0, 1], and ``new``, whether it is of the wave or of the baseline.
    seed, draws
        Of the ways to deal replies anew within prompts, where not all of them are gone through:
        p = ``(1 + #) / (1 + draws)``.

    Returns
    -------
    DataFrame
        Columns of ``CANARY``, ``n`` prompts, ``dropped`` (those without two replies on both sides),
        ``estimate``, ``p_value`` and ``method``.

    References
    ----------
    methods.md, section 10. Gretton et al. (2012), JMLR 13, 723-773 (the unbiased estimate).

    Examples
    --------
    The same token at .9, .9 and then .5, .5: W = 1, 1, X = .6, M = .8.
    """
    schema = {**dict.fromkeys(CANARY, pl.String()), "n": pl.Int64(), "dropped": pl.Int64(),
              "estimate": pl.Float64(), "p_value": pl.Float64(), "method": pl.String()}  # fmt: skip
    rows = [
        {**dict(zip(CANARY, key, strict=True)), **_cell(cell, seed, draws)}
        for key, cell in replies.sort(*CANARY, "item", "new", "first_token", "first_probability")
        .partition_by(CANARY, as_dict=True, maintain_order=True)
        .items()
    ]
    return pl.DataFrame(rows, schema=schema)


def similarity(tokens: NDArray[np.object_], chances: Floats) -> Floats:
    """Return how similar each two replies are.

    Examples
    --------
    >>> similarity(np.array(["A", "A", "B"], object), np.array([1.0, 0.75, 0.75]))[0].tolist()
    [1.0, 0.75, 0.0]
    """
    near: Floats = 1 - np.abs(chances[:, None] - chances[None, :])
    same: NDArray[np.bool_] = tokens[:, None] == tokens[None, :]
    return near * same


def excess(alike: Floats, new: NDArray[np.bool_]) -> Floats:
    """Return M for each row of ``new``, which marks the replies that are of the new wave."""
    far, total = new.astype(np.float64), alike.sum()
    k = far.sum(axis=1)
    n = far.shape[1] - k
    toward = far @ alike
    within = (toward * far).sum(axis=1)
    across = toward.sum(axis=1) - within
    # Each reply is wholly like itself; pairs are of two.
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
    told = {"n": len(nulls), "dropped": dropped}
    if not nulls:
        return {**told, "estimate": None, "p_value": None, "method": None}
    return {**told, "estimate": observed / len(nulls), **_test_tokens(nulls, observed, random, draws)}


def _test_tokens(
    nulls: list[tuple[Floats, int]], observed: float, random: np.random.Generator, draws: int
) -> dict[str, float | str]:
    ways = 1
    for alike, k in nulls:
        ways = min(ways * comb(len(alike), k), EXHAUSTIVE + 1)
    if ways <= EXHAUSTIVE:
        sums = np.zeros(1)
        for alike, k in nulls:
            sums = np.add.outer(sums, excess(alike, _ways(len(alike), k))).ravel()
        p_value = float((sums >= observed - SLACK).mean())
        return {"p_value": p_value, "method": "permutation, exhaustive"}
    sums = np.zeros(draws)
    for alike, k in nulls:
        sums += _drawn(alike, k, random, draws)
    above = int((sums >= observed - SLACK).sum())
    return {"p_value": (1 + above) / (1 + draws), "method": f"permutation, {draws} draws"}


def _ways(size: int, k: int) -> NDArray[np.bool_]:
    chosen = np.array(list(combinations(range(size), k)))
    ways = np.zeros((len(chosen), size), dtype=np.bool_)
    np.put_along_axis(ways, chosen, values=True, axis=1)
    return ways


def _drawn(alike: Floats, k: int, random: np.random.Generator, draws: int) -> Floats:
    size = len(alike)
    if comb(size, k) <= MOST_WAYS:
        values = excess(alike, _ways(size, k))
        drawn: Floats = values[random.integers(0, len(values), draws)]
        return drawn
    step = max(1, AT_ONCE // size)
    return np.concatenate(
        [
            excess(alike, random.random((min(step, draws - start), size)).argsort(axis=1) < k)
            for start in range(0, draws, step)
        ]
    )
