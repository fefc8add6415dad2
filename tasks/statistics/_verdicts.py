"""Votes of a pair into a score and a verdict, and the arms of a sample side by side."""

import polars as pl

from tasks.statistics._cells import stopped_early
from tasks.statistics._one_order import only_order

GROUP = ("dataset", "judge", "prompt", "wave", "sample")
BESIDE = ("control", "sham", "replicate")


def verdicts_of(tallies: pl.DataFrame, mode: str) -> pl.DataFrame:
    """Return the columns of :func:`tally_votes`, unchecked, for millions of rows."""
    if mode not in {"paper", "balanced"}:
        raise ValueError(f"mode {mode!r} must be 'paper' or 'balanced'.")
    n, d = {}, {}
    for order in ("12", "21"):
        anchor, tie, target = (pl.col(f"{side}_{order}") for side in ("anchor", "tie", "target"))
        n[order] = (anchor + tie + target).cast(pl.Int64)
        d[order] = (target - anchor).cast(pl.Int64)
    sum_sign = d["12"] + d["21"]
    sum_mean = ratio(sum_sign, n["12"] + n["21"])
    even_sign = d["12"] * n["21"] + d["21"] * n["12"]
    even_mean = (ratio(d["12"], n["12"]) + ratio(d["21"], n["21"])) / 2
    summed = pl.lit(value=True) if mode == "paper" else one_order_of_a_person()
    shown_first = pl.lit(None, pl.String) if mode == "paper" else only_order()
    alone = shown_first.is_not_null()
    sign = pl.when(summed).then(sum_sign).otherwise(even_sign)
    mean = pl.when(summed | alone).then(sum_mean).otherwise(even_mean)
    once = pl.mean_horizontal("once_12", "once_21", ignore_nulls=False)
    once = pl.when(alone).then(pl.coalesce("once_12", "once_21")).otherwise(once)
    score = (pl.when(stopped_early()).then(once).otherwise(mean) + 1) / 2
    named = pl.when(sign < 0).then(pl.lit("anchor")).when(sign > 0).then(pl.lit("target"))
    told = mean.is_not_null() & ~alone
    # Only a lazy query works out once what several columns rest on.
    query = tallies.lazy().select(
        *GROUP, "cluster", "arm", "perturbation", "kind", "simulated",
        mode=pl.lit(mode),
        votes=pl.col("planned"),
        valid_votes=n["12"] + n["21"],
        score=score,
        verdict=pl.when(told).then(named.otherwise(pl.lit("tie"))),
        shown_first=shown_first,
    )  # fmt: skip
    return query.collect()


def shifts_of(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of :func:`match_groups`, unchecked, for millions of rows.

    A sample with a sham but without an experimental pair stays: an empty arm is told, not left out.
    """
    by_arm = {arm: verdicts.filter(pl.col("arm") == arm) for arm in BESIDE}
    control = by_arm["control"].select(
        *GROUP,
        control=pl.col("verdict"),
        control_score=pl.col("score"),
        control_votes=pl.col("votes"),
        control_first=pl.col("shown_first"),
    )
    sham = by_arm["sham"].select(
        *GROUP, "perturbation", sham=pl.col("verdict"), sham_score=pl.col("score"),
        sham_votes=pl.col("votes"), sham_first=pl.col("shown_first"), has_sham=pl.lit(value=True),
    )  # fmt: skip
    replicate = by_arm["replicate"].select(
        *GROUP,
        replicate=pl.col("verdict"),
        replicate_votes=pl.col("votes"),
        has_replicate=pl.lit(value=True),
    )
    asked = verdicts.filter(pl.col("arm") == "experimental")
    unasked = by_arm["sham"].join(asked, on=[*GROUP, "perturbation"], how="anti")
    return (
        pl.concat(
            [
                asked,
                unasked.with_columns(
                    verdict=pl.lit(None, asked.schema["verdict"]), score=pl.lit(None, pl.Float64)
                ),
            ]
        )
        .rename({"verdict": "experimental", "score": "experimental_score"})
        .join(control, on=GROUP, how="left")
        .join(sham, on=[*GROUP, "perturbation"], how="left")
        .join(replicate, on=GROUP, how="left")
        .with_columns(
            # Arms seen in different orders differ by the order too.
            *(
                pl.when(pl.col(f"{arm}_first").eq_missing(pl.col("shown_first")))
                .then(f"{arm}_score")
                .alias(f"{arm}_score")
                for arm in ("control", "sham")
            ),
            pl.col("has_sham", "has_replicate").fill_null(value=False),
        )
        .drop("control_first", "sham_first")
    )


def one_order_of_a_person() -> pl.Expr:
    """Tell whether a pair was judged by a person who saw it in one order only."""
    return pl.col("human").fill_null(value=False) & (pl.col("matched") == 0)


def ratio(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    """Divide; null where the denominator is 0."""
    return pl.when(denominator > 0).then(numerator / denominator)
