"""Results of another tool's log: of its votes as of any votes, and of its ratings."""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.frame import Frame, ranked
from schemas.judging import Contests, Tallies, VoteLog
from schemas.results import Annotations, Estimates
from tasks.aggregate import count_coded, measure_all
from tasks.agreement.paired_labels import pair_labels
from tasks.annotate import annotate
from tasks.counting.contests import match_models
from tasks.inference.bootstrap import formulas_only
from tasks.logs.items import NAME
from tasks.logs.labels import labels_of_both
from tasks.logs.log_reader import Log, is_long
from tasks.logs.ratings import annotations_of, contests_of, tallies_of
from tasks.results import Results, ResultSteps, results_of
from tasks.statistics import STATISTICS, with_floors
from tasks.statistics.rating_agreement import frame_of, rows_of

NAMES = (
    "dataset",
    "criterion",
    "judge",
    "prompt",
    "item",
    "cluster",
    "anchor_author",
    "target_author",
)


def results_of_log(log: Log, mode: str) -> Results:
    """Return the results of another tool's log: of its votes, and of its ratings without an order.

    Ratings have no position statistics. Their agreement and the wins of models are computed from
    annotations and contests, like those of votes; validity, ties and accuracy of verdicts from
    counts. Means, validity and scale use of grades and labels are those of any ratings.
    """
    verdicts = pl.col("kind") == "verdict"
    ratings = ranked(log.ratings, *NAMES)
    compared = tallies_of(ratings.filter(verdicts))
    single = tallies_of(ratings.filter(~verdicts))

    with_people = partial(_agreement_with_one_label, log)

    def measure(**frames: Any) -> DataFrame[Estimates]:
        measured = measure_all(**frames)
        needing = [row for each in STATISTICS.values() for row in each.rows_by_order("needed")]
        by_order = pl.col("statistic").is_in(needing) & pl.col("estimate").is_null()
        rows: list[pl.DataFrame] = [
            measured.filter(~by_order) if log.votes.is_empty() else measured
        ]
        agreed = replace(STATISTICS["rating_agreement"], reads=(), measure=with_people)
        rows.append(agreed.draft())
        rows += [
            each.draft(tallies=compared).filter(pl.col("statistic").is_in(given))
            for each in STATISTICS.values()
            if (given := each.rows_by_order("irrelevant"))
        ]
        return Estimates.of(with_floors(pl.concat(rows)))

    steps = ResultSteps(
        count=count_coded,
        match_models=lambda tallies: joined(Contests, match_models(tallies), contests_of(ratings)),
        annotate=lambda tallies: joined(Annotations, annotate(tallies), annotations_of(ratings)),
        measure=measure,
    )
    # Bootstraps of many rows take minutes.
    with formulas_only() if is_long(log) else nullcontext():
        found = results_of(log.votes, mode, ratings=log.ratings, steps=steps)
    return found._replace(tallies=joined(Tallies, found.tallies, compared, single))


def _agreement_with_one_label(log: Log) -> pl.DataFrame:
    """Return how far judges agree beyond chance with people, where these gave an item one label.

    As an audit does with labels that came with its data: one label does not tell how well people
    agree with each other. For long logs it takes too long.
    """
    if is_long(log):
        return frame_of([])
    rated = log.ratings.filter(pl.col("kind") != "verdict")
    named = (
        rated.select("dataset", "criterion", name=NAME).unique().rows_by_key("name", unique=True)
    )
    rows: list[dict[str, object]] = []
    for each in labels_of_both(VoteLog.empty(), Ratings.of(rated), "accuracy"):
        if each.humans["item"].is_duplicated().any():
            continue
        dataset, criterion = named[each.dataset]
        for paired in pair_labels(each, log.declared):
            # Each label of a set is compared by itself.
            subgroup = ": ".join(filter(None, (criterion, paired.criterion)))
            about = {"dataset": dataset, "subgroup": subgroup}
            rows += [about | row for row in rows_of(paired)]
    return frame_of(rows)


def joined(model: type[Frame], *frames: pl.DataFrame) -> Any:
    """Concatenate drafts; of one alone, texts may keep codes, each frame's own."""
    filled = [frame for frame in frames if not frame.is_empty()]
    if len(filled) == 1:
        return model.coded(filled[0])
    return model.draft(pl.concat(map(model.draft, frames)))
