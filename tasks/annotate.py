"""Annotate: counted votes to one label per annotator (model or person) and sample."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Annotations
from tasks.calibration.label_values import unreadable
from tasks.counting.positions import BY_PLACE, ORDERS, VOTES, lead_and_votes

ANNOTATED = ("dataset", "sample", "judge", "prompt", "wave")
NO_VERDICT = "no verdict"
"""Why replies on a pair give no label."""
VOTED = tuple(f"voted_{order}" for order in ORDERS)


def annotate(tallies: DataFrame[Tallies]) -> DataFrame[Annotations]:
    """Turn the control votes of each judge on each sample into one label.

    Swap protocol (Zheng et al. 2023): an answer wins only if it wins in both orders, otherwise the
    label is a tie, marked as inconsistent if the orders differ; an order's verdict is the sign of
    the sum of its votes. If both orders were asked and one has no valid vote, there is no label. If
    only one order was asked, as often for people, it counts alone. A person's votes are pooled over
    prompts and waves.
    """
    judged = _with_verdicts(tallies)
    straight, turned = pl.col("x_12"), pl.col("x_21")
    alone = pl.when(pl.col("matched") == 0).then(pl.coalesce("x_12", "x_21"))
    both = straight.is_not_null() & turned.is_not_null()
    agreed = pl.when(straight == turned).then(straight).otherwise(0)
    labelled = (
        judged.with_columns(
            x=pl.when(both).then(agreed).otherwise(alone),
            inconsistent=(both & (straight != turned)).fill_null(value=False),
            votes=pl.sum_horizontal(VOTES),
        )
        .filter(pl.col("x").is_not_null())
        .with_columns(
            label=pl.col("x").replace_strict(BY_PLACE, return_dtype=pl.String),
            value=pl.col("x").cast(pl.Float64),
        )
        .rename({"sample": "item", "judge": "annotator"})
    )
    return Annotations.of(labelled.collect())


def unread_pairs(tallies: pl.DataFrame, read: pl.DataFrame) -> pl.DataFrame:
    """Return annotations without a label: of pairs on which a model's replies have no verdict.

    They are not in ``read``, and an order has replies but no verdict. ``unreadable`` says why there
    is no label (see :func:`tasks.calibration.calibrate.labelled_by_votes`).
    """
    unread = pl.any_horizontal(
        (pl.col(f"voted_{order}") > 0) & pl.col(f"x_{order}").is_null() for order in ORDERS
    )
    key = ["dataset", "item", "annotator", "prompt", "wave"]
    known = read.lazy().select(pl.col(key).cast(pl.String))
    return (
        _with_verdicts(tallies)
        .filter(~pl.col("human"), unread)
        .rename({"sample": "item", "judge": "annotator"})
        .select(
            pl.col(*key, "cluster").cast(pl.String),
            "human",
            "simulated",
            aspect=pl.lit(None, pl.String),
            unreadable=pl.lit(unreadable(NO_VERDICT)),
        )
        .join(known, on=key, how="anti", nulls_equal=True)
        .sort(key)
        .collect()
    )


def _with_verdicts(tallies: pl.DataFrame) -> pl.LazyFrame:
    """Return the control votes of each judge and person, with each order's verdict (``x_12``)."""
    votes = pl.col(*VOTES, *VOTED, "matched").cast(pl.Int64)
    control = (
        tallies.lazy()
        .filter(pl.col("arm") == "control")
        .with_columns(pl.col("human").fill_null(value=False), pl.col("wave").cast(pl.String))
    )
    about = ("cluster", "human", "simulated")
    models = control.filter(~pl.col("human")).select(*ANNOTATED, votes, *about)
    people = (
        control.filter("human")
        .with_columns(prompt=pl.lit(None, tallies.schema["prompt"]), wave=pl.lit(""))
        .group_by(ANNOTATED, maintain_order=True)
        .agg(votes.sum(), pl.col(about).first())
    )
    judged = pl.concat([models, people])
    for order in ORDERS:
        lead, votes = lead_and_votes(order)
        judged = judged.with_columns(pl.when(votes > 0).then(lead.sign()).alias(f"x_{order}"))
    return judged
