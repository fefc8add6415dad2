"""Pairwise judgments in FastChat's format (MT-Bench): both orders of each pair."""

import polars as pl

from tasks.readers.duckdb_reader import Source
from tasks.readers.expressions import (
    choice_of_side,
    judge_name,
    pair_item,
    sorted_pair,
    winner_side,
)
from tasks.readers.formats import Parts, log_format, strange_values, without_copies


@log_format(
    title="FastChat pairwise judgments",
    needs=(
        ("question_id", "model_1", "model_2", "g1_winner", "g2_winner", "judge"),
        # The first row may lack the judge.
        ("question_id", "model_1", "model_2", "g1_winner", "g2_winner", "g1_judgment"),
    ),
    source="https://github.com/lm-sys/FastChat",
)
def fastchat_pair(source: Source) -> Parts:
    """Judgments of a model on pairs of models, asked in both orders: two votes a row.

    ``g1_winner`` is of the order in which ``model_1`` was shown first, ``g2_winner`` of the other
    order. ``error`` is an invalid vote. A row that repeats an earlier one, with its time and its
    replies, is a copy and left out.
    """
    names = ("question_id", "model_1", "model_2", "g1_winner", "g2_winner", "turn", "category")
    rows = source.fields(
        {
            **{n: n for n in names},
            "whole": "judge",
            "model": "judge.0",
            "prompt": "judge.1",
            "stamp": "tstamp",
        },
        digests={"digest": "g1_judgment", "second_digest": "g2_judgment"},
    )
    once, copies = without_copies(rows)
    found = once.with_columns(
        *sorted_pair("model_1", "model_2"),
        judge=judge_name("model", "whole"),
        human=pl.lit(value=False),
    )
    orders = [
        found.with_columns(
            side=winner_side(f"g{game}_winner", ("model_1", "model_2"), ("tie",)),
            shown_first=pl.when((pl.col("model_1") == pl.col("anchor_author")) == (game == 1))
            .then(pl.lit("anchor"))
            .otherwise(pl.lit("target")),
        )
        for game in (1, 2)
    ]
    votes = pl.concat(orders).select(
        pl.col("judge", "prompt", "human", "category", "shown_first", "copy"),
        pl.col("anchor_author", "target_author"),
        sample=pair_item("question_id"),
        cluster="question_id",
        part=pl.concat_str(pl.lit("turn"), "turn"),
        choice=choice_of_side(),
    )
    winners = (once["g1_winner"], once["g2_winner"])
    strange = strange_values(winners, ("model_1", "model_2", "tie", "error"))
    return Parts(votes=votes, left_out=copies, notes=strange, rows=rows.height)
