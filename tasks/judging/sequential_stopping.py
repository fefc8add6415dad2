"""Sequential stopping: which ballots need not be asked any more."""

from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import VALID, Ballots, Votes
from tasks.kit.defaults import PROBE_AGREEMENT

PAIR = ("pair_id", "judge", "prompt", "wave")
UNIT = ("judge", "prompt")
KEY = (*PAIR, "shown_first", "repeat")
PROBES = 100


class Schedule(NamedTuple):
    """How votes are asked one after another."""

    votes_per_pair: int
    stop: str = "none"
    """``lossless``, ``pair``, or ``none``: all votes."""
    probe: bool = False
    """Whether repeats of a judge that always agrees with itself are left out."""

    @property
    def sequential(self) -> bool:
        """Whether anything may be left out."""
        return self.stop != "none" or self.probe


def mark_stops(
    ballots: DataFrame[Ballots], votes: DataFrame[Votes], schedule: Schedule
) -> pl.DataFrame:
    """Mark the ballots that are not needed (``stopped``: the reason) and the next ones (``open``).

    Looks are taken after complete pairs of orders only. ``lossless`` stops when the votes that
    remain cannot change the sign of the sum; ``pair`` when two votes more are for one answer than
    for the other; a tie stops nothing (methods, section 4). A judge whose repeats agree in 99 % of
    100 probes with one prompt is ``deterministic`` there: one vote per order says all.
    """
    cast = ballots.join(votes.select("ballot_id", "choice"), on="ballot_id", how="left")
    cast = cast.with_columns(
        x=canonical(),
        cast=pl.col("choice").is_not_null(),
        # Replicates count on from control, so their first repeat is not 0.
        turn=pl.col("repeat") - pl.col("repeat").min().over(PAIR),
    )
    rounds = (
        cast.group_by(*PAIR, "turn")
        .agg(
            pl.col("x").sum(),
            done=pl.col("cast").all() & (pl.len() == 2),
            valid=pl.col("x").is_not_null().all(),
        )
        .sort(*PAIR, "turn")
        .with_columns(
            pl.col("x").cum_sum().over(PAIR),
            *(pl.col(name).cast(pl.Int8).cum_min().over(PAIR) == 1 for name in ("done", "valid")),
            left=schedule.votes_per_pair - 2 * (pl.col("turn") + 1),
        )
    )
    stops = rounds.filter(_stop_here(schedule.stop)).group_by(PAIR).agg(last=pl.col("turn").min())
    nexts = rounds.filter(~pl.col("done")).group_by(PAIR).agg(next=pl.col("turn").min())
    same = deterministic_units(ballots, votes) if schedule.probe else ballots.clear()
    marked = (
        cast.join(stops, on=PAIR, how="left")
        .join(nexts, on=PAIR, how="left")
        .join(
            same.select(*UNIT, same=pl.lit(value=True)), on=UNIT, how="left", maintain_order="left"
        )
        .with_columns(
            stopped=pl.when(pl.col("cast"))
            .then(None)
            .when(pl.col("same").fill_null(value=False) & (pl.col("turn") > 0))
            .then(pl.lit("deterministic"))
            .when(pl.col("turn") > pl.col("last"))
            .then(pl.lit(schedule.stop))
        )
    )
    is_next = pl.col("turn") == pl.col("next") if schedule.stop != "none" else pl.lit(value=True)
    return marked.select(
        "ballot_id", *KEY, "stopped", open=~pl.col("cast") & pl.col("stopped").is_null() & is_next
    )


def probes(ballots: DataFrame[Ballots]) -> DataFrame[Ballots]:
    """Return two repeats of 100 askings per judge and prompt, to see whether repeats agree."""
    twice = ballots.filter(pl.col("repeat") <= 1)
    asking = (*PAIR, "shown_first")
    chosen = (
        twice.group_by(asking)
        .len()
        .filter(pl.col("len") == 2)
        .sort(asking)
        .group_by(UNIT, maintain_order=True)
        .head(PROBES)
    )
    return Ballots.of(twice.join(chosen, on=asking, how="semi"))


def deterministic_units(ballots: DataFrame[Ballots], votes: DataFrame[Votes]) -> pl.DataFrame:
    """Return the judges and prompts whose repeats agree in at least 99 % of 100 probes."""
    enough = (pl.col("probes") >= PROBES) & (pl.col("alike") >= PROBE_AGREEMENT * pl.col("probes"))
    return probed(ballots, votes).filter(enough).select(UNIT)


def probed(ballots: DataFrame[Ballots], votes: DataFrame[Votes]) -> pl.DataFrame:
    """Return how many ``probes`` were answered, and how many ``alike``, per judge and prompt."""
    asked = probes(ballots).join(votes.select("ballot_id", "choice"), on="ballot_id")
    return (
        asked.group_by(*PAIR, "shown_first")
        .agg(cast=pl.len(), choices=pl.col("choice").n_unique())
        .filter(pl.col("cast") == 2)
        .group_by(UNIT)
        .agg(alike=(pl.col("choices") == 1).sum(), probes=pl.len())
        .sort(UNIT)
    )


def canonical() -> pl.Expr:
    """-1 for the anchor, 0 for a tie, +1 for the target, null without a valid vote."""
    first, target_first = pl.col("choice") == "first", pl.col("shown_first") == "target"
    side = pl.when(first == target_first).then(1).otherwise(-1)
    tied = pl.when(pl.col("choice") == "tie").then(0).otherwise(side)
    return pl.when(pl.col("choice").is_in(VALID)).then(tied).cast(pl.Int64)


def _stop_here(rule: str) -> pl.Expr:
    look = pl.col("done") & (pl.col("left") > 0)
    if rule == "lossless":
        # An invalid vote would make the orders weigh unequally: go on to be sure.
        return look & pl.col("valid") & (pl.col("x").abs() > pl.col("left"))
    if rule == "pair":
        return look & (pl.col("x").abs() >= 2)
    return pl.lit(value=False)
