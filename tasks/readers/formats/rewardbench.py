"""Per-example results of RewardBench: scores of the chosen and the rejected answer."""

import json
from typing import Any

import polars as pl

from tasks.readers.bounded import clip
from tasks.readers.duckdb_reader import RESAVE, Source
from tasks.readers.expressions import NO_ORDER, as_number, score_of_label, side_by
from tasks.readers.formats import Parts, log_format, without_copies

NAMES = {"id": "id", "model": "model", "subset": "subset"}


@log_format(
    title="RewardBench results",
    needs=(("scores_chosen", "scores_rejected"), ("chosen", "rejected")),
    source="https://github.com/allenai/reward-bench",
)
def rewardbench(source: Source) -> Parts:
    """Scores that a reward model gave to the chosen (right) and the rejected answer of a prompt.

    The higher score wins, equal scores tie, and a missing score is invalid. Without a column
    ``model`` the judge is named after the file. A file has a row per prompt, or is one object with
    a list per column, as RewardBench saves it.
    """
    old = not {"scores_chosen", "scores_rejected"} <= source.columns
    chosen, rejected = ("chosen", "rejected") if old else ("scores_chosen", "scores_rejected")
    rows = _found(source, {"chosen": chosen, "rejected": rejected})
    known = rows.with_columns(stamp="id", digest=pl.lit(None, pl.String))
    found, copies = without_copies(known)
    scored = (
        found.with_row_index("row")
        .with_columns(
            win=as_number("chosen"),
            lose=as_number("rejected"),
            item=pl.concat_str(
                pl.col("subset").fill_null(""),
                pl.coalesce("id", pl.col("row").cast(pl.String)),
                separator="/",
            ),
        )
        .with_columns(label=side_by(pl.col("win") - pl.col("lose")))
    )
    name = source.name.split(".")[0].removesuffix("_all")
    ratings = scored.select(
        pl.col("item", "label", "copy"),
        judge=pl.col("model").fill_null(name),
        human=pl.lit(value=False),
        kind=pl.lit("verdict"),
        cluster="item",
        category="subset",
        correct=pl.lit("target"),
        value=score_of_label(),
        invalid=pl.when(pl.col("label").is_null()).then(pl.lit("a score is missing")),
    )
    return Parts(ratings=ratings, left_out=copies, notes=(NO_ORDER,), rows=rows.height)


def _found(source: Source, scores: dict[str, str]) -> pl.DataFrame:
    """Return the names and the scores of all rows, the scores as JSON numbers."""
    first = pl.col("chosen").str.head(1) == "["
    found = None if source.kind == "object" else source.fields(NAMES, scores)
    if found is None or (found.height == 1 and found.select(first).item()):
        found = _columns(source, scores)
    each = pl.col(*scores)
    if found.select(pl.any_horizontal(each.str.starts_with("[")).any()).item():
        # Some reward models return each score in a list of its own.
        found = found.with_columns(each.str.replace(r"^\[\s*([^\[\],]*?)\s*\]$", "$1"))
    given = pl.concat([found[name] for name in scores]).drop_nulls()
    strange = given.filter(given.str.starts_with("[") | given.str.starts_with("{"))
    if strange.is_empty() and given.str.starts_with('"').all():
        strange = given
    if strange.len():
        what = f"has scores that are no numbers ({strange.len()}), the first is {clip(strange[0])}"
        source.problems.refuse("", what, "Write one number for each answer.")
    return found


def _columns(source: Source, scores: dict[str, str]) -> pl.DataFrame:
    """Return the rows of one object with a list per column; other values hold for all rows."""
    paths = NAMES | scores
    held = source.object()
    lists = {p: len(held[p]) for p in paths.values() if isinstance(held.get(p), list)}
    lengths = lists | {p: 1 for p in scores.values() if p not in lists}
    if len({*lengths.values()}) > 1:
        shown = ", ".join(f"{path} {length}" for path, length in lengths.items())
        what = f"is an object whose columns differ in their number of rows ({shown})"
        source.problems.refuse("", what, RESAVE)
    rows = lengths[scores["chosen"]]
    columns = {
        name: [
            each if name in NAMES and isinstance(each, str) else _json(each)
            for each in (held[path] if path in lists else [held.get(path)] * rows)
        ]
        for name, path in paths.items()
    }
    return pl.DataFrame(columns, schema=dict.fromkeys(paths, pl.String))


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)
