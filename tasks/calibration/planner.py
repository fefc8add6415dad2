"""Sample size for the alternative annotator test, by simulation."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.keys import EpsilonKind, Test
from tasks.calibration.label_values import readings
from tasks.calibration.non_inferiority import check_epsilon, needs_score, score_test, t_test
from tasks.inference.multiplicity import benjamini_yekutieli_rows
from tasks.kit.defaults import ALPHA, POWER, calibration_limits

SIZES = (30, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1200, 1600, 2400)
HALF = 0.5
DRAWS = 500
STEPS = 8
"""Bisection steps in the search for the worst judge: its accuracy is found to 1/256."""


@dataclass(frozen=True)
class AnnotatorModel:
    """Model of annotators: each knows the truth with some probability, else guesses."""

    frequencies: Sequence[float]
    """Label frequencies, which sum to 1."""
    agreement: float
    """Probability that two people give an instance the same label."""
    annotators: int = 3

    @property
    def chance(self) -> float:
        """Return the agreement of people who only guess."""
        return float(sum(share**2 for share in self.frequencies))

    @property
    def skill(self) -> float:
        """Return the probability to know; two people both know, and agree, with its square."""
        known = (self.agreement - self.chance) / (1 - self.chance)
        return math.sqrt(max(0.0, known))

    @property
    def accuracy(self) -> float:
        """Return the probability that a person gives the true label."""
        return self.skill + (1 - self.skill) * self.chance


class Plan(NamedTuple):
    """Instances needed for a judge as accurate as people, and what passes with as many."""

    instances: int | None
    """Fewest instances with .8 probability of passing; None if no size tried has it."""
    chances: dict[int, float]
    worst: float | None
    """How much less accurate than people a judge can be and still pass half the time."""


def describe_people(humans: pl.DataFrame, source: str = "the file") -> AnnotatorModel:
    """Return the label frequencies and the pairwise agreement of human labels.

    Labels are names, as in the test: 3 and "3" are the same, and the order of a list is ignored.
    """
    named = _named(humans.drop_nulls(["item", "label"]))
    twice = named.filter(pl.struct("annotator", "item").is_duplicated())
    if not twice.is_empty():
        who, item = twice.select("annotator", "item").row(0)
        raise ValueError(
            f"{who!r:.60} labels item {item!r:.60} more than once. Keep one label each."
        )
    shares = named["label"].value_counts().sort("label")["count"] / max(named.height, 1)
    votes = (
        named.group_by("item", "label")
        .len()
        .group_by("item")
        .agg(n=pl.col("len").sum(), same=(pl.col("len") * (pl.col("len") - 1)).sum())
        .filter(pl.col("n") >= 2)
    )
    if votes.is_empty():
        who = named["annotator"].unique().sort().to_list()
        has = f"{len(who)} people, but no item that two of them labelled"
        if len(who) < 2:
            has = f"one person ({who[0]:.60})" if who else "no valid label"
        raise ValueError(f"The plan needs items that two people labelled; {source} has {has}.")
    if shares.len() < 2:
        raise ValueError(
            f"The plan needs two different labels; all labels of people in {source} are equal."
        )
    pairs = int((votes["n"] * (votes["n"] - 1)).sum())
    each = named.group_by("item").len()["len"].median()
    people = max(2, round(float(each)))  # type: ignore[arg-type]
    return AnnotatorModel(shares.to_list(), int(votes["same"].sum()) / pairs, people)


def _named(humans: pl.DataFrame) -> pl.DataFrame:
    """Read labels as the metric accuracy does, without invalid ones."""
    names = {
        label: json.dumps(sorted(each)) if isinstance(each, frozenset) else each
        for label, each in readings("text", humans["label"]).items()
    }
    named = pl.col("label").replace_strict(names, default=None, return_dtype=pl.String)
    return humans.with_columns(named).drop_nulls("label")


class Simulation(NamedTuple):
    """What the simulated studies test, how many of them there are, and their seed."""

    epsilon: float = 0.1
    kind: EpsilonKind = "additive"
    test: Test = "auto"
    draws: int = DRAWS
    seed: int = 1


def plan_annotators(people: AnnotatorModel, how: Simulation, sizes: Sequence[int] = SIZES) -> Plan:
    """Find the fewest instances, each labelled by all, and the worst judge who may then pass.

    Notes
    -----
    The skill reproduces the frequencies and the agreement if people err alike and independently.
    The winning rate over annotators is computed as in the test itself.
    """
    check_epsilon(how.epsilon, how.kind)
    chances: dict[int, float] = {}
    for size in sizes:
        chances[size] = chance_to_pass(people, size, people.accuracy, how)
        if chances[size] >= POWER:
            return Plan(size, chances, worst_judge(people, size, how))
    return Plan(None, chances, None)


def worst_judge(people: AnnotatorModel, instances: int, how: Simulation) -> float:
    """Return how much less accurate than people a judge is who passes half the time.

    Below 0, even a judge as accurate as people passes less often. All simulations use the same
    random numbers, so the probability is monotone in accuracy.
    """
    low, high = people.chance, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        passed = chance_to_pass(people, instances, middle, how)
        low, high = (low, middle) if passed >= HALF else (middle, high)
    return people.accuracy - (low + high) / 2


def chance_to_pass(
    people: AnnotatorModel, instances: int, accuracy: float, how: Simulation
) -> float:
    """Return the share of simulated studies in which a judge with this accuracy passes."""
    random = np.random.default_rng(how.seed)
    skill = (accuracy - people.chance) / (1 - people.chance)
    studies = [_study(random, people, instances, skill) for _ in range(how.draws)]
    better, worse = (np.array(counts) for counts in zip(*studies, strict=True))
    n = np.full(better.shape, instances)
    by_score = needs_score(n, better, worse) if how.test == "auto" else how.test == "score"
    p = np.where(
        by_score,
        score_test(n, better, worse, how.epsilon, how.kind),
        t_test(n, better, worse, how.epsilon, how.kind),
    )
    rejected = (benjamini_yekutieli_rows(p) <= ALPHA).sum(axis=1)
    passed = rejected >= calibration_limits().least_winning_rate * people.annotators
    return float(passed.mean())


def _study(
    random: np.random.Generator, people: AnnotatorModel, instances: int, skill: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Simulate a study: in how many instances each annotator, and the judge, fits better."""
    count = len(people.frequencies)
    edges = np.cumsum(people.frequencies)[:-1]
    shape = (people.annotators + 1, instances)
    guesses = np.searchsorted(edges, random.random(shape))
    truth = np.searchsorted(edges, random.random(instances))
    skills = np.full((people.annotators + 1, 1), people.skill)
    skills[-1] = skill
    labels = np.where(random.random(shape) < skills, truth, guesses)
    humans, judge = labels[:-1], labels[-1]
    place = np.arange(instances)
    votes = np.bincount((place * count + humans).ravel(), minlength=instances * count)
    own = votes[place * count + humans] - 1
    other = votes[place * count + judge] - (humans == judge)
    return (own > other).sum(axis=1), (own < other).sum(axis=1)
