"""Ratings of the arms of each sample side by side: what rating shifts are computed from."""

import polars as pl

from schemas.keys import JUDGE
from tasks.pointwise.rated import on_scale, quantities, rated, things

PLANTED = (*JUDGE, "subgroup", "sample", "perturbation")
NATURAL = (*JUDGE, "subgroup", "sample")
ARMS = ("experimental", "sham", "control")
NUMBERS = ("score", "passed", "square", "votes", "readable")


def rating_shifts(ratings: pl.DataFrame) -> pl.DataFrame:
    """Return one row per sample, perturbation and criterion with the ratings of its target.

    Empty without perturbed answers.

    Returns
    -------
    DataFrame
        The cell's columns with ``kind, cluster, simulated, graded, lowest, highest, votes``, and of
        each arm ``ARM_score`` (mean of its valid ratings on a scale from 0 to 1), ``ARM_passed``
        (share of passes), ``ARM_square`` (mean square, in points), ``ARM_points`` (mean in points),
        ``ARM_votes`` and ``ARM_readable``; ``has_sham``; ``quantity``, equal for prompts whose
        ratings measure the same (:func:`tasks.pointwise.rated.quantities`).
    """
    if not (ratings["arm"] == "experimental").any():
        return ratings.clear()
    target = pl.col("side").is_null() | (pl.col("side") == "target")
    return arms_beside(things(rated(ratings.filter(target)))).join(
        quantities(ratings), on=["dataset", "prompt"], how="left", maintain_order="left"
    )


def arms_beside(found: pl.DataFrame) -> pl.DataFrame:
    """Join the arms of rated answers (:func:`tasks.pointwise.rated.things`)."""
    arm = pl.col("arm").cast(pl.String)
    wide = found.with_columns(points="score", score=on_scale("score"))
    columns = (*NUMBERS, "points")
    sham, control = (
        wide.filter(arm == name).select(*key, pl.col(columns).name.prefix(f"{name}_"))
        for name, key in (("sham", PLANTED), ("control", NATURAL))
    )
    return (
        wide.filter(arm == "experimental")
        .with_columns(pl.col("votes").alias("asked"))
        .rename({name: f"experimental_{name}" for name in columns})
        .join(
            sham.with_columns(has_sham=pl.lit(value=True)),
            on=list(PLANTED),
            how="left",
            maintain_order="left",
        )
        .join(control, on=list(NATURAL), how="left", maintain_order="left")
        .with_columns(pl.col("has_sham").fill_null(value=False), votes="asked")
    )


def passes(shifts: pl.DataFrame) -> pl.DataFrame:
    """Return the samples of judges that pass or fail, with shares of passes as their scores."""
    some = shifts.filter(pl.col("experimental_passed").is_not_null().any().over("judge", "prompt"))
    return some.with_columns(pl.col(f"{arm}_passed").alias(f"{arm}_score") for arm in ARMS)
