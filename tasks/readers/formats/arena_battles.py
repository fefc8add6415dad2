"""Battles of the Chatbot Arena: votes of visitors on two anonymous models."""

import polars as pl

from schemas.judging import FORMATS
from tasks.readers.duckdb_reader import Source
from tasks.readers.expressions import NO_ORDER, score_of_label, sorted_pair, winner_side
from tasks.readers.formats import Parts, log_format, strange_values

VISITORS = "arena visitors"
SIZES = ("length", *FORMATS)
TIES = ("tie", "both_bad", "tie (bothbad)")


@log_format(
    title="Chatbot Arena battles",
    needs=(("model_a", "model_b", "winner"),),
    source="https://huggingface.co/datasets/lmarena-ai/arena-human-preference-140k",
)
def arena_battles(source: Source) -> Parts:
    """One human vote a row; the visitors count as one annotator, as nobody votes twice on a battle.

    ``both_bad`` is a tie. Counts of headings, list items and bold words come from
    ``conv_metadata``, and so do lengths, in tokens of all answers of a model.
    """
    sizes = {
        f"{kind}_{side}": f"conv_metadata.{kind}_count_{side}" for kind in FORMATS for side in "ab"
    } | {f"length_{side}": f"conv_metadata.sum_assistant_{side}_tokens" for side in "ab"}
    names = {name: name for name in ("id", "question_id", "model_a", "model_b", "winner")}
    found = source.fields(names, sizes)
    counted = found.with_row_index("row").with_columns(
        *sorted_pair("model_a", "model_b"),
        *(_total(name).alias(name) for name in sizes),
        item=pl.coalesce("id", "question_id", pl.col("row").cast(pl.String)),
    )
    swapped = pl.col("model_a") != pl.col("anchor_author")
    paired = counted.with_columns(
        pl.when(swapped == (side == "anchor"))
        .then(f"{kind}_b")
        .otherwise(f"{kind}_a")
        .alias(f"{side}_{kind}")
        for kind in SIZES
        for side in ("anchor", "target")
    )
    # A battle of unknown models says nothing.
    known = pl.all_horizontal(pl.col("model_a", "model_b").is_not_null())
    winner = winner_side("winner", ("model_a", "model_b"), TIES)
    paired = paired.with_columns(label=pl.when(known).then(winner), known=known)
    ratings = paired.select(
        pl.col("id", "item", "label", "anchor_author", "target_author"),
        pl.col(f"{side}_{kind}" for kind in SIZES for side in ("anchor", "target")),
        judge=pl.lit(VISITORS),
        human=pl.lit(value=True),
        kind=pl.lit("verdict"),
        cluster="item",
        value=score_of_label(),
        invalid=pl.when(~pl.col("known"))
        .then(pl.lit("no name of a model"))
        .when(pl.col("label").is_null())
        .then(pl.lit("no winner")),
    )
    strange = strange_values([found["winner"]], ("model_a", "model_b", *TIES))
    return Parts(ratings=ratings, notes=(NO_ORDER, *strange), rows=found.height)


def _total(column: str) -> pl.Expr:
    """Return the sum of the numbers of a count, which can be an object of counts by kind."""
    numbers = (
        pl.col(column)
        .str.extract_all(r"(?:^|[:\[,])\s*\d+")
        .list.eval(pl.element().str.extract(r"(\d+)").cast(pl.Int64))
    )
    return numbers.list.sum()
