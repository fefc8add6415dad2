"""Drift alerts: which changes between waves are suspect or confirmed (methods, section 10)."""

import math
from collections.abc import Callable
from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.judging import Shifts, Tallies, VoteLog
from schemas.keys import JUDGE, SERIES
from schemas.results import MEASURES, Drifts
from tasks.drift.canary import canary, first_token_canary
from tasks.drift.changes import TWICE, changes
from tasks.drift.rating_changes import RATED, rated_answers, rating_changes
from tasks.inference.bootstrap import seed_of_bounds
from tasks.inference.intervals import LEVEL
from tasks.inference.linearised_errors import is_enough, why_not_enough
from tasks.inference.multiplicity import holm, rejected_by_e_values
from tasks.inference.quantiles import normal_quantile
from tasks.kit.defaults import BUDGET, DEFAULTS, PERMUTATIONS, POWER, Thresholds, limited_by
from tasks.statistics import STATISTICS

CELLS = 9
"""Number of tests per judge for which the canary's p-value can still be significant."""

REPEATS = 8
"""Votes on each fixed prompt in the baseline, pooled over as many waves as needed."""

CELL = (*SERIES, "mode", "perturbation", "measure")
ADJUSTMENT = "Holm, all cells of the wave (F4)"
PERMUTED = "permutation of repeats within prompts"
OF_REPLIES = ("item", "outcome", "votes", "first_token", "first_probability")


def watch(
    tallies: DataFrame[Tallies],
    shifts: DataFrame[Shifts],
    texts: pl.DataFrame | None = None,
    tokens: pl.DataFrame | None = None,
    *,
    answers: pl.DataFrame | None = None,
    waves: list[str] | None = None,
    questions: pl.DataFrame | None = None,
    thresholds: Thresholds = DEFAULTS,
    measure: Callable[..., pl.DataFrame] | None = None,
) -> DataFrame[Drifts]:
    """Compare each wave with the baseline of its epoch, and classify the changes.

    A change is *suspect* if its p-value, adjusted by Holm over the wave's cells, is below the
    nightly level (one false alert in ``nights_per_false_alert`` nights, by a union bound) and the
    change reaches its minimum. It becomes an *alert* if the judge's next wave confirms it: the same
    holds again, adjusted over the suspects only, in the same direction. That wave starts a new
    epoch of the judge and is its baseline; nothing is ever averaged over epochs. The baseline of
    replies and verdicts is several waves (``REPEATS``) without a suspect change: what must be
    confirmed is no part of what it is compared with. A wave served from a cache is *not measured*:
    it neither confirms nor clears a suspect. The same holds for a cell with too few questions,
    although its change and p-value are reported.

    Shifts also have an ``e_value``; ``e_rejected`` says which ones e-BH rejects at the nightly
    level, under any dependence. It is supplementary and decides no state.

    Parameters
    ----------
    tallies, shifts
        Of all waves, with the same questions in each.
    texts
        Optional: ``dataset, judge, prompt, wave, item`` (a fixed prompt), ``outcome`` (a digest of
        the reply) and ``votes``; adds a canary test of digests.
    tokens
        Optional: ``dataset, judge, prompt, wave, item``, ``first_token`` and ``first_probability``,
        one row per reply that has them; adds a canary test of first tokens (``canary.py``).
    answers
        Optional: rated single answers of all waves (``rated_answers`` in ``rating_changes.py``).
    waves
        The waves in order of time; by default sorted by name.
    questions
        Optional: ``dataset, judge, prompt, base`` (a wave) and ``base_questions``, where waves have
        more questions than those above.
    thresholds
        The minima, the number of nights, and the fewest questions.
    measure
        Replaces ``measure_wave``, for example by a memoized version, so that earlier waves are not
        measured again each night.
    """
    level = BUDGET / thresholds.nights_per_false_alert
    answers = rated_answers(Ratings.empty()) if answers is None else answers
    repeats = _repeats(tallies, answers)
    if questions is None:
        counts = pl.col("questions").max().alias("base_questions")
        questions = repeats.group_by(*SERIES, base="wave").agg(counts)
    order = waves or sorted(repeats["wave"].unique().to_list())
    asked = repeats.select(*SERIES, "wave")
    draws = max(PERMUTATIONS, math.ceil(20 * asked.select(SERIES).n_unique() * CELLS / level))
    epochs = pl.DataFrame(
        schema={**dict.fromkeys(SERIES, pl.String), "base": pl.String, "epoch": pl.Int64}
    )
    pending = pl.DataFrame(schema={**dict.fromkeys(CELL, pl.String), "sign": pl.Float64})
    doubted = pl.DataFrame(schema=dict.fromkeys((*SERIES, "wave"), pl.String))
    nightly = []
    for wave in order:
        present = asked.filter(pl.col("wave") == wave).select(SERIES).sort(SERIES)
        known = present.join(epochs, on=SERIES)
        new = present.join(epochs, on=SERIES, how="anti")
        epochs = pl.concat([epochs, new.with_columns(base=pl.lit(wave), epoch=pl.lit(1, pl.Int64))])
        if known.is_empty():
            continue
        bases = known.select(*SERIES, "base", wave=pl.lit(wave)).sort(SERIES)
        sound = repeats.join(doubted, on=[*SERIES, "wave"], how="anti")
        votes = _votes_of((tallies, shifts, answers), (texts, tokens), bases, sound, order)
        rows = (measure or measure_wave)(votes, order.index(wave), draws, thresholds)
        rows = rows.join(known.select(*SERIES, "epoch"), on=SERIES)
        rows = _with_states(_with_sources(rows, repeats, questions), pending, level, thresholds)
        rows = rows.with_columns(wave_number=pl.lit(order.index(wave) + 1, pl.Int64))
        nightly.append(rows)
        alerted = rows.filter(pl.col("state") == "alert").select(SERIES).unique()
        moved = epochs.join(alerted, on=SERIES, how="semi").with_columns(
            pl.col("epoch") + 1, base=pl.lit(wave)
        )
        epochs = pl.concat([epochs.join(alerted, on=SERIES, how="anti"), moved])
        pending = _pending(rows, pending, alerted)
        # A wave with an alert is the baseline of the next epoch, whatever else is suspect in it.
        suspects = rows.filter(pl.col("state") == "suspect").join(alerted, on=SERIES, how="anti")
        doubted = pl.concat([doubted, suspects.select(doubted.columns).unique()])
    return Drifts.of(pl.concat(nightly)) if nightly else Drifts.empty()


