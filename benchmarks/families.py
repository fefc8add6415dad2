"""False discoveries among all cells of a report (family F1), whose judges share control votes.

Run it by hand: ``python benchmarks/families.py [--studies 200] [--items 142]
[--planted 0 3 6] [--seed 1]``.
"""

import argparse
import sys
from itertools import product
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from benchmarks.simulated_votes import simulate
from schemas.judging import VoteLog
from tasks.inference.bootstrap import formulas_only
from tasks.results import results_of
from tasks.simulation.traits import Traits

BATCH = 50
ALPHA = 0.05
TYPICAL = Traits(omega=1.5, nu=0.5, kappa=0.4, psi=0.5)
"""The typical judge of methods.md, section 4."""

ADJUSTED = {"BH": "p_adjusted", "BY": "p_by", "Holm": "p_holm", "none": "p_value"}


class Report(NamedTuple):
    """How large a report is, and how many perturbations of each judge have an effect."""

    judges: int = 8
    perturbations: int = 12
    items: int = 142
    planted: int = 6
    beta: float = 0.5


def votes_of(report: Report, studies: int, seed: int) -> DataFrame[VoteLog]:
    """Return the votes of many reports, each a dataset, with 2 votes per pair and no sham.

    All perturbations of a judge are held against the same control votes, and all judges see the
    same answers.
    """
    logs = []
    for judge, cell in product(range(report.judges), range(report.perturbations)):
        log = simulate(
            TYPICAL,
            kind="promote",
            beta=report.beta if cell < report.planted else 0.0,
            items=report.items,
            votes=2,
            studies=studies,
            gap_seed=seed,
            judge="s",
            perturbation=f"p{cell:02}",
            seed=seed * 1009 + judge * report.perturbations + cell + 1,
        )
        arms = ["control", "experimental"] if cell == 0 else ["experimental"]
        mine = log.filter(pl.col("arm").is_in(arms))
        logs.append(mine.with_columns(dataset="judge", judge=pl.lit(f"j{judge}")))
    return VoteLog.of(pl.concat(logs))


def discoveries(report: Report, studies: int, seed: int) -> pl.DataFrame:
    """Return per report and adjustment the ``false`` and ``true`` discoveries, and ``biased``."""
    null = pl.col("perturbation").str.tail(2).cast(pl.Int64) >= report.planted
    found = []
    votes = votes_of(report, studies, seed)
    for (dataset,), log in votes.partition_by("dataset", as_dict=True).items():
        with formulas_only():
            cells = results_of(log, "balanced", only=["mps"]).findings
        rejections = {name: pl.col(column) <= ALPHA for name, column in ADJUSTED.items()}
        rejections["biased"] = pl.col("finding") == "biased"
        found += [
            cells.select(
                study=pl.lit(f"{seed}/{dataset}"),
                adjusted=pl.lit(name),
                false=(rejected & null).sum(),
                true=(rejected & ~null).sum(),
            )
            for name, rejected in rejections.items()
        ]
    return pl.concat(found)


def rates(report: Report, studies: int, seed: int) -> pl.DataFrame:
    """Return the false discovery rate, its standard error, and the share of effects found."""
    found = pl.concat(
        discoveries(report, min(BATCH, studies - first), seed * 1_000_003 + first)
        for first in range(0, studies, BATCH)
    )
    share = pl.col("false") / pl.max_horizontal(pl.col("false") + pl.col("true"), 1)
    effects = max(report.judges * report.planted, 1)
    return found.group_by("adjusted", maintain_order=True).agg(
        fdr=share.mean(),
        error=share.std() / pl.len().sqrt(),
        power=pl.col("true").mean() / effects,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="False discoveries among 96 cells.")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--items", type=int, default=142)
    parser.add_argument("--planted", type=int, nargs="*", default=[0, 3, 6], help="of 12")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"{given.studies} reports of 96 cells, {given.items} items, 2 votes per pair")
    print(f"{'planted':>8} {'adjusted':>9} {'FDR':>6} {'error':>6} {'power':>6}")
    for planted in given.planted:
        report = Report(items=given.items, planted=planted)
        for name, fdr, error, power in rates(report, given.studies, given.seed).rows():
            line = f"{planted:>5}/12 {name:>9} {fdr:6.3f} {error:6.3f} {power:6.3f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
