"""From votes to verdicts, shifts and estimates."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Ballots, Judges, Pairs, Shifts, Verdicts, VoteLog, Votes
from schemas.results import Estimates
from tasks.sequential import KEY, canonical
from tasks.statistics import STATISTICS
from tasks.statistics._cells import stopped_early

GROUP = ("dataset", "judge", "prompt", "wave", "sample")


def log_votes(
    pairs: DataFrame[Pairs],
    ballots: DataFrame[Ballots],
    judges: DataFrame[Judges],
    votes: DataFrame[Votes],
    *,
    waiting: pl.Series,
    stops: pl.DataFrame,
) -> DataFrame[VoteLog]:
    """Lay each ballot beside its pair and its vote; those not in ``waiting`` were cast before.

    ``stops`` tells which were not needed, see ``mark_stops``.
    """
    cast = pl.col("choice").is_not_null()
    log = (
        ballots.join(pairs.drop("question", "anchor", "target"), on="pair_id")
        .join(judges.select("judge", "simulated"), on="judge")
        .join(votes.select("ballot_id", "choice"), on="ballot_id", how="left")
        .join(stops.select(*KEY, "stopped"), on=KEY)
        .with_columns(cached=cast & ~pl.col("ballot_id").is_in(waiting.implode()))
    )
    return VoteLog.of(log)


def tally_votes(vote_log: DataFrame[VoteLog], mode: str) -> DataFrame[Verdicts]:
    """Turn the votes of each pair into a score and a verdict (methods, section 1).

    ``paper``: sign of the sum over all valid votes. ``balanced``: mean of the two orders' means,
    null unless each order has a valid vote; the sign is taken in integers, so it is exact. Where
    votes were asked one after another the score is that of the first vote in each order: the mean
    of votes that stop when they agree is too far from the middle (methods, section 4).
    """
    if mode not in {"paper", "balanced"}:
        raise ValueError(f"mode {mode!r} must be 'paper' or 'balanced'.")
    sums = vote_log.with_columns(
        x=canonical(),
        anchor_first=pl.col("shown_first") == "anchor",
        early=stopped_early(),
        first=pl.col("repeat") == 0,
    )
    sums = sums.group_by(*GROUP, "arm", "perturbation").agg(
        pl.col("cluster", "kind", "simulated", "early").first(),
        votes=pl.col("stopped").is_null().sum(),
        valid_votes=pl.col("x").count(),
        n12=pl.col("x").filter("anchor_first").count(),
        d12=pl.col("x").filter("anchor_first").sum(),
        n21=pl.col("x").filter(~pl.col("anchor_first")).count(),
        d21=pl.col("x").filter(~pl.col("anchor_first")).sum(),
        once=_ratio(
            pl.col("x").filter("first").sum(), (pl.col("x").filter("first").count() == 2) * 2
        ),
    )
    if mode == "paper":
        sign, mean = (
            pl.col("d12") + pl.col("d21"),
            _ratio(pl.col("d12") + pl.col("d21"), pl.col("valid_votes")),
        )
    else:
        sign = pl.col("d12") * pl.col("n21") + pl.col("d21") * pl.col("n12")
        mean = (_ratio(pl.col("d12"), pl.col("n12")) + _ratio(pl.col("d21"), pl.col("n21"))) / 2
    mean_of_all = mean
    mean = pl.when(pl.col("early")).then(pl.col("once")).otherwise(mean)
    score = ((mean + 1) / 2).alias("score")
    told = mean_of_all.is_not_null()
    named = pl.when(sign < 0).then(pl.lit("anchor")).when(sign > 0).then(pl.lit("target"))
    return Verdicts.of(
        sums.with_columns(score, pl.lit(mode).alias("mode")).with_columns(
            verdict=pl.when(told).then(named.otherwise(pl.lit("tie")))
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


def _ratio(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    return pl.when(denominator > 0).then(numerator / denominator)
