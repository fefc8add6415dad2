"""False drift alerts in quiet months, and what the canary sees, by simulation.

Run it by hand: ``python benchmarks/drift.py [--months 100] [--studies 300] [--seed 1]``.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from benchmarks.simulated_votes import simulate
from schemas.judging import VoteLog
from tasks.drift.alerts import watch
from tasks.drift.canary import canary
from tasks.kit.defaults import BUDGET, DEFAULTS
from tasks.results import counted_votes
from tasks.simulation.judge import probabilities
from tasks.simulation.traits import Traits

NIGHTS_OF_A_MONTH = 30
JUDGES, PERTURBATIONS = 6, 10
"""60 cells."""


def quiet_month(seed: int, items: int) -> pl.DataFrame:
    """Return what ``watch`` says of 30 quiet nights and the baseline, 60 cells, 2 votes an arm."""
    traits = Traits(omega=1.5, nu=0.5, kappa=0.4, psi=0.5)
    cells = [(f"j{c // PERTURBATIONS}", f"p{c % PERTURBATIONS}") for c in range(60)]
    nights = NIGHTS_OF_A_MONTH + 1
    logs = []
    for cell, (judge, perturbation) in enumerate(cells):
        # Items of all nights are drawn at once; each night's prompts keep no noise of another's.
        log = simulate(
            traits,
            kind="promote",
            beta=0.5,
            items=nights * items,
            votes=2,
            seed=seed * 10_007 + cell,
            judge=judge,
            perturbation=perturbation,
        )
        number = pl.col("sample").str.extract(r"(\d+)$").cast(pl.Int64)
        name = pl.concat_str(pl.lit(f"{perturbation}/"), number % items)
        logs.append(
            log.with_columns(
                sample=name,
                cluster=name,
                wave=pl.concat_str(pl.lit("n"), (number // items).cast(pl.String).str.zfill(2)),
            )
        )
    counted = counted_votes(VoteLog.of(pl.concat(logs)), "balanced")
    return watch(counted.tallies, counted.shifts)


def canary_power(temperature: float, studies: int, seed: int, level: float = 0.01) -> float:
    """Return the power of 100 prompts, eight votes against four, with correlation .9.

    The judge sees a gap of quality of standard deviation 1.5 before, and one that correlates .9
    with it after.
    """
    random = np.random.default_rng(seed)
    found = 0
    for study in range(studies):
        gap = 1.5 * random.standard_normal(100)
        other = 0.9 * gap + (1 - 0.9**2) ** 0.5 * 1.5 * random.standard_normal(100)
        rows = []
        for side, margin, votes in (("base", gap, 8), ("new", other, 4)):
            chances = np.stack(probabilities(margin, 0.5, temperature, 0.0), axis=1)
            chances /= chances.sum(axis=1, keepdims=True)
            counts = random.multinomial(votes, chances)
            rows.append({f"{side}": counts.ravel()})
        frame = pl.DataFrame(
            {
                **rows[0],
                **rows[1],
                "item": np.repeat(np.arange(100), 3),
                "outcome": list("atb") * 100,
            }
        ).with_columns(
            pl.col("item").cast(pl.String),
            dataset=pl.lit("d"),
            judge=pl.lit("j"),
            prompt=pl.lit("p"),
            wave=pl.lit("w"),
        )
        found += canary(frame, seed=study, draws=1999)["p_value"][0] < level
    return found / studies


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description="False drift alerts, and power of the canary.")
    parser.add_argument("--months", type=int, default=100)
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for temperature in (0.3, 0.5, 1.0):
        power = canary_power(temperature, given.studies, given.seed)
        print(f"canary, temperature {temperature}: power {power:.3f} at .01", flush=True)
    suspect = alerts = 0
    for month in range(given.months):
        rows = quiet_month(given.seed * 1_000_003 + month, given.items)
        suspect += rows.filter(pl.col("state") == "suspect")["wave"].n_unique()
        alerts += rows.filter(pl.col("state") == "alert")["wave"].n_unique()
    budget = given.months * NIGHTS_OF_A_MONTH * BUDGET / DEFAULTS.nights_per_false_alert
    print(f"{given.months} quiet months x 30 nights x 60 cells, {given.items} items:")
    print(f"nights with a suspect {suspect}, with an alert {alerts}; budget {budget:.1f}")


if __name__ == "__main__":
    main()
