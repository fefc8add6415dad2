"""Results of another tool's log: of its votes as of any votes, and of its ratings."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Contests, Tallies
from schemas.results import Annotations, Estimates
from tasks.aggregate import match_models, measure_all
from tasks.annotate import annotate
from tasks.inference.bootstrap import formulas_only
from tasks.logs.ratings import annotations_of, contests_of, tallies_of
from tasks.logs.reading import Log, is_long
from tasks.results import Results, Steps, results_of
from tasks.statistics import STATISTICS, with_floors

Rows = Mapping[str, tuple[str, ...]]
ORDER_FREE: Rows = {
    "validity": ("valid_rate", "invalid_rate"),
    "tie_rate": ("tie_rate",),
    "accuracy": ("accuracy", "accuracy_valid"),
}
"""Statistic -> rows that do not depend on the order in which answers were shown."""
BY_ORDER = ("win_rate_naive", "order_effect")
"""Rows about wins that need the order."""


def results_of_log(log: Log, mode: str) -> Results:
    """Return the results of another tool's log: of its votes, and of its ratings without an order.

    Ratings have no position statistics. Their agreement and the wins of models are computed from
    annotations and contests, like those of votes; validity, ties and accuracy of verdicts from
    counts. Means, validity and scale use of grades and labels are those of any ratings.
    """
    verdicts = pl.col("kind") == "verdict"
    compared = tallies_of(log.ratings.filter(verdicts))
    single = tallies_of(log.ratings.filter(~verdicts))

    def measure(**frames: Any) -> DataFrame[Estimates]:
        measured = measure_all(**frames)
        by_order = pl.col("statistic").is_in(BY_ORDER) & pl.col("estimate").is_null()
        rows: list[pl.DataFrame] = [
            measured.filter(~by_order) if log.votes.is_empty() else measured
        ]
        rows += [
            STATISTICS[name].draft(tallies=compared).filter(pl.col("statistic").is_in(given))
            for name, given in ORDER_FREE.items()
        ]
        return Estimates.of(with_floors(pl.concat(rows)))

    steps = Steps(
        match_models=lambda tallies: pl.concat(
            [Contests.draft(match_models(tallies)), contests_of(log.ratings)]
        ),
        annotate=lambda tallies: Annotations.of(
            pl.concat([annotate(tallies), annotations_of(log.ratings)])
        ),
        measure=measure,
    )
    # Bootstraps of many rows take minutes.
    with formulas_only() if is_long(log) else nullcontext():
        found = results_of(log.votes, mode, ratings=log.ratings, steps=steps)
    everything = Tallies.draft(pl.concat([found.tallies, compared, single]))
    return found._replace(tallies=everything)
