"""Operating characteristics: size of the tests, coverage of the 95 % intervals, recovery of LOS.

Run it by hand: ``python benchmarks/characteristics.py size|coverage|los|exclusion [--studies 2000]
[--only RECIPE] [--judge NAME] [--design NAME] [--measure STATISTIC ...] [--formulas] [--seed 1]``.
All of a table takes one to two hours of one core.
"""

import argparse
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from benchmarks.judge_studies import (
    DESIGNS,
    GIANT,
    GIANTS,
    PLANTED,
    QUIET,
    WANTED,
    Design,
    Judge,
    attrition,
    audit,
    bare,
    drawn,
    frames,
    labels,
    looks,
    measured,
    oversight,
    panel,
    ranked,
    spread,
    waves,
)
from benchmarks.model_and_people_studies import (
    contest,
    decision,
    once,
    people,
    selves,
    sharp,
    style,
)
from schemas.results import Estimates
from tasks.conclusions.exclusions import exclude
from tasks.inference.bootstrap import formulas_only
from tasks.simulation.traits import Traits
from tasks.statistics import STATISTICS

BATCH = 250
"""Studies that are simulated and measured in one go."""

ALPHA = 0.05
ROW = ("statistic", "judge", "perturbation", "subgroup")
Recipe = Callable[[Judge, Design, int, int], pl.DataFrame]
RECIPES: dict[str, Recipe] = {
    r.__name__: r
    for r in (
        audit,
        spread,
        oversight,
        attrition,
        labels,
        panel,
        bare,
        ranked,
        waves,
        looks,
        contest,
        once,
        sharp,
        style,
        decision,
        selves,
        people,
    )
}
SLOW = ("style", "people", "panel", "ranked")
"""Recipes that are run on half the studies."""


