"""Labels of judges and people in a log of another tool, for a calibration."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.judging import VoteLog
from tasks.aggregate import count_votes
from tasks.annotate import annotate, unread_pairs
from tasks.calibration.calibrate import labelled_by_votes
from tasks.calibration.label_values import Labelled, are_whole
from tasks.logs.items import CATEGORY, NAME, categories_of, items_in_log
from tasks.logs.ratings import annotations_of, means_of
from tasks.logs.reading import Log, read_log
from tasks.logs.unreadable import unread_items


def labels_in_log(
    path: Path,
    metric: str,
    mapping: Mapping[str, str] | None = None,
    slices: Sequence[str] = (),
    people: str | None = None,
) -> tuple[list[Labelled], list[pl.DataFrame]] | None:
    """Return the labels of a log and what is known of their items; None if it is no log.

    There is an entry per dataset and criterion. A criterion that judges or people did not rate is
    left out, and so are people whose names do not match the pattern ``people``.

    Raise ValueError if no criterion has ratings of both, or the log has no such slice.
    """
    log = read_log(path, people, mapping)
    if log is None:
        return None
    labelled = labels_of_both(log.votes, log.ratings, metric)
    if not labelled:
        raise ValueError(_why_not(path.name, log))
    field = (mapping or {}).get(CATEGORY)
    categories = categories_of(log.votes, log.ratings, slices, path.name, field) if slices else None
    return labelled, items_in_log(labelled, log.texts, categories, log.chances)


def labels_of_both(
    votes: DataFrame[VoteLog], ratings: DataFrame[Ratings], metric: str
) -> list[Labelled]:
    """Return the labels of each dataset and criterion that both judges and people rated."""
    read = annotations_of(ratings, exact=True)
    tallies = count_votes(votes)
    annotated = annotate(tallies)
    unread = (unread_pairs(tallies, annotated), unread_items(ratings, read))
    rows = pl.concat([annotated, read, *unread], how="diagonal_relaxed")
    criterion = pl.col("aspect")
    named = rows.with_columns(
        dataset=pl.concat_str("dataset", criterion, separator=": ", ignore_nulls=True),
        aspect=pl.lit(None, dtype=pl.String),
    )
    shared = named.filter(pl.col("human").n_unique().over("dataset") == 2)
    whole, means = _whole(ratings), means_of(ratings).with_columns(dataset=NAME)
    return [
        each._replace(
            whole=(None,) if each.dataset in whole else (),
            means=means.filter(dataset=each.dataset).select("judge", "prompt", "item", "held"),
        )
        for each in labelled_by_votes(shared, metric)
    ]


def _whole(ratings: DataFrame[Ratings]) -> set[str]:
    """Return the datasets and criteria, as named here, of which all grades are whole numbers."""
    graded = ratings.filter(pl.col("kind") == "number", pl.col("value").is_not_null())
    whole = are_whole(pl.col("value"))
    found = graded.group_by("dataset", "criterion").agg(whole.alias("whole")).filter("whole")
    return {*found.select(NAME).to_series()}


def _why_not(name: str, log: Log) -> str:
    people = any(some["human"].any() for some in (log.votes, log.ratings))
    judges = any(not some["human"].all() for some in (log.votes, log.ratings))
    what = (
        "ratings of both, but none on the same criterion"
        if people and judges
        else "ratings of people only"
        if people
        else "ratings of judges only"
    )
    return (
        f"{name} has {what}, so judges and people cannot be compared. Give the missing labels "
        "with --humans FILE or --judges FILE."
    )
