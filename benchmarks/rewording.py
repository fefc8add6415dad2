"""Sensitivity to the wording of prompts: planted effects recovered, coverage, size.

Run it by hand: ``python benchmarks/rewording.py recovery|coverage|size [--studies 2000]
[--items 142] [--seed 1]``. Each judge is asked in control, in its replicate and under two variants
of its prompt; what depends on the wording is planted (``Judge``). Truths are not simulated: sums
over the choices or grades, and quadrature over quality and the noise of a wording.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from schemas.calibration import Ratings
from schemas.judging import Shifts, VoteLog
from tasks.aggregate import count_votes
from tasks.inference.bootstrap import formulas_only
from tasks.simulation.judge import probabilities
from tasks.statistics import STATISTICS

Floats = NDArray[np.float64]
ITEMS, STUDIES, MANY = 142, 2000, 20_000
BATCH = 60_000
"""Items of a batch of studies."""
GRADES = np.arange(1.0, 11.0)
ARMS = (("control", None), ("replicate", None), ("reworded", "one"), ("reworded", "two"))
NODES = np.linspace(-6, 6, 301)
WEIGHTS = stats.norm.pdf(NODES) / stats.norm.pdf(NODES).sum()
CHOICES = ("first", "tie", "second")


class Judge(NamedTuple):
    """What is planted: in logits for comparisons, in points before rounding for grades."""

    graded: bool
    noise: float
    """For each vote: temperature of a comparison, or standard deviation of a grade."""
    wording: float = 0.0
    """Standard deviation of what a wording adds to each answer, or pair in one order."""
    lenient: float = 0.0
    """What variant two adds to all grades, or to the second slot of all pairs."""


JUDGES: Mapping[str, Judge] = {
    "pairs, steady": Judge(graded=False, noise=0.05, wording=0.7),
    "pairs, noisy": Judge(graded=False, noise=1.0, wording=0.7, lenient=0.8),
    "grades, steady": Judge(graded=True, noise=0.1, wording=0.8),
    "grades, noisy": Judge(graded=True, noise=0.8, wording=0.6, lenient=0.5),
}
QUIET: Mapping[str, Judge] = {
    "pairs": Judge(graded=False, noise=1.0),
    "grades": Judge(graded=True, noise=0.8),
}
SPREAD, MIDDLE, OMEGA, NU = 1.5, 5.5, 1.5, 0.5
"""Of grades: deviation of the quality and its mean; of pairs: of the gap, and weight of a tie."""


def chances(judge: Judge, quality: Floats, lenient: float) -> Floats:
    """Return the chance of each grade, or of anchor, tie and target, given quality and wording.

    Shape (qualities, wordings, outcomes); of a pair shown with the target second.
    """
    at = quality[:, None] + judge.wording * NODES + lenient
    if judge.graded:
        ends = np.concatenate([[-np.inf], GRADES[:-1] + 0.5, [np.inf]])
        return np.diff(stats.norm.cdf((ends - (MIDDLE + at[..., None])) / judge.noise), axis=-1)
    return np.stack(probabilities(at, NU, judge.noise, 0.0), axis=-1)


def truths(judge: Judge) -> dict[tuple[str, str], float]:
    """Return the value of every row and variant in an infinite study."""
    quality = NODES * (SPREAD if judge.graded else OMEGA)
    control = chances(judge, quality, 0.0)
    whole = np.einsum("qwo,w->qo", control, WEIGHTS)
    again = np.einsum("qwo,qwp,w->qop", control, control, WEIGHTS)
    others = {}
    for variant, lenient in (("one", 0.0), ("two", judge.lenient)):
        other = np.einsum("qwo,w->qo", chances(judge, quality, lenient), WEIGHTS)
        others[variant] = whole[:, :, None] * other[:, None, :]
    if judge.graded:
        return _graded_truths(again, others)
    # With the target first, what a wording adds to the second slot counts against it.
    swapped = {}
    for variant, lenient in (("one", 0.0), ("two", -judge.lenient)):
        other = np.einsum("qwo,w->qo", chances(judge, quality, lenient), WEIGHTS)
        swapped[variant] = whole[:, :, None] * other[:, None, :]
    return _pair_truths(again, others, swapped)


def _graded_truths(again: Floats, others: Mapping[str, Floats]) -> dict[tuple[str, str], float]:
    apart = GRADES[None, :] - GRADES[:, None]
    shift = {v: float(WEIGHTS @ (joint * apart).sum((1, 2))) for v, joint in others.items()}
    change = {v: float(WEIGHTS @ (joint * abs(apart)).sum((1, 2))) for v, joint in others.items()}
    repeat = float(WEIGHTS @ (again * abs(apart)).sum((1, 2)))
    return {
        **{("rating_rewording_shift", v): value for v, value in _with_whole(shift).items()},
        **{("rating_rewording_change", v): value for v, value in _with_whole(change).items()},
        ("rating_repeat_change", ""): repeat,
        ("rating_rewording_excess", ""): _with_whole(change)[""] - repeat,
    }


def _pair_truths(
    again: Floats, others: Mapping[str, Floats], swapped: Mapping[str, Floats]
) -> dict[tuple[str, str], float]:
    scores = np.array([0.0, 0.5, 1.0])
    # Axes: before and after with the target second; before and after with the target first.
    before = scores[:, None, None, None] + scores[None, None, :, None]
    after = scores[None, :, None, None] + scores[None, None, None, :]
    changed = np.sign(before - 1) != np.sign(after - 1)
    change = abs(before - after) / 2

    def mean(one: Floats, other: Floats, of: NDArray[np.generic]) -> float:
        return float(np.einsum("qab,qcd,abcd,q->", one, other, of.astype(float), WEIGHTS))

    share = {v: mean(others[v], swapped[v], changed) for v in others}
    score = {v: mean(others[v], swapped[v], change) for v in others}
    repeat = mean(again, again, changed)
    return {
        **{("rewording_sensitivity", v): value for v, value in _with_whole(share).items()},
        **{("rewording_score_change", v): value for v, value in _with_whole(score).items()},
        ("repeat_sensitivity", ""): repeat,
        ("repeat_score_change", ""): mean(again, again, change),
        ("rewording_excess", ""): _with_whole(share)[""] - repeat,
    }


def _with_whole(by_variant: dict[str, float]) -> dict[str, float]:
    return {"": sum(by_variant.values()) / len(by_variant), **by_variant}


def _arms(judge: Judge, random: np.random.Generator, shape: tuple[int, ...]) -> Iterator[Floats]:
    """Yield what each arm's words add; control and its replicate have the same words."""
    own = judge.wording * random.normal(size=shape)
    yield own
    yield own
    for lenient in (0.0, judge.lenient):
        yield judge.wording * random.normal(size=shape) + lenient


