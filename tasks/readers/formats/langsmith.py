"""Feedback of LangSmith: evaluators' and people's ratings of runs."""

import polars as pl

from tasks.kit.printable import several
from tasks.readers.duckdb_reader import Source
from tasks.readers.expressions import as_number, as_text
from tasks.readers.formats import Parts, log_format

JUDGE, PERSON = "langsmith evaluator", "langsmith user"
JUDGES, PEOPLE = ("model", "auto_eval"), ("app",)
OTHER = "feedback of another source than app, model or auto_eval: whose it is, is not recorded"
CORRECTED = (
    "{} by people: not used as labels, because people correct the scores that they find wrong, so "
    "agreement with corrections alone would be near 0 (a label of a person is feedback of source "
    "app)"
)
TRUTH = {"true": 1.0, "false": 0.0}


@log_format(
    title="LangSmith feedback",
    needs=(("run_id", "key", "score", "feedback_source"),),
    source="https://docs.smith.langchain.com/reference/data_formats/feedback_data_format",
)
def langsmith(source: Source) -> Parts:
    """One rating a row: ``feedback_source.type`` model or auto_eval is a judge, app a person.

    ``key`` is the criterion, ``run_id`` the item. A ``score`` that is a number is a grade, true or
    false a label; without a score a text in ``value`` is the label. Other values are invalid. The
    ``correction`` of a judge's score is counted, and is no label (see ``CORRECTED``).
    """
    names = {n: n for n in ("id", "run_id", "session_id", "key")}
    of = {
        "type": "feedback_source.type",
        "user": "feedback_source.user_id",
        "evaluator": "feedback_source.metadata.model",
    }
    found = source.fields(
        {**names, **of}, {"score": "score", "other": "value"}, present={"correction": "correction"}
    )
    known = pl.col("type").is_in([*JUDGES, *PEOPLE]).fill_null(value=False)
    truth, number = pl.col("score").is_in(list(TRUTH)), as_number("score")
    rated = found.filter(known).with_columns(
        human=pl.col("type").is_in(PEOPLE),
        label=pl.when(truth).then("score").when(pl.col("score").is_null()).then(as_text("other")),
        number=pl.when(truth)
        .then(pl.col("score").replace_strict(TRUTH, default=None, return_dtype=pl.Float64))
        .otherwise(number),
    )
    lost = pl.col("label").is_null() & pl.col("number").is_null()
    ratings = rated.select(
        pl.col("id", "human", "label"),
        judge=pl.when("human")
        .then(pl.col("user").fill_null(PERSON))
        .otherwise(pl.col("evaluator").fill_null(JUDGE)),
        criterion="key",
        item="run_id",
        cluster="run_id",
        kind=pl.when(pl.col("label").is_null() & ~lost)
        .then(pl.lit("number"))
        .otherwise(pl.lit("label")),
        value="number",
        invalid=pl.when(lost).then(pl.lit("neither a score nor a value")),
    )
    corrected = rated.filter(~pl.col("human"), pl.col("correction")).height
    return Parts(
        ratings=ratings,
        left_out={OTHER: found.filter(~known).height},
        notes=(CORRECTED.format(several(corrected, "score corrected", "scores corrected")),)
        if corrected
        else (),
        rows=found.height,
    )
