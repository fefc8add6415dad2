"""Labels of judges and people in a log of another tool, for a calibration."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.judging import VoteLog
from tasks.aggregate import count_votes
from tasks.agreement.declared_labels import report_unknown_items
from tasks.agreement.label_kinds import AS_GIVEN, Declared
from tasks.annotate import annotate, unread_pairs
from tasks.calibration.calibrate import labelled_by_files, labelled_by_votes
from tasks.calibration.label_values import (
    Labelled,
    are_whole,
    require_two_names,
    why_unreadable,
)
from tasks.kit.printable import several
from tasks.logs.declared_ratings import RATER, repeats_as_declared
from tasks.logs.items import NAME, slices_of, with_items
from tasks.logs.log_reader import KNOWN, Log, log_of_votes, read_log
from tasks.logs.ratings import annotations_of, means_of
from tasks.logs.unreadable import unread_items
from tasks.readers.labels import read_labels
from tasks.readers.votes import holds_votes, read_votes

IN_THE_LOG = (
    "export both to one table, and name its columns with --map, as in `--map item=ID --map label=L "
    "--map human_label=H`"
)
"""What makes a log of judges and people comparable."""
SINGLE = "single answers"


def log_or_votes(
    path: Path,
    people: str | None = None,
    mapping: Mapping[str, str] | None = None,
    slices: Sequence[str] = (),
) -> Log | None:
    """Read a log of another tool (``read_log``) or a file of votes; None for other files."""
    log = read_log(path, people, mapping, slices)
    if log is None and path.is_file() and holds_votes(path):
        if people:
            raise ValueError(
                f"--people {people!r:.80} is for logs of other tools, and {path.name} is a file of "
                f"votes. {KNOWN}"
            )
        return log_of_votes(path.name, read_votes(path))
    return log


def labels_of_log(
    log: Log, metric: str, slices: Sequence[str], declared: Declared
) -> list[Labelled]:
    """Return the labels of a log: an entry per dataset and criterion that judges and people rated.

    Repeats of a judge are read as ``declared`` before they are combined. A format's own labels for
    pass and fail become the usual words, unless a label is ``declared`` to be a pass.

    Raise ValueError if the log has no such slice.
    """
    log = log._replace(ratings=_apart(log.votes, log.ratings))
    split = slices_of(log, slices) if slices else None
    return [
        with_items(_with_verdicts(each, log.verdicts, declared.positive), log, split)
        for each in labels_of_both(log.votes, log.ratings, metric, declared)
    ]


def _apart(votes: DataFrame[VoteLog], ratings: DataFrame[Ratings]) -> DataFrame[Ratings]:
    """Name what ratings of single answers are about, where a dataset has verdicts on pairs too.

    Nothing that was given to one of the two is missing on the other.
    """
    verdict, dataset = pl.col("kind") == "verdict", pl.col("dataset").cast(pl.String)
    pairs = pl.concat([votes.select(dataset), ratings.filter(verdict).select(dataset)]).to_series()
    named = pl.when(~verdict & dataset.is_in(pairs.unique().implode())).then(pl.lit(SINGLE))
    criterion = pl.coalesce(pl.col("criterion").cast(pl.String), named)
    return Ratings.draft(ratings.with_columns(criterion=criterion))


def labels_with_file(
    log: Log,
    metric: str,
    slices: Sequence[str],
    declared: Declared,
    file: Path,
    *,
    of_people: bool,
) -> Labelled:
    """Return the labels of a log that has judges only, or people only, and of a file of the others.

    The file names items as the log does.

    Raise ValueError if the log has both sides or several criteria, or shares no item with the file.
    """
    rows = _annotated(log.votes, log.ratings, declared)
    theirs = rows.filter("human" if of_people else ~pl.col("human"))
    if not theirs.is_empty():
        whose, option = ("people", "--humans") if of_people else ("judges", "--judges")
        names = ", ".join(theirs["annotator"].cast(pl.String).unique().sort().head(3))
        raise ValueError(
            f"labels of {whose} are given twice: {log.name} has labels of {names:.100}, and "
            f"{option} names {file.name}. Leave {option} out, or leave these labels out of the log."
        )
    given, found = read_labels(file), labelled_by_votes(rows, metric)
    if len(found) > 1:
        about = ", ".join(each.dataset for each in found[:5])
        raise ValueError(
            f"{log.name} has labels on several criteria or data sets ({about:.200}), and a file "
            f"of labels is about one. Keep one of them in the log, or {IN_THE_LOG}."
        )
    labelled = _with_verdicts(found[0], log.verdicts, declared.positive)
    known = given.join(labelled.items, on="item", how="semi", maintain_order="left")
    if known.is_empty():
        shown = [
            ", ".join(map(repr, names.drop_nulls().unique().sort().head(3)))
            for names in (given["item"], rows["item"].cast(pl.String))
        ]
        raise ValueError(
            f"no label of {file.name} is about an item of {log.name}. The file names items such "
            f"as {shown[0]:.200}; the log has {shown[1]:.200}. Name items as the log does."
        )
    report_unknown_items(given, labelled.items["item"].to_list(), file.name, log.name)
    if of_people:
        labelled = require_two_names(labelled._replace(humans=known))
    else:
        labelled = labelled_by_files(labelled.dataset, labelled.humans, known, labelled.items)
    return with_items(labelled, log, slices_of(log, slices) if slices else None)


def _with_verdicts(
    labelled: Labelled, verdicts: tuple[str, str] | None, positive: str | None
) -> Labelled:
    """Replace a format's own words for pass and fail by the usual ones, if all labels are such.

    With a ``positive`` label the user says what passes.
    """
    if verdicts is None or positive is not None:
        return labelled
    words = dict(zip(map(json.dumps, verdicts), ('"pass"', '"fail"'), strict=True))
    labels = pl.concat([labelled.humans["label"], labelled.judges["label"]]).drop_nulls().unique()
    if not {label for label in labels if why_unreadable(label) is None} <= words.keys():
        return labelled
    humans, judges = (
        each.with_columns(pl.col("label").replace(words))
        for each in (labelled.humans, labelled.judges)
    )
    return labelled._replace(humans=humans, judges=judges)


def labels_of_both(
    votes: DataFrame[VoteLog],
    ratings: DataFrame[Ratings],
    metric: str,
    declared: Declared = AS_GIVEN,
) -> list[Labelled]:
    """Return the labels of each dataset and criterion that both judges and people rated."""
    named = _annotated(votes, ratings, declared)
    shared = named.filter(pl.col("human").n_unique().over("dataset") == 2)
    whole, means = _whole(ratings), means_of(ratings).with_columns(dataset=NAME)
    return [
        each._replace(
            whole=(None,) if each.dataset in whole else (),
            means=means.filter(dataset=each.dataset).select("judge", "prompt", "item", "held"),
        )
        for each in labelled_by_votes(shared, metric)
    ]


def _annotated(
    votes: DataFrame[VoteLog], ratings: DataFrame[Ratings], declared: Declared
) -> pl.DataFrame:
    """Return all labels as annotations, whose dataset names the criterion too."""
    repeated = repeats_as_declared(ratings, declared)
    others = ratings.join(repeated, on=RATER, how="anti", nulls_equal=True, maintain_order="left")
    read = pl.concat([annotations_of(part, exact=True) for part in (others, repeated)])
    tallies = count_votes(votes)
    annotated = annotate(tallies)
    unread = (unread_pairs(tallies, annotated), unread_items(pl.concat([others, repeated]), read))
    rows = pl.concat([annotated, read, *unread], how="diagonal_relaxed")
    return rows.with_columns(
        dataset=pl.concat_str("dataset", "aspect", separator=": ", ignore_nulls=True),
        aspect=pl.lit(None, dtype=pl.String),
    )


def _whole(ratings: DataFrame[Ratings]) -> set[str]:
    """Return the datasets and criteria, as named here, whose grades are all whole numbers."""
    graded = ratings.filter(pl.col("kind") == "number", pl.col("value").is_not_null())
    whole = are_whole(pl.col("value"))
    found = graded.group_by("dataset", "criterion").agg(whole.alias("whole")).filter("whole")
    return {*found.select(NAME).to_series()}


def why_not_comparable(log: Log) -> str:
    """Say why a log has no labels of judges and people that can be compared, and what to do."""
    name = log.name
    judged, given = log.ratings.filter(~pl.col("human")), log.ratings.filter("human")
    votes = log.votes["human"]
    people = votes.any() or not given.is_empty()
    judges = not votes.all() or not judged.is_empty()
    for who, rows in (("people", given), ("judges", judged)):
        if log.votes.is_empty() and people and judges and rows["invalid"].count() == rows.height:
            why = rows["invalid"].cast(pl.String).value_counts(sort=True)["invalid"][0]
            return (
                f"all {several(rows.height, 'rating')} of {who} in {name} are invalid ({why}), so "
                f"judges and people cannot be compared. `voirdire doctor {quote(name)}` shows what "
                "was read; if the labels are in another field, name it with --map, as in `--map "
                "item=ID --map label=L --map human_label=H`."
            )
    what = (
        "ratings of both, but none on the same criterion"
        if people and judges
        else "ratings of people only"
        if people
        else "ratings of judges only"
    )
    todo = (
        IN_THE_LOG[0].upper() + IN_THE_LOG[1:]
        if people and judges
        else f"Give the others with {'--judges' if people else '--humans'} FILE, or {IN_THE_LOG}"
    )
    return f"{name} has {what}, so judges and people cannot be compared. {todo}."
