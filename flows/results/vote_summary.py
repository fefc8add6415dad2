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
        select distinct judge, prompt from vote_log
        where study = $study and stopped = 'deterministic'
    ),
    prompts as (
        select count(distinct prompt) > 1 as several from vote_log
        where study = $study and not coalesce(human, false)
    ),
    probes as (
        select judge, prompt, count(distinct choice) as choices
        from vote_log semi join same using (judge, prompt)
        where study = $study and repeat <= 1 and arm <> 'replicate' and choice is not null
        group by dataset, judge, prompt, wave, sample, arm, perturbation, shown_first
        having count(*) = 2
    )
    select if(any_value(several), judge || ' / ' || prompt, judge) as judge,
        count(*) filter (choices = 1) as alike, count(*) as probes
    from probes cross join prompts group by probes.judge, prompt order by probes.judge, prompt
"""
NUMBERS = """
    select * from mart.numbers where study = ?
    order by statistic, perturbation, judge, subgroup, mode, dataset, prompt, wave
"""

PRICES = """
    select p.dataset, b.judge, b.prompt, b.wave,
        count(*) as votes, count(v.cost_usd) as priced, sum(v.cost_usd) as usd
    from votes as v join ballots as b using (ballot_id) join pairs as p using (pair_id)
    group by all
"""
"""What the votes of each judge cost, as ``conclusions_of`` takes it."""
PERSONS = "select distinct judge from vote_log where study = ? and human"


class VoteFacts(NamedTuple):
    """What a report states about the saved votes of a study."""

    people: str
    """How many people voted, and which of their votes are excluded; empty if nobody did."""
    probed: str
    """Judges that were asked one vote per order; empty if there is none."""
    persons: frozenset[str]
    """Judges who are people."""
    numbers: pl.DataFrame
    """Every number of the study with its provenance: ``mart.numbers``."""


def vote_facts(warehouse: Warehouse, study: Study) -> VoteFacts:
    """Return what a report states about the saved votes, from one visit of the warehouse."""
    queries = (BY_PEOPLE, PERSONS, NUMBERS)
    probed, by_people, persons, numbers = warehouse.query_all(
        (PROBED, {"study": study.name}), *((query, [study.name]) for query in queries)
    )
    return VoteFacts(
        _sentence(left_out_line(by_people, study)),
        _sentence(alike_line(probed.rows())),
        frozenset(persons["judge"]),
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
