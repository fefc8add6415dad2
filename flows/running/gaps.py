"""Gaps: needed ballots without a vote."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from flows.studies import Study
from schemas.judging import Ballots, Pairs, Votes
from schemas.keys import PEOPLE, unit_name
from tasks.kit.printable import several
from tasks.prompts import label_of, without_digest
from warehouse.store import Warehouse

GAPS = "CompletedWithGaps"
"""Name of the Prefect state."""

SAVED_VOTES = """
    select judge, prompt, choice, stopped, human from vote_log
    where study = $study and wave = $wave and prompt in $prompts and dataset in $datasets
"""
RATED = """
    select judge, prompt, count(*) as voted from (
        select distinct judge, prompt, item, arm, perturbation, repeat from ratings
        where study = $study and wave = $wave and prompt in $prompts and dataset in $datasets
    ) group by judge, prompt
"""
"""Votes on single answers; a ballot without a vote has no rating."""
QUESTIONS = """
    select count(distinct p.cluster) as n from study_pairs join pairs as p using (pair_id)
    where study = ?
"""
UNITS = "select distinct judge, prompt from gates where study = ? order by judge, prompt"
SAVED_AT = "select max(saved_at) from estimates where study = ?"


class Gap(NamedTuple):
    """How many ballots of a judge have no vote."""

    missing: int
    planned: int

    def is_above(self, share: float) -> bool:
        """Tell whether more than this share of the ballots is missing."""
        return self.missing > share * self.planned


def gaps_of(log: pl.DataFrame) -> dict[tuple[str, str], Gap]:
    """Count the ballots without a vote by judge and prompt, except people."""
    missing = pl.col("choice").is_null() & pl.col("stopped").is_null()
    counted = (
        log.filter(~pl.col("human").fill_null(value=False))
        .group_by(pl.col("judge", "prompt").cast(pl.String))
        .agg(missing.sum().alias("missing"), pl.len().alias("planned"))
    )
    return {
        (judge, prompt): Gap(missing, planned)
        for judge, prompt, missing, planned in counted.sort("judge", "prompt").rows()
    }


def votes_on(
    pairs: DataFrame[Pairs], ballots: DataFrame[Ballots], votes: DataFrame[Votes]
) -> pl.DataFrame:
    """Return the columns of a vote log that gaps depend on; no ballot was unnecessary."""
    cast = ballots.join(votes.select("ballot_id", "choice"), on="ballot_id", how="left")
    return cast.join(pairs.select("pair_id", "dataset"), on="pair_id").select(
        pl.col("dataset", "judge", "prompt", "choice").cast(pl.String),
        stopped=pl.lit(None, pl.String),
        human=pl.lit(value=False),
    )


def partial_judges(log: pl.DataFrame, allowed: float) -> dict[str, Gap]:
    """Return the judges that lack more than the allowed share of their ballots.

    A judge is named with its prompt if there are several: one may be complete under one only.
    """
    gaps = gaps_of(log)
    prompts = {prompt for _, prompt in gaps}
    return {
        unit_name(judge, prompt, prompts): gap
        for (judge, prompt), gap in gaps.items()
        if gap.is_above(allowed)
    }


def complete_before(study: Study, log: pl.DataFrame, warehouse: Warehouse) -> datetime | None:
    """Return when complete results were saved that this vote log would replace by partial ones.

    Null if there are none. A judge's results in the same dataset, prompt and wave of the study are
    complete if they lack no more ballots than the study allows.
    """
    gaps = gaps_of(log)
    partial = {unit for unit, gap in gaps.items() if gap.is_above(study.gaps_allowed)}
    if not partial:
        return None
    asked = {
        "study": study.name,
        "wave": study.wave,
        "prompts": study.prompts,
        "datasets": log["dataset"].cast(pl.String).unique().to_list(),
    }
    saved = gaps_of(warehouse.query(SAVED_VOTES, asked))
    for judge, prompt, voted in warehouse.query(RATED, asked).iter_rows():
        planned = gaps.get((judge, prompt), Gap(0, 0)).planned
        saved[judge, prompt] = Gap(planned - voted, planned)
    complete = {unit for unit, gap in saved.items() if not gap.is_above(study.gaps_allowed)}
    return None if complete.isdisjoint(partial) else results_before(study, warehouse)


def results_before(study: Study, warehouse: Warehouse) -> datetime | None:
    """Return when the study's results were saved, of whichever wave; null if it has none."""
    saved_at: datetime | None = warehouse.query(SAVED_AT, [study.name]).item()
    return saved_at


def less_shown_line(study: Study, questions: int, warehouse: Warehouse) -> str:
    """Warn before results of less, or of another wording, replace results; empty if not."""
    if not warehouse.path.is_file():
        return ""
    asked, shown = warehouse.query_all((QUESTIONS, [study.name]), (UNITS, [study.name]))
    before = asked.item()
    gone = [
        judge
        for judge in shown["judge"].unique(maintain_order=True)
        if judge not in study.judges and not judge.startswith(f"{PEOPLE}/")
    ]
    lost, again = [], []
    if questions < before:
        fewer = several(questions, "question replaces", "questions replace")
        lost.append(f"{fewer} the results of {before}")
        again.append(
            "run this again without --limit" if study.limit else "audit the same data again"
        )
    if gone:
        lost.append(f"no results are shown any more of {', '.join(gone)}")
        again.append("audit these judges too")
    if not lost:
        return _edited_line(study, shown["prompt"].unique(maintain_order=True).to_list())
    return (
        f"Warning: {', and '.join(lost)} under the name {study.name!r}. To get these back, "
        f"{' and '.join(again)} (no vote is asked twice); to keep both, give this audit another "
        "--name."
    )


def _edited_line(study: Study, before: list[str]) -> str:
    """Say that results of an earlier wording are replaced; empty if there are none."""
    now = {without_digest(prompt): prompt for prompt in map(label_of, study.prompts)}
    for prompt in before:
        name = without_digest(prompt)
        if name != prompt and now.get(name, prompt) != prompt:
            return (
                f"The wording of prompt {name!r} has changed: results of {now[name]} replace those "
                f"of {prompt} under the name {study.name!r}; its votes are kept. To compare both, "
                f"keep the earlier wording as a prompt of another name, and audit both."
            )
    return ""


def partial_line(
    partial: Mapping[str, Gap], allowed: float, kept: datetime | None, *, voteless: bool = False
) -> str:
    """Describe the judges with too many gaps, and the results that are kept; empty if none.

    If the run is ``voteless``, no judge has cast a vote.
    """
    if not partial:
        return ""
    judges = ", ".join(
        f"{judge} lacks {gap.missing} of {gap.planned} ballots" for judge, gap in partial.items()
    )
    gaps = f"{judges} (gaps_allowed is {allowed:g} of a judge's ballots)"
    if voteless and kept:
        return (
            f"Results not replaced: {gaps}; no ballot has a vote, so the results of "
            f"{kept:%Y-%m-%d %H:%M} UTC stand"
        )
    if voteless:
        return f"No results: {gaps}; no ballot has a vote"
    if kept is None:
        return f"Partial results: {gaps}; the results rest on the remaining votes"
    return (
        f"Results not replaced: {gaps}, so the complete results of {kept:%Y-%m-%d %H:%M} UTC "
        "stand; the votes of this run are saved, and an audit of the same wave asks the rest"
    )
