"""The votes of a study: people's votes, and what a report states about all votes."""

from collections.abc import Iterable

import polars as pl
from pandera.typing.polars import DataFrame

from flows.studies import Study
from schemas.conclusions import Voters
from schemas.judging import Ballots, Pairs, VoteLog, Votes
from schemas.keys import PEOPLE
from tasks.judging.people import log_people, voters
from tasks.kit.printable import several
from warehouse.evidence.people import pairs_of, people_of
from warehouse.store import Warehouse

VOTERS = """
    select exists(from judges where provider = ?)
        and exists(from runs where study = ? and flow = 'audit') as there
"""
LOGGED = "select count(*) as n from vote_log where study = ?"
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
        where study = $study and repeat <= 1 and arm not in ('replicate', 'reworded')
            and choice is not null
        group by dataset, judge, prompt, wave, sample, arm, perturbation, shown_first
        having count(*) = 2
    )
    select if(any_value(several), judge || ' / ' || prompt, judge) as judge,
        count(*) filter (choices = 1) as alike, count(*) as probes
    from probes cross join prompts group by probes.judge, prompt order by probes.judge, prompt
"""
PERSONS = "select distinct judge from vote_log where study = ? and human"


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
    """Add the votes of people to the votes of models."""
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
        f"{several(newer, 'vote of people is', 'votes of people are')} newer than the results of "
        f"{study}. Run `voirdire remeasure {study}` first, which adds "
        f"{'it' if newer == 1 else 'them'}"
    )


def left_out_line(log: pl.DataFrame, study: Study) -> str:
    """Say how many people voted and which votes are excluded; empty if nobody voted."""
    if log.is_empty():
        return ""
    choices = log["choice"]
    hasty, unknown = (int((choices == name).sum()) for name in ("invalid", "abstain"))
    return (
        f"{several(log['judge'].n_unique(), 'person', 'people')}, {several(log.height, 'vote')}; "
        f"excluded: {hasty} too fast (below {study.too_fast_seconds:g} s), {unknown} not familiar"
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
