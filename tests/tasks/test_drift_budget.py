"""False drift alerts, and what the canary sees: a small, seeded benchmarks/drift.py."""

import numpy as np
import polars as pl
import pytest

from benchmarks.simulated_votes import simulate
from schemas.judging import VoteLog
from tasks.aggregate import count_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.drift.alerts import watch
from tasks.drift.canary import canary
from tasks.simulation.judge import probabilities
from tasks.simulation.traits import Traits

pytestmark = pytest.mark.slow

CELLS, NIGHTS, ITEMS = 60, 8, 24


def test_quiet_nights_keep_quiet() -> None:
    traits = Traits(omega=1.5, nu=0.5, kappa=0.4, psi=0.5)
    log = simulate(traits, kind="promote", beta=0.5, items=CELLS * NIGHTS * ITEMS, votes=2, seed=21)
    number = pl.col("sample").str.extract(r"(\d+)$").cast(pl.Int64)
    name = pl.concat_str(pl.lit("s"), number % ITEMS)
    log = log.with_columns(
        sample=name,
        cluster=name,
        judge=pl.concat_str(pl.lit("j"), number // ITEMS % CELLS),
        wave=pl.concat_str(pl.lit("n"), number // (ITEMS * CELLS)),
    )
    tallies = count_votes(VoteLog.of(log))
    found = watch(tallies, match_groups(tally_votes(tallies, "balanced")))
    mps = found.filter(measure="mps_drift")
    assert mps.height == CELLS * (NIGHTS - 1)
    # Without a budget 60 cells at .05 are significant every night.
    assert mps.filter(pl.col("p_value") < 0.05)["wave"].n_unique() == NIGHTS - 1
    # By the budget, 7/90 nights have a suspect: more than one is 3 in 1000; and an alert is rarer.
    assert found.filter(state="suspect")["wave"].n_unique() <= 1
    assert found.filter(state="alert").is_empty()


def found_by_canary(temperature: float, studies: int = 40) -> float:
    """Return the power at .01 of 100 prompts, eight votes against four, at correlation .9."""
    random = np.random.default_rng(8)
    hits = 0
    for study in range(studies):
        gap = 1.5 * random.standard_normal(100)
        other = 0.9 * gap + (1 - 0.9**2) ** 0.5 * 1.5 * random.standard_normal(100)
        sides = {}
        for side, margin, votes in (("base", gap, 8), ("new", other, 4)):
            chances = np.stack(probabilities(margin, 0.5, temperature, 0.0), axis=1)
            sides[side] = random.multinomial(votes, chances).ravel()
        items = {"item": np.repeat(np.arange(100), 3), "outcome": list("atb") * 100}
        counts = pl.DataFrame({**sides, **items}).with_columns(
            pl.col("item").cast(pl.String),
            dataset=pl.lit("d"),
            judge=pl.lit("j"),
            prompt=pl.lit("p"),
            wave=pl.lit("w"),
        )
        hits += canary(counts, seed=study, draws=999)["p_value"][0] < 0.01
    return hits / studies


def test_a_low_temperature_is_what_makes_canaries_work() -> None:
    # methods.md, section 10: power .97 at temperature .3, .10 at 1; three standard errors.
    assert found_by_canary(0.3) >= 0.89
    assert found_by_canary(1.0) <= 0.25
