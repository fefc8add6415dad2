"""Measures of agreement: our own arrays beside the libraries that have them.

Run it by hand, with what the tests need installed: ``python benchmarks/libraries.py``. A bootstrap
needs each measure thousands of times. The times are of one measure of as many labels, ours as a
share of all draws of all pairs; the estimates must be the same.
"""

import sys
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from schemas.results import Annotations
from tasks.inference.bootstrap import DRAWS
from tasks.statistics import STATISTICS

ITEMS, JUDGES, LABELS, SKILL = 2000, 20, ("anchor", "target", "tie"), 0.7
TIMES = 5


def annotations() -> pl.DataFrame:
    """Simulate judges who know the truth in .7 of items, and else say anything."""
    random = np.random.default_rng(0)
    truth = random.integers(0, len(LABELS), ITEMS)
    right = random.random((JUDGES, ITEMS)) < SKILL
    said = np.where(right, truth, random.integers(0, len(LABELS), (JUDGES, ITEMS)))
    items = [f"q{at:05}" for at in range(ITEMS)]
    return pl.DataFrame(
        {
            "item": items * JUDGES,
            "cluster": items * JUDGES,
            "annotator": np.repeat([f"judge{at:02}" for at in range(JUDGES)], ITEMS),
            "label": np.array(LABELS)[said.ravel()],
        }
    ).with_columns(
        dataset=pl.lit("bench"),
        prompt=pl.lit("pair_v1"),
        wave=pl.lit(""),
        votes=pl.lit(2),
        inconsistent=pl.lit(value=False),
        human=pl.lit(value=False),
        simulated=pl.lit(value=True),
    )


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long a call takes, and what it returns."""
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def main() -> None:
    """Print, per measure, seconds of both, their ratio, and how far the estimates differ."""
    rows = Annotations.of(annotations())
    table = rows.pivot("annotator", index="item", values="label").sort("item").drop("item")
    labels = {name: table[name].to_list() for name in sorted(table.columns)}
    started, found = seconds(lambda: _libraries(labels, table))
    print(f"{'import of the three libraries':<28}{started:>8.2f} s")
    print(f"{'':<28}{'library':>10}{'ours, a draw':>14}{'times':>8}{'differ by':>11}")
    for name, statistic, library in found:
        each, theirs = seconds(lambda use=library: [use() for _ in range(TIMES)])
        took, ours = seconds(lambda which=statistic: STATISTICS[which].draft(annotations=rows))
        mine = ours.filter(pl.col("statistic") == name).sort("judge", "subgroup")
        one = took / (DRAWS * mine.height)
        difference = abs(mine["estimate"][0] - theirs[0])
        print(
            f"{name:<28}{each / TIMES * 1e3:>7.2f} ms{one * 1e3:>11.4f} ms"
            f"{each / TIMES / one:>8.0f}{difference:>11.0e}"
        )


def _libraries(labels: dict[str, list[str]], table: pl.DataFrame) -> list[Any]:
    """Import the libraries, and return what to measure with each: of the first pair, or of all."""
    import evalica
    import pandas as pd
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    first, second = next(combinations(labels, 2))
    codes = table.select(pl.all().cast(pl.Enum(LABELS)).to_physical()).to_numpy()
    frame = pd.DataFrame(labels).T
    return [
        ("cohen_kappa", "agreement", lambda: cohen_kappa_score(labels[first], labels[second])),
        ("fleiss_kappa", "fleiss_kappa", lambda: fleiss_kappa(aggregate_raters(codes)[0])),
        (
            "krippendorff_alpha_nominal",
            "krippendorff_alpha",
            lambda: evalica.alpha(frame, distance="nominal").alpha,
        ),
    ]


if __name__ == "__main__":
    main()
