"""Annotations of AlpacaEval: which of two models' outputs an annotator prefers."""

import polars as pl

from tasks.readers.duckdb_reader import Source
from tasks.readers.expressions import NO_ORDER, as_number, pair_item, side_by
from tasks.readers.formats import Parts, log_format, texts_of, with_texts, without_copies

NAMES = {
    "judge": "annotator",
    "anchor_author": "generator_1",
    "target_author": "generator_2",
    "category": "dataset",
}
HUMAN = pl.col("judge").str.starts_with("human")
TEXTS = {"question": "instruction", "anchor": "output_1", "target": "output_2"}
LENGTHS = {"anchor_length": "output_1", "target_length": "output_2"}


@log_format(
    title="AlpacaEval annotations",
    needs=(
        ("instruction", "generator_1", "generator_2", "annotator", "preference"),
        ("instruction", "output_1", "output_2", "generator_1", "generator_2", "preference"),
    ),
    source="https://github.com/tatsu-lab/alpaca_eval",
)
def alpaca_eval(source: Source) -> Parts:
    """Preferences from 1 (``output_1``) to 2 (``output_2``), 1.5 a tie; null was not read.

    The win rate is the mean preference, as AlpacaEval computes it: a preference of 1.8 is .8 of a
    win of ``generator_2``. Preferences outside 1 to 2 are invalid. A row that repeats an earlier
    one, with its time and its raw completion, is a copy and left out.
    """
    rows = source.fields(
        {**NAMES, "stamp": "time_per_example"},
        {"preference": "preference"},
        {"question": "instruction", "digest": "raw_completion"},
        lengths=LENGTHS,
    )
    once, copies = without_copies(rows)
    found = once.with_columns(number=as_number("preference"))
    read = pl.col("number").is_between(1, 2)
    score = pl.when(read).then(pl.col("number") - 1)
    ratings = found.select(
        pl.col("judge", "anchor_author", "target_author", "category", "copy", *LENGTHS),
        human=HUMAN,
        kind=pl.lit("verdict"),
        item=pair_item("question"),
        cluster="question",
        value=score,
        label=side_by(score - 0.5),
        invalid=pl.when(pl.col("number").is_null())
        .then(pl.lit("no preference"))
        .when(~read)
        .then(pl.lit("preference outside 1 to 2")),
    )
    texts = _texts(source) if with_texts(source, ratings) else None
    return Parts(ratings=ratings, texts=texts, left_out=copies, notes=(NO_ORDER,), rows=rows.height)


def _texts(source: Source) -> pl.DataFrame:
    found = source.fields({**NAMES, **TEXTS}, digests={"digest": "instruction"}).filter(HUMAN)
    items = found.select(pair_item("digest")).to_series()
    return texts_of(zip(items, found.select(*TEXTS).iter_rows(named=True), strict=True))
