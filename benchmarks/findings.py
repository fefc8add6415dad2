"""How often findings are right: words that the numbers warrant (methods, section 16).

Run it by hand: ``python benchmarks/findings.py [DESIGN ...] [--studies 1000] [--seed 1]``. Each
study is one cell of one simulated judge, so its family has one test.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from benchmarks.discernment import discernment
from benchmarks.hidden_bias import HIDDEN
from benchmarks.judge_studies import in_one_order
from benchmarks.simulated_votes import Kind, simulate
from tasks.inference.bootstrap import formulas_only
from tasks.results import results_of
from tasks.simulation.traits import Traits

BATCH = 100
READ = ("mps", "mps_sham", "sham_shift", "los", "detection_power", "dasr", "unanimous_rate")
"""Statistics that findings rest on."""

POSITION = ("first_pick_share", "position_effect", "position_consistency")

TYPICAL = Traits(omega=1.5, nu=0.5)


class Study(NamedTuple):
    """A judge, what is planted, and how large a study of it is."""

    about: str
    traits: Traits = TYPICAL
    kind: Kind = "promote"
    beta: float = 0.0
    items: int = 60
    votes: int = 2
    mu: float = 0.0
    read: tuple[str, ...] = READ
    one_order: bool = False
    """Whether each pair is seen in one order only, drawn at random."""


def taste(tau: float, beta: float = 0.0) -> Iterator[Study]:
    """Yield studies of a judge with a taste for the sham, in three sizes."""
    for items, votes in ((60, 2), (142, 6), (400, 2)):
        traits = TYPICAL.model_copy(update={"sham_taste": tau})
        about = f"sham {tau:+}, beta {beta:+}, {items} x {votes}"
        yield Study(about, traits, beta=beta, items=items, votes=votes)


def flaws(pi: float) -> Iterator[Study]:
    """Yield studies of a judge that notices a share ``pi`` of the flaws, of 2.5 logits each."""
    for items, votes in ((60, 2), (400, 2)):
        traits = TYPICAL.model_copy(update={"pi": pi})
        yield Study(f"notices {pi}, {items} x {votes}", traits, "detract", -2.5, items, votes)


def easy(beta: float) -> Iterator[Study]:
    """Yield studies of pairs that are easy: one answer is much better."""
    for items, votes in ((142, 6), (400, 2)):
        for mu, omega in ((-4.0, 1.0), (0.0, 8.0)):
            traits = Traits(omega=omega, nu=0.1)
            about = f"easy, mu {mu}, omega {omega}, beta {beta:+}, {items} x {votes}"
            yield Study(about, traits, beta=beta, items=items, votes=votes, mu=mu)


def slots(kappa: float) -> Iterator[Study]:
    """Yield studies of a judge that is drawn to the first slot by ``kappa`` logits."""
    for omega, items, votes in (
        (1.5, 60, 2),
        (1.5, 142, 2),
        (1.5, 142, 6),
        (1.5, 400, 2),
        (4.0, 142, 6),
    ):
        traits = Traits(omega=omega, nu=0.5, kappa=kappa)
        about = f"kappa {kappa}, omega {omega}, {items} x {votes}"
        yield Study(about, traits, items=items, votes=votes, read=POSITION)
    for items in (142, 400):
        traits = Traits(omega=1.5, nu=0.5, kappa=kappa)
        about = f"kappa {kappa}, {items} pairs in one order each"
        yield Study(about, traits, items=items, read=POSITION, one_order=True)


DESIGNS: dict[str, tuple[Study, ...]] = {
    "sham": (*taste(-0.5), *taste(0.5)),
    "power": (*taste(0.0, beta=1.0), *taste(-0.5, beta=1.0)),
    "detects": (*flaws(0.0), *flaws(0.2), *flaws(0.6), *flaws(1.0)),
    "easy": (*easy(1.0), *easy(0.0)),
    "position": (*slots(0.0), *slots(0.25), *slots(0.5), *slots(1.0)),
}


TABLES: dict[str, Callable[[int, int], Iterator[object]]] = {**HIDDEN, "discernment": discernment}


def findings(study: Study, studies: int, seed: int) -> pl.DataFrame:
    """Return the findings of many studies, each a family of its own."""
    log = simulate(
        study.traits,
        kind=study.kind,
        beta=study.beta,
        items=study.items,
        votes=study.votes,
        mu=study.mu,
        seed=seed,
        studies=studies,
        judge="s",
    )
    if study.read == POSITION:
        log = log.filter(pl.col("arm") == "control")
    if study.one_order:
        log = in_one_order(log, seed)
    # In a family of one the adjusted p-value is the raw one.
    alone = dict.fromkeys(("benjamini_hochberg", "benjamini_yekutieli", "holm"), pl.Series.clone)
    where = "tasks.conclusions.position_bias" if study.read == POSITION else "tasks.conclude"
    with formulas_only(), patch.multiple(where, **alone):
        return results_of(log, "balanced", only=study.read).findings


def words(study: Study, studies: int, seed: int) -> dict[str, float]:
    """Return the share of studies with each word."""
    found = pl.concat(
        findings(study, min(BATCH, studies - first), seed * 1_000_003 + first)
        for first in range(0, studies, BATCH)
    )
    counts = found["finding"].fill_null("no finding").value_counts(sort=True)
    return {word: many / found.height for word, many in counts.iter_rows()}


def main() -> None:
    """Print the share of each word, design by design."""
    parser = argparse.ArgumentParser(description="How often findings are right.")
    parser.add_argument("designs", nargs="*", choices=[[], *DESIGNS, *TABLES])
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name in given.designs or (*DESIGNS, *TABLES):
        for rate in TABLES[name](given.studies, given.seed) if name in TABLES else ():
            print(f"{name}: {rate}", flush=True)
        for study in DESIGNS.get(name, ()):
            shares_of_words = words(study, given.studies, given.seed)
            shares = ", ".join(f"{word} {share:.3f}" for word, share in shares_of_words.items())
            print(f"{name}: {study.about}: {shares}", flush=True)


if __name__ == "__main__":
    main()
