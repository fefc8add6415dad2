"""What the alternative annotator test costs, and how often it errs where items share clusters.

Run it by hand: ``python benchmarks/alt_test.py [--people 200] [--items 20000] [--judges 50]``. Each
run also times a plain numpy comparison of as many pairs of labels, as machines differ; last comes
the whole command, from files of both to JSON, agreement and all, saving nothing.

``python benchmarks/alt_test.py --size 400`` instead simulates that many studies of each design,
with three people of accuracy .8 and a judge whose accuracy is .95 or .25 by cluster. Its advantage
is at the margin, so a test at .05 should reject for 5 % of the annotators; the second number is
the same rate for a test that takes items as independent.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from tasks.calibration.alt_test import CURVE, alt_test
from tasks.kit.defaults import ALPHA
from tasks.metrics import METRICS
from tasks.readers.labels import read_labels

SKILL = 0.7
WORDS, PERSON, WELL, BADLY = 4, 0.8, 0.95, 0.25
"""Number of labels of a clustered study, accuracy of a person, and of the judge by cluster."""
DESIGNS = ((60, 3), (30, 5), (15, 8))
"""Clusters, and items of each."""
LABELS = 5
MEASURED = ("accuracy", "neg_rmse", "jaccard", "macro_jaccard")


def labels(
    random: np.random.Generator, truth: NDArray[np.int64], who: str, count: int
) -> pl.DataFrame:
    """Simulate annotators who know the truth in .7 of items, and else say anything."""
    shape = (count, truth.size)
    said = np.where(random.random(shape) < SKILL, truth, random.integers(0, LABELS, shape))
    return pl.DataFrame(
        {
            "annotator": np.repeat([f"{who}{i:03}" for i in range(count)], truth.size),
            "item": np.tile([f"item{i:06}" for i in range(truth.size)], count),
            "label": pl.Series(said.ravel()).cast(pl.String),
        }
    )


def clustered_study(
    random: np.random.Generator, clusters: int, items: int
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Simulate labels of people and of a judge that knows whole clusters well or badly.

    Returns
    -------
    tuple
        Labels of people, labels of the judge, and ``cluster`` of each ``item``.
    """
    truth = random.integers(0, WORDS, clusters * items)
    names = [f"item{i:06}" for i in range(truth.size)]

    def said(who: str, right: float | NDArray[np.float64]) -> pl.DataFrame:
        wrong = (truth + random.integers(1, WORDS, truth.size)) % WORDS
        label = np.where(random.random(truth.size) < right, truth, wrong)
        return pl.DataFrame(
            {"annotator": who, "item": names, "label": pl.Series(label).cast(pl.String)}
        )

    known = np.where(random.random(clusters) < 0.5, WELL, BADLY).repeat(items)
    place = [f"cluster{i:05}" for i in range(clusters) for _ in range(items)]
    people = pl.concat([said(f"human{i}", PERSON) for i in range(3)])
    return people, said("judge", known), pl.DataFrame({"item": names, "cluster": place})


def sizes(clusters: int, items: int, studies: int, margin: float) -> tuple[float, float]:
    """Return the share of annotators with p of .05 or less: with clusters, and without."""
    random = np.random.default_rng(5)
    found: tuple[list[pl.Series], list[pl.Series]] = ([], [])
    for _ in range(studies):
        people, judge, places = clustered_study(random, clusters, items)
        for each, known in zip(found, (places, None), strict=True):
            tested = alt_test(
                people, judge, METRICS["accuracy"], epsilons=(margin,), clusters=known
            )
            each.append(tested.annotators["p_value"] <= ALPHA)
    with_clusters, without = (float(pl.concat(each).mean()) for each in found)
    return with_clusters, without


def true_margin() -> float:
    """Return by how much the judge falls short of a person, from 200 000 items."""
    people, judge, _ = clustered_study(np.random.default_rng(1), 40_000, 5)
    each = alt_test(people, judge, METRICS["accuracy"]).annotators
    lead = each["human_advantage_probability"] - each["advantage_probability"]
    return float(lead.mean())


def seconds(work: Callable[[], object]) -> float:
    """Time a call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def command(folder: Path) -> None:
    """Run the command on the files of a folder."""
    files = ["--humans", folder / "humans.parquet", "--judges", folder / "judges.parquet"]
    words = [Path(sys.executable).parent / "voirdire", "calibrate", *files, "--no-save"]
    subprocess.run([*words, "--format", "json"], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Print seconds, the ratio to the plain comparison, and the peak of memory."""
    parser = argparse.ArgumentParser(description="What the alternative annotator test costs.")
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--judges", type=int, default=50)
    parser.add_argument("--size", type=int, metavar="STUDIES")
    given = parser.parse_args()
    if given.size:
        margin = true_margin()
        print(f"{given.size} studies; the margin is {margin:.4f}")
        for clusters, items in DESIGNS:
            by_cluster, plain = sizes(clusters, items, given.size, margin)
            print(f"{clusters} clusters of {items}: {by_cluster:.3f}, without clusters {plain:.3f}")
        return
    random = np.random.default_rng(1)
    truth = random.integers(0, LABELS, given.items)
    humans = labels(random, truth, "human", given.people)
    judges = labels(random, truth, "judge", given.judges)
    said = humans["label"].cast(pl.Int64).to_numpy().reshape(given.people, given.items)
    asked = judges["label"].cast(pl.Int64).to_numpy().reshape(given.judges, given.items)
    plain = seconds(lambda: [(said == judge).sum(axis=1) for judge in asked])
    print(
        f"{given.people} people, {given.items} items, {given.judges} judges; {len(CURVE)} epsilons"
    )
    print(f"{'plain comparison of all pairs of labels':<42}{plain:>7.2f} s")
    for metric in MEASURED:
        took = seconds(lambda m=metric: alt_test(humans, judges, METRICS[m], epsilons=CURVE))
        print(f"{metric:<42}{took:>7.2f} s{took / plain:>8.1f} times")
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("csv", "parquet"):
            file = Path(folder) / f"humans.{suffix}"
            humans.write_csv(file) if suffix == "csv" else humans.write_parquet(file)
            took = seconds(lambda f=file: read_labels(f))
            print(f"{'read the people from ' + suffix:<42}{took:>7.2f} s{took / plain:>8.1f} times")
        judges.write_parquet(Path(folder) / "judges.parquet")
        took = seconds(lambda: command(Path(folder)))
        print(f"{'the whole command, Parquet to JSON':<42}{took:>7.2f} s{took / plain:>8.1f} times")
    for who, name in ((resource.RUSAGE_SELF, "here"), (resource.RUSAGE_CHILDREN, "the command")):
        peak = resource.getrusage(who).ru_maxrss / 1e6
        print(f"{f'peak of memory, {name}':<42}{peak:>7.2f} GB")


if __name__ == "__main__":
    main()
