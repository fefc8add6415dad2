"""The pairs that people vote on in a study, and their votes."""

import json
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Ballots, Judges, Pairs, Votes
from schemas.keys import PEOPLE
from warehouse.store import Warehouse, WarehouseError

LAST = """
    select parameters from runs where study = ? and flow = 'audit'
    order by started_at desc limit 1
"""
STUDIES = "select distinct study from runs where flow = 'audit' order by study"
PAIRS = """
    select p.* exclude (run, saved_at) from pairs as p
    semi join (from study_pairs where study = ?) using (pair_id)
"""


class PeopleVotes(NamedTuple):
    """Ballots and votes of people on some pairs."""

    ballots: DataFrame[Ballots]
    votes: DataFrame[Votes]


def audited_studies(warehouse: Warehouse) -> list[str]:
    """Return the names of the studies that were audited here."""
    return warehouse.query(STUDIES)["study"].to_list()


def parameters_of(warehouse: Warehouse, study: str) -> dict[str, Any]:
    """Return the parameters of the last audit of a study that was audited here."""
    parameters: dict[str, Any] = json.loads(warehouse.query(LAST, [study])["parameters"].item())
    return parameters


def pairs_of(warehouse: Warehouse, study: str) -> DataFrame[Pairs]:
    """Return the pairs of a study's results.

    Raise WarehouseError if the study has no results.
    """
    found = Pairs.of(warehouse.query(PAIRS, [study]))
    if found.is_empty():
        raise WarehouseError(
            f"the last audit of study {study!r} saved no votes. Complete `voirdire audit {study}` "
            "first."
        )
    return found


def people_of(warehouse: Warehouse, pairs: DataFrame[Pairs]) -> PeopleVotes:
    """Return the ballots that people have cast on ``pairs``, with their votes."""
    judges = warehouse.read(Judges, among=pl.DataFrame({"provider": [PEOPLE]}))
    if judges.is_empty():
        return PeopleVotes(Ballots.empty(), Votes.empty())
    ballots = warehouse.read(Ballots, among=judges.select("judge"))
    ours = Ballots.of(ballots.join(pairs.select("pair_id"), on="pair_id", how="semi"))
    return PeopleVotes(ours, warehouse.read(Votes, among=ours.select("ballot_id")))
