"""Describe a recognised log: what it holds, what can be computed, and what cannot and why."""

from collections.abc import Iterator

import polars as pl

from schemas.judging import WITHOUT_VERDICT
from tasks.kit.printable import joined_few, several
from tasks.logs.items import SLICES_NAMED, names_of_slices
from tasks.logs.log_reader import MANY, Log, is_long
from tasks.logs.unreadable import UNREADABLE
from tasks.reporting.wording import clean, clip, listing
from tasks.statistics import STATISTICS, columns_in_words, filled_columns, lacking

SHOWN = 3
"""Maximum number of names in a list."""
MOST_LABELS = 5
"""Maximum number of labels that are listed with their counts."""
LONGEST = 60
"""Maximum width of a label in a list."""
NAMES = {"number": "grade"}
FEW_PEOPLE = "one person: the alternative annotator test needs two or more"
NO_PEOPLE = "no ratings of people: agreement with people cannot be computed"
NO_JUDGES = "no ratings of judges: nothing can be compared with people"
NO_SHARED = "judges and people share no item and criterion: agreement cannot be computed"
ALL_INVALID = "no rating is valid: only how many are invalid can be computed"
NO_POINTWISE = (
    "grades and labels have counts, means and agreement; bias needs an audit with perturbations"
)


def recognised_line(log: Log) -> str:
    """Return what was recognised, in one line."""
    rows = pl.concat([_brief(log.votes), _brief(log.ratings)])
    judges, people = rows.filter(~pl.col("human")), rows.filter("human")
    parts = [" and ".join(log.titles)]
    parts += [f"{log.files} files"] if log.files > 1 else []
    parts.append(several(log.rows, "row"))
    if rows.height != log.rows:
        counts = [(log.votes.height, "vote"), (log.ratings.height, "rating")]
        parts.append(" and ".join(several(n, what) for n, what in counts if n) or "none usable")
    if judges.height:
        names = judges["judge"].unique().sort().to_list()
        many = len(names) > 1
        parts.append(f"judge{'s' if many else ''} {_names(names)}")
    who = people["judge"].n_unique()
    parts.append(
        f"{several(people.height, 'human rating')} by {several(who, 'person', 'people')}"
        if who
        else "no human ratings"
    )
    return ", ".join(parts)


def recognised_lines(log: Log) -> list[str]:
    """Return what was recognised, and what cannot be computed and why, a line each."""
    return [f"Recognised: {recognised_line(log)}.", *(f"- {limit}" for limit in limits_of(log))]


def limits_of(log: Log) -> list[str]:
    """Return what cannot be computed from a log and why, and what was left out."""
    return [*_possible(log), *log.notes, *_missing(log), *_lost(log)]


def missing_of(log: Log, statistic: str) -> str:
    """Say why a log gives no row of a statistic, as far as its columns show."""
    single = log.ratings.filter(pl.col("kind") != "verdict")
    if STATISTICS[statistic].of_ratings and not single.is_empty():
        if columns := lacking(filled_columns(single), single=True).get(statistic):
            return f"the file has no values in {columns_in_words(columns)}"
        return f"the ratings do not suffice; `voirdire list {statistic}` says what it needs"
    about_pairs = not {"ratings", "annotations"} & {*STATISTICS[statistic].reads}
    if about_pairs and log.votes.is_empty() and single.height == log.ratings.height:
        return "it needs verdicts on pairs of answers, and the file has ratings of single answers"
    return "; ".join(limits_of(log))


def _possible(log: Log) -> Iterator[str]:
    read = log.ratings.filter(pl.col("invalid").is_null())
    kinds = dict(read.group_by("kind").len().rows())
    votes, verdicts = log.votes.height, kinds.pop("verdict", 0)
    if votes:
        yield f"{several(votes, 'vote')} with the order shown: position, ties, validity, wins"
    if verdicts:
        yield f"{several(verdicts, 'verdict')} without an order: validity, ties, wins, agreement"
    if kinds:
        named = listing(
            [several(n, NAMES.get(str(kind), str(kind))) for kind, n in sorted(kinds.items())]
        )
        yield f"{named}: {NO_POINTWISE}"
    if read.is_empty() and not (votes or log.ratings.is_empty()):
        yield ALL_INVALID


