"""Items that a log has labels of: their texts and their categories, which can be slices."""

from collections.abc import Sequence

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.judging import VoteLog
from tasks.agreement.sources import described, items_of
from tasks.calibration.label_values import Labelled
from tasks.readers.label_table import CHANCE, MOST_VALUES, SLICE

CATEGORY = "category"
NAME = pl.concat_str("dataset", "criterion", separator=": ", ignore_nulls=True)
"""Name of the labels of one dataset and criterion."""


def categories_of(
    votes: DataFrame[VoteLog],
    ratings: DataFrame[Ratings],
    slices: Sequence[str],
    source: str,
    field: str | None = None,
) -> pl.DataFrame:
    """Return the category of each item: ``dataset`` (with the criterion), ``item`` and the slices.

    A slice is called ``category``, or like the field of the log that is mapped to it.

    Raise ValueError if there is no such slice, or no category, or too many.
    """
    if strange := [name for name in slices if name not in {CATEGORY, field}]:
        raise ValueError(
            f"--slice {strange[0]!r:.60}: votes and logs have the column {CATEGORY} only. In a "
            f"table of your own, --map {CATEGORY}={strange[0]:.60} takes it from that field."
        )
    if len({*slices}) > 1:
        raise ValueError(
            f"--slice {CATEGORY} and --slice {field!r:.60} are one column here, as --map "
            f"{CATEGORY}={field:.60} says. Give one of them."
        )
    rows = pl.concat(
        [
            ratings.select(pl.col("item", CATEGORY).cast(pl.String), dataset=NAME),
            votes.select(pl.col("dataset", CATEGORY).cast(pl.String), item="sample"),
        ],
        how="diagonal_relaxed",
    ).drop_nulls(CATEGORY)
    if rows.is_empty():
        raise ValueError(
            f"--slice {slices[0]!r:.60}: no row of {source} has a category. In a table of your "
            f"own, --map {CATEGORY}=PATH says which field holds it."
        )
    if (values := rows[CATEGORY].n_unique()) > MOST_VALUES:
        raise ValueError(
            f"--slice {slices[0]!r:.60}: {source} has {values} different categories; at most "
            f"{MOST_VALUES} get results of their own. Group them."
        )
    named = [pl.col(CATEGORY).alias(f"{SLICE}{name}") for name in dict.fromkeys(slices)]
    found = rows.unique(["dataset", "item"], keep="first", maintain_order=True)
    return found.select("dataset", "item", *named)


def items_in_log(
    labelled: Sequence[Labelled],
    texts: pl.DataFrame | None = None,
    categories: pl.DataFrame | None = None,
    ratings: pl.DataFrame | None = None,
) -> list[pl.DataFrame]:
    """Return the items of labels with their texts, slices and chances, as far as they are known.

    The ``ratings`` have the ``label_chance`` of items.
    """
    found = _with_texts(labelled, texts, categories)
    if ratings is None or ratings[CHANCE].count() == 0:
        return found
    chances = ratings.drop_nulls(CHANCE).select(pl.col("item").cast(pl.String), CHANCE)
    chances = chances.unique("item", maintain_order=True)
    return [
        items.drop(CHANCE).join(chances, on="item", how="left", maintain_order="left")
        for items in found
    ]


def _with_texts(
    labelled: Sequence[Labelled], texts: pl.DataFrame | None, categories: pl.DataFrame | None
) -> list[pl.DataFrame]:
    if texts is None:
        texts = pl.DataFrame(schema=dict.fromkeys(("item", "texts", "dataset"), pl.String))
    found = []
    for each in labelled:
        known = texts.filter(_is_of(each.dataset)).select("item", "texts")
        if categories is not None:
            own = categories.filter(dataset=each.dataset)
            known = own.join(known, on="item", how="full", coalesce=True)
        found.append(described(items_of(each), known))
    return found


def _is_of(dataset: str) -> pl.Expr:
    """Tell whether texts are about a dataset, whose name may end in a criterion."""
    own = pl.col("dataset")
    within = pl.lit(dataset).str.starts_with(pl.concat_str(own, pl.lit(": ")))
    return own.is_null() | (own == dataset) | within
