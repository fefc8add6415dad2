"""Sentences about the votes of a study: people's votes, and judges that repeat themselves."""

from collections.abc import Iterable

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


def people_line(warehouse: Warehouse, study: Study) -> str:
    """Say how many people voted and which votes are excluded; empty if nobody voted."""
    line = left_out_line(warehouse.query(BY_PEOPLE, [study.name]), study)
    return f"{line}." if line else ""


def probed_line(warehouse: Warehouse, study: str) -> str:
    """Name the judges that were asked one vote per order; empty if there is none."""
    return alike_line(warehouse.query(PROBED, {"study": study}).rows())


def alike_line(judges: Iterable[tuple[str, int, int]]) -> str:
    """Say how many probes of each judge agreed, so that it was asked one vote per order."""
    return ". ".join(
        f"{judge} repeated its vote in {alike} of {probes} probes: it was asked one vote per order"
        for judge, alike, probes in judges
    )


def numbers_of(warehouse: Warehouse, study: str) -> pl.DataFrame:
    """Return every number of a study with its provenance: ``mart.numbers``."""
    return warehouse.query(NUMBERS, [study])
