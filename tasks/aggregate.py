"""From votes to verdicts, shifts and estimates."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

import duckdb
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.arrow import fetch, lend
from schemas.judging import (
    SIDES,
    Ballots,
    Contests,
    Judges,
    Pairs,
    Shifts,
    Tallies,
    Verdicts,
    VoteLog,
    Votes,
)
from schemas.masks import COMPARED, LAST_REPEAT, masks_sql
from schemas.results import Estimates
from tasks._masks import count_masks, with_compared
from tasks.sequential import KEY, PAIR
from tasks.statistics import STATISTICS
from tasks.statistics._cells import stopped_early
from tasks.statistics._once import measured_together
from tasks.statistics._one_order import only_order

GROUP = ("dataset", "judge", "prompt", "wave", "sample")
AT_ONCE, MANY_ROWS = 3, 50_000
"""Statistics of so many rows are measured at once."""

MARKUP = r"(?m)^\s*(?:#{1,6}\s|[-*+]\s|\d+[.)]\s|\||```)|\*\*[^*\n]+\*\*|\p{Extended_Pictographic}"
"""A heading, an item of a list, a row of a table, a block of code, a bold word or an emoji."""
PATTERNS = {
    "header": r"(?m)^\s*#{1,6}\s",
    "list": r"(?m)^\s*(?:[-*+]|\d+[.)])\s",
    "bold": r"\*\*[^*\n]+\*\*",
    "markup": MARKUP,
}
"""What is counted of each answer: kinds of markup, and all of it with the rest."""

BESIDE = ("control", "sham", "replicate")


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

    ``stops`` tells which were not needed, see ``mark_stops``. Repeats of a replicate are numbered
    from 0, as those of any arm.
    """
    cast = pl.col("choice").is_not_null()
    log = (
        ballots.join(pairs.select(pl.exclude("question", *SIDES), *text_sizes()), on="pair_id")
        .join(judges.select("judge", "simulated"), on="judge")
        .join(votes.select("ballot_id", "choice"), on="ballot_id", how="left")
        .join(stops.select(*KEY, "stopped"), on=KEY)
        .with_columns(
            cached=cast & ~pl.col("ballot_id").is_in(waiting.implode()),
            human=pl.lit(value=False),
            repeat=pl.when(pl.col("arm") == "replicate")
            .then(pl.col("repeat") - pl.col("repeat").min().over(PAIR))
            .otherwise(pl.col("repeat")),
        )
    )
    return VoteLog.of(log)


def text_sizes() -> list[pl.Expr]:
    """Return how long the texts of a pair are, and how much markup they hold."""
    texts = [(side, pl.col(side).str) for side in SIDES]
    return [
        *(text.len_chars().cast(pl.Int64).alias(f"{side}_length") for side, text in texts),
        *(
            text.count_matches(pattern).cast(pl.Int64).alias(f"{side}_{kind}")
            for kind, pattern in PATTERNS.items()
            for side, text in texts
        ),
    ]


def count_votes(vote_log: DataFrame[VoteLog]) -> DataFrame[Tallies]:
    """Count the votes of each pair (``schemas/masks.sql``).

    Raises
    ------
    ValueError
        If a repeat is above 62: the votes of a pair are laid into the bits of a number.
    """
    last = vote_log.select(pl.col("repeat").max().fill_null(0)).item()
    if last > LAST_REPEAT:
        raise ValueError(
            f"repeat {last} is too high: a pair has at most {LAST_REPEAT + 1} "
            f"votes in each order, numbered 0 to {LAST_REPEAT}. Number the repeats of each pair "
            "from 0, or leave some out."
        )
    with duckdb.connect() as connection:
        lend(connection, "vote_log", vote_log.with_columns(study=pl.lit("")))
        connection.execute("set variable study = ''")
        masks = fetch(connection, masks_sql(connection))
        compared = fetch(connection, COMPARED)
    return Tallies.of(with_compared(count_masks(masks), compared))


