"""Scores of Langfuse: evaluators' and annotators' ratings of traces."""

import re

import polars as pl

from tasks.readers.duckdb_reader import Source
from tasks.readers.expressions import NO_NUMBER, as_number, why_no_number
from tasks.readers.formats import Parts, counted, log_format

NAMES = (
    "id",
    "name",
    "source",
    "dataType",
    "stringValue",
    "authorUserId",
    "traceId",
    "observationId",
    "sessionId",
    "datasetRunId",
)
JUDGE, PERSON = "langfuse evaluator", "langfuse annotator"
OTHER = "scores of source API: a program's or a user's, which the log does not tell apart"
TEXT = "scores of type TEXT: not a rating"
NO_NAME = "scores without a name: of no criterion"
ITEM = ("observationId", "traceId", "sessionId", "datasetRunId")
NO_ITEM = "scores of no observation, trace, session or dataset run: of no item"


@log_format(
    title="Langfuse scores",
    needs=(("name", "source", "dataType", "traceId"), ("name", "source", "data_type", "trace_id")),
    source="https://langfuse.com/docs/api",
)
def langfuse(source: Source) -> Parts:
    """One score a row: ``source`` EVAL is a judge, ANNOTATION a person (``authorUserId``).

    ``name`` is the criterion. The item is the observation, or else the trace, session or dataset
    run; scores of one trace belong together. A score without a name or an item is left out. A
    numeric score that is no number is invalid, and so is a boolean one that is neither 1 or true
    nor 0 or false. The category comes from ``metadata``.
    """
    snake = "traceId" not in source.columns
    paths = {n: re.sub("[A-Z]", lambda c: f"_{c[0].lower()}", n) if snake else n for n in NAMES}
    found = source.fields(paths | {"category": "metadata.category"}, {"raw": "value"}).with_columns(
        number=as_number("raw"), type=pl.col("dataType").str.to_uppercase()
    )
    # Without a type, a number alone is a grade.
    alone = pl.col("number").is_not_null() & pl.col("stringValue").is_null()
    untyped = pl.when(alone).then(pl.lit("NUMERIC")).otherwise(pl.lit("CATEGORICAL"))
    found = found.with_columns(type=pl.coalesce("type", untyped))
    by = pl.col("source").str.to_uppercase()
    text, known = pl.col("type") == "TEXT", by.is_in(["EVAL", "ANNOTATION"])
    unnamed = pl.col("name").fill_null("").str.strip_chars() == ""
    itemless = pl.coalesce(ITEM).is_null()
    named = found.filter(known & ~text & ~unnamed)
    rated = named.filter(~itemless).with_columns(human=by == "ANNOTATION")
    is_number = pl.col("type") == "NUMERIC"
    # Langfuse writes 0 for categories without an assigned number.
    is_category = pl.col("type") == "CATEGORICAL"
    assigned = ~is_category | (is_category & (pl.col("number") != 0)).any().over("name")
    plain = pl.col("raw").str.strip_chars('"')
    said = pl.coalesce("stringValue", plain).str.to_lowercase()
    truth = (
        pl.when((pl.col("number") == 1) | (pl.col("number").is_null() & (said == "true")))
        .then(pl.lit("true"))
        .when((pl.col("number") == 0) | (pl.col("number").is_null() & (said == "false")))
        .then(pl.lit("false"))
    )
    label = (
        pl.when(pl.col("type") == "BOOLEAN")
        .then(truth)
        .otherwise(pl.coalesce("stringValue", plain))
    )
    ratings = rated.with_columns(
        label=pl.when(~is_number).then(label),
        group=pl.coalesce(ITEM[1:]),
    ).select(
        pl.col("id", "human"),
        judge=pl.when("human")
        .then(pl.col("authorUserId").fill_null(PERSON))
        .otherwise(pl.lit(JUDGE)),
        criterion="name",
        item=pl.coalesce("observationId", "group"),
        cluster=pl.coalesce("group", "observationId"),
        category="category",
        kind=pl.when(is_number).then(pl.lit("number")).otherwise(pl.lit("label")),
        label="label",
        value=pl.when(assigned).then("number"),
        invalid=pl.when(is_number & pl.col("number").is_null())
        .then(why_no_number("raw", NO_NUMBER))
        .when(~is_number & pl.col("label").is_null())
        .then(pl.lit("no label")),
    )
    api = (by == "API").fill_null(value=False)
    strange = found.filter(~known.fill_null(value=False) & ~api)["source"]
    left_out = {
        OTHER: found.filter(api).height,
        **counted("scores of source {}, which is neither EVAL nor ANNOTATION", strange),
        TEXT: found.filter(known & text).height,
        NO_NAME: found.filter(known & ~text & unnamed).height,
        NO_ITEM: named.filter(itemless).height,
    }
    return Parts(ratings=ratings, left_out=left_out, rows=found.height)
