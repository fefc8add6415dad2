"""Size and coverage where questions differ in their number of samples (methods, section 16).

Run it by hand: ``python benchmarks/unequal_questions.py size|coverage [--studies 1000]
[--design NAME] [--seed 1]``.
Three designs of unequal clusters and one of equal ones, each with samples of a
question that share 0, .1 and .3 of the variance. ``word``: the share of studies that have enough
degrees of freedom for a finding; ``found``: the share that has one of a difference that is not
there.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from benchmarks.characteristics import show
from benchmarks.judge_studies import frames, measured
from benchmarks.simulated_votes import simulate
from tasks.counting.arms import mean_shift
from tasks.inference.bootstrap import formulas_only
from tasks.inference.linearised_errors import why_not_enough
from tasks.simulation.traits import Traits

DESIGNS: dict[str, tuple[int, ...]] = {
    "100, 50, 20, nine of 5": (100, 50, 20, *(5,) * 9),
    "300, thirty of 1": (300, *(1,) * 30),
    "40, 30, 20, 10, forty of 2": (40, 30, 20, 10, *(2,) * 40),
    "twenty of 8": (8,) * 20,
}
SHARED = (0.0, 0.1, 0.3)
ALPHA, BATCH = 0.05, 250
GIANT = 40_000
"""Samples of the study whose rates intervals should hold: all of their own question."""

NOISE, RATES = Traits(omega=1.5, nu=0.5, upsilon=1.0), Traits(omega=1.5, nu=0.5, iota=0.1)
TESTS = ("mps", "mps_sham", "los", "first_pick_share", "position_effect")
SHARES = ("asr", "dasr", "tie_rate", "validity", "position_consistency", "first_pick_share")
COUNTED = (
    "asr",
    "dasr",
    "sham_floor",
    "tie_rate",
    "invalid_rate",
    "position_consistency",
    "position_gap",
    "first_pick_share",
)


def scores(sizes: tuple[int, ...], shared: float, studies: int, seed: int) -> pl.DataFrame:
    """Return the mean shift of studies whose shifts are drawn from a normal around 0."""
    random, items = np.random.default_rng(seed), sum(sizes)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    common = random.standard_normal((studies, len(sizes)))[:, cluster]
    own = random.standard_normal((studies, items))
    shift = 0.1 * (shared**0.5 * common + (1 - shared) ** 0.5 * own)
    frame = pl.DataFrame(
        {
            "judge": np.repeat([f"s/{study}" for study in range(studies)], items),
            "cluster": np.tile(cluster, studies).astype(str),
            "experimental_score": 0.5 + shift.ravel(),
        }
    ).with_columns(
        control_score=pl.lit(0.5),
        dataset=pl.lit("d"),
        prompt=pl.lit("p"),
        wave=pl.lit(""),
        mode=pl.lit("balanced"),
        perturbation=pl.lit("x"),
        kind=pl.lit("promote"),
        simulated=pl.lit(value=True),
        votes=pl.lit(2),
    )
    found = mean_shift("mps", frame, base="control_score")
    return found.with_columns(statistic=pl.lit("mean of normal scores"))


def votes(
    sizes: tuple[int, ...] | int, shared: float, studies: int, seed: int, **more: Any
) -> pl.DataFrame:
    """Simulate studies of two votes a pair."""
    items = sizes if isinstance(sizes, int) else sum(sizes)
    return simulate(
        kind="promote",
        beta=0.0,
        items=items,
        votes=2,
        seed=seed,
        judge="s",
        clusters=None if isinstance(sizes, int) else sizes,
        shared=shared,
        studies=studies,
        **more,
    )


def tested(sizes: tuple[int, ...], shared: float, studies: int, seed: int) -> pl.DataFrame:
    """Return tests of effects that differ between questions, around 0."""
    log = votes(sizes, shared, studies, seed, traits=NOISE, shared_effects=shared)
    return measured(TESTS, "judge", **frames(log))


def rates(sizes: tuple[int, ...], shared: float, studies: int, seed: int) -> pl.DataFrame:
    """Return the rates of a judge with one invalid vote in ten."""
    log = votes(sizes, shared, studies, seed, traits=RATES)
    return measured(SHARES, "judge", **frames(log))


def sizes_of(sizes: tuple[int, ...], shared: float, studies: int, seed: int) -> pl.DataFrame:
    """Return how often each test finds what is not there, and how often a word rests on it."""
    with formulas_only():
        rows = pl.concat(
            [
                scores(sizes, shared, studies, seed),
                *_batches(tested, sizes, shared, studies=studies, seed=seed),
            ],
            how="diagonal_relaxed",
        )
    enough, rejected = pl.col("too_few").is_null(), pl.col("p_value") <= ALPHA
    own = rows.filter(
        pl.col("subgroup") == "", pl.col("p_value").is_not_null(), _of_control("position")
    ).with_columns(too_few=why_not_enough())
    return own.group_by("statistic", maintain_order=True).agg(
        studies=pl.len(),
        df=pl.col("df").mean(),
        size=rejected.mean(),
        word=enough.mean(),
        found=(rejected & enough).mean(),
    )


def coverage_of(sizes: tuple[int, ...], shared: float, studies: int, seed: int) -> pl.DataFrame:
    """Return how often the intervals of rates cover the rates of a giant study."""
    with formulas_only():
        rows = pl.concat(_batches(rates, sizes, shared, studies=studies, seed=seed))
        giant = measured(SHARES, "judge", **frames(votes(GIANT, 0.0, 1, 99, traits=RATES)))
    key = ["statistic", "perturbation"]
    true = giant.filter(pl.col("subgroup") == "").select(*key, truth="estimate")
    joined = rows.filter(
        pl.col("subgroup") == "", pl.col("statistic").is_in(COUNTED), _of_control("")
    ).join(true, on=key, nulls_equal=True)
    return joined.group_by("statistic", maintain_order=True).agg(
        truth=pl.col("truth").first(),
        df=pl.col("df").mean(),
        coverage=pl.col("truth").is_between("low", "high").mean(),
        below=(pl.col("high") < pl.col("truth")).mean(),
        above=(pl.col("low") > pl.col("truth")).mean(),
        word=pl.col("too_few").is_null().mean(),
    )


def _batches(
    recipe: Any, sizes: tuple[int, ...], shared: float, *, studies: int, seed: int
) -> Iterator[pl.DataFrame]:
    for first in range(0, studies, BATCH):
        many = min(BATCH, studies - first)
        yield recipe(sizes, shared, many, seed * 1_000_003 + first)


def _of_control(prefix: str) -> pl.Expr:
    """Keep, of rows about each arm, those about the control arm."""
    null = pl.col("perturbation").is_null()
    return (
        null.any().over("statistic") <= null
        if prefix == ""
        else (~pl.col("statistic").str.starts_with(prefix) | null)
    )


def main() -> None:
    """Print size or coverage in every design."""
    parser = argparse.ArgumentParser(description="Unequal clusters.")
    parser.add_argument("table", choices=("size", "coverage"))
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--design", choices=DESIGNS, help="one design")
    given = parser.parse_args()
    measure = sizes_of if given.table == "size" else coverage_of
    for name, sizes in DESIGNS.items():
        for shared in SHARED if given.design in {None, name} else ():
            table = measure(sizes, shared, given.studies, given.seed)
            show(table, f"{given.table}: {name}; shared {shared}")


if __name__ == "__main__":
    main()
