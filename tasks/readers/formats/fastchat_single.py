"""Single grades in FastChat's format (MT-Bench)."""

import polars as pl

from tasks.readers.duckdb_reader import Source
from tasks.readers.expressions import as_number, judge_name
from tasks.readers.formats import Parts, log_format, without_copies

MT_BENCH = r"^single(-math)?(-v1)?(-multi-turn)?$"
"""Names of the judge prompts of MT-Bench, whose scale is from 1 to 10."""


@log_format(
    title="FastChat single grades",
    needs=(
        ("question_id", "model", "judge", "score", "judgment"),
        # The first row may lack the judge.
        ("question_id", "model", "user_prompt", "score", "judgment"),
    ),
    source="https://github.com/lm-sys/FastChat",
)
def fastchat_single(source: Source) -> Parts:
    """Grades that a judge gave to single answers; the score -1 marks an invalid reply.

    Grades under a prompt of MT-Bench, or of no prompt, are from 1 to 10; others are invalid.
    A row that repeats an earlier one, with its time and its reply, is a copy and left out.
    """
    names = ("question_id", "model", "turn", "category")
    rows = source.fields(
        {
            **{n: n for n in names},
            "whole": "judge",
            "grader": "judge.0",
            "prompt": "judge.1",
            "stamp": "tstamp",
        },
        {"score": "score"},
        {"digest": "judgment"},
    )
    once, copies = without_copies(rows)
    found = once.with_columns(value=as_number("score"))
    unread = pl.col("value").is_null() | (pl.col("value") == -1)
    documented = pl.coalesce("prompt", pl.lit("single")).str.contains(MT_BENCH)
    outside = documented & ~pl.col("value").is_between(1, 10)
    ratings = found.select(
        pl.col("prompt", "category", "copy"),
        judge=judge_name("grader", "whole"),
        human=pl.lit(value=False),
        kind=pl.lit("number"),
        item=pl.concat_str("question_id", "model", separator="/"),
        cluster="question_id",
        target_author="model",
        part=pl.concat_str(pl.lit("turn"), "turn"),
        value=pl.when(~unread & ~outside).then("value"),
        invalid=pl.when(unread)
        .then(pl.lit("no grade in the reply"))
        .when(outside)
        .then(pl.lit("grade outside 1 to 10")),
    )
    return Parts(ratings=ratings, left_out=copies, rows=rows.height)
