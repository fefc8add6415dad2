"""Results of LLMBar: the winner in both orders of each item, with the right answer."""

import polars as pl

from tasks.readers.duckdb_reader import Source
from tasks.readers.expressions import choice_of_side
from tasks.readers.formats import Parts, log_format, strange_values

SIDES = {"1": "anchor", "2": "target"}


@log_format(
    title="LLMBar results",
    needs=(("item", "judge", "label", "winner_order1", "winner_order2"),),
    source="https://github.com/princeton-nlp/LLMBar",
)
def llmbar(source: Source) -> Parts:
    """One row per item: the winner when output 1 is shown first, when it is second, and the label.

    A winner that is neither 1 nor 2 is an invalid vote. Each ``subset`` is a dataset of its own.
    """
    names = ("item", "judge", "prompt", "label", "subset", "winner_order1", "winner_order2")
    found = source.fields({n: n for n in names})
    orders = [
        found.with_columns(
            shown_first=pl.lit(first),
            side=pl.col(f"winner_order{order}").replace_strict(SIDES, default=None),
            label=pl.col("label").replace_strict(SIDES, default=None),
        )
        for order, first in ((1, "anchor"), (2, "target"))
    ]
    votes = pl.concat(orders).select(
        pl.col("judge", "prompt", "shown_first", "label"),
        part="subset",
        human=pl.lit(value=False),
        sample="item",
        cluster="item",
        choice=choice_of_side(),
    )
    strange = strange_values((found["winner_order1"], found["winner_order2"]), SIDES)
    return Parts(votes=votes, notes=strange, rows=found.height)
