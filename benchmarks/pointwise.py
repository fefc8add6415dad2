"""Ratings of single answers: planted biases recovered, coverage, size: see the functions.

Run it by hand: ``python benchmarks/pointwise.py recovery|coverage|size|contrast [--studies 2000]
[--items 142] [--seed 1]``. A simulated judge grades from 1 to 10:
``y = clip(round(5.5 + quality + leniency + shift of the arm + noise))``, quality normal with
deviation 1.5, noise with .8, two repeats. Truths are not simulated: sums over the grades and
quadrature over the quality. ``--items 20000`` with one study is what recovery takes.
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
from tasks.inference.bootstrap import formulas_only
from tasks.statistics import STATISTICS

Floats = NDArray[np.float64]
MIDDLE, SPREAD, NOISE = 5.5, 1.5, 0.8
GRADES = np.arange(1.0, 11.0)
PASSES_AT = 6.0
NODES = np.linspace(-6, 6, 2001) * SPREAD
WEIGHTS = stats.norm.pdf(NODES, 0, SPREAD) / stats.norm.pdf(NODES, 0, SPREAD).sum()
ITEMS, STUDIES, MANY = 142, 2000, 20_000
BATCH = 60_000
"""Items of a batch of studies."""

NAMES = (
    "mean_rating",
    "rating_shift",
    "scale_use",
    "rating_retest",
    "near_threshold",
    "derived_preference",
    "rating_bias",
    "flaws_detected",
)


SHIFTS = tuple(
    f"{what}_{shift}{unit}"
    for what, units in (("rating", ("", "_sd")), ("pass_rate", ("",)))
    for shift in ("shift", "shift_sham", "sham_shift")
    for unit in units
)
"""Rows whose null hypothesis is no effect."""


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
    parts = [
        ("control", "target", 0.0, quality[0]),
        ("control", "anchor", 0.0, quality[1]),
        ("sham", "target", judge.sham, quality[0]),
        ("experimental", "target", judge.shift, quality[0]),
    ]
    frames = []
    study, item = (place.ravel() for place in np.indices((studies, items)))
    for arm, side, shift, of in parts:
        for repeat in range(2):
            noise = random.normal(0, NOISE, of.shape)
            grade = np.clip(np.rint(MIDDLE + of + judge.leniency + shift + noise), 1, 10)
            people = np.clip(MIDDLE + of, 1, 10)
            planted = arm != "control"
            frames.append(
                pl.select(
                    judge=pl.Series(study).cast(pl.String),
                    sample=pl.Series(item).cast(pl.String),
                    side=pl.lit(side),
                    arm=pl.lit(arm),
                    perturbation=pl.lit("planted" if planted else None, pl.String),
                    perturbation_kind=pl.lit(judge.kind if planted else None, pl.String),
                    repeat=pl.lit(repeat, pl.Int64),
                    value=pl.Series(grade.ravel()),
                    human_value=pl.Series(people.ravel()) if side == "target" else pl.lit(None),
                )
            )
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


def estimates(judge: Judge, items: int, studies: int, seed: int) -> pl.DataFrame:
    """Return the estimates of all studies, by formulas."""

    def batches() -> Iterator[pl.DataFrame]:
        size = max(1, BATCH // items)
        for first in range(0, studies, size):
            some = ratings(judge, items, min(size, studies - first), seed + first)
            for name in NAMES:
                yield (
                    STATISTICS[name]
                    .draft(ratings=some)
                    .with_columns(judge=pl.col("judge").cast(pl.Int64) + first)
                )

    with formulas_only():
        return pl.concat(batches())


def own(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out derived verdicts on perturbed answers, whose name is that of unperturbed ones."""
    derived = pl.col("statistic").cast(pl.String).str.starts_with("derived")
    return rows.filter(~(derived & pl.col("perturbation").is_not_null()))


def recovery(items: int, seed: int) -> pl.DataFrame:
    """Return for each planted judge how far each row is from its truth in one large study."""
    found = []
    for name, judge in JUDGES.items():
        true = truths(judge)
        rows = own(estimates(judge, items, 1, seed)).select(
            "statistic", "unit", "estimate", judge=pl.lit(name)
        )
        known = pl.DataFrame({"statistic": list(true), "truth": list(true.values())})
        found.append(rows.join(known, on="statistic"))
    return pl.concat(found).with_columns(off=pl.col("estimate") - pl.col("truth"))


def contrasts(one: Judge, other: Judge, items: int, studies: int, seed: int) -> pl.DataFrame:
    """Return, as :func:`coverage` does, how well differences between two judges are measured."""
    frames = []
    for first in range(0, studies, BATCH // items):
        # Each study is a dataset of two judges, who grade answers of their own quality.
        some = min(BATCH // items, studies - first)
        both = [
            ratings(judge, items, some, seed + studies * at + first).with_columns(
                dataset=pl.col("judge"), judge=pl.lit(name)
            )
            for at, (name, judge) in enumerate({"a": one, "b": other}.items())
        ]
        frames.append(STATISTICS["rating_contrast"].draft(ratings=pl.concat(both)))
    true = [truths(judge) for judge in (one, other)]
    known = {
        f"{what}_sham_contrast": true[0][name] - true[1][name]
        for what, name in (
            ("rating", "rating_shift_sham_sd"),
            ("pass_rate", "pass_rate_shift_sham"),
        )
    }
    return held(pl.concat(frames), known)


def coverage(judge: Judge, items: int, studies: int, seed: int) -> pl.DataFrame:
    """Return per row the share of intervals that hold the truth, and of tests that reject."""
    return held(own(estimates(judge, items, studies, seed)), truths(judge))


def held(rows: pl.DataFrame, true: Mapping[str, float]) -> pl.DataFrame:
    """Return per row of many studies the coverage of its truth and the share of tests below .05."""
    known = pl.DataFrame({"statistic": list(true), "truth": list(true.values())})
    inside = pl.col("truth").is_between(pl.col("low") - 1e-12, pl.col("high") + 1e-12)
    return (
        rows.join(known, on="statistic")
        .group_by("statistic")
        .agg(
            studies=pl.col("low").count(),
            coverage=inside.mean(),
            rejected=(pl.col("p_value") < 0.05).mean(),
            truth=pl.col("truth").first(),
            mean=pl.col("estimate").mean(),
        )
        .sort("statistic")
    )


def main() -> None:
    """Run what is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["recovery", "coverage", "size", "contrast"])
    parser.add_argument("--studies", type=int, default=STUDIES)
    parser.add_argument("--items", type=int)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with pl.Config(tbl_rows=-1, tbl_cols=-1, float_precision=4, tbl_width_chars=120):
        if given.what == "recovery":
            rows = recovery(given.items or MANY, given.seed)
            print(rows)
            print(
                rows.group_by("judge", "unit").agg(worst=pl.col("off").abs().max()).sort(pl.all())
            )
            return
        if given.what == "size":
            print(coverage(QUIET, given.items or ITEMS, given.studies, given.seed))
            return
        if given.what == "contrast":
            quiet = {"no effect": QUIET, **JUDGES}
            for one, other in (("no effect",) * 2, ("length", "reference"), ("ceiling", "length")):
                print(f"{one} against {other}")
                pair = quiet[one], quiet[other]
                print(contrasts(*pair, given.items or ITEMS, given.studies, given.seed))
            return
        for name in JUDGES:
            print(name)
            print(coverage(JUDGES[name], given.items or ITEMS, given.studies, given.seed))


if __name__ == "__main__":
    main()
