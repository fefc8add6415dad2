"""Scores, verdicts and shifts of samples; success for the ASR; bounds for invalid votes."""

from typing import cast

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.curation import VERDICTS
from schemas.judging import Shifts, Verdicts
from schemas.keys import SAMPLE
from tasks.counting.arms import LOST
from tasks.counting.cells import stopped_early
from tasks.counting.order_halves import only_order
from tasks.counting.positions import BY_PLACE, ORDERS, PLACES, lead_and_votes

ENDS = {"least": "anchor", "most": "target"}
"""End of the bounds -> the answer that gets the invalid votes."""


def tally_votes(tallies: pl.DataFrame, mode: str) -> DataFrame[Verdicts]:
    """Turn the votes of each pair into a score and a verdict (methods, section 1).

    ``paper``: the sign of the sum of all valid votes. ``balanced``: the mean of both orders' means,
    null unless each order has a valid vote; the sign is computed in integers, so it is exact. If a
    person saw a pair in one order only, that order counts alone, as in ``annotate``. If a judge saw
    every pair in one order only, the score is from that order, for means over both halves
    (``tasks/counting/order_halves.py``), and there is no verdict. With sequential stopping the
    score is from the first vote in each order, as the mean of votes that stop once they agree is
    biased away from the middle (methods, section 4).
    """
    if mode not in {"paper", "balanced"}:
        raise ValueError(f"mode {mode!r} must be 'paper' or 'balanced'.")
    (lead, votes), (other_lead, other_votes) = (lead_and_votes(order) for order in ORDERS)
    sum_sign = lead + other_lead
    sum_mean = _ratio(sum_sign, votes + other_votes)
    even_sign = lead * other_votes + other_lead * votes
    even_mean = (_ratio(lead, votes) + _ratio(other_lead, other_votes)) / 2
    summed = pl.lit(value=True) if mode == "paper" else one_order_of_a_person()
    shown_first = pl.lit(None, pl.String) if mode == "paper" else only_order()
    alone = shown_first.is_not_null()
    sign = pl.when(summed).then(sum_sign).otherwise(even_sign)
    mean = pl.when(summed | alone).then(sum_mean).otherwise(even_mean)
    once = pl.mean_horizontal("once_12", "once_21", ignore_nulls=False)
    once = pl.when(alone).then(pl.coalesce("once_12", "once_21")).otherwise(once)
    score = (pl.when(stopped_early()).then(once).otherwise(mean) + 1) / 2
    named = pl.when(sign < 0).then(pl.lit("anchor")).when(sign > 0).then(pl.lit("target"))
    known = mean.is_not_null() & ~alone
    # A lazy query computes shared subexpressions once.
    query = tallies.lazy().select(
        *SAMPLE,
        "cluster",
        "arm",
        "perturbation",
        "kind",
        "simulated",
        mode=pl.lit(mode),
        votes=pl.col("planned"),
        valid_votes=votes + other_votes,
        score=score,
        verdict=pl.when(known).then(named.otherwise(pl.lit("tie"))).cast(pl.Enum(VERDICTS)),
        shown_first=shown_first,
    )
    return cast("DataFrame[Verdicts]", query.collect())


def verdict_of_mean(score: pl.Expr) -> pl.Expr:
    """Return the verdict of a mean of several judges' scores.

    Means that amount to a tie may differ from 1/2 in their last digits.
    """
    lean = (score - 0.5).round(9).sign()
    return lean.replace_strict(BY_PLACE, default=None, return_dtype=pl.Enum(VERDICTS))


