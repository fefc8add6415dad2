"""What people are asked about in a study, and what they said."""

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
    with rows as (from vote_log where study = $study and human is not true),
    asked as (select distinct dataset, sample, arm, perturbation from rows),
    judged as (
        select distinct b.pair_id from ballots as b
        semi join (select distinct judge, prompt, wave from rows) using (judge, prompt, wave)
    )
    select p.* exclude (run, saved_at)
    from pairs as p
    join asked as q
        on q.dataset = p.dataset and q.sample = p.sample and q.arm = p.arm
        and q.perturbation is not distinct from p.perturbation
    join judged using (pair_id)
    -- Pairs of other seeds and recipes bear the same names.
    left join perturbed_answers as a
        on a.answer_id = p.sample and a.perturbation = p.perturbation and a.seed = $seed
        and p.target = if(p.arm = 'sham', a.sham, a.perturbed)
    where (p.perturbation is null or a.recipe is not null)
        -- A recipe that another study brought since then is not what these votes are on.
        and p.saved_at <= (select max(saved_at) from rows)
    qualify row_number() over (
        partition by p.dataset, p.sample, p.arm, p.perturbation order by a.recipe desc
    ) = 1
"""


class People(NamedTuple):
    """What people said of some pairs."""

    ballots: DataFrame[Ballots]
    votes: DataFrame[Votes]


def parameters_of(warehouse: Warehouse, study: str) -> dict[str, Any]:
    """Return the parameters of a study's last audit.

    Raises
    ------
    WarehouseError
        If it was never audited here: there are no texts to show.
    """
    found = warehouse.query(LAST, [study])["parameters"]
    if found.is_empty():
        known = ", ".join(warehouse.query(STUDIES)["study"]) or "none"
        raise WarehouseError(
            f"{warehouse.path} holds no audit of a study {study!r} (it has: {known}). Run "
            f"`voirdire audit {study}` first: its pairs are what people vote on."
        )
    told: dict[str, Any] = json.loads(found.item())
    return told


def pairs_of(warehouse: Warehouse, study: str) -> DataFrame[Pairs]:
    """Return the pairs that a study's last audit asked about, in the texts of that time."""
    seed = parameters_of(warehouse, study)["seed"]
    found = Pairs.of(warehouse.query(PAIRS, {"study": study, "seed": seed}))
    if found.is_empty():
        raise WarehouseError(
            f"the last audit of study {study!r} left no votes. Run `voirdire audit {study}` to its "
            "end first."
        )
    return found


def people_of(warehouse: Warehouse, pairs: DataFrame[Pairs]) -> People:
    """Return the ballots that people have cast on ``pairs``, with their votes."""
    judges = warehouse.read(Judges, among=pl.DataFrame({"provider": [PEOPLE]}))
    ballots = warehouse.read(Ballots, among=judges.select("judge"))
    ours = Ballots.of(ballots.join(pairs.select("pair_id"), on="pair_id", how="semi"))
    return People(ours, warehouse.read(Votes, among=ours.select("ballot_id")))