def runs(recipe: str, judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Return a recipe's estimates of so many studies, batch by batch."""
    studies = studies // 2 if recipe in SLOW else studies
    found = []
    for first in range(0, studies, BATCH):
        many = min(BATCH, studies - first)
        rows = RECIPES[recipe](judge, design, many, seed * 1_000_003 + 100 * first)
        found.append(rows.with_columns(study=pl.concat_str(pl.lit(f"{first}/"), "study")))
    return principal(pl.concat(found))


def principal(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep, of rows about each arm, those about the control arm."""
    null = pl.col("perturbation").is_null()
    return rows.filter(null.any().over("statistic") <= null)


def truth(recipe: str, judge: Judge) -> pl.DataFrame:
    """Return the mean of giant studies, whose bias is as good as none, and its standard error."""
    # Below ten clusters nobody is ranked.
    giant = GIANT._replace(clusters=10) if recipe == "ranked" else GIANT
    rows = pl.concat(
        RECIPES[recipe](judge, giant, 5, 900_001 + 100 * part) for part in range(GIANTS // 5)
    )
    return (
        principal(rows)
        .group_by(ROW, maintain_order=True)
        .agg(
            truth=pl.col("estimate").mean(),
            unsure=pl.col("estimate").std() / pl.col("estimate").count().sqrt(),
        )
    )


# --- tables ---------------------------------------------------------------------------------


def sizes(recipe: str, judge: Judge, design: Design, studies: int, seed: int) -> pl.DataFrame:
    """Return how often each test rejects a true null hypothesis, or has no p-value."""
    rows = runs(recipe, judge, design, studies, seed)
    return (
        rows.group_by(ROW, maintain_order=True)
        .agg(
            tests=pl.col("p_value").count(),
            size=(pl.col("p_value") <= ALPHA).mean(),
            null=pl.col("p_value").null_count() / pl.len(),
        )
        .filter(pl.col("tests") > 0)
    )


def coverages(
    recipe: str, judge: Judge, design: Design, true: pl.DataFrame, *, studies: int, seed: int
) -> pl.DataFrame:
    """Return how often each interval holds what giant studies say."""
    rows = runs(recipe, judge, design, studies, seed)
    rows = rows.filter(pl.col("level").is_not_null().any().over(ROW))
    joined = rows.join(true, on=ROW, how="left", nulls_equal=True)
    return joined.group_by(ROW, maintain_order=True).agg(
        truth=pl.col("truth").first(),
        mean=pl.col("estimate").mean(),
        coverage=pl.col("truth").is_between("low", "high").mean(),
        below=(pl.col("high") < pl.col("truth")).mean(),
        above=(pl.col("low") > pl.col("truth")).mean(),
        boot=pl.col("truth").is_between("boot_low", "boot_high").mean(),
        width=(pl.col("high") - pl.col("low")).mean(),
        null=pl.col("low").null_count() / pl.len(),
        unsure=(pl.col("unsure") / (pl.col("high") - pl.col("low")).mean() * 3.92).first(),
    )


BETAS = (-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0)


def recovered(beta: float, studies: int, seed: int) -> pl.DataFrame:
    """Return LOS where psi = upsilon = 0 and pi = 1, so that it is the planted effect exactly."""
    judge = Judge(Traits(omega=1.5, nu=0.5, kappa=0.4), beta=beta)
    large = measured(("los",), "judge", **frames(drawn(judge, GIANT, GIANTS, seed)))
    found = {"large": large, **dict.fromkeys(DESIGNS, None)}
    for name, design in DESIGNS.items():
        given = frames(drawn(judge, design, studies, seed + 1))
        found[name] = measured(("los",), "judge", **given)
    return pl.concat(
        rows.select(
            beta=pl.lit(beta),
            studies=pl.lit(name),
            mean=pl.col("estimate").mean(),
            sd=pl.col("estimate").std(),
            coverage=pl.lit(beta).is_between("low", "high").mean(),
        )
        for name, rows in found.items()
    )


SUSPECTS = {
    "honest": Traits(omega=1.5, nu=0.5),
    "prompt noise 1": Traits(omega=1.5, nu=0.5, psi=1.0),
    "gap .07": Traits(omega=1.5, nu=0.5, kappa=0.37),
    "gap .14": Traits(omega=1.5, nu=0.5, kappa=0.76),
    "gap .20": Traits(omega=1.5, nu=0.5, kappa=1.13),
    "gap .31": Traits(omega=1.5, nu=0.5, kappa=1.9),
    "ties .75": Traits(omega=1.5, nu=8.6),
    "invalid .05": Traits(omega=1.5, nu=0.5, iota=0.05),
    "invalid .10": Traits(omega=1.5, nu=0.5, iota=0.1),
    "invalid .15": Traits(omega=1.5, nu=0.5, iota=0.15),
}


def excluded(name: str, studies: int, seed: int) -> pl.DataFrame:
    """Return the share of studies in which the exclusion rule flags a judge."""
    found = []
    for title, design in DESIGNS.items():
        log = drawn(Judge(SUSPECTS[name]), design, studies, seed).filter(arm="control")
        names = ("first_pick_share", "tie_rate", "validity")
        tallies = frames(log)["tallies"]
        rows = pl.concat([STATISTICS[one].draft(tallies=tallies) for one in names])
        excluded_judges = exclude(Estimates.of(rows))
        found.append(
            excluded_judges.select(
                judge=pl.lit(name),
                studies=pl.lit(title),
                gap=pl.col("position_gap").mean(),
                ties=pl.col("tie_rate").mean(),
                invalid=pl.col("invalid_rate").mean(),
                excluded=pl.col("excluded").mean(),
            )
        )
    return pl.concat(found)


def show(table: pl.DataFrame, *what: str) -> None:
    """Print a table with what it is about."""
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=180,
        fmt_str_lengths=40,
        float_precision=3,
        tbl_hide_column_data_types=True,
        tbl_hide_dataframe_shape=True,
        tbl_formatting="MARKDOWN",
    ):
        print("##", *what, table, sep="\n" if len(what) == 1 else " ", flush=True)


def main() -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description="Operating characteristics.")
    parser.add_argument("table", choices=("size", "coverage", "los", "exclusion"))
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--only", choices=RECIPES, help="one recipe of studies")
    parser.add_argument("--judge", choices=(*QUIET, *PLANTED), help="one judge")
    parser.add_argument("--design", choices=DESIGNS, help="one design")
    parser.add_argument("--measure", nargs="*", choices=list(STATISTICS), help="not all")
    parser.add_argument("--formulas", action="store_true", help="no bootstrap, no permutation")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    WANTED.extend(given.measure or [])
    if given.table == "los":
        show(pl.concat(recovered(beta, given.studies, given.seed) for beta in BETAS), "los")
        return
    if given.table == "exclusion":
        show(pl.concat(excluded(name, given.studies, given.seed) for name in SUSPECTS), "excluded")
        return
    with formulas_only() if given.formulas else nullcontext():
        for recipe in [given.only] if given.only else RECIPES:
            _measure(recipe, given)


def _measure(recipe: str, given: argparse.Namespace) -> None:
    """Print what a recipe's studies say of each judge, in each design."""
    for name, judge in (QUIET if given.table == "size" else PLANTED).items():
        if given.judge not in {None, name}:
            continue
        true = truth(recipe, judge) if given.table == "coverage" else None
        for title, design in DESIGNS.items():
            if given.design not in {None, title}:
                continue
            if true is None:
                table = sizes(recipe, judge, design, given.studies, given.seed)
            else:
                table = coverages(
                    recipe, judge, design, true, studies=given.studies, seed=given.seed
                )
            show(table, recipe, name, title)


if __name__ == "__main__":
    main()