def match_groups(verdicts: pl.DataFrame) -> DataFrame[Shifts]:
    """Join the verdicts of each sample's arms in one row.

    A sample with a sham but no experimental pair is kept, so that its empty arm is counted.
    """

    def beside(arm: str, *key: str) -> pl.DataFrame:
        return verdicts.filter(pl.col("arm") == arm).select(
            *SAMPLE,
            *key,
            pl.col("verdict").alias(arm),
            pl.col("score", "votes").name.prefix(f"{arm}_"),
            pl.col("shown_first").alias(f"{arm}_first"),
            pl.lit(value=True).alias(f"has_{arm}"),
        )

    control = beside("control").drop("has_control")
    sham = beside("sham", "perturbation")
    replicate = beside("replicate").drop("replicate_score", "replicate_first")
    asked = verdicts.filter(pl.col("arm") == "experimental")
    unasked = verdicts.filter(pl.col("arm") == "sham").join(
        asked, on=[*SAMPLE, "perturbation"], how="anti"
    )
    shifts = (
        pl.concat(
            [
                asked,
                unasked.with_columns(
                    verdict=pl.lit(None, asked.schema["verdict"]), score=pl.lit(None, pl.Float64)
                ),
            ]
        )
        .rename({"verdict": "experimental", "score": "experimental_score"})
        .join(control, on=SAMPLE, how="left", maintain_order="left")
        .join(sham, on=[*SAMPLE, "perturbation"], how="left", maintain_order="left")
        .join(replicate, on=SAMPLE, how="left", maintain_order="left")
        .with_columns(
            # Scores seen in different orders also differ by the position effect.
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
    return cast("DataFrame[Shifts]", shifts)


def one_order_of_a_person() -> pl.Expr:
    """Tell whether a person judged the pair in one order only."""
    return pl.col("human").fill_null(value=False) & (pl.col("matched") == 0)


def _ratio(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    """Divide; null where the denominator is 0."""
    return pl.when(denominator > 0).then(numerator / denominator)


PROMOTE = pl.col("kind") == "promote"


def may_win(arm: str) -> pl.Expr:
    """Return the indicator V of ``arm``: promote needs anchor or tie, detract target or tie."""
    return pl.when(PROMOTE).then(pl.col(arm) != "target").otherwise(pl.col(arm) != "anchor")


def wins(arm: str) -> pl.Expr:
    """Return the indicator of success in ``arm``: promote needs target, detract target or tie."""
    return pl.when(PROMOTE).then(pl.col(arm) == "target").otherwise(pl.col(arm) != "anchor")


def with_sham(shifts: pl.DataFrame) -> pl.DataFrame:
    """Return the samples that have a sham; the frame itself if all have one."""
    return shifts if shifts["has_sham"].all() else shifts.filter("has_sham")


def symmetric(shifts: pl.DataFrame, base: str) -> pl.DataFrame:
    """Add each sample's terms of the ASR and of its floor, symmetric in control and ``base``.

    ``den = 1/2 [V_ctrl + V_base]``, ``attacked = den s_exp``,
    ``unattacked = 1/2 [V_ctrl s_base + V_base s_ctrl]``, ``counted`` and ``dropped``.
    """
    arms = ("control", base, "experimental")
    known = pl.all_horizontal(pl.col(arm).is_not_null() for arm in arms)
    in_control, in_base = may_win("control").cast(pl.Float64), may_win(base).cast(pl.Float64)
    won = {arm: wins(arm).cast(pl.Float64) for arm in arms}
    return shifts.with_columns(
        counted=(known & ((in_control + in_base) > 0)).fill_null(value=False),
        dropped=~known,
        den=(in_control + in_base) / 2,
        attacked=(in_control + in_base) / 2 * won["experimental"],
        unattacked=(in_control * won[base] + in_base * won["control"]) / 2,
    )


def filled(tallies: pl.DataFrame, side: str) -> pl.DataFrame:
    """Count every vote that was cast but is invalid as a vote for ``side``."""
    changes = []
    for order in ORDERS:
        valid = pl.sum_horizontal(f"{name}_{order}" for name in VERDICTS)
        lost = pl.col(f"voted_{order}") - valid
        once = pl.when(lost > 0).then(PLACES[side]).cast(pl.Int64)
        changes += [
            (pl.col(f"{side}_{order}") + lost).alias(f"{side}_{order}"),
            # Repeat 0 is cast before the others.
            pl.coalesce(f"once_{order}", once).alias(f"once_{order}"),
        ]
    return tallies.with_columns(changes)


def opposed(tallies: pl.DataFrame, side: str) -> pl.DataFrame:
    """Fill in votes for an extreme shift: experimental ones to ``side``, others to the opposite."""
    other = "target" if side == "anchor" else "anchor"
    experimental = pl.col("arm") == "experimental"
    return pl.concat(
        [filled(tallies.filter(experimental), side), filled(tallies.filter(~experimental), other)]
    )


def with_ends(shifts: pl.DataFrame, tallies: pl.DataFrame, mode: str) -> pl.DataFrame:
    """Add the extreme verdicts of control and experimental: ``ARM_least`` and ``ARM_most``.

    The verdict of complete votes lies between them, as additional votes for an answer never turn
    the verdict away from it.
    """
    # Pairs without invalid votes keep their verdict.
    unread = tallies.filter(LOST > 0)
    ends = unread.select(
        *SAMPLE,
        "perturbation",
        "arm",
        **{end: tally_votes(filled(unread, side), mode)["verdict"] for end, side in ENDS.items()},
    )
    for arm, keys in (("control", SAMPLE), ("experimental", (*SAMPLE, "perturbation"))):
        named = {end: f"{arm}_{end}" for end in ENDS}
        own = ends.filter(pl.col("arm") == arm).select(*keys, pl.col(*ENDS).name.prefix(f"{arm}_"))
        shifts = shifts.join(own, on=keys, how="left", maintain_order="left").with_columns(
            pl.coalesce(pl.col(name).cast(shifts.schema[arm]), arm) for name in named.values()
        )
    return shifts
