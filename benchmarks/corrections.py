"""What corrections of win rates are worth: simulated contests whose human truth is known.

Run it by hand: ``python benchmarks/corrections.py [--studies 2000] [--seed 1]``.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))  # run from anywhere, installed or not

from schemas.judging import Contests
from tasks.inference.logistic import CountedItems, fit, refits
from tasks.statistics import STATISTICS

BATCH = 250
"""Studies that are measured in one go, each as a judge of its own."""

Floats = NDArray[np.float64]


def study(
    seed: int, *, pairs: int, labels: int, off: float, noise: float = 1.0, per_question: int = 1
) -> pl.DataFrame:
    """Simulate contests of two models: people prefer "bee" with chance .55, the judge ``off`` more.

    Human verdict: latent gap above 0. Judge: the same gap, shifted and with ``noise`` of its own.
    """
    from scipy.special import ndtri

    random = np.random.default_rng(seed)
    question = np.arange(pairs) // per_question
    shared = random.standard_normal(question.max() + 1)[question] * np.sqrt(0.5)
    own = random.standard_normal(pairs) * np.sqrt(0.5)
    gap = (shared if per_question > 1 else random.standard_normal(pairs) * np.sqrt(0.5)) + own
    people = (gap + ndtri(0.55) > 0).astype(float)
    seen = gap + noise * random.standard_normal(pairs) + ndtri(0.55 + off) * np.hypot(1, noise)
    verdict = (seen > 0).astype(float)
    labelled = random.permutation(pairs) < labels
    return pl.DataFrame(
        {
            "judge": f"simulated/{seed}",
            "sample": np.char.add("s", np.char.zfill(np.arange(pairs).astype(str), 5)),
            "cluster": np.char.add("q", question.astype(str)),
            "score": verdict,
            "human_score": pl.Series(people).set(pl.Series(~labelled), None),
        }
    ).with_columns(
        dataset=pl.lit("simulated"),
        prompt=pl.lit("none"),
        wave=pl.lit(""),
        votes=pl.lit(2),
        score_12="score",
        score_21="score",
        anchor_author=pl.lit("ant"),
        target_author=pl.lit("bee"),
        label_chance=pl.lit(labels / pairs),
        simulated=pl.lit(value=True),
    )


def covered(name: str, studies: range, truth: float, **design: Any) -> tuple[float, float, float]:
    """Return coverage, mean width and share of nulls of a row about "bee"."""
    whole = {"win_rate": "win_rate", "human_win_rate": "ppi", "ppi_win_rate": "ppi"}.get(name, name)
    found = []
    for first in range(studies.start, studies.stop, BATCH):
        seeds = range(first, min(first + BATCH, studies.stop))
        frame = Contests.of(pl.concat(study(seed, **design) for seed in seeds))
        rows = STATISTICS[whole](contests=frame)
        found.append(rows.filter(pl.col("statistic") == name, pl.col("subgroup") == "bee"))
    rows = pl.concat(found)
    held = rows.select(pl.lit(truth).is_between("low", "high").mean()).item()
    width = rows.select((pl.col("high") - pl.col("low")).mean()).item()
    return held or 0.0, width or float("nan"), rows["low"].null_count() / rows.height


def error_ratio(seed: int, pairs: int) -> float:
    """Return the ratio of errors of the length-controlled rate: by refit, and by fitted values.

    Dubois et al. average fitted values at dlen = 0; without other terms these are all alike, so
    their standard error sees none of the uncertainty. Here a difficulty lets them vary.
    """
    random = np.random.default_rng(seed)
    x = np.tanh(random.standard_normal(pairs) + 0.5)
    hard = 0.3 * random.standard_normal(pairs)
    y = (random.random(pairs) < 1 / (1 + np.exp(-(0.2 + 0.8 * x + hard)))).astype(float)
    design = np.column_stack([np.ones(pairs), x, hard])
    b = fit(design, y, np.ones((1, pairs))).coefficients[0]
    level = np.column_stack([np.ones(pairs), np.zeros(pairs), hard])
    items = np.arange(pairs)

    def rate(coefficients: Floats) -> Floats:
        fitted: Floats = 1 / (1 + np.exp(-(level @ coefficients)))
        return fitted

    draws = refits(design, CountedItems(items, items, np.ones(pairs), y), b)
    assert draws is not None
    refit = np.std([rate(draw).mean() for draw in draws], ddof=1)
    return float(refit / (rate(b).std(ddof=1) / np.sqrt(pairs)))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="What corrections of win rates are worth.")
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    seeds = range(given.seed * 1_000_003, given.seed * 1_000_003 + given.studies)
    print(f"{given.studies} studies; standard error of a coverage {0.218 / given.studies**0.5:.3f}")
    line = "{:<16}{:>7}{:>8}{:>7}{:>11}{:>10}{:>8}{:>7}"
    print(line.format("row", "pairs", "labels", "off", "a question", "coverage", "width", "null"))
    for labels, off, per_question, noise in (
        (20, 0.08, 1, 1.0),
        (50, 0.08, 1, 1.0),
        (100, 0.06, 1, 1.0),
        (200, 0.12, 1, 1.0),
        (100, 0.08, 4, 1.0),
        (200, 0.0, 1, 1.0),
        (100, 0.08, 1, 0.5),
    ):
        for name in ("win_rate", "human_win_rate", "ppi_win_rate", "rogan_gladen"):
            held, width, null = covered(
                name,
                seeds,
                0.55,
                pairs=1500,
                labels=labels,
                off=off,
                per_question=per_question,
                noise=noise,
            )
            numbers = (f"{held:.3f}", f"{width:.3f}", f"{null:.2f}")
            print(line.format(name, 1500, labels, off, per_question, *numbers))
    ratios = [error_ratio(seed, 400) for seed in seeds[:20]]
    print(
        f"length-controlled rate, 400 pairs: error by refit / of fitted values {min(ratios):.1f}"
        f" to {max(ratios):.1f}, median {float(np.median(ratios)):.1f}"
    )


if __name__ == "__main__":
    main()
