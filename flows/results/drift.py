"""Drift of a study's judges, from its votes of all waves."""

from collections.abc import Callable
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from flows.studies import Study
from schemas.calibration import Ratings
from schemas.conclusions import ReplyChanges
from schemas.judging import Ballots, Judges, Pairs, VoteLog, Votes
from schemas.results import Drifts
from tasks.drift.alerts import fresh_votes, watch
from tasks.drift.rating_changes import rated_answers
from tasks.drift.replies import reply_changes
from tasks.judging.rated_votes import rate_votes
from tasks.judging.sequential_stopping import KEY, Schedule, mark_stops
from tasks.reporting.wording import number
from tasks.results import counted_votes
from warehouse.store import Warehouse

OF_STUDY = """
    from ballots as b
    join pairs as p using (pair_id)
    join judges as j using (judge)
    join prompts as m using (prompt)
    left join votes as v using (ballot_id)
    where b.prompt in $prompts and b.judge in $judges and b.wave <> ''
        and b.repeat < if(m.kind = 'pair', $repeats, $alone)
        and p.arm <> 'reworded' and b.pair_id in (select unnest($pairs))
"""
WAVES = f"""
    select b.wave {OF_STUDY} and v.choice is not null
    group by b.wave order by min(v.cast_at), b.wave
"""
ASKED = f"{OF_STUDY} and b.wave in (select unnest($waves))"
# The wave is part of a ballot's id: no vote of one wave can serve another, so none is cached.
LOG = f"""
    select b.ballot_id, b.pair_id, p.dataset, b.judge, b.prompt, b.wave, p.sample, p.cluster,
        p.arm, p.perturbation, p.kind, b.shown_first, b.repeat, v.choice, j.simulated,
        false as cached
    {ASKED} and m.kind = 'pair'
"""
RATED = f"""
    select b.ballot_id, b.pair_id, b.judge {ASKED} and m.kind <> 'pair' and v.choice is not null
"""
TEXTS = f"""
    select p.dataset, b.judge, b.prompt, b.wave, b.pair_id || b.shown_first as item,
        md5(lower(regexp_replace(trim(v.raw), '\\s+', ' ', 'g'))) as outcome, count(*) as votes
    {ASKED} and v.choice is not null group by all
"""
TOKENS = f"""
    select p.dataset, b.judge, b.prompt, b.wave, b.pair_id || b.shown_first as item,
        v.first_token, v.first_probability
    {ASKED} and v.choice is not null and v.first_probability is not null
"""
REPLIES = """
    select b.judge, b.prompt, b.wave, min(v.cast_at) as first_vote,
        string_agg(distinct v.model, chr(31) order by v.model) as models,
        string_agg(distinct v.fingerprint, chr(31) order by v.fingerprint) as fingerprints
    from ballots as b join votes as v using (ballot_id)
    where b.prompt in $prompts and b.judge in $judges
    group by b.judge, b.prompt, b.wave
"""
BASES = """
    select p.dataset, b.judge, b.prompt, b.wave as base,
        count(distinct p.cluster)::bigint as base_questions
    from ballots as b join pairs as p using (pair_id) join votes as v using (ballot_id)
    where b.prompt in $prompts and b.judge in $judges and b.wave <> '' and v.choice is not null
    group by all
"""
"""Questions of each wave, also those that the study does not ask now."""
RUNS = """
    select parameters from runs
    where study = ? and flow = 'audit' and (state <> 'failed' or asked > 0) order by started_at
"""


PAIRS = "select pair_id from study_pairs where study = ?"


