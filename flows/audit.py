"""How biased are the judges? Curate, perturb, pair, judge, aggregate: one study."""

from datetime import UTC, datetime
from typing import Any

import polars as pl
from prefect import flow, get_run_logger
from prefect.runtime import flow_run

from flows._alerts import start_on_alert
from flows._budget import require_bounds
from flows._casting import cast_all
from flows._drift import drift_line, drift_of
from flows._labels import run_name, tag_run
from flows._people import with_people
from flows._publish import publish
from flows._record import Record
from flows.studies import Study
from schemas.curation import Answers, Perturbations, PerturbedAnswers, Questions, Versions
from schemas.judging import Ballots, Judges, Pairs, Prompts, Shifts, Verdicts, VoteLog
from schemas.results import Annotations, Drifts, Estimates, Findings
from tasks import stages
from tasks.conclude import endpoints
from tasks.judge import Design, dropped_params, judge_table, prompt_table
from tasks.people import open_ballots, with_open_ballots
from tasks.perturb import perturbation_table
from tasks.sequential import Schedule, mark_stops
from warehouse.store import Warehouse


@flow(
    name="audit",
    flow_run_name=run_name,
    on_running=[tag_run],
    on_completion=[start_on_alert],
)
async def audit(study: Study, warehouse: str | None = None) -> Any:
    """Measure how far perturbations move each judge, and leave all of it in the warehouse.

    A second run asks only what has not been answered yet. The default place of the warehouse is
    the environment variable VOIRDIRE_WAREHOUSE, else ``voirdire.duckdb`` in the current folder.
    """
    study.check()
    study.require_keys()
    require_bounds(study)
    study = study.at(datetime.now(UTC))
    with Record("audit", flow_run.id, study, Warehouse(warehouse)) as record:
        questions, answers, versions = stages.import_dataset(
            study.dataset, study.folder, study.limit
        )
        perturbations = perturbation_table(study.asked())
        perturbed = PerturbedAnswers.of(
            pl.concat(
                stages.perturb_answers(questions, answers, versions, name, study.seed)
                for name in study.asked()
            )
        )
        record.count_dropped(perturbed)
        pairs = stages.pair_up(
            questions,
            answers,
            perturbed,
            perturbations,
            study.checks,
            replicates=study.replicates,
            shams=study.sham != "none",
        )
        if pairs.is_empty():
            raise ValueError(f"no pair is left to ask about. {record.notes_line()}")
        judges, prompts = judge_table(study.judges), prompt_table([study.prompt])
        design = Design(study.votes_per_pair, study.mode, study.wave, study.seed)
        record.left_out = dropped_params(study.judges, study.prompt)
        ballots = stages.draw_ballots(pairs, judges, study.prompt, design, record.left_out)
        record.save(
            (Questions, questions), (Answers, answers), (Versions, versions),
            (Perturbations, perturbations), (PerturbedAnswers, perturbed), (Pairs, pairs),
            (Judges, judges), (Prompts, prompts), (Ballots, ballots),
        )  # fmt: skip

        # Asking may take hours: hold no texts that are in the warehouse.
        del questions, answers, versions

        waiting = record.waiting(ballots)
        schedule = Schedule(study.votes_per_pair, study.stop, study.probe)
        await cast_all(ballots, waiting, pairs, schedule, record)

        votes = record.votes(ballots)
        stops = mark_stops(ballots, votes, schedule)
        record.count_stopped(stops, votes)
        vote_log = stages.log_votes(
            pairs, ballots, judges, votes, waiting=waiting["ballot_id"], stops=stops
        )
        vote_log = with_people(vote_log, pairs, study, record.warehouse)
        tallies = stages.count_votes(vote_log)
        verdicts = stages.tally_votes(tallies, study.mode)
        shifts = stages.match_groups(verdicts)
        frames: dict[str, Any] = {
            "tallies": tallies,
            "shifts": shifts,
            "contests": stages.match_models(tallies),
            "annotations": (annotations := stages.annotate(tallies)),
        }
        estimates = stages.measure(**frames)
        missing = open_ballots(pairs, VoteLog.of(vote_log.filter("human")))
        concluded = stages.conclude_findings(endpoints(estimates), study.detects_at)
        findings = with_open_ballots(concluded, missing)
        drifts = drift_of(study, record.warehouse)
        record.save(
            (VoteLog, vote_log), (Verdicts, verdicts), (Shifts, shifts),
            (Annotations, annotations), (Estimates, estimates), (Findings, findings),
            (Drifts, drifts),
        )  # fmt: skip
        if drifted := drift_line(drifts, study.wave):
            get_run_logger().warning(drifted)
        await publish(record, estimates, findings, perturbed, drifts)
    get_run_logger().info(record.summary())
    return record.outcome()
