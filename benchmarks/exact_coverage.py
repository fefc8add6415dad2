"""Exact coverage of intervals that depend on a few counts: no simulation.

Rare events give an interval few possible ends, so its coverage differs from its level by an amount
that no number of simulated studies removes. An item of :mod:`benchmarks.simulated_ratings` has few
outcomes that matter to a row; the numbers of items with each are multinomial. Every study with
other numbers is listed, the product's statistic computes its interval, and the chances of the
studies whose interval holds the truth are summed.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from benchmarks.simulated_ratings import (
    GRADES,
    PASSES_AT,
    REPEATS,
    WEIGHTS,
    Floats,
    Judge,
    as_ratings,
    chances,
    truths,
)
from tasks.inference.bootstrap import formulas_only
from tasks.statistics import STATISTICS

MOST_LISTED, MOST_COMPUTED = 3_000_000, 6_000
"""Most combinations of numbers, and studies with other intervals, for a computed row."""
RARE = 1e-9
"""Numbers of an outcome with less chance above them are not listed."""
BATCH = 60_000
FEW, MANY = PASSES_AT - 1, PASSES_AT


class Outcome(NamedTuple):
    """What can happen to an item: its chance, an example, and what its interval depends on."""

    chance: float
    grades: Sequence[Sequence[float]]
    """For each place and repeat."""
    sums: tuple[float, ...]
    """Their sums over the items determine the interval."""


class Row(NamedTuple):
    """A statistic, and the outcomes of an item that matter to one of its rows."""

    statistic: str
    outcomes: Callable[[Judge], list[Outcome]]


def times(chance: Floats) -> Floats:
    """Return the chances of 0, 1 and 2 events in two repeats, shape (3, nodes)."""
    return np.array([stats.binom.pmf(k, REPEATS, chance) for k in range(REPEATS + 1)])


def at_grade(grade: float) -> Callable[[Judge], list[Outcome]]:
    """Return the outcomes of the share of a grade: how many of an item's four grades it is."""

    def outcomes(judge: Judge) -> list[Outcome]:
        of_answer = times(chances(judge, 0.0)[:, int(grade) - 1]) @ WEIGHTS
        found = []
        for number, chance in enumerate(np.convolve(of_answer, of_answer)):
            four = [grade] * number + [PASSES_AT] * (2 * REPEATS - number)
            example = [four[:REPEATS], four[REPEATS:], [PASSES_AT] * 2, [PASSES_AT] * 2]
            found.append(Outcome(chance, example, (number, number**2)))
        return found

    return outcomes


def passes(arm: str, base: str) -> Callable[[Judge], list[Outcome]]:
    """Return the outcomes of a shift of the pass rate: by how many passes the arms differ.

    Answers that pass in all repeats of both arms are apart: a judge has no interval if all do.
    """

    def outcomes(judge: Judge) -> list[Outcome]:
        shifts = {"control": 0.0, "sham": judge.sham, "experimental": judge.shift}
        passing = GRADES >= PASSES_AT
        one, other = (times(chances(judge, shifts[of]) @ passing) for of in (arm, base))
        joint = (one[:, None] * other[None]) @ WEIGHTS
        found = [Outcome(joint[-1, -1], _passed(arm, base, REPEATS, REPEATS), (0, 0, 0))]
        for apart in range(-REPEATS, REPEATS + 1):
            chance = np.trace(joint, -apart) - (joint[-1, -1] if apart == 0 else 0.0)
            example = _passed(arm, base, max(apart, 0), max(-apart, 0))
            found.append(Outcome(float(chance), example, (apart, apart**2, max(apart, 0))))
        return found

    return outcomes


def _passed(arm: str, base: str, of_arm: int, of_base: int) -> list[list[float]]:
    passed = {arm: of_arm, base: of_base}
    # The third arm plays no part.
    numbers = [passed.get(of, of_base) for of in ("control", "control", "sham", "experimental")]
    return [[MANY] * number + [FEW] * (REPEATS - number) for number in numbers]


