"""Labels of judges in logs that are no verdicts, such as a grader's error: invalid, and kept."""

from collections.abc import Iterator

import polars as pl

from tasks.agreement.label_kinds import unreadable_labels
from tasks.calibration.label_values import TIED, as_json, unreadable
from tasks.logs.ratings import whole_number

ABOUT = ("dataset", "criterion")
JUDGED = (*ABOUT, "judge", "prompt", "item")
NO_LABEL = "no label"
UNREADABLE = "not a label"


def with_unreadable(ratings: pl.DataFrame) -> pl.DataFrame:
    """Make ratings invalid whose label is blank, or is a judge's that agreement cannot read.

    The latter keep the label. A label with a value in the log is readable.
    """
    labelled = (pl.col("kind") == "label") & pl.col("invalid").is_null()
    blank = labelled & (pl.col("label").str.strip_chars() == "")
    rows = ratings.with_columns(
        label=pl.when(~blank.fill_null(value=False)).then("label"),
        invalid=pl.when(blank).then(pl.lit(NO_LABEL)).otherwise("invalid"),
    )
    lost = list(_lost(rows, labelled & pl.col("value").is_null() & ~pl.col("human")))
    if not lost:
        return rows
    found = rows.join(
        pl.concat(lost), on=[*ABOUT, "label"], how="left", nulls_equal=True, maintain_order="left"
    )
    own = pl.col("lost").is_not_null() & labelled & pl.col("value").is_null() & ~pl.col("human")
    return found.with_columns(
        invalid=pl.when(own).then(pl.lit(UNREADABLE)).otherwise("invalid")
    ).drop("lost")


def _lost(rows: pl.DataFrame, judged: pl.Expr) -> Iterator[pl.DataFrame]:
    """Yield the invalid labels of judges, of each dataset and criterion that has any."""
    valid = rows.filter(pl.col("invalid").is_null())
    read = valid.select(*ABOUT, "human", "label", "value", judged.alias("judged"))
    grade = pl.coalesce("label", whole_number("value"))
    for part in read.partition_by(ABOUT):
        labels = part.filter("judged")["label"].drop_nulls().unique().sort()
        if labels.is_empty():
            continue
        people = part.filter("human").select(grade).to_series().drop_nulls().unique()
        json, theirs = (each.map_elements(as_json, pl.String) for each in (labels, people))
        lost = labels.filter(json.is_in(unreadable_labels(json, theirs).implode()))
        if lost.len():
            place = part.select(pl.col(ABOUT).cast(pl.String)).head(1)
            found = place.join(lost.to_frame("label"), how="cross")
            yield found.with_columns(lost=pl.lit(value=True))


def unread_items(ratings: pl.DataFrame, read: pl.DataFrame) -> pl.DataFrame:
    """Return annotations without a label: of items for which ``read`` has no label of a judge.

    ``unreadable`` is the text that could not be read or, without one, why there is none; repeats
    that tie have a label of their own.
    """
    judged = ratings.filter(~pl.col("human")).with_columns(pl.col(JUDGED).cast(pl.String))
    known = read.select(
        pl.col("dataset", "prompt", "item").cast(pl.String),
        criterion=pl.col("aspect").cast(pl.String),
        judge=pl.col("annotator").cast(pl.String),
    )
    lost = judged.join(known, on=JUDGED, how="anti", nulls_equal=True)
    first = pl.when(pl.col("invalid").is_not_null()).then("label").drop_nulls().first()
    rows = lost.group_by(JUDGED, maintain_order=True).agg(
        pl.col("cluster").cast(pl.String).first(),
        tied=pl.col("invalid").is_null().any(),
        label=first,
        why=pl.col("invalid").cast(pl.String).first(),
    )
    text = pl.col("label").map_elements(as_json, pl.String)
    reason = pl.col("why").map_elements(unreadable, pl.String)
    return rows.select(
        "dataset",
        "item",
        "cluster",
        "prompt",
        aspect="criterion",
        annotator="judge",
        wave=pl.lit(""),
        human=pl.lit(value=False),
        unreadable=pl.when("tied").then(pl.lit(TIED)).otherwise(pl.coalesce(text, reason)),
    )
