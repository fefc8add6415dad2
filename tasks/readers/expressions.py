"""Polars expressions that several formats share."""

import re
from collections.abc import Sequence

import polars as pl

from tasks.counting.positions import BY_PLACE
from tasks.kit.printable import several

NO_NUMBER = "not a number"
NO_ORDER = "order not recorded: no position statistics"
DECIMAL_COMMA = "[+-]?[0-9]{1,15},[0-9]{1,15}"


def as_number(column: str) -> pl.Expr:
    """Return a JSON number as a float; null for other values, NaN and infinity."""
    number = pl.col(column).cast(pl.Float64, strict=False)
    return pl.when(number.is_finite()).then(number)


def judge_name(first: str, whole: str) -> pl.Expr:
    """Return the name of a judge: the first of a list ``[model, prompt]``, or a text alone."""
    structure = pl.col(whole).str.contains(r"^\s*[\[{]")
    return pl.coalesce(first, pl.when(~structure).then(whole))


def has_decimal_comma(text: pl.Expr) -> pl.Expr:
    """Tell whether a text is a number with a decimal comma, such as 1,5."""
    return text.str.contains(f"^{DECIMAL_COMMA}$")


def with_point(text: object) -> str | None:
    """Return a number that has a decimal comma with a point; None for anything else."""
    trimmed = text.strip() if isinstance(text, str) else ""
    return trimmed.replace(",", ".") if re.fullmatch(DECIMAL_COMMA, trimmed) else None


def are_decimal_commas(text: pl.Expr) -> pl.Expr:
    """Mark numbers with a decimal comma in a column at least half of whose texts are numbers."""
    trimmed = text.str.strip_chars()
    comma = has_decimal_comma(trimmed)
    number = comma | trimmed.cast(pl.Float64, strict=False).is_finite().fill_null(value=False)
    return comma & (2 * number.sum() >= (trimmed != "").sum())


def refuse_decimal_commas(file: str, labels: pl.Series) -> None:
    """Refuse numbers with a decimal comma in a column at least half of whose labels are numbers."""
    if labels.dtype != pl.String or not labels.str.contains(",", literal=True).any():
        return
    text = labels.str.strip_chars()
    commas = text.filter(pl.select(are_decimal_commas(pl.lit(text))).to_series())
    if commas.is_empty():
        return
    raise ValueError(
        f"{file}: {several(commas.len(), 'value')} of column {labels.name!r:.60} such as "
        f"{commas[0]!r:.40} {'has' if commas.len() == 1 else 'have'} a decimal comma. Write "
        f"{commas[0].replace(',', '.'):.40}."
    )


def why_no_number(column: str, why: str) -> pl.Expr:
    """Return why a JSON value is no number: ``why``, unless it has a decimal comma."""
    text = pl.col(column).str.strip_chars('" ')
    comma = has_decimal_comma(text)
    first = text.filter(comma).first()
    point = first.str.replace(",", ".", literal=True)
    said = pl.format("a decimal comma, such as '{}': write {}", first, point)
    return pl.when(comma).then(said).otherwise(pl.lit(why))


def as_text(column: str) -> pl.Expr:
    """Return a JSON value as a label: the text of a string, other values as JSON."""
    value = pl.col(column)
    quoted = value.str.starts_with('"')
    return pl.when(quoted).then(value.str.json_decode(pl.String)).otherwise(value)


def sorted_pair(one: str, other: str) -> list[pl.Expr]:
    """Return ``anchor_author`` and ``target_author``, the two models in order of their names."""
    first, second = pl.col(one), pl.col(other)
    return [
        pl.min_horizontal(first, second).alias("anchor_author"),
        pl.max_horizontal(first, second).alias("target_author"),
    ]


def pair_item(question: str) -> pl.Expr:
    """Return the id of a pair of answers: its question and its two models."""
    return pl.concat_str(question, "anchor_author", "target_author", separator="/")


def winner_side(winner: str, models: tuple[str, str], ties: Sequence[str]) -> pl.Expr:
    """Return ``anchor``, ``tie`` or ``target`` for a winner named like a column of models."""
    first_is_anchor = pl.col(models[0]) == pl.col("anchor_author")
    won = pl.col(winner)
    return (
        pl.when(won.is_in(list(ties)))
        .then(pl.lit("tie"))
        .when(won.is_in(list(models)))
        .then(
            pl.when((won == models[0]) == first_is_anchor)
            .then(pl.lit("anchor"))
            .otherwise(pl.lit("target"))
        )
    )


def side_by(lead: pl.Expr) -> pl.Expr:
    """Return ``anchor``, ``tie`` or ``target`` for a lead of the target; null for none."""
    return lead.sign().cast(pl.Int64).replace_strict(BY_PLACE, return_dtype=pl.String)


def score_of_label() -> pl.Expr:
    """Return the score of a verdict: 0 anchor, 0.5 tie, 1 target."""
    scores = {"anchor": 0.0, "tie": 0.5, "target": 1.0}
    return pl.col("label").replace_strict(scores, default=None, return_dtype=pl.Float64)


def choice_of_side() -> pl.Expr:
    """Return the choice of a vote for a ``side``; ``invalid`` where there is none."""
    return (
        pl.when(pl.col("side") == "tie")
        .then(pl.lit("tie"))
        .when(pl.col("side").is_null())
        .then(pl.lit("invalid"))
        .when(pl.col("side") == pl.col("shown_first"))
        .then(pl.lit("first"))
        .otherwise(pl.lit("second"))
    )