def _missing(log: Log) -> Iterator[str]:
    place = ("dataset", "criterion", "item")
    ratings = log.ratings
    human = pl.concat([_brief(log.votes), _brief(log.ratings)]).unique()
    people, judges = human.filter("human").height, human.filter(~pl.col("human")).height
    if not people:
        yield NO_PEOPLE
    elif not judges:
        yield NO_JUDGES
    elif (
        log.votes.is_empty()
        and ratings.filter("human")
        .join(ratings.filter(~pl.col("human")), on=place, how="semi", nulls_equal=True)
        .is_empty()
    ):
        yield NO_SHARED
    else:
        if people == 1:
            yield FEW_PEOPLE
        if names := names_of_slices(log.votes, ratings, log.metadata):
            yield f"`--slice` can split the agreement with people by {_names(names, SLICES_NAMED)}"
    if is_long(log):
        yield f"more than {MANY} votes and ratings: intervals from formulas, without bootstrap"
    repeated = ratings.filter(pl.col("repeat") > 0).select("dataset", "item").n_unique()
    if repeated:
        yield (
            f"{several(repeated, 'item has', 'items have')} repeats, which count as one: grades "
            "are averaged; of labels, and of a judge's numbers that are all 0 or 1, the majority "
            "counts"
        )


def _lost(log: Log) -> Iterator[str]:
    invalid = log.ratings.drop_nulls("invalid").group_by("invalid").len().sort("len", "invalid")
    texts = log.ratings.filter(pl.col("invalid") == UNREADABLE)["label"].value_counts(sort=True)
    such = [f'"{clip(clean(text), LONGEST)}"' for text in texts["label"].head(SHOWN)]
    reasons = [
        f"{why} ({n})" + (f", such as {listing(such)}" if why == UNREADABLE else "")
        for why, n in invalid.rows()
    ]
    votes = log.votes.filter(pl.col("choice").is_in(WITHOUT_VERDICT)).height
    reasons += [f"no verdict ({votes})"] if votes else []
    if reasons:
        more = ["other reasons"] if reasons[SHOWN:] else []
        yield f"invalid, which is no verdict: {', '.join([*reasons[-SHOWN:], *more])}"
    if lost := [f"{why} ({n})" for why, n in log.left_out.items() if n]:
        yield f"left out: {', '.join(lost)}"
    if log.skipped:
        yield f"files not recognised: {_names(list(log.skipped))}"


def counts_of(log: Log) -> pl.DataFrame:
    """Return per judge or person, prompt and criterion: ratings, invalid ones, mean or shares.

    In the mean, an item counts once however often it is repeated, as in estimates of it.
    """
    valid = pl.col("invalid").is_null()
    key = ("dataset", "criterion", "prompt", "judge", "human")
    ratings = log.ratings.filter(pl.col("kind") != "verdict")
    items = ratings.group_by(*key, "item").agg(
        ratings=pl.len(),
        invalid=(~valid).sum(),
        mean=pl.col("value").filter(valid).mean(),
    )
    found = items.group_by(key).agg(pl.col("ratings", "invalid").sum(), pl.col("mean").mean())
    labels = (
        ratings.filter(valid, kind="label")
        .group_by(*key, "label")
        .len()
        .sort("len", "label", descending=[True, False])
        .group_by(key, maintain_order=True)
        .agg(
            labels=pl.concat_str(pl.col("label").str.slice(0, 20), "len", separator=" ").head(
                MOST_LABELS
            ),
            others=pl.len().cast(pl.Int64) - MOST_LABELS,
        )
        .with_columns(
            pl.concat_str(
                pl.col("labels").list.join(", "),
                pl.when(pl.col("others") > 0).then(pl.format(" and {} more", "others")),
                ignore_nulls=True,
            )
        )
        .drop("others")
    )
    return found.join(labels, on=key, how="left", nulls_equal=True).sort(
        "dataset", "criterion", "human", "judge", "prompt", nulls_last=True
    )


def with_intervals(counts: pl.DataFrame, estimates: pl.DataFrame) -> pl.DataFrame:
    """Replace the mean by the estimate of the mean rating or the pass rate.

    It has an interval: ``low`` and ``high``.
    """
    names = ["mean_rating", "pass_rate"]
    means = estimates.filter(
        pl.col("statistic").is_in(names), pl.col("perturbation").is_null()
    ).select(
        pl.col("dataset", "judge", "prompt", "statistic").cast(pl.String),
        "estimate",
        "low",
        "high",
        criterion=pl.when(pl.col("subgroup") != "").then(pl.col("subgroup").cast(pl.String)),
    )
    key = ["dataset", "criterion", "prompt", "judge"]
    # Grades with a threshold have both.
    one = means.sort("statistic").unique(key, keep="first", maintain_order=True)
    texts = counts.with_columns(pl.col(key).cast(pl.String))
    found = texts.join(one, on=key, how="left", nulls_equal=True, maintain_order="left")
    return found.with_columns(mean=pl.coalesce("estimate", "mean"))


def _brief(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(pl.col("judge").cast(pl.String), pl.col("human").fill_null(value=False))


def _names(names: list[str], most: int = SHOWN) -> str:
    return joined_few([clip(clean(name), LONGEST) for name in names], most)
