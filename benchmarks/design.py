"""Stopping early: size, power and samples used of looks and of the e-process, by simulation.

Run it by hand: ``python benchmarks/design.py [--studies 4000] [--items 142] [--seed 1]``.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from benchmarks.simulated_votes import simulate
from schemas.judging import VoteLog
from tasks.results import counted_votes
from tasks.simulation.traits import Traits
from tasks.statistics import STATISTICS

BATCH = 250
ALPHA = 0.05
TYPICAL = Traits(omega=1.5, nu=0.5, kappa=0.4, psi=0.5)
"""The typical judge of methods.md, section 4."""

JUDGES = {"typical": TYPICAL, "prompt noise 1": TYPICAL.model_copy(update={"psi": 1.0})}
BETAS = (0.0, 0.5, 1.0)


class Line(NamedTuple):
    """One row of the printed table."""

    judge: str
    beta: float
    votes: int
    fixed: float
    looks: float
    looks_used: float
    e_process: float
    e_used: float


def shifts_of(
    traits: Traits, beta: float, *, studies: int, items: int, votes: int, seed: int
) -> pl.DataFrame:
    """Return the shifts of many studies, each a judge of its own: their items are independent."""
    log = simulate(traits, kind="promote", beta=beta, items=studies * items, votes=votes, seed=seed)
    number = pl.col("sample").str.extract(r"(\d+)$").cast(pl.Int64) // items
    log = VoteLog.of(log.with_columns(judge=pl.concat_str(pl.lit("study/"), number)))
    return counted_votes(log, "balanced").shifts


def line(name: str, beta: float, *, votes: int, studies: int, items: int, seed: int) -> Line:
    """Return how often each design finds something, and what it takes."""
    found = []
    for batch in range(0, studies, BATCH):
        shifts = shifts_of(
            JUDGES[name],
            beta,
            studies=min(BATCH, studies - batch),
            items=items,
            votes=votes,
            seed=seed * 1_000_003 + batch,
        )
        found += [
            STATISTICS[s](shifts=shifts) for s in ("mps_sham", "sequential_looks", "e_process")
        ]
    rows = pl.concat(found)

    def share(statistic: str, expression: pl.Expr) -> float:
        mean = rows.filter(pl.col("statistic") == statistic).select(expression.mean()).item()
        return float(mean)

    stopped, used = pl.col("estimate").is_not_null(), pl.col("estimate").fill_null(1.0)
    return Line(
        name,
        beta,
        votes,
        share("mps_sham", pl.col("p_value") < ALPHA),
        share("sequential_stop", stopped),
        share("sequential_stop", used),
        share("e_stop", stopped),
        share("e_stop", used),
    )


def lines(studies: int, items: int, seed: int) -> Iterator[Line]:
    """Yield every row of the table."""
    for name in JUDGES:
        for beta in BETAS:
            yield line(name, beta, votes=2, studies=studies, items=items, seed=seed)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Size, power and samples used of early stopping.")
    parser.add_argument("--studies", type=int, default=4000)
    parser.add_argument("--items", type=int, default=142)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"{given.studies} studies of {given.items} items, 2 votes per pair; found (used)")
    print(f"{'judge':15} {'beta':>4} {'fixed':>6} {'looks':>6} {'used':>6} {'e':>6} {'used':>6}")
    for one in lines(given.studies, given.items, given.seed):
        print(
            f"{one.judge:15} {one.beta:4.1f} {one.fixed:6.3f} {one.looks:6.3f} "
            f"{one.looks_used:6.3f} {one.e_process:6.3f} {one.e_used:6.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
