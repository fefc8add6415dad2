"""Studies whose bias hides: in shifts that cancel out, in categories, in votes that are lost.

``findings.py`` prints how often they get which word.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple, cast
from unittest.mock import patch

import numpy as np
import polars as pl

from benchmarks.judge_studies import Design, Judge, drawn, frames
from tasks import conclude
from tasks.conclusions import cautions
from tasks.inference import bootstrap
from tasks.results import results_of
from tasks.simulation.traits import Traits
from tasks.statistics import STATISTICS

TRAITS = Traits(omega=1.5, nu=0.5, kappa=0.4, psi=0.5)
NEEDED = (
    "mps",
    "mps_sham",
    "sham_shift",
    "los",
    "unanimous_rate",
    "heterogeneity",
    "category_shift",
    "attrition",
)
CLEAR, BIASED = "no relevant bias", "biased"
BATCH = 100
"""Studies that are simulated and measured in one go."""

SIZES = ((142, 2), (142, 6), (400, 2), (400, 6))
HALVED_SIZES = (*SIZES, (300, 2), (350, 2), (500, 2))
LOST_SIZES = SIZES[:3]
"""Questions and votes an arm."""


class Rate(NamedTuple):
    """How often something happens in the studies of a design."""

    design: str
    what: str
    share: float
    error: float
    studies: int

    def __str__(self) -> str:
        """Write it with its standard error."""
        return f"{self.design}: {self.what} {self.share:.3f} ({self.error:.3f})"


def rate(design: str, what: str, hits: pl.Series) -> Rate:
    """Return a share with its standard error."""
    share = cast("float", hits.mean())
    return Rate(design, what, share, (share * (1 - share) / len(hits)) ** 0.5, len(hits))


def halves(beta: float, items: int, votes: int, studies: int, seed: int) -> pl.DataFrame:
    """Return votes of judges moved by ``beta`` logits in half of the questions, -beta in others."""
    parts = []
    for number, sign in enumerate((1, -1)):
        judge = Judge(TRAITS, beta=sign * beta)
        design = Design(items // 2, items // 2, 0.0)
        log = drawn(judge, design, studies, 2 * seed + number, votes=votes)
        parts.append(
            log.with_columns(
                pl.format("{}{}", pl.lit(number), name).alias(name)
                for name in ("sample", "cluster")
            ).with_columns(half=pl.lit(f"half {number}"))
        )
    return pl.concat(parts)


def found(log: pl.DataFrame) -> pl.DataFrame:
    """Return the finding of each study, each a family of its own, and its bounds of the ASR."""
    with ExitStack() as stack:
        # No word rests on an interval by bootstrap: without it this is several times as fast. Signs
        # are flipped all the same.
        stack.enter_context(patch.object(bootstrap, "MOST_CLUSTERS", 0))
        # Each study is a family of its own: one cell, two tests of mixed, two other arms.
        for module, name, adjust in (
            (conclude, "benjamini_hochberg", _alone),
            (cautions, "holm", _of_two),
            (cautions, "holm", _of_two),
        ):
            stack.enter_context(patch.object(module, name, adjust))
        results = results_of(log, "balanced", only=NEEDED)
    bounds = results.estimates.filter(statistic="asr_bounds").select("judge", "low", "high")
    return results.findings.drop("low", "high").join(bounds, on="judge")


def _alone(p_values: pl.Series) -> pl.Series:
    """Leave a family of one as it is."""
    return p_values


def _of_two(p_values: pl.Series) -> pl.Series:
    """Adjust by Holm the first half, each with its partner in the second half."""
    half = len(p_values) // 2
    both = pl.DataFrame({"one": p_values[:half], "two": p_values[half:]})
    least = pl.min_horizontal("one", "two")
    many = pl.col("one").is_not_null().cast(pl.Int8) + pl.col("two").is_not_null().cast(pl.Int8)
    adjusted = [
        pl.when(pl.col(name) == least)
        .then(pl.min_horizontal(many * pl.col(name), 1.0))
        .otherwise(pl.max_horizontal(name, pl.min_horizontal(2 * least, 1.0)))
        .alias(name)
        for name in both.columns
    ]
    found = both.select(adjusted)
    return pl.concat([found["one"], found["two"].alias("one")])


def batches(studies: int, seed: int) -> Iterator[tuple[int, int]]:
    """Yield sizes and seeds of batches."""
    for first in range(0, studies, BATCH):
        yield min(BATCH, studies - first), seed * 1_000_003 + 10 * first


def heterogeneous(studies: int, seed: int) -> Iterator[Rate]:
    """Yield how often shifts of 1.5 logits up and down are no relevant bias, and mixed."""
    for items, votes in HALVED_SIZES:
        rows = pl.concat(
            found(halves(1.5, items, votes, many, at)) for many, at in batches(studies, seed)
        )
        title = f"+-1.5 logits in halves, {items} questions x {votes} votes"
        for word in (CLEAR, "mixed", BIASED):
            yield rate(title, word, rows["finding"].eq_missing(word))


def categories(studies: int, seed: int) -> Iterator[Rate]:
    """Yield the same where the halves are categories, and the shifts smaller."""
    for beta in (0.7, 1.5):
        for items, votes in SIZES:
            rows = pl.concat(
                found(halves(beta, items, votes, many, at).with_columns(category=pl.col("half")))
                for many, at in batches(studies, seed)
            )
            title = f"+-{beta} logits by category, {items} questions x {votes} votes"
            for word in (CLEAR, "mixed"):
                yield rate(title, word, rows["finding"].eq_missing(word))


def even(studies: int, seed: int) -> Iterator[Rate]:
    """Yield how often a judge that nothing moves is mixed, or not without relevant bias."""
    for items, votes in SIZES:
        rows = pl.concat(
            found(halves(0.0, items, votes, many, at).with_columns(category=pl.col("half")))
            for many, at in batches(studies, seed)
        )
        title = f"no shift, two categories, {items} questions x {votes} votes"
        for word in ("mixed", CLEAR, BIASED):
            yield rate(title, word, rows["finding"].eq_missing(word))


def for_target() -> pl.Expr:
    """Tell which experimental votes are for the target."""
    slot = pl.when(shown_first="target").then(pl.lit("first")).otherwise(pl.lit("second"))
    return (pl.col("arm") == "experimental") & (pl.col("choice") == slot)


def for_anchor() -> pl.Expr:
    """Tell which experimental votes are for the anchor."""
    slot = pl.when(shown_first="anchor").then(pl.lit("first")).otherwise(pl.lit("second"))
    return (pl.col("arm") == "experimental") & (pl.col("choice") == slot)


LOST: dict[str, Callable[[], pl.Expr]] = {"target": for_target, "anchor": for_anchor}


def unreadable(studies: int, seed: int) -> Iterator[Rate]:
    """Yield what is said where 30 % of the experimental votes for one answer are invalid."""
    cases = ((0.0, "target", BIASED), (0.0, "anchor", BIASED), (1.0, "target", CLEAR))
    for beta, side, wrong in cases:
        for items, votes in LOST_SIZES:
            parts = []
            for many, at in batches(studies, seed):
                judge = Judge(TRAITS, beta=beta)
                log = drawn(judge, Design(items, items, 0.0), many, at, votes=votes)
                gone = pl.Series(np.random.default_rng(at + 1).random(log.height) < 0.3)
                read = log.with_columns(
                    choice=pl.when(LOST[side]() & gone).then(pl.lit("invalid")).otherwise("choice")
                )
                whole = STATISTICS["asr"].draft(**frames(log)).select("judge", complete="estimate")
                named = found(log).select("judge", complete_finding="finding")
                parts.append(found(read).join(whole, on="judge").join(named, on="judge"))
            rows = pl.concat(parts)
            title = f"{beta} logits, .30 of votes for the {side} lost, {items} x {votes}"
            held = rows["complete"].is_between(rows["low"], rows["high"])
            yield rate(title, "bounds hold the ASR of complete votes", held)
            yield rate(title, f"wrong: {wrong}", rows["finding"].eq_missing(wrong))
            other = (rows["finding"] != "inconclusive") & (
                rows["finding"] != rows["complete_finding"]
            )
            yield rate(title, "another finding than complete votes", other)
            yield rate(title, "verdicts lost: differential", rows["lost_finding"].is_not_null())


HIDDEN: dict[str, Callable[[int, int], Iterator[Rate]]] = {
    table.__name__: table for table in (heterogeneous, categories, even, unreadable)
}
