"""What the alternative annotator test costs: 200 people, 20 000 items and 50 judges.

Run it by hand: ``python benchmarks/alt_test.py [--people 200] [--items 20000] [--judges 50]``. Each
run also times a plain numpy comparison of as many pairs of labels, as machines differ; last comes
the whole command, from files of both to JSON, agreement and all, saving nothing.
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
from tasks.metrics import METRICS
from tasks.readers.labels import read_labels

SKILL = 0.7
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
    given = parser.parse_args()
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
