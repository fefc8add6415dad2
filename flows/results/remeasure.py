"""Recompute a study's results from its saved votes; no judge is asked."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, cast

import polars as pl
from pandera.typing.polars import DataFrame

from flows.results.study_results import results_of_study
from flows.results.vote_summary import left_out_line, of_people, people_in
from flows.running.recovery import mark_dead_runs
from flows.running.run_row import failure_recorded, row_without_calls, save_completed
from flows.studies import PATIENCE_SECONDS, Study
from schemas.calibration import Ratings
from schemas.judging import Pairs, Shifts, Tallies, Verdicts, VoteLog
from schemas.keys import PEOPLE
from schemas.results import Annotations
from tasks.annotate import annotate
from tasks.inference.bootstrap import formulas_only
from tasks.kit.printable import several
from tasks.progress import step
from tasks.reporting.wording import listing
from tasks.results import Conclusions, ResultSteps, counted_votes
from tasks.validation.unknown_names import ALL_STUDIES, unknown
from warehouse.evidence.people import pairs_of
from warehouse.path_checks import existing_path
from warehouse.store import Saving, Warehouse

LAST = """
    select * from runs
    where study = $study and flow = 'audit' and run in (
        select run from vote_log where study = $study
        union select run from ratings where study = $study
    )
    order by started_at desc limit 1
"""
"""The audit that the votes are of: later ones may have failed, or left results as they were."""

PERSONS = "select count(*) as n from judges where provider = ?"
KNOWN = "select study from vote_log union select study from ratings order by study"
MODE = "select distinct mode from verdicts where study = ?"


class Remeasured(NamedTuple):
    """Recomputed results, which are saved already."""

    message: str
    study: Study
    concluded: Conclusions


def remeasure_study(
    study: str,
    path: Path | str | None,
    *,
    formulas: bool,
    run: str | None = None,
    too_fast_seconds: float | None = None,
    wrap: Callable[[ResultSteps], ResultSteps] = lambda steps: steps,
) -> Remeasured:
    """Recompute and replace a study's estimates, findings and drifts.

    Votes that people have cast since the last audit are added to the judges' votes. ``wrap``
    wraps the steps: a flow makes tasks of them, to show them in the Prefect UI.
    """
    place = existing_path(path, study)
    warehouse = Warehouse(place, patience_seconds=PATIENCE_SECONDS)
    mark_dead_runs(warehouse)
    known = warehouse.query(KNOWN)["study"].to_list()
    if study not in known:
        raise unknown("votes of study", study, known, ALL_STUDIES, where=f"in {place}")
    row = _run_row(warehouse, study, run, too_fast_seconds)
    with failure_recorded(lambda: row, warehouse):
        steps = wrap(stored_steps(warehouse))
        return _replace(warehouse, row, steps, formulas=formulas)


def _replace(
    warehouse: Warehouse, row: dict[str, Any], steps: ResultSteps, *, formulas: bool
) -> Remeasured:
    study = row["study"]
    parameters = Study.stored(row["parameters"])
    modes = warehouse.query(MODE, [study])["mode"].to_list()
    parameters = parameters.model_copy(update={"mode": modes[0] if modes else parameters.mode})
    step("reading votes")
    ratings = warehouse.read(Ratings, among=pl.DataFrame({"study": [study]}))
    voted = warehouse.query(PERSONS, [PEOPLE])["n"].item() > 0
    pairs = pairs_of(warehouse, parameters.name) if voted else Pairs.empty()
    people = people_in(pairs, parameters, warehouse) if voted else VoteLog.empty()
    warehouse.start_run(row)
    if voted:
        warehouse.save([Saving(VoteLog, people, part=of_people())], run=row["run"], study=study)
    with formulas_only() if formulas else nullcontext():
        found = results_of_study(
            parameters, study, (pairs, people), warehouse, ratings=ratings, steps=steps
        )
    step("saving results")
    of_them = _results_of_people(people, parameters.mode) if voted else []
    savings = [*(Saving(*each) for each in found.conclusions()), *of_them]
    save_completed(row, warehouse, savings)
    findings = found.results.findings
    shifted = findings.filter(pl.col("perturbation").is_not_null())
    unseen = found.open_ballots.join(shifted, on="judge", how="anti").sort("judge", "perturbation")
    notes = [
        left_out_line(people, parameters),
        # Perturbations that a person was not shown are undecided too.
        *(
            f"{judge}, {listing(rows['perturbation'].to_list())}: {text}"
            for (judge, text), rows in unseen.group_by("judge", "open", maintain_order=True)
        ),
    ]
    remarks = "".join(f"{note}. " for note in notes if note)
    rated = ratings.n_unique(["judge", "prompt", "wave", "item", "arm", "perturbation", "repeat"])
    votes = found.results.tallies["voted"].sum() + (rated if ratings.height else 0)
    message = (
        f"{several(int(votes), 'vote')} of {study}: "
        f"{several(found.results.estimates.height, 'estimate')} and "
        f"{several(findings.height, 'finding')} recomputed and saved. {remarks}"
    ).rstrip()
    return Remeasured(message, parameters, found.concluded)


def _results_of_people(people: DataFrame[VoteLog], mode: str) -> list[Saving]:
    """Return the other results of people, by judge; results of models are kept."""
    verdicts, shifts, annotations = Verdicts.empty(), Shifts.empty(), Annotations.empty()
    if not people.is_empty():
        tallies, verdicts, shifts = counted_votes(people, mode)
        annotations = annotate(tallies)
    return [
        Saving(Verdicts, verdicts, part=of_people()),
        Saving(Shifts, shifts, part=of_people()),
        Saving(Annotations, annotations, part=of_people("annotator")),
    ]


def stored_steps(warehouse: Warehouse) -> ResultSteps:
    """Return the steps that begin with a study's name, as the warehouse counts its votes."""

    def count(study: Any) -> DataFrame[Tallies]:
        tallies = cast("DataFrame[Tallies]", warehouse.tallies(study))
        # Without votes its texts are categories of nothing, which join no other column.
        return Tallies.empty() if tallies.is_empty() else tallies

    return ResultSteps(count=count)


def _run_row(
    warehouse: Warehouse, name: str, run: str | None, too_fast_seconds: float | None
) -> dict[str, Any]:
    """Return the row of this run, with the study of its last audit."""
    found = warehouse.query(LAST, {"study": name}).to_dicts()
    if not found:
        raise ValueError(
            f"study {name!r} comes from a file of votes. To recompute it, run "
            f"`voirdire measure VOTES --warehouse {warehouse.path}` on that file again."
        )
    (last,) = found
    study = Study.stored(last["parameters"])
    if too_fast_seconds is not None:
        study = study.model_copy(update={"too_fast_seconds": too_fast_seconds})
    cast = (last["from_warehouse"] or 0) + (last["asked"] or 0)
    return row_without_calls(
        "remeasure",
        study,
        run,
        last["fingerprint"],
        planned=last["planned"],
        from_warehouse=cast,
    )
