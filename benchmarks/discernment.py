"""How often judges pass the gate of discernment; ``findings.py`` runs it."""

from collections.abc import Iterator

import polars as pl

from benchmarks.simulated_votes import simulate
from schemas.judging import VoteLog
from tasks.gates.scorecard import scorecard
from tasks.inference.bootstrap import formulas_only
from tasks.results import results_of
from tasks.simulation.traits import Traits

FLAWS = ("factual_error", "gender_bias")
JUDGES = {
    "votes at random": Traits(uniform=True),
    **{f"notices {pi}": Traits(omega=1.5, nu=0.5, pi=pi) for pi in (0.0, 0.6, 1.0)},
}
SIZES = ((60, 2), (60, 4), (60, 6), (142, 6))
READ = ("mps", "mps_sham", "detection_power")
"""Statistics that the gate rests on."""

BATCH = 100


def discernment(studies: int, seed: int) -> Iterator[str]:
    """Yield, by judge and size, how often the gate has which verdict.

    Two kinds of flaws of 2.5 logits; a judge notices a share of them.
    """
    for about, traits in JUDGES.items():
        for items, votes in SIZES:
            found = pl.concat(
                _verdicts(traits, items, votes, min(BATCH, studies - first), seed * 1009 + first)
                for first in range(0, studies, BATCH)
            )
            shares = found.value_counts(sort=True, normalize=True)
            text = ", ".join(f"{verdict} {share:.3f}" for verdict, share in shares.iter_rows())
            yield f"{about}, {items} x {votes}: {text}"


def _verdicts(traits: Traits, items: int, votes: int, studies: int, seed: int) -> pl.Series:
    """Return the gate's verdict of each study, a judge of its own."""
    parts = [
        simulate(
            traits,
            kind="detract",
            beta=-2.5,
            items=items,
            votes=votes,
            seed=2 * seed + at,
            studies=studies,
            judge="s",
            perturbation=name,
            gap_seed=seed,
        )
        for at, name in enumerate(FLAWS)
    ]
    log = pl.concat([parts[0], parts[1].filter(pl.col("arm") != "control")])
    with formulas_only():
        found = results_of(VoteLog.of(log), "balanced", only=READ)
    return scorecard(found.estimates, found.findings).filter(gate="discernment")["verdict"]