def fresh_votes(vote_log: DataFrame[VoteLog]) -> DataFrame[VoteLog]:
    """Drop copies of votes: replies from a cache in any wave of the judge but its first.

    Their ballots stay, without a vote. They stay marked as cached only if the wave has no other
    vote; it is then *not measured*.
    """
    later = pl.col("wave") > pl.col("wave").min().over(SERIES)
    copied = pl.col("cached") & pl.col("choice").is_not_null() & later
    # In two steps, as Polars does not nest window expressions.
    marked = vote_log.with_columns(copy=copied.fill_null(value=False)).with_columns(
        choice=pl.when(~pl.col("copy")).then("choice")
    )
    nothing_else = pl.col("choice").is_null().all().over(*SERIES, "wave")
    return VoteLog.of(
        marked.with_columns(cached=pl.col("cached") & (nothing_else | ~pl.col("copy")))
    )


class WaveVotes(NamedTuple):
    """Inputs for measuring a wave, in a fixed order: its votes and its baseline's."""

    tallies: pl.DataFrame
    shifts: pl.DataFrame
    bases: pl.DataFrame
    pool: pl.DataFrame
    texts: pl.DataFrame | None
    tokens: pl.DataFrame | None
    answers: pl.DataFrame


def measure_wave(
    votes: WaveVotes, seed: int, draws: int, thresholds: Thresholds = DEFAULTS
) -> pl.DataFrame:
    """Return the changes of one wave: audits against the base, canaries against the baseline."""
    bases, pool = votes.bases, votes.pool
    with limited_by(thresholds):
        rows = [changes(votes.tallies, votes.shifts, bases, pool=pool, seed=seed, draws=draws)]
        if not votes.answers.is_empty():
            rows.append(rating_changes(votes.answers, bases))
    for name, replies in (("text_drift", votes.texts), ("token_drift", votes.tokens)):
        if replies is not None:
            rows.append(_of_replies(name, replies, bases, pool, seed=seed, draws=draws))
    whole = pl.concat(rows, how="diagonal_relaxed")
    # Fixed prompts about the same question are not independent.
    questions = pl.coalesce(pl.col("clusters").max().over(SERIES), "n")
    whole = whole.with_columns(pl.coalesce("clusters", questions).cast(pl.Int64))
    return whole.rename({"statistic": "measure", "subgroup": "base"})


