"""Ratings of single answers: planted biases recovered, coverage, size: see the functions.

Run it by hand: ``python benchmarks/pointwise.py recovery|coverage|size|contrast [--studies 2000]
[--items 142] [--seed 1]``. The judge comes from :mod:`benchmarks.simulated_ratings`; ``exact`` is
the coverage without simulation (:mod:`benchmarks.exact_coverage`) where events are rare.
``--items 20000`` with one study is what recovery takes.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from benchmarks.exact_coverage import exact_coverage
from benchmarks.simulated_ratings import (
    GRADES,
    JUDGES,
    QUIET,
    WEIGHTS,
    Judge,
    chances,
    ratings,
    truths,
)
from tasks.inference.bootstrap import formulas_only
from tasks.statistics import STATISTICS

ITEMS, STUDIES, MANY = 142, 2000, 20_000
FLAWS = (0.0, -0.5, -1.5, -3.0)
"""Shifts of flaws with 0, .43, .91 and .999 of them detected."""
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


def estimates(
    judge: Judge, items: int, studies: int, seed: int, names: Sequence[str] = NAMES
) -> pl.DataFrame:
    """Return all studies' estimates, by formulas, with each study's ``most_frequent`` grade."""

    def batches() -> Iterator[pl.DataFrame]:
        size = max(1, BATCH // items)
        for first in range(0, studies, size):
            some = ratings(judge, items, min(size, studies - first), seed + first)
            modes = (
                some.filter(pl.col("arm") == "control")
                .group_by("judge", "value")
                .len()
                .sort("len", "value", descending=[True, False])
                .group_by("judge", maintain_order=True)
                .agg(most_frequent=pl.col("value").first())
            )
            for name in names:
                yield (
                    STATISTICS[name]
                    .draft(ratings=some)
                    .join(modes, on="judge")
                    .with_columns(judge=pl.col("judge").cast(pl.Int64) + first)
                )

    with formulas_only():
        return pl.concat(batches())


def own(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out derived verdicts on perturbed answers: names do not tell them from others."""
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


def coverage(
    judge: Judge, items: int, studies: int, seed: int, names: Sequence[str] = NAMES
) -> pl.DataFrame:
    """Return per row the share of intervals that hold the truth, and of tests that reject.

    The truth of ``modal_share`` is the share of the grade that is the most frequent in the study.
    ``exact`` is the coverage without simulation, where it is computed.
    """
    rows = own(estimates(judge, items, studies, seed, names))
    shares = dict(zip(GRADES.tolist(), (WEIGHTS @ chances(judge, 0.0)).tolist(), strict=True))
    modal = pl.col("statistic") == "modal_share"
    found = held(
        rows,
        truths(judge),
        pl.when(modal).then(pl.col("most_frequent").replace_strict(shares)).otherwise("truth"),
    )
    exact = [exact_coverage(name, judge, items) for name in found["statistic"]]
    return found.with_columns(exact=pl.Series(exact, dtype=pl.Float64))


def held(
    rows: pl.DataFrame, true: Mapping[str, float], truth: pl.Expr | None = None
) -> pl.DataFrame:
    """Return per row of many studies the coverage of its truth and the share of tests below .05."""
    known = pl.DataFrame({"statistic": list(true), "truth": list(true.values())})
    inside = pl.col("truth").is_between(pl.col("low") - 1e-12, pl.col("high") + 1e-12)
    return (
        rows.join(known, on="statistic")
        .with_columns(truth=pl.col("truth") if truth is None else truth)
        .group_by("statistic")
        .agg(
            studies=pl.col("low").count(),
            coverage=inside.mean(),
            rejected=(pl.col("p_value") < 0.05).mean(),
            truth=pl.col("truth").mean(),
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
        for shift in FLAWS:
            print(f"a flaw of {-shift} points")
            flaw = Judge(shift=shift, kind="detract")
            size = given.items or ITEMS, given.studies, given.seed
            print(coverage(flaw, *size, names=("flaws_detected",)))


if __name__ == "__main__":
    main()
