"""Random baseline: the ASR of a judge that votes at random."""

from fractions import Fraction
from functools import cache

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from schemas.keys import CELL
from tasks.statistics import Rows, statistic

UNIFORM = (Fraction(1, 3), Fraction(1, 3), Fraction(1, 3))
COIN = (Fraction(1, 2), Fraction(0), Fraction(1, 2))


@cache
def target_wins(votes: int, chances: tuple[Fraction, Fraction, Fraction]) -> Fraction:
    """Return the exact probability that the sum of ``votes`` random votes favours the target.

    Parameters
    ----------
    votes
        Number of votes, at least 0.
    chances
        Probabilities of a vote for the anchor, a tie, the target.

    Examples
    --------
    >>> target_wins(6, UNIFORM)
    Fraction(98, 243)
    """
    sums = {0: Fraction(1)}
    for _ in range(votes):
        step: dict[int, Fraction] = {}
        for total, chance in sums.items():
            for move, weight in zip((-1, 0, 1), chances, strict=True):
                step[total + move] = step.get(total + move, Fraction(0)) + chance * weight
        sums = step
    return sum((chance for total, chance in sums.items() if total > 0), Fraction(0))


@statistic(
    source="methods.md, section 1",
    gives=("random_baseline", "random_baseline_coin"),
    family="floor",
    floor="random judge",
    no_interval="exact, not estimated: no interval",
)
def random_baseline(shifts: DataFrame[Shifts]) -> Rows:
    """Compute the ASR of a judge that votes at random, by exact enumeration.

    Promote: P(target). Detract: 1 - P(anchor). ``random_baseline`` draws anchor, tie and target
    with equal probability, ``random_baseline_coin`` never ties.

    Parameters
    ----------
    shifts
        One row per sample and perturbation; only its cells and votes per pair are used.

    Returns
    -------
    Estimates
        Two rows per cell, without interval: nothing is estimated.

    Notes
    -----
    A reference line, not the neutral point: an unbiased but noisy judge has another value, its own
    floor.

    References
    ----------
    arXiv:2402.10669, section 5; methods.md, section 1.

    Examples
    --------
    Six votes: 98/243 = .4033 promote, 145/243 = .5967 detract; coin .3438 and .6563.
    """
    cells = shifts.group_by(CELL, maintain_order=True).agg(
        pl.col("kind", "simulated").first(),
        votes_per_pair=pl.col("votes").mode().max(),
        n=pl.len(),
        clusters=pl.col("cluster").n_unique(),
    )
    return [
        cells.with_columns(
            _rates(cells, chances),
            statistic=pl.lit(name),
            subgroup=pl.lit(""),
            dropped=pl.lit(0),
            method=pl.lit("exact enumeration"),
        )
        for name, chances in (("random_baseline", UNIFORM), ("random_baseline_coin", COIN))
    ]


def _rates(cells: pl.DataFrame, chances: tuple[Fraction, Fraction, Fraction]) -> pl.Series:
    # Anchor and target are exchangeable for a random judge, so P(anchor) = P(target).
    rates = [
        float(win if kind == "promote" else 1 - win)
        for kind, votes in zip(cells["kind"], cells["votes_per_pair"], strict=True)
        for win in (target_wins(votes, chances),)
    ]
    return pl.Series("estimate", rates, dtype=pl.Float64)