def flaws(judge: Judge) -> list[Outcome]:
    """Return the outcomes of the share of flaws detected: whether a rating could fall, and did."""
    sham, flawed = (
        np.array([np.convolve(p, p) for p in chances(judge, shift)])
        for shift in (judge.sham, judge.shift)
    )
    joint = np.einsum("n,ni,nj->ij", WEIGHTS, sham, flawed)
    above = np.arange(joint.shape[0]) > 0
    sign = np.sign(np.subtract.outer(np.arange(len(above)), np.arange(len(above))))
    found = []
    for could in (True, False):
        for fall in (1, 0, -1) if could else (0, -1):
            chance = joint[(above[:, None] == could) & (sign == fall)].sum()
            rated = 5.0 if could else 1.0
            base, lower = [rated] * REPEATS, [rated - fall] * REPEATS
            sums = (could, fall, fall**2, fall * could)
            found.append(Outcome(float(chance), [base, base, base, lower], sums))
    return found


ROWS: Mapping[str, Row] = {
    "floor_share": Row("scale_use", at_grade(GRADES[0])),
    "ceiling_share": Row("scale_use", at_grade(GRADES[-1])),
    "pass_rate_shift": Row("rating_shift", passes("experimental", "control")),
    "pass_rate_shift_sham": Row("rating_shift", passes("experimental", "sham")),
    "pass_rate_sham_shift": Row("rating_shift", passes("sham", "control")),
    "flaws_detected": Row("flaws_detected", flaws),
}
"""Rows whose coverage is computed exactly where events are rare enough to list all studies."""


def exact_coverage(name: str, judge: Judge, items: int) -> float | None:
    """Return the exact coverage of a row; None for other rows, and where too many studies differ.

    As in a simulation, studies without an interval do not count.
    """
    true = truths(judge)
    listed = studies(ROWS[name].outcomes(judge), items) if name in ROWS and name in true else None
    if listed is None:
        return None
    grades, chance = listed
    size = max(1, BATCH // items)
    rows = []
    for first in range(0, len(chance), size):
        some = as_ratings(grades[first : first + size], judge.kind)
        with formulas_only():
            found = STATISTICS[ROWS[name].statistic].draft(ratings=some)
        mine = found.filter(pl.col("statistic") == name)
        rows.append(mine.select(pl.col("judge").cast(pl.Int64) + first, "low", "high"))
    of = pl.DataFrame({"judge": np.arange(len(chance)), "chance": chance})
    known = of.join(pl.concat(rows).drop_nulls("low"), on="judge")
    inside = pl.lit(true[name]).is_between(pl.col("low") - 1e-12, pl.col("high") + 1e-12)
    held = known.filter(inside)["chance"].sum()
    return float(held / known["chance"].sum())


def studies(outcomes: Sequence[Outcome], items: int) -> tuple[Floats, Floats] | None:
    """Return one study for each interval, and its chance; None if there are too many.

    Its grades have shape (studies, items, places, repeats).
    """
    counted = sorted(outcomes, key=lambda outcome: -outcome.chance)
    p = np.array([outcome.chance for outcome in counted])
    most = [int(stats.binom.isf(RARE, items, chance)) for chance in p[1:]]
    if prod(number + 1 for number in most) > MOST_LISTED:
        return None
    others = np.stack([of.ravel() for of in np.indices([number + 1 for number in most])], axis=1)
    others = others[others.sum(axis=1) <= items]
    numbers = np.column_stack([items - others.sum(axis=1), others])
    chance = stats.multinomial.pmf(numbers, items, p / p.sum())
    sums = numbers @ np.array([outcome.sums for outcome in counted])
    likely = np.argsort(-chance, kind="stable")
    _, first, group = np.unique(sums[likely], axis=0, return_index=True, return_inverse=True)
    together = np.bincount(group.ravel(), weights=chance[likely])
    kept = together > RARE / 1000
    if kept.sum() > MOST_COMPUTED:
        return None
    chosen: NDArray[np.int64] = numbers[likely][first][kept]
    which = np.repeat(np.tile(np.arange(len(p)), len(chosen)), chosen.ravel())
    examples = np.array([outcome.grades for outcome in counted], dtype=float)
    return examples[which].reshape(len(chosen), items, *examples.shape[1:]), together[kept]
