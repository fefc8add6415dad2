"""Annotations of AlpacaEval: which of two models' outputs an annotator prefers."""

import polars as pl

from tasks.readers.expressions import NO_ORDER, as_number, pair_item, side_by
from tasks.readers.fields import Source
from tasks.readers.formats import Parts, log_format


@log_format(
    title="AlpacaEval annotations",
    needs=(("instruction", "generator_1", "generator_2", "annotator", "preference"),),
    source="https://github.com/tatsu-lab/alpaca_eval",
)
def alpaca_eval(source: Source) -> Parts:
    """Preferences from 1 (``output_1``) to 2 (``output_2``), 1.5 a tie; null was not read.

    The win rate is the mean preference, as AlpacaEval computes it: a preference of 1.8 is .8 of a
    win of ``generator_2``. Preferences outside 1 to 2 are invalid.
    """
    found = source.fields(
        {
            "judge": "annotator",
            "anchor_author": "generator_1",
            "target_author": "generator_2",
            "category": "dataset",
        },
        {"preference": "preference"},
        {"question": "instruction"},
    ).with_columns(number=as_number("preference"))
    read = pl.col("number").is_between(1, 2)
    score = pl.when(read).then(pl.col("number") - 1)
    ratings = found.select(
        pl.col("judge", "anchor_author", "target_author", "category"),
        human=pl.col("judge").str.starts_with("human"),
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
    return Parts(ratings=ratings, notes=(NO_ORDER,))
