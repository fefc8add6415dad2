"""Per-example results of RewardBench: scores of the chosen and the rejected answer."""

import polars as pl

from tasks.readers.expressions import NO_ORDER, as_number, score_of_side, side_by
from tasks.readers.fields import Source
from tasks.readers.formats import Parts, log_format


@log_format(
    title="RewardBench results",
    needs=(("scores_chosen", "scores_rejected"), ("chosen", "rejected")),
    source="https://github.com/allenai/reward-bench",
)
def rewardbench(source: Source) -> Parts:
    """Scores that a reward model gave to the chosen (right) and the rejected answer of a prompt.

    The higher score wins, equal scores tie, and a missing score is invalid. Without a column
    ``model`` the judge is named after the file.
    """
    old = not {"scores_chosen", "scores_rejected"} <= source.columns
    chosen, rejected = ("chosen", "rejected") if old else ("scores_chosen", "scores_rejected")
    found = source.fields(
        {"id": "id", "model": "model", "subset": "subset"}, {"chosen": chosen, "rejected": rejected}
    ).with_row_index("row")
    scored = found.with_columns(
        win=as_number("chosen"),
        lose=as_number("rejected"),
        item=pl.concat_str(
            pl.col("subset").fill_null(""),
            pl.coalesce("id", pl.col("row").cast(pl.String)),
            separator="/",
        ),
    ).with_columns(label=side_by(pl.col("win") - pl.col("lose")))
    name = source.name.split(".")[0].removesuffix("_all")
    ratings = scored.select(
        pl.col("item", "label"),
        judge=pl.col("model").fill_null(name),
        human=pl.lit(value=False),
        kind=pl.lit("verdict"),
        cluster="item",
        category="subset",
        correct=pl.lit("target"),
        value=score_of_side("label"),
        invalid=pl.when(pl.col("label").is_null()).then(pl.lit("a score is missing")),
    )
    return Parts(ratings=ratings, notes=(NO_ORDER,))