def _votes_of(
    frames: tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame],
    replies: tuple[pl.DataFrame | None, pl.DataFrame | None],
    bases: pl.DataFrame,
    repeats: pl.DataFrame,
    order: list[str],
) -> WaveVotes:
    wave = bases["wave"][0]
    pool = _baseline(repeats, bases, order[: order.index(wave)])
    mine = [*pool["old"].unique(), *bases["base"].unique(), wave]
    tallies, shifts, answers = (
        frame.filter(pl.col("wave").cast(pl.String).is_in(mine)).with_columns(
            pl.col(pl.Categorical).cast(pl.String)
        )
        for frame in frames
    )
    texts, tokens = (
        frame
        if frame is None
        else frame.filter(pl.col("wave").is_in(mine)).sort(
            *SERIES, "wave", *(column for column in OF_REPLIES if column in frame.columns)
        )
        for frame in replies
    )
    return WaveVotes(tallies, shifts, bases, pool, texts, tokens, answers)


def _repeats(tallies: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Return each judge and wave with votes per fixed prompt, questions, and whether simulated."""
    compared = pl.sum_horizontal("anchor_12", "tie_12", "target_12")
    asked = [(tallies, compared, "planned")]
    if not answers.is_empty():
        asked.append((answers, pl.col("readable"), "votes"))
    return pl.concat(
        frame.group_by(pl.col(JUDGE).cast(pl.String)).agg(
            repeats=votes.max().cast(pl.Int64),
            usual=pl.col(planned).mode().max().cast(pl.Int64),
            questions=pl.col("cluster").filter(votes > 0).n_unique().cast(pl.Int64),
            formula=pl.col("simulated").first(),
        )
        for frame, votes, planned in asked
    )


def _baseline(repeats: pl.DataFrame, bases: pl.DataFrame, before: list[str]) -> pl.DataFrame:
    """Return the first waves from each base that add up to ``REPEATS`` votes per fixed prompt."""
    place = {name: number for number, name in enumerate(before)}
    since = bases.drop("wave").join(repeats.rename({"wave": "old"}), on=SERIES)
    number, start = (
        pl.col(c).replace_strict(place, default=None, return_dtype=pl.Int64)
        for c in ("old", "base")
    )
    return (
        since.filter(number >= start)
        .sort(*SERIES, number)
        .filter(pl.col("repeats").cum_sum().over(SERIES) - pl.col("repeats") < REPEATS)
        .select(*SERIES, "old")
        .sort(*SERIES, "old")
    )


def _of_replies(
    name: str,
    replies: pl.DataFrame,
    bases: pl.DataFrame,
    pool: pl.DataFrame,
    *,
    seed: int,
    draws: int,
) -> pl.DataFrame:
    """Return a canary test of replies: of the digests of all, or of first tokens."""
    old = replies.rename({"wave": "old"}).join(pool, on=[*SERIES, "old"]).drop("old")
    new = replies.join(bases, on=[*SERIES, "wave"]).drop("wave", "base")
    there = new.select(*SERIES, "item").unique()
    both = (
        pl.concat([old.with_columns(new=False), new.with_columns(new=True)])
        .join(there, on=[*SERIES, "item"], how="semi", maintain_order="left")
        .with_columns(wave=pl.lit(bases["wave"][0]))
    )
    if name == "token_drift":
        found = first_token_canary(both, seed, draws)
    else:
        votes = pl.col("votes").cast(pl.Int64)
        counts = both.group_by(*JUDGE, "item", "outcome", maintain_order=True).agg(
            base=votes.filter(~pl.col("new")).sum(), new=votes.filter("new").sum()
        )
        found = canary(counts, seed, draws)
    return found.join(bases.select(*SERIES, subgroup="base"), on=SERIES).with_columns(
        statistic=pl.lit(name),
        mode=pl.lit("any"),
        seed=pl.lit(seed, pl.Int64),
        reason=pl.when(pl.col("p_value").is_null()).then(pl.lit(TWICE)),
    )


def _with_sources(
    rows: pl.DataFrame, repeats: pl.DataFrame, questions: pl.DataFrame
) -> pl.DataFrame:
    """Add what is the same for every measure, such as the unit and the size of the baseline."""
    declared, measure = STATISTICS["drift"].rows, pl.col("measure")
    about = {name: declared.get(name, declared["verdict_drift"]) for name in MEASURES}
    units = {name: row["unit"] for name, row in about.items()}
    nulls = {name: row["null"] for name, row in about.items()}
    missing = Drifts.dtypes().keys() - {*rows.columns, "base_questions"}
    return (
        rows.with_columns(pl.lit(None, Drifts.dtypes()[c]).alias(c) for c in missing)
        .join(repeats.drop("repeats", "questions"), on=JUDGE, how="left")
        .join(questions, on=[*SERIES, "base"], how="left")
        .with_columns(
            seed=pl.coalesce("seed", seed_of_bounds()),
            null_value=measure.replace_strict(nulls, default=None, return_dtype=pl.Float64),
            unit=pl.coalesce("unit", measure.replace_strict(units, default=None)),
            votes_per_pair=pl.coalesce("votes_per_pair", "usual"),
            simulated=pl.coalesce("simulated", "formula"),
        )
        .drop("usual", "formula")
    )


def _with_states(
    rows: pl.DataFrame, pending: pl.DataFrame, level: float, thresholds: Thresholds
) -> pl.DataFrame:
    rows = rows.with_columns(
        pl.lit(None, pl.String).alias(c) for c in CELL if c not in rows.columns
    )
    rows = rows.with_columns(pl.col("perturbation").cast(pl.String)).join(
        pending, on=CELL, how="left", nulls_equal=True
    )
    awaited = pl.col("sign").is_not_null()
    minima = {
        "mps_drift": thresholds.minimum_shift_drift,
        "dasr_drift": thresholds.minimum_dasr_drift,
        "position_drift": thresholds.minimum_position_drift,
        "agreement_drift": thresholds.minimum_agreement_drift,
    }  # canaries have none (methods, sections 10 and 15)
    declared = pl.col("measure").replace_strict(minima, default=0.0, return_dtype=pl.Float64)
    minimum = pl.coalesce("minimum", declared)
    cells = pl.col("p_value").count()
    confirmed = rows.filter(awaited)
    confirmed = confirmed.with_columns(holm(confirmed["p_value"]).alias("second"))
    rejected = rejected_by_e_values(rows["e_value"], level).alias("e_rejected")
    rows = rows.with_columns(holm(rows["p_value"]).alias("first"), rejected, cells=cells).join(
        confirmed.select(*CELL, "second"), on=CELL, how="left", nulls_equal=True
    )
    large = pl.col("estimate").abs() >= minimum
    again = (
        awaited & (pl.col("second") < level) & large & (pl.col("estimate").sign() == pl.col("sign"))
    ).fill_null(value=False)
    crossed = ((pl.col("first") < level) & large).fill_null(value=False)
    least = level / pl.col("cells").clip(lower_bound=1)
    adjusted = pl.when(awaited).then("second").otherwise("first")
    with limited_by(thresholds):
        few, why = ~is_enough(), why_not_enough()
    return rows.with_columns(
        minimum=minimum,
        level=pl.lit(level),
        interval_level=pl.when(pl.col("low").is_not_null()).then(LEVEL),
        method=pl.when(pl.col("measure").is_in([*minima, *RATED]))
        .then("method")
        .when(pl.col("p_value").is_not_null())
        .then(pl.lit(PERMUTED))
        .otherwise(pl.lit("none")),
        p_adjusted=adjusted,
        adjustment=pl.when(adjusted.is_not_null()).then(pl.lit(ADJUSTMENT)),
        reason=pl.when(few & pl.col("p_value").is_not_null()).then(why).otherwise("reason"),
        state=pl.when(few | pl.col("p_value").is_null())
        .then(pl.lit("not measured"))
        .when(again)
        .then(pl.lit("alert"))
        .when(crossed)
        .then(pl.lit("suspect"))
        .otherwise(pl.lit("quiet")),
        detectable=least.map_batches(_quantile_sum, return_dtype=pl.Float64)
        * pl.col("standard_error"),
    ).select(Drifts.dtypes().keys())


def _quantile_sum(levels: pl.Series) -> pl.Series:
    quantile = normal_quantile(1 - levels.to_numpy() / 2) + normal_quantile(POWER)
    return pl.Series(quantile, dtype=pl.Float64)


def _pending(rows: pl.DataFrame, before: pl.DataFrame, alerted: pl.DataFrame) -> pl.DataFrame:
    """Return what a judge's next wave has to confirm: new suspects, and unmeasured earlier ones."""
    suspects = rows.filter(pl.col("state") == "suspect").select(
        *CELL, sign=pl.col("estimate").sign()
    )
    settled = rows.filter(pl.col("state") != "not measured").select(CELL)
    kept = before.join(settled, on=CELL, how="anti", nulls_equal=True)
    both = pl.concat([kept, suspects], how="vertical_relaxed")
    return both.join(alerted, on=SERIES, how="anti")
