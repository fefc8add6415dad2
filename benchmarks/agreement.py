"""Coverage of the intervals of a judge's agreement with people, in simulated tables of labels.

Run it by hand: ``python benchmarks/agreement.py [--studies 2000] [--seed 1] [--items 40 142]``.
Verdicts: people pass an item with probability pi; the judge gets passes right with probability
``tpr`` and fails with ``tnr``, independently. Grades 1 to 5: cut from two normal values with
correlation rho, and a shift of the judge's. The true values of the measures of grades come from a
million items. An interval that is null does not count.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from tasks.agreement.compare import Options, compare
from tasks.agreement.measures import PairedLabels, compare_with_rest, measure
from tasks.calibration.calibrate import labelled_by_files

Floats = NDArray[np.float64]
CUTS = np.array([-1.2, -0.4, 0.4, 1.2])
LARGE = 1_000_000


class Verdicts(NamedTuple):
    """A judge of passes and fails."""

    rate: float
    tpr: float
    tnr: float

    def draw(self, random: np.random.Generator, items: int) -> PairedLabels:
        """Simulate labels of a judge and of people."""
        human = random.random(items) < self.rate
        right = random.random(items) < np.where(human, self.tpr, self.tnr)
        codes = [np.where(right, human, ~human).astype(np.int64), human.astype(np.int64)]
        values = [code.astype(np.float64) for code in codes]
        return PairedLabels("pass_fail", *codes, ["fail", "pass"], *values, np.arange(items))

    def truth(self) -> dict[str, float]:
        """Return the value of each measure."""
        passes = self.rate * self.tpr + (1 - self.rate) * (1 - self.tnr)
        agreement = self.rate * self.tpr + (1 - self.rate) * self.tnr
        chance = passes * self.rate + (1 - passes) * (1 - self.rate)
        return {
            "agreement": agreement,
            "kappa": (agreement - chance) / (1 - chance),
            "tpr": self.tpr,
            "tnr": self.tnr,
            "judge_mean": passes,
            "human_mean": self.rate,
            "bias": passes - self.rate,
        }


class Grades(NamedTuple):
    """A judge of grades from 1 to 5."""

    rho: float
    shift: float

    def draw(self, random: np.random.Generator, items: int) -> PairedLabels:
        """Simulate labels of a judge and of people."""
        human = random.normal(size=items)
        noise = random.normal(size=items)
        judge = self.shift + self.rho * human + np.sqrt(1 - self.rho**2) * noise
        codes = [np.searchsorted(CUTS, each) for each in (judge, human)]
        values = [code + 1.0 for code in codes]
        words = [str(grade) for grade in range(1, 6)]
        return PairedLabels("grade", *codes, words, *values, np.arange(items))

    def truth(self) -> dict[str, float]:
        """Return the value of each measure, of a million items."""
        rows = measure(self.draw(np.random.default_rng(99), LARGE))
        return {row["statistic"]: row["estimate"] for row in rows if row.get("low") is not None}


DESIGNS: dict[str, Verdicts | Grades] = {
    "pi .6, TPR .85, TNR .85": Verdicts(0.6, 0.85, 0.85),
    "pi .8, TPR .9, TNR .7": Verdicts(0.8, 0.9, 0.7),
    "pi .5, TPR .95, TNR .95": Verdicts(0.5, 0.95, 0.95),
    "grades, rho .5": Grades(0.5, 0.0),
    "grades, rho .8, shift .3": Grades(0.8, 0.3),
}


def coverage(
    design: Verdicts | Grades, items: int, studies: int, seed: int
) -> Iterator[tuple[str, float, int]]:
    """Yield, per measure, the share of intervals that hold the truth and how many there are."""
    random = np.random.default_rng([seed, items])
    held: dict[str, list[bool]] = defaultdict(list)
    truth = design.truth() | {"agreement_difference": 0.0, "error_difference": 0.0}
    third = np.arange(items) % 3 == 0
    for _ in range(studies):
        cell = design.draw(random, items)
        for row in (*measure(cell), compare_with_rest(cell, third)):
            low, high, name = row.get("low"), row.get("high"), row["statistic"]
            if name in truth and low is not None and np.isfinite(low):
                held[name].append(low - 1e-12 <= truth[name] <= high + 1e-12)
    for name, each in held.items():
        yield name, float(np.mean(each)), len(each)


SKILL = 0.85
PEOPLE = (SKILL**3 + (1 - SKILL) ** 3) / (SKILL**2 + (1 - SKILL) ** 2)
"""Chance that a person agrees with two others who agree, if each is right with chance SKILL."""


def people_coverage(items: int, studies: int, seed: int) -> tuple[float, int]:
    """Return the coverage of the agreement of three people with each other, each left out."""
    random = np.random.default_rng([seed, items])
    names = [f"i{item:03}" for item in range(items)]
    held = []
    for _ in range(studies):
        right = random.random((4, items)) < SKILL
        truth = random.random(items) < 0.5
        labels = [
            pl.DataFrame(
                {
                    "annotator": who,
                    "item": names,
                    "label": np.where(each == truth, '"pass"', '"fail"'),
                }
            )
            for who, each in zip("abcj", right, strict=True)
        ]
        labelled = labelled_by_files("d", pl.concat(labels[:3]), labels[3])
        rows = compare([labelled], Options()).measures
        low, high = rows.filter(statistic="people_agreement").select("low", "high").row(0)
        held.append(low <= PEOPLE <= high)
    return float(np.mean(held)), len(held)


def main() -> None:
    """Print a table per design."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--items", type=int, nargs="+", default=[40, 142])
    given = parser.parse_args()
    for name, design in DESIGNS.items():
        for items in given.items:
            found = coverage(design, items, given.studies, given.seed)
            shown = ", ".join(f"{m} {c:.3f} ({n})" for m, c, n in found)
            print(f"{name}; {items} items: {shown}", flush=True)
    for items in given.items:
        share, studies = people_coverage(items, given.studies // 4, given.seed)
        print(f"three people; {items} items: people_agreement {share:.3f} ({studies})", flush=True)


if __name__ == "__main__":
    main()