def drift_of(
    study: Study,
    warehouse: Warehouse,
    measure: Callable[..., pl.DataFrame] | None = None,
    *,
    pairs: pl.Series | None = None,
) -> DataFrame[Drifts]:
    """Return the changes since each baseline, for a study with waves.

    Baselines and epochs are computed from the votes each time; ``measure`` may replace
    ``measure_wave`` by a cached version. ``pairs`` are the ids of the study's pairs, by default
    of its saved results: other studies may use the same names of waves. Waves that began later
    than the study's wave do not count: its results are as they were then.
    """
    if not study.wave:
        return Drifts.empty()
    if pairs is None:
        pairs = warehouse.query(PAIRS, [study.name])["pair_id"]
    # With random positions all votes may be in one order; repeats of replicates follow control.
    orders = 1 if study.mode == "paper" else 2
    asked = {
        "prompts": study.prompts,
        "judges": study.judges,
        "pairs": pairs.to_list(),
        "repeats": study.votes_per_pair * (1 + study.asks_again) // orders,
        "alone": study.votes_per_pair * (1 + study.asks_again),
    }
    waves = warehouse.query(WAVES, asked)["wave"].to_list()
    if study.wave in waves:
        waves = waves[: waves.index(study.wave) + 1]
    asked["waves"] = waves
    if len(waves) < 2:
        return Drifts.empty()
    tallies, _, shifts = counted_votes(_log(study, warehouse, asked), study.mode)
    texts, tokens = (warehouse.query(replies, asked) for replies in (TEXTS, TOKENS))
    return watch(
        tallies,
        shifts,
        texts,
        tokens,
        answers=rated_answers(_ratings(warehouse, asked)),
        waves=waves,
        questions=warehouse.query(BASES, {name: asked[name] for name in ("prompts", "judges")}),
        thresholds=study.thresholds,
        measure=measure,
    )


def reply_changes_of(study: Study, warehouse: Warehouse) -> DataFrame[ReplyChanges]:
    """Return the waves in which something else than before replied, if a study has waves."""
    if not study.wave:
        return ReplyChanges.empty()
    asked = {"prompts": study.prompts, "judges": study.judges}
    return reply_changes(warehouse.query(REPLIES, asked))


def drift_in(log: DataFrame[VoteLog], mode: str) -> DataFrame[Drifts]:
    """Return what changed between the waves of a file of votes, in the order of their names."""
    if log["wave"].n_unique() < 2:
        return Drifts.empty()
    tallies, _, shifts = counted_votes(fresh_votes(log), mode)
    return watch(tallies, shifts)


def _log(study: Study, warehouse: Warehouse, asked: dict[str, Any]) -> DataFrame[VoteLog]:
    """Return the votes of all waves, and which ballots were not needed by each wave's own rule."""
    voted = pl.col("choice").is_not_null().any().over("judge", "prompt", "wave")
    log = warehouse.query(LOG, asked).filter(voted)
    if log.is_empty():
        return VoteLog.empty()
    # The study may have changed since a wave.
    runs = map(Study.stored, warehouse.query(RUNS, [study.name])["parameters"])
    rules = {each.wave: _schedule(each) for each in runs}
    stops = pl.concat(
        mark_stops(
            Ballots.of(wave),
            Votes.draft(wave.filter(pl.col("choice").is_not_null())),
            rules.get(str(name), _schedule(study)),
        )
        for (name,), wave in log.partition_by("wave", as_dict=True).items()
    )
    return VoteLog.of(log.join(stops.select(*KEY, "stopped"), on=KEY))


def _ratings(warehouse: Warehouse, asked: dict[str, Any]) -> DataFrame[Ratings]:
    found = warehouse.query(RATED, asked)
    if found.is_empty():
        return Ratings.empty()
    ballots = found.select("ballot_id")
    return rate_votes(
        warehouse.read(Pairs, among=found.select("pair_id")),
        warehouse.read(Ballots, among=ballots),
        warehouse.read(Judges, among=found.select("judge")),
        warehouse.read(Votes, among=ballots),
        waiting=found["ballot_id"],
    )


def _schedule(study: Study) -> Schedule:
    return Schedule(study.votes_per_pair, study.stop, study.probe)


def drift_line(drifts: DataFrame[Drifts], wave: str) -> str:
    """Say what of this wave is an alert or suspect; empty if nothing is."""
    said = []
    for state in ("alert", "suspect"):
        rows = drifts.filter(pl.col("wave") == wave, pl.col("state") == state)
        cells = [
            f"{judge} {measure}{f' of {of}' if of else ''} {number(change)}"
            for judge, measure, of, change in rows.select(
                "judge", "measure", "perturbation", "estimate"
            ).iter_rows()
        ]
        if cells:
            said.append(f"Drift, {state}: {'; '.join(cells)}")
    return ". ".join(said)
