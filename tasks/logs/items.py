"""Items that a log has labels of: their texts, and their categories and metadata as slices."""

from collections.abc import Sequence
from shlex import quote

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.judging import VoteLog
from tasks.agreement.declared_labels import described
from tasks.calibration.label_values import Labelled
from tasks.logs.log_reader import Log
from tasks.readers.label_table import CHANCE, MOST_VALUES, SLICE

CATEGORY = "category"
KEY = ["dataset", "item"]
SLICES_NAMED = 20
"""Most columns of slices that an error or `voirdire doctor` names."""
NAME = pl.concat_str("dataset", "criterion", separator=": ", ignore_nulls=True)
"""Name of the labels of one dataset and criterion."""


def names_of_slices(
    votes: DataFrame[VoteLog], ratings: DataFrame[Ratings], metadata: pl.DataFrame
) -> list[str]:
    """Return the columns by which the items of a log can be split.

    Of metadata, these have one value for each item, two values or more, and some value of several
    items.
    """
    named = pl.concat([part[CATEGORY].cast(pl.String) for part in (votes, ratings)]).drop_nulls()
    values = metadata.filter(pl.col("field") != CATEGORY).group_by("field", maintain_order=True)
    counts = values.agg(
        items=pl.col("item").n_unique(),
        values=pl.col("value").n_unique(),
        both=pl.struct("item", "value").n_unique(),
    )
    few = counts.filter(
        pl.col("both") == pl.col("items"),
        pl.col("values").is_between(2, MOST_VALUES),
        pl.col("values") < pl.col("items"),
    )
    return [*([CATEGORY] if named.n_unique() > 1 else []), *few["field"]]


def slices_of(log: Log, slices: Sequence[str]) -> pl.DataFrame:
    """Return the values of each item: ``dataset`` (with the criterion), ``item`` and the slices.

    A slice is called ``category``, or like the field of the log that is mapped to it, or like a
    field of the metadata of items.

    Raise ValueError if there is no such slice, or if it has no value, or too many.
    """
    wanted, field, source = dict.fromkeys(slices), log.category, log.name
    if field != CATEGORY and {CATEGORY, field} <= wanted.keys():
        raise ValueError(
            f"--slice {CATEGORY} and --slice {field!r:.60} are one column here, as --map "
            f"{CATEGORY}={field:.60} says. Give one of them."
        )
    rows = pl.concat(
        [
            log.ratings.select(pl.col("item", CATEGORY).cast(pl.String), dataset=NAME),
            log.votes.select(pl.col("dataset", CATEGORY).cast(pl.String), item="sample"),
        ],
        how="diagonal_relaxed",
    )
    categories = rows.drop_nulls(CATEGORY)
    items = rows.select(KEY).unique(maintain_order=True)
    for name in wanted:
        if name == field or (name == CATEGORY and not categories.is_empty()):
            known, key = categories, KEY
        else:
            field_of_items = log.metadata.filter(field=name)
            if field_of_items.is_empty() and name != CATEGORY:
                there = names_of_slices(log.votes, log.ratings, log.metadata)
                raise _no_such_slice(name, there, source)
            known, key = field_of_items.select("item", pl.col("value").alias(CATEGORY)), ["item"]
        column = f"{SLICE}{name}"
        values = known.select(*key, pl.col(CATEGORY).alias(column)).unique(maintain_order=True)
        _require_one(values, key, name, source)
        items = items.join(values, on=key, how="left", maintain_order="left")
        _require_few(items[column], name, source)
    return items


def _no_such_slice(name: str, there: Sequence[str], source: str) -> ValueError:
    names = ", ".join(f"{each:.60}" for each in there[:SLICES_NAMED])
    others = f" They can be split by {names}." if there else ""
    return ValueError(
        f"--slice {name!r:.60}: no item of {source} has such a field.{others} Other columns come "
        f"from a file of items: voirdire calibrate FILE --items ITEMS --slice {quote(name):.60}."
    )


def _require_one(values: pl.DataFrame, key: list[str], name: str, source: str) -> None:
    if values.select(key).n_unique() < values.height:
        twice = values.filter(pl.struct(key).is_duplicated())
        first = twice.filter(pl.struct(key) == pl.struct(key).first())
        given = ", ".join(f"{value!r:.60}" for value in first[f"{SLICE}{name}"].head(3))
        raise ValueError(
            f"--slice {name!r:.60}: item {first['item'][0]!r:.60} of {source} has several values: "
            f"{given}. Give each item one."
        )


def _require_few(values: pl.Series, name: str, source: str) -> None:
    many = values.drop_nulls().n_unique()
    if many == 0:
        todo = f" In a table of your own, --map {CATEGORY}=PATH says which field holds it."
        raise ValueError(
            f"--slice {name!r:.60}: no item of {source} has a value."
            f"{todo if name == CATEGORY else ''}"
        )
    if many > MOST_VALUES:
        raise ValueError(
            f"--slice {name!r:.60}: {source} has {many} different values; at most {MOST_VALUES} "
            "get results of their own. Group them."
        )


def with_items(labelled: Labelled, log: Log, slices: pl.DataFrame | None) -> Labelled:
    """Add the texts, slices and chances of the items of labels, as far as they are known."""
    known = log.texts.filter(_is_of(labelled.dataset)).select("item", "texts")
    if slices is not None:
        own = slices.filter(dataset=labelled.dataset)
        known = own.join(known, on="item", how="full", coalesce=True)
    items = described(labelled.items, known)
    if log.ratings[CHANCE].count():
        chances = log.ratings.drop_nulls(CHANCE).select(pl.col("item").cast(pl.String), CHANCE)
        chances = chances.unique("item", maintain_order=True)
        items = items.drop(CHANCE).join(chances, on="item", how="left", maintain_order="left")
    return labelled._replace(items=items)


def _is_of(dataset: str) -> pl.Expr:
    """Tell whether texts are about a dataset, whose name may end in a criterion."""
    own = pl.col("dataset")
    within = pl.lit(dataset).str.starts_with(pl.concat_str(own, pl.lit(": ")))
    return own.is_null() | (own == dataset) | within
