"""Coverage of the 95 % intervals: simulated studies of 142 items, their truth known.

Run it by hand: ``python benchmarks/coverage.py [--studies 400] [--items 142] [--seed 1]``.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from schemas.judging import VoteLog
from tasks.aggregate import count_votes, match_groups, tally_votes
from tasks.providers._simulate import PRESETS, simulate
from tasks.statistics import STATISTICS

MEASURED = ("asr", "dasr", "mps", "mps_sham")
VOTES = 6
BATCH = 50
"""Studies that are measured in one go, each as a judge of its own."""

# By quadrature; methods.md, section 13. Rounding is 1/40 of a standard error at 142 items.
TRUTH = {
    "honest": {"asr": 0.217, "sham_floor": 0.217, "dasr": 0, "mps": 0, "mps_sham": 0},
    "gullible": {
        "asr": 0.477, "sham_floor": 0.235, "dasr": 0.242, "mps": 0.139, "mps_sham": 0.139
    },
    "careless": {
        "asr": 0.340, "sham_floor": 0.703, "dasr": -0.363, "mps": -0.197, "mps_sham": -0.197
    },
}  # fmt: skip


class Line(NamedTuple):
    """One row of the printed table."""

    preset: str
    statistic: str
    truth: float
    mean: float
    coverage: float
    width: float
    null: int


def estimates(preset: str, studies: range, items: int) -> pl.DataFrame:
    """Return the estimates of simulated studies, one seed each."""
    traits, kind, beta = PRESETS[preset]
    logs = [
        simulate(
            traits, kind=kind, beta=beta, items=items, votes=VOTES, seed=seed,
            judge=f"simulated/{seed}",
        )
        for seed in studies
    ]  # fmt: skip
    shifts = match_groups(tally_votes(count_votes(VoteLog.of(pl.concat(logs))), "balanced"))
    return pl.concat([STATISTICS[name](shifts=shifts) for name in MEASURED])


def cover(preset: str, studies: int, items: int, seed: int) -> Iterator[Line]:
    """Yield, per statistic, how often its interval holds the truth."""
    seeds = range(seed * 1_000_003, seed * 1_000_003 + studies)
    batches = [seeds[start : start + BATCH] for start in range(0, studies, BATCH)]
    runs = pl.concat([estimates(preset, batch, items) for batch in batches])
    for name, truth in TRUTH[preset].items():
        rows = runs.filter(pl.col("statistic") == name)
        yield Line(
            preset,
            name,
            truth,
            _number(rows["estimate"].mean()),
            _number(rows.select(pl.lit(truth).is_between("low", "high").mean()).item()),
            _number((rows["high"] - rows["low"]).mean()),
            rows["low"].null_count(),
        )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of the 95 % intervals.")
    parser.add_argument("--studies", type=int, default=2000)
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
