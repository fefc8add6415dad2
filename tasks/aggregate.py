"""From votes to verdicts, shifts and estimates."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import VALID, Ballots, Judges, Pairs, Shifts, Verdicts, VoteLog, Votes
from schemas.results import Estimates
from tasks.statistics import STATISTICS

GROUP = ("dataset", "judge", "prompt", "wave", "sample")


def log_votes(
    pairs: DataFrame[Pairs],
    ballots: DataFrame[Ballots],
    judges: DataFrame[Judges],
    votes: DataFrame[Votes],
    waiting: pl.Series,
) -> DataFrame[VoteLog]:
    """Lay each ballot beside its pair and its vote; those not in ``waiting`` were cast before."""
    cast = pl.col("choice").is_not_null()
    log = (
        ballots.join(pairs.drop("question", "anchor", "target"), on="pair_id")
        .join(judges.select("judge", "simulated"), on="judge")
        .join(votes.select("ballot_id", "choice"), on="ballot_id", how="left")
        .with_columns(cached=cast & ~pl.col("ballot_id").is_in(waiting.implode()))
    )
    return VoteLog.of(log)


def tally_votes(vote_log: DataFrame[VoteLog], mode: str) -> DataFrame[Verdicts]:
    """Turn the votes of each pair into a score and a verdict (methods, section 1).

    ``paper``: sign of the sum over all valid votes. ``balanced``: mean of the two orders' means,
    null unless each order has a valid vote; the sign is taken in integers, so it is exact.
    """
    if mode not in {"paper", "balanced"}:
        raise ValueError(f"mode {mode!r} must be 'paper' or 'balanced'.")
    sums = vote_log.with_columns(x=_canonical(), anchor_first=pl.col("shown_first") == "anchor")
    sums = sums.group_by(*GROUP, "arm", "perturbation").agg(
        pl.col("cluster", "kind", "simulated").first(),
        votes=pl.len(),
        valid_votes=pl.col("x").count(),
        n12=pl.col("x").filter("anchor_first").count(),
        d12=pl.col("x").filter("anchor_first").sum(),
        n21=pl.col("x").filter(~pl.col("anchor_first")).count(),
        d21=pl.col("x").filter(~pl.col("anchor_first")).sum(),
    )
    if mode == "paper":
        sign, mean = (
            pl.col("d12") + pl.col("d21"),
            _ratio(pl.col("d12") + pl.col("d21"), pl.col("valid_votes")),
        )
    else:
        sign = pl.col("d12") * pl.col("n21") + pl.col("d21") * pl.col("n12")
        mean = (_ratio(pl.col("d12"), pl.col("n12")) + _ratio(pl.col("d21"), pl.col("n21"))) / 2
    score = ((mean + 1) / 2).alias("score")
    named = pl.when(sign < 0).then(pl.lit("anchor")).when(sign > 0).then(pl.lit("target"))
    return Verdicts.of(
        sums.with_columns(score, pl.lit(mode).alias("mode")).with_columns(
            verdict=pl.when(pl.col("score").is_not_null()).then(named.otherwise(pl.lit("tie")))
        )
    )


def match_groups(verdicts: DataFrame[Verdicts]) -> DataFrame[Shifts]:
    """Lay the control, experimental and sham verdicts of each sample side by side."""
    by_arm = {arm: verdicts.filter(pl.col("arm") == arm) for arm in ("control", "sham")}
    control = by_arm["control"].select(
        *GROUP, control=pl.col("verdict"), control_score=pl.col("score")
    )
    sham = by_arm["sham"].select(
        *GROUP, "perturbation", sham=pl.col("verdict"), sham_score=pl.col("score")
    )
    shifts = (
        verdicts.filter(pl.col("arm") == "experimental")
        .rename({"verdict": "experimental", "score": "experimental_score"})
        .join(control, on=GROUP, how="left")
        .join(sham.with_columns(has_sham=True), on=[*GROUP, "perturbation"], how="left")
    )
    return Shifts.of(shifts.with_columns(pl.col("has_sham").fill_null(value=False)))


def measure(
    statistic: str,
    vote_log: DataFrame[VoteLog],
    verdicts: DataFrame[Verdicts],
    shifts: DataFrame[Shifts],
) -> DataFrame[Estimates]:
    """Apply one statistic of the catalogue to the frames that it names."""
    return STATISTICS[statistic](vote_log=vote_log, verdicts=verdicts, shifts=shifts)


def _canonical() -> pl.Expr:
    """-1 for the anchor, 0 for a tie, +1 for the target, null without a valid vote."""
    first, target_first = pl.col("choice") == "first", pl.col("shown_first") == "target"
    side = pl.when(first == target_first).then(1).otherwise(-1)
    tied = pl.when(pl.col("choice") == "tie").then(0).otherwise(side)
    return pl.when(pl.col("choice").is_in(VALID)).then(tied).cast(pl.Int64)


def _ratio(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    return pl.when(denominator > 0).then(numerator / denominator)
