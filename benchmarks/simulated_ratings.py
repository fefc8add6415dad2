"""A simulated judge of single answers, its ratings, and the true value of every statistic.

It grades from 1 to 10: ``y = clip(round(5.5 + quality + leniency + shift of the arm + noise))``,
quality normal with deviation 1.5, noise with .8, two repeats. Truths are not simulated: sums over
the grades and quadrature over the quality.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from schemas.calibration import Ratings

Floats = NDArray[np.float64]
MIDDLE, SPREAD, NOISE = 5.5, 1.5, 0.8
GRADES = np.arange(1.0, 11.0)
PASSES_AT = 6.0
NODES = np.linspace(-6, 6, 2001) * SPREAD
WEIGHTS = stats.norm.pdf(NODES, 0, SPREAD) / stats.norm.pdf(NODES, 0, SPREAD).sum()
REPEATS = 2
PLACES = (
    ("control", "target"),
    ("control", "anchor"),
    ("sham", "target"),
    ("experimental", "target"),
)
"""Arm and side of the answers that are graded of each item."""


class Judge(NamedTuple):
    """What is planted, in points before rounding."""

    leniency: float = 0.0
    shift: float = 0.0
    sham: float = 0.0
    kind: str = "promote"


JUDGES: Mapping[str, Judge] = {
    "leniency": Judge(leniency=0.7),
    "length": Judge(shift=0.5, sham=0.2),
    "reference": Judge(shift=0.9),
    "ceiling": Judge(leniency=3.0, shift=0.9),
    "flaw": Judge(shift=-1.5, kind="detract"),
}
QUIET = Judge()


def chances(judge: Judge, shift: float) -> Floats:
    """Return the chance of each grade given the quality, shape (nodes, grades)."""
    ends = np.concatenate([[-np.inf], GRADES[:-1] + 0.5, [np.inf]])
    middle = MIDDLE + NODES[:, None] + judge.leniency + shift
    return np.diff(stats.norm.cdf((ends - middle) / NOISE), axis=1)


def truths(judge: Judge) -> dict[str, float]:
    """Return the value of every row in an infinite study."""
    arms = {
        arm: chances(judge, shift)
        for arm, shift in (("control", 0.0), ("sham", judge.sham), ("exp", judge.shift))
    }
    mean = {arm: WEIGHTS @ p @ GRADES for arm, p in arms.items()}
    passing = (GRADES >= PASSES_AT).astype(float)
    passed = {arm: p @ passing for arm, p in arms.items()}
    rate = {arm: WEIGHTS @ p for arm, p in passed.items()}
    control = arms["control"]
    marginal = WEIGHTS @ control
    deviation = np.sqrt(marginal @ GRADES**2 - mean["control"] ** 2)
    given = control @ GRADES
    within = WEIGHTS @ (control @ GRADES**2 - given**2)
    between = WEIGHTS @ given**2 - mean["control"] ** 2
    found = {
        "mean_rating": mean["control"],
        "pass_rate": rate["control"],
        "modal_share": marginal.max(),
        "ceiling_share": marginal[-1],
        "floor_share": marginal[0],
        "near_threshold": marginal[(GRADES == PASSES_AT) | (GRADES == PASSES_AT - 1)].sum(),
        "within_item_variance": within,
        "rating_icc": between / (between + within),
        "retest_flips": WEIGHTS @ (2 * passed["control"] * (1 - passed["control"])),
        "rating_bias": mean["control"] - MIDDLE,
        "rating_bias_sd": (mean["control"] - MIDDLE) / deviation,
        "derived_preference": 0.5,
    }
    for row, (arm, base) in {
        "_shift": ("exp", "control"),
        "_shift_sham": ("exp", "sham"),
        "_sham_shift": ("sham", "control"),
    }.items():
        found[f"rating{row}"] = mean[arm] - mean[base]
        found[f"rating{row}_sd"] = (mean[arm] - mean[base]) / deviation
        found[f"pass_rate{row}"] = rate[arm] - rate[base]
    for row, arm in (("pass_flips", "exp"), ("pass_flips_sham", "sham")):
        one, other = passed[arm], passed["control"]
        found[row] = WEIGHTS @ (one * (1 - other) + other * (1 - one))
    if judge.kind == "detract":
        # Means of two repeats are compared, so the chances are of sums.
        two = {arm: np.array([np.convolve(p, p) for p in arms[arm]]) for arm in ("exp", "sham")}
        joint = (WEIGHTS[:, None, None] * two["sham"][:, :, None] * two["exp"][:, None, :]).sum(0)
        lower = np.tril(joint, -1).sum() - np.triu(joint, 1).sum()
        found["flaws_detected"] = lower / (1 - joint[0].sum())
    return {name: float(value) for name, value in found.items()}


def ratings(judge: Judge, items: int, studies: int, seed: int) -> pl.DataFrame:
    """Simulate studies, each with a judge of its own; people grade the quality without error."""
    random = np.random.default_rng(seed)
    quality = random.normal(0, SPREAD, (2, studies, items))
    shifts = (0.0, 0.0, judge.sham, judge.shift)
    grades = np.empty((studies, items, len(PLACES), REPEATS))
    people = np.clip(MIDDLE + quality[0], 1, 10)
    for place, (shift, of) in enumerate(zip(shifts, (0, 1, 0, 0), strict=True)):
        for repeat in range(REPEATS):
            noise = random.normal(0, NOISE, (studies, items))
            grade = np.rint(MIDDLE + quality[of] + judge.leniency + shift + noise)
            grades[:, :, place, repeat] = np.clip(grade, 1, 10)
    return as_ratings(grades, judge.kind, people)


def as_ratings(grades: Floats, kind: str, people: Floats | None = None) -> pl.DataFrame:
    """Return grades, shape (studies, items, places, repeats), as ratings: a judge per study.

    ``people`` are grades of the targets, shape (studies, items).
    """
    study, item = (place.ravel() for place in np.indices(grades.shape[:2]))
    frames = []
    for place, (arm, side) in enumerate(PLACES):
        planted = arm != "control"
        known = people if side == "target" else None
        frames += [
            pl.select(
                judge=pl.Series(study).cast(pl.String),
                sample=pl.Series(item).cast(pl.String),
                side=pl.lit(side),
                arm=pl.lit(arm),
                perturbation=pl.lit("planted" if planted else None, pl.String),
                perturbation_kind=pl.lit(kind if planted else None, pl.String),
                repeat=pl.lit(repeat, pl.Int64),
                value=pl.Series(grades[:, :, place, repeat].ravel()),
                human_value=pl.lit(None) if known is None else pl.Series(known.ravel()),
            )
            for repeat in range(REPEATS)
        ]
    return Ratings.draft(
        pl.concat(frames, how="vertical_relaxed").with_columns(
            dataset=pl.lit("simulated"),
            prompt=pl.lit("single"),
            wave=pl.lit(""),
            item=pl.concat_str(
                "sample",
                pl.when(pl.col("side") == "anchor").then(pl.lit("/a")).otherwise(pl.lit("")),
            ),
            cluster="sample",
            human=pl.lit(value=False),
            kind=pl.lit("number"),
            label=pl.col("value").cast(pl.String),
            lowest=pl.lit(1.0),
            highest=pl.lit(10.0),
            passes_at=pl.lit(PASSES_AT),
            inconsistent=pl.lit(value=False),
            simulated=pl.lit(value=True),
        )
    )
