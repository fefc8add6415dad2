"""Add the votes of people to the vote log of a study."""

import polars as pl
from pandera.typing.polars import DataFrame

from flows.studies import Study
from schemas.conclusions import Voters
from schemas.judging import Ballots, Pairs, VoteLog, Votes
from schemas.keys import PEOPLE
from tasks.judging.people import log_people, voters
from warehouse.people import pairs_of, people_of
from warehouse.store import Warehouse

VOTERS = """
    select exists(from judges where provider = ?)
        and exists(from runs where study = ? and flow = 'audit') as there
"""
LOGGED = "select count(*) as n from vote_log where study = ?"


def of_people(column: str = "judge") -> str:
    """Return a SQL condition for rows of people in a result."""
    return f"starts_with({column}, '{PEOPLE}/')"


def people_in(pairs: DataFrame[Pairs], study: Study, warehouse: Warehouse) -> DataFrame[VoteLog]:
    """Return the votes that people have cast on the pairs of a study.

    People see no judge prompt; their votes stand under the study's first one, so that each counts
    once.
    """
    people = people_of(warehouse, pairs)
    return log_people(
        pairs,
        people.ballots,
        people.votes,
        prompt=study.prompts[0],
        wave=study.wave,
        too_fast_seconds=study.too_fast_seconds,
    )


def with_people(
    vote_log: DataFrame[VoteLog], pairs: DataFrame[Pairs], study: Study, warehouse: Warehouse
) -> DataFrame[VoteLog]:
    """Add the votes of people to those of models."""
    return VoteLog.of(pl.concat([vote_log, people_in(pairs, study, warehouse)]))


def voters_in(
    log: DataFrame[VoteLog], pairs: DataFrame[Pairs], warehouse: Warehouse
) -> DataFrame[Voters]:
    """Count the votes that people have cast on the pairs of a study."""
    log = VoteLog.of(log.filter("human"))
    if log.is_empty():
        return Voters.empty()
    return voters(log, pairs, *people_of(warehouse, pairs))


def voters_of_file(log: DataFrame[VoteLog]) -> DataFrame[Voters]:
    """Count the votes of people in a file, which does not say how long they took."""
    people = VoteLog.of(log.filter("human"))
    return voters(people, Pairs.empty(), Ballots.empty(), Votes.empty())


def newer_line(study: str, warehouse: Warehouse) -> str:
    """Say how many votes of people are newer than the results; empty if none is."""
    if not warehouse.query(VOTERS, [PEOPLE, study])["there"].item():
        return ""
    cast = people_of(warehouse, pairs_of(warehouse, study)).votes.height
    newer = cast - warehouse.query(f"{LOGGED} and {of_people()}", [study])["n"].item()
    if newer <= 0:
        return ""
    return (
        f"{newer} votes of people are newer than the results of {study}. Run `voirdire remeasure "
        f"{study}` first, which adds them"
    )


def left_out_line(log: pl.DataFrame, study: Study) -> str:
    """Say how many people voted and which votes are excluded; empty if nobody voted."""
    if log.is_empty():
        return ""
    choices = log["choice"]
    hasty, unknown = (int((choices == name).sum()) for name in ("invalid", "abstain"))
    return (
        f"{log['judge'].n_unique()} people, {log.height} votes; excluded: {hasty} too fast (below "
        f"{study.too_fast_seconds:g} s), {unknown} not familiar"
    )
