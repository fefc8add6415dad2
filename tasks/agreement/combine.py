"""Labels of several people per item, combined into one, and each person against the others."""

import numpy as np
import polars as pl

ITEM = ("criterion", "item")


def combined(people: pl.DataFrame, scale: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return one row per labelled item: the combined label of its people.

    Verdicts and names: the most frequent one; an item without a single most frequent label is
    ``tied`` and has none. Grades: the mean; ``word`` is then the grade of ``scale`` nearest to it
    (of two equally near, the higher).

    Parameters
    ----------
    people
        ``item``, ``word`` and ``value`` of each valid label.
    scale
        For grades: ``word`` and ``value`` of all grades, sorted by value.

    Returns
    -------
    DataFrame
        ``item``, ``word``, ``value``, ``people`` (labels), ``share`` (of them that are equal to the
        word), ``tied``.

    Examples
    --------
    Grades 2, 3 and 3: value 2.67, word 3.
    """
    counts = people.group_by("item", "word").agg(votes=pl.len(), value=pl.col("value").first())
    top = (
        counts.sort("item", "votes", "word", descending=[False, True, False])
        .group_by("item", maintain_order=True)
        .agg(
            pl.col("word", "value").first(),
            people=pl.col("votes").sum(),
            most=pl.col("votes").max(),
            tied=(pl.col("votes") == pl.col("votes").max()).sum() > 1,
        )
    )
    if scale is None:
        return top.select(
            "item",
            "people",
            "tied",
            pl.when(~pl.col("tied")).then(pl.col("word", "value")),
            share=pl.col("most") / pl.col("people"),
        )
    means = people.group_by("item").agg(people=pl.len(), value=pl.col("value").mean()).sort("item")
    words = means.with_columns(word=nearest(means["value"], scale))
    share = words.join(
        counts.select("item", "word", "votes"), on=["item", "word"], how="left"
    ).select("item", votes=pl.col("votes").fill_null(0))
    return words.join(share, on="item", maintain_order="left").select(
        "item",
        "people",
        pl.lit(value=False).alias("tied"),
        "word",
        "value",
        share=pl.col("votes") / pl.col("people"),
    )


def nearest(values: pl.Series, scale: pl.DataFrame) -> pl.Series:
    """Return the word of the grade nearest to each value; ``scale`` is sorted by value."""
    grades = scale["value"].to_numpy()
    middles = (grades[1:] + grades[:-1]) / 2
    # Means such as 2.4999999999999996 belong to the middle that they miss by rounding.
    place = np.searchsorted(middles - 1e-9, values.to_numpy(), side="right")
    return scale["word"].gather(place.tolist())


def left_out(people: pl.DataFrame, *, grades: bool) -> pl.DataFrame:
    """Compare each person with the combined label of the other people of the item.

    Returns
    -------
    DataFrame
        Verdicts and names: ``item``, ``annotator``, ``agrees``; where the others are tied there is
        no row. Grades: ``item``, ``annotator``, ``error``, the distance from the others' mean.

    Notes
    -----
    Of an item's label counts, without the person's own label, the largest is unique or tied; this
    follows from the two largest counts, how many labels have them, and the count of the own label.
    """
    several = people.filter(pl.len().over("item") > 1)
    if grades:
        total, number = (pl.col("value").sum().over("item"), pl.len().over("item"))
        others = (total - pl.col("value")) / (number - 1)
        return several.select("item", "annotator", error=(pl.col("value") - others).abs())
    counts = several.group_by("item", "word").len("own")
    first = pl.col("own").max()
    below = pl.col("own").filter(pl.col("own") < first)
    tops = counts.group_by("item").agg(
        first=first,
        firsts=(pl.col("own") == first).sum(),
        second=below.max().fill_null(0),
        seconds=(pl.col("own") == below.max()).sum(),
    )
    rows = several.join(counts, on=["item", "word"]).join(tops, on="item")
    alone = (pl.col("own") == pl.col("first")) & (pl.col("firsts") == 1)
    other = pl.when(alone).then("second").otherwise("first")
    of_first = pl.col("firsts") - (pl.col("own") == pl.col("first"))
    rivals = pl.when(alone).then("seconds").otherwise(of_first)
    mine = pl.col("own") - 1
    return rows.filter((mine > other) | ((mine < other) & (rivals == 1))).select(
        "item", "annotator", agrees=mine > other
    )
