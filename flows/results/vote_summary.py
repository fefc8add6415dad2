"""Sentences about the votes of a study: people's votes, and judges that repeat themselves."""

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from flows.results.people import left_out_line
from flows.studies import Study
from warehouse.store import Warehouse

BY_PEOPLE = "select judge, choice from vote_log where study = ? and human"
PROBED = """
    with same as (
        select distinct judge from vote_log where study = $study and stopped = 'deterministic'
    ),
    probes as (
        select judge, count(distinct choice) as choices
        from vote_log semi join same using (judge)
        where study = $study and repeat <= 1 and arm <> 'replicate' and choice is not null
        group by dataset, judge, prompt, wave, sample, arm, perturbation, shown_first
        having count(*) = 2
    )
    select judge, count(*) filter (choices = 1) as alike, count(*) as probes
    from probes group by judge order by judge
"""
NUMBERS = """
    select * from mart.numbers where study = ?
    order by statistic, perturbation, judge, subgroup, mode, dataset, prompt, wave
"""


JURY_USD = """
    select if(count(*) = count(cost_usd), max(cost_usd), null) as usd from mart.jury
    where study = ? and left_out is null and perturbation is not null
"""
"""Cost of a verdict of all members of the jury; they may differ between perturbations."""
PERSONS = "select distinct judge from vote_log where study = ? and human"


class VoteFacts(NamedTuple):
    """What a report states about the saved votes of a study."""

    people: str
    """How many people voted, and which of their votes are left out; empty if nobody did."""
    probed: str
    """Judges that were asked one vote per order; empty if there is none."""
    persons: frozenset[str]
    """Judges who are people."""
    jury_usd: float | None
    """Cost of a verdict of the jury; null if a price is unknown."""
    numbers: pl.DataFrame
    """Every number of the study with what it rests on: ``mart.numbers``."""


def vote_facts(warehouse: Warehouse, study: Study) -> VoteFacts:
    """Return what a report states about the saved votes, from one visit of the warehouse."""
    queries = (BY_PEOPLE, PERSONS, JURY_USD, NUMBERS)
    probed, by_people, persons, jury, numbers = warehouse.query_all(
        (PROBED, {"study": study.name}), *((query, [study.name]) for query in queries)
    )
    return VoteFacts(
        _sentence(left_out_line(by_people, study)),
        _sentence(alike_line(probed.rows())),
        frozenset(persons["judge"]),
        jury["usd"].item(),
        numbers,
    )


def probed_line(warehouse: Warehouse, study: str) -> str:
    """Name the judges that were asked one vote per order; empty if there is none."""
    return alike_line(warehouse.query(PROBED, {"study": study}).rows())


def alike_line(judges: Iterable[tuple[str, int, int]]) -> str:
    """Say how many probes of each judge agreed, so that it was asked one vote per order."""
    return ". ".join(
        f"{judge} repeated its vote in {alike} of {probes} probes: it was asked one vote per order"
        for judge, alike, probes in judges
    )


def _sentence(text: str) -> str:
    return f"{text}." if text else ""