def estimates(judge: Judge, items: int, studies: int, seed: int) -> pl.DataFrame:
    """Return the estimates of all studies, by formulas."""

    def batches() -> Iterator[pl.DataFrame]:
        size = max(1, BATCH // items)
        for first in range(0, studies, size):
            some = min(size, studies - first)
            frame = (ratings if judge.graded else votes)(judge, items, some, seed + first)
            if judge.graded:
                rows = STATISTICS["rating_rewording"].draft(ratings=frame)
            else:
                rows = STATISTICS["rewording_sensitivity"].draft(
                    tallies=count_votes(VoteLog.of(frame)), shifts=Shifts.empty()
                )
            yield rows.with_columns(judge=pl.col("judge").cast(pl.String).cast(pl.Int64) + first)

    with formulas_only():
        return pl.concat(batches())


def ratings(judge: Judge, items: int, studies: int, seed: int) -> pl.DataFrame:
    """Simulate one grade of each answer in each arm; each study has a judge of its own."""
    random = np.random.default_rng(seed)
    shape = (studies, items)
    quality = random.normal(0, SPREAD, shape)
    frames = []
    for (arm, variant), words in zip(ARMS, _arms(judge, random, shape), strict=True):
        noise = random.normal(0, judge.noise, shape)
        grade = np.clip(np.rint(MIDDLE + quality + words + noise), 1, 10)
        frames.append(_rows(shape, arm, variant).with_columns(value=pl.Series(grade.ravel())))
    return Ratings.draft(
        pl.concat(frames).with_columns(
            item="sample",
            side=pl.lit("target"),
            human=pl.lit(value=False),
            kind=pl.lit("number"),
            label=pl.col("value").cast(pl.String),
            lowest=pl.lit(1.0),
            highest=pl.lit(10.0),
            inconsistent=pl.lit(value=False),
        )
    )


def votes(judge: Judge, items: int, studies: int, seed: int) -> pl.DataFrame:
    """Simulate one vote in each order of each pair and arm."""
    random = np.random.default_rng(seed)
    shape = (studies, items)
    gaps = random.normal(0, OMEGA, shape)
    words = {side: list(_arms(judge, random, shape)) for side in ("anchor", "target")}
    frames = []
    for at, (arm, variant) in enumerate(ARMS):
        for side, sign in (("anchor", 1), ("target", -1)):
            margin = sign * gaps + words[side][at]
            first, tie, _ = probabilities(margin, NU, judge.noise, 0.0)
            drawn = random.random(shape)
            choice = np.where(drawn < first, 0, np.where(drawn < first + tie, 1, 2))
            frames.append(
                _rows(shape, arm, variant).with_columns(
                    shown_first=pl.lit(side),
                    choice=pl.Series(np.array(CHOICES)[choice.ravel()]),
                )
            )
    return VoteLog.draft(pl.concat(frames))


def _rows(shape: tuple[int, int], arm: str, variant: str | None) -> pl.DataFrame:
    study, item = (place.ravel() for place in np.indices(shape))
    return pl.select(
        dataset=pl.lit("simulated"),
        judge=pl.Series(study).cast(pl.String),
        prompt=pl.lit("prompt"),
        wave=pl.lit(""),
        sample=pl.Series(item).cast(pl.String),
        cluster=pl.Series(item).cast(pl.String),
        arm=pl.lit(arm),
        perturbation=pl.lit(variant, pl.String),
        repeat=pl.lit(0, pl.Int64),
        simulated=pl.lit(value=True),
    )


def compared(judge: Judge, items: int, studies: int, seed: int) -> pl.DataFrame:
    """Return the estimates of all studies beside the truth."""
    rows = [(*key, value) for key, value in truths(judge).items()]
    columns = {"statistic": pl.String, "subgroup": pl.String, "truth": pl.Float64}
    known = pl.DataFrame(rows, schema=columns, orient="row")
    found = estimates(judge, items, studies, seed).with_columns(
        pl.col("statistic", "subgroup").cast(pl.String)
    )
    return found.join(known, on=["statistic", "subgroup"])


def recovery(items: int, seed: int) -> pl.DataFrame:
    """Return for each planted judge how far each row is from its truth in one large study."""
    return pl.concat(
        compared(judge, items, 1, seed).select(
            pl.lit(name).alias("planted"),
            "statistic",
            "subgroup",
            "unit",
            "estimate",
            "truth",
            off=pl.col("estimate") - pl.col("truth"),
        )
        for name, judge in JUDGES.items()
    )


def coverage(judge: Judge, items: int, studies: int, seed: int) -> pl.DataFrame:
    """Return per row the share of intervals that hold the truth, and of tests that reject."""
    held = pl.col("truth").is_between(pl.col("low") - 1e-12, pl.col("high") + 1e-12)
    return (
        compared(judge, items, studies, seed)
        .group_by("statistic", "subgroup")
        .agg(
            studies=pl.col("low").count(),
            coverage=held.mean(),
            rejected=(pl.col("p_value") < 0.05).mean(),
            truth=pl.col("truth").first(),
            mean=pl.col("estimate").mean(),
        )
        .sort("statistic", "subgroup")
    )


def main() -> None:
    """Run what is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["recovery", "coverage", "size"])
    parser.add_argument("--studies", type=int, default=STUDIES)
    parser.add_argument("--items", type=int)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with pl.Config(tbl_rows=-1, tbl_cols=-1, float_precision=4, tbl_width_chars=120):
        if given.what == "recovery":
            print(recovery(given.items or MANY, given.seed))
            return
        for name, judge in (JUDGES if given.what == "coverage" else QUIET).items():
            print(name)
            print(coverage(judge, given.items or ITEMS, given.studies, given.seed))


if __name__ == "__main__":
    main()
