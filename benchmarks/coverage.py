"""Coverage of the 95 % intervals: simulated studies of 142 items, their truth known.

Run it by hand: ``python benchmarks/coverage.py [--studies 400] [--items 142] [--seed 1]``.
The truth of a preset is its table in methods.md, section 13, sharpened by one large study.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from tasks.aggregate import match_groups, tally_votes
from tasks.providers._simulate import PRESETS, simulate
from tasks.statistics import STATISTICS

MEASURED = ("asr", "dasr", "mps", "mps_sham")
SHOWN = ("asr", "sham_floor", "dasr", "mps", "mps_sham")
VOTES = 6
LARGE = 200_000
"""Items of the study that stands for the truth: its error is 1/37 of that of 142 items."""


class Line(NamedTuple):
    """One row of the printed table."""

    preset: str
    statistic: str
    truth: float
    mean: float
    coverage: float
    width: float
    null: int


def estimates(preset: str, items: int, seed: int) -> pl.DataFrame:
    """Return the estimates of one simulated study."""
    traits, kind, beta = PRESETS[preset]
    log = simulate(traits, kind=kind, beta=beta, items=items, votes=VOTES, seed=seed)
    shifts = match_groups(tally_votes(log, "balanced"))
    return pl.concat([STATISTICS[name](shifts=shifts) for name in MEASURED])


def cover(preset: str, studies: int, items: int, seed: int) -> Iterator[Line]:
    """Yield, per statistic, how often its interval holds the truth."""
    truth = estimates(preset, LARGE, seed).select("statistic", truth="estimate")
    runs = pl.concat(
        [estimates(preset, items, seed * 1_000_003 + run) for run in range(1, studies + 1)]
    )
    for name in SHOWN:
        rows = runs.filter(pl.col("statistic") == name).join(truth, on="statistic")
        held = (rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"])
        yield Line(
            preset,
            name,
            rows["truth"][0],
            _number(rows["estimate"].mean()),
            _number(held.mean()),
            _number((rows["high"] - rows["low"]).mean()),
            rows["low"].null_count(),
        )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of the 95 % intervals.")
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--items", type=int, default=142)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    error = (0.95 * 0.05 / given.studies) ** 0.5
    print(f"{given.studies} studies of {given.items} items, {VOTES} votes an arm;")
    print(f"standard error of a coverage: {error:.3f}")
    head = ("preset", "statistic", "truth", "mean", "coverage", "width", "null")
    print("{:<10}{:<12}{:>8}{:>8}{:>10}{:>8}{:>6}".format(*head))
    for preset in PRESETS:
        for line in cover(preset, given.studies, given.items, given.seed):
            print("{:<10}{:<12}{:>8.3f}{:>8.3f}{:>10.3f}{:>8.3f}{:>6}".format(*line))


if __name__ == "__main__":
    main()
