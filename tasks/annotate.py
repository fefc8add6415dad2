"""Annotate: counted votes to one label per annotator (model or person) and sample."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Annotations
from tasks.counting.positions import BY_PLACE, ORDERS, VERDICTS, VOTES

ANNOTATED = ("dataset", "sample", "judge", "prompt", "wave")


def annotate(tallies: DataFrame[Tallies]) -> DataFrame[Annotations]:
    """Turn the control votes of each judge on each sample into one label.

    Swap protocol (Zheng et al. 2023): an answer wins only if it wins in both orders, otherwise the
    label is a tie, marked as inconsistent if the orders differ; an order's verdict is the sign of
    the sum of its votes. If both orders were asked and one has no valid vote, there is no label. If
    only one order was asked, as often for people, it counts alone. A person's votes are pooled over
    prompts and waves.
    """
    votes = pl.col(*VOTES, "matched").cast(pl.Int64)
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
        anchor, tie, target = (pl.col(f"{side}_{order}") for side in VERDICTS)
        judged = judged.with_columns(
            pl.when(anchor + tie + target > 0).then((target - anchor).sign()).alias(f"x_{order}")
        )
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