def tally_votes(tallies: DataFrame[Tallies], mode: str) -> DataFrame[Verdicts]:
    """Turn the votes of each pair into a score and a verdict (methods, section 1).

    ``paper``: sign of the sum over all valid votes. ``balanced``: mean of the two orders' means,
    null unless each order has a valid vote; the sign is taken in integers, so it is exact. A person
    who saw a pair in one order only is taken at that word, as by ``annotate``. Of a judge that saw
    every pair in one order only the score is that of this order, for means over both halves
    (``tasks/statistics/_halves.py``), and there is no verdict. Where
    votes were asked one after another the score is that of the first vote in each order: the mean
    of votes that stop when they agree is too far from the middle (methods, section 4).
    """
    return Verdicts.of(verdicts_of(tallies, mode))


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
    sum_mean = _ratio(sum_sign, n["12"] + n["21"])
    even_sign = d["12"] * n["21"] + d["21"] * n["12"]
    even_mean = (_ratio(d["12"], n["12"]) + _ratio(d["21"], n["21"])) / 2
    summed = pl.lit(value=True) if mode == "paper" else _one_order_of_a_person()
    shown_first = pl.lit(None, pl.String) if mode == "paper" else only_order()
    alone = shown_first.is_not_null()
    sign = pl.when(summed).then(sum_sign).otherwise(even_sign)
    mean = pl.when(summed | alone).then(sum_mean).otherwise(even_mean)
    once = pl.mean_horizontal("once_12", "once_21", ignore_nulls=False)
    once = pl.when(alone).then(pl.coalesce("once_12", "once_21")).otherwise(once)
    score = (pl.when(stopped_early()).then(once).otherwise(mean) + 1) / 2
    named = pl.when(sign < 0).then(pl.lit("anchor")).when(sign > 0).then(pl.lit("target"))
    told = mean.is_not_null() & ~alone
    return tallies.select(
        *GROUP, "cluster", "arm", "perturbation", "kind", "simulated",
        mode=pl.lit(mode),
        votes=pl.col("planned"),
        valid_votes=n["12"] + n["21"],
        score=score,
        verdict=pl.when(told).then(named.otherwise(pl.lit("tie"))),
        shown_first=shown_first,
    )  # fmt: skip


def match_groups(verdicts: DataFrame[Verdicts]) -> DataFrame[Shifts]:
    """Lay the verdicts of each sample's arms side by side."""
    return Shifts.of(shifts_of(verdicts))


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


def match_models(tallies: DataFrame[Tallies]) -> DataFrame[Contests]:
    """Take the control pairs whose answers two known models wrote, with the judge's scores.

    The score is the swap average, whatever the mode: null unless each order has a valid vote; of a
    person who saw one order, and of a judge that saw every pair in one order, that of this order.
    """
    return Contests.of(contests_of(tallies))


def contests_of(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of :func:`match_models`, unchecked, for millions of rows."""
    told = tallies.with_columns(shown_first=only_order()).filter(
        pl.col("arm") == "control",
        pl.col("anchor_author").cast(pl.String) != pl.col("target_author").cast(pl.String),
    )
    scores = []
    for order in ("12", "21"):
        anchor, tie, target = (pl.col(f"{side}_{order}") for side in ("anchor", "tie", "target"))
        mean = _ratio(target - anchor, anchor + tie + target)
        first = pl.when(stopped_early()).then(pl.col(f"once_{order}")).otherwise(mean)
        scores.append(((first + 1) / 2).alias(f"score_{order}"))
    one_order = _one_order_of_a_person() | pl.col("shown_first").is_not_null()
    alone = pl.when(one_order).then(pl.coalesce("score_12", "score_21"))
    return told.with_columns(*scores, votes=pl.col("planned")).with_columns(
        score=alone.otherwise((pl.col("score_12") + pl.col("score_21")) / 2)
    )


def measure(statistic: str, **frames: pl.DataFrame) -> DataFrame[Estimates]:
    """Apply one statistic of the catalogue to the frames that it names."""
    return STATISTICS[statistic](**frames)


def measure_all(**frames: pl.DataFrame) -> DataFrame[Estimates]:
    """Apply the whole catalogue; one task, as a task for each would digest all frames each time."""
    many = max(frame.height for frame in frames.values()) > MANY_ROWS
    with measured_together(), ThreadPoolExecutor(AT_ONCE if many else 1) as pool:
        drafts = [
            pool.submit(copy_context().run, partial(STATISTICS[name].draft, **frames))
            for name in STATISTICS
        ]
        return Estimates.of(pl.concat(draft.result() for draft in drafts))


def _one_order_of_a_person() -> pl.Expr:
    return pl.col("human").fill_null(value=False) & (pl.col("matched") == 0)


def _ratio(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    return pl.when(denominator > 0).then(numerator / denominator)
