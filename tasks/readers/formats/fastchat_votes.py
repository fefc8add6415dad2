"""Votes of people and judges on pairs of models in FastChat's format (MT-Bench)."""

import polars as pl

from tasks.readers.duckdb_reader import Source
from tasks.readers.expressions import (
    NO_ORDER,
    judge_name,
    pair_item,
    score_of_label,
    sorted_pair,
    winner_side,
)
from tasks.readers.formats import Parts, log_format, strange_values

PEOPLE = r"^(expert|author|human|annotator|arena_user)"
"""How FastChat names people; all others, and lists of model and prompt, are judges."""
TIES = ("tie", "tie (inconsistent)")


@log_format(
    title="FastChat votes on pairs",
    needs=(("question_id", "model_a", "model_b", "winner", "judge"),),
    source="https://github.com/lm-sys/FastChat",
)
def fastchat_votes(source: Source) -> Parts:
    """Votes of people or judges on pairs of models; a verdict of a judge combines both orders.

    ``winner`` is ``model_a``, ``model_b``, ``tie``, or ``tie (inconsistent)`` where the two orders
    differ; anything else is invalid. People are the annotators named ``expert...``, ``author...``,
    ``human...`` or ``annotator...``.
    """
    names = ("question_id", "model_a", "model_b", "winner", "turn", "category")
    found = source.fields(
        {**{n: n for n in names}, "judge": "judge", "model": "judge.0", "prompt": "judge.1"}
    ).with_columns(
        human=pl.col("model").is_null() & pl.col("judge").str.contains(PEOPLE),
        judge=judge_name("model", "judge"),
    )
    paired = found.with_columns(sorted_pair("model_a", "model_b"))
    label = winner_side("winner", ("model_a", "model_b"), TIES)
    ratings = paired.with_columns(label=label).select(
        pl.col("judge", "prompt", "human", "category", "label"),
        pl.col("anchor_author", "target_author"),
        kind=pl.lit("verdict"),
        item=pair_item("question_id"),
        cluster="question_id",
        part=pl.concat_str(pl.lit("turn"), "turn"),
        value=score_of_label(),
        inconsistent=pl.col("winner") == TIES[1],
        invalid=pl.when(pl.col("label").is_null()).then(pl.lit("no winner")),
    )
    strange = strange_values([found["winner"]], ("model_a", "model_b", *TIES))
    return Parts(ratings=ratings, notes=(NO_ORDER, *strange), rows=found.height)
