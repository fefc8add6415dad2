"""The audit of a study: curate, perturb, pair, judge, aggregate, conclude, report."""

from typing import Any

from prefect import flow, get_run_logger
from prefect.context import SyncClientContext
from prefect.runtime import flow_run

from flows.results.vote_summary import with_people
from flows.running.ballots import BallotSteps, ballots_of, make_pairs, require_asked_in_wave
from flows.running.casting import RunBallots, cast_all
from flows.running.counts import RunCounts
from flows.running.gaps import votes_on
from flows.running.processes import ignored_files
from flows.running.progress import logged, notifier
from flows.running.readiness import not_ready
from flows.running.run_row import RunRow
from flows.serving.alerts import start_on_alert
from flows.serving.allowed_paths import admit, is_from_form
from flows.serving.prefect_reporting import ServerMessages, outcomes, report_killed_runs
from flows.serving.run_labels import due, run_name, tag_run
from flows.studies import Study
from schemas.calibration import Ratings
from schemas.curation import Answers, Perturbations, PerturbedAnswers, Questions, Versions
from schemas.judging import Ballots, Judges, Pairs, Prompts
from tasks import stages
from tasks.curate import categories_of
from tasks.judge import by_form, dropped_params, judge_table, merge_dropped, prompt_table
from tasks.judging.sequential_stopping import Schedule, mark_stops
from tasks.kit.stage import prune_results
from tasks.progress import step
from warehouse.store import Warehouse

STEPS = BallotSteps(
    stages.import_dataset, stages.perturb_answers, stages.pair_up, stages.draw_ballots
)


@flow(name="audit", flow_run_name=run_name, on_running=[tag_run], on_completion=[start_on_alert])
async def audit(study: Study, warehouse: str | None = None) -> Any:
    """Measure how far perturbations move each judge, and save everything in the warehouse.

    A second run asks only the ballots without a reply. The default path of the warehouse is
    the environment variable VOIRDIRE_WAREHOUSE, else ``voirdire.duckdb`` in the current folder.
    A run of a deployment may name files of the served folders only.
    """
    study, warehouse = admit(study, warehouse, flow_run.id)
    study = study.at(due())
    place = Warehouse(warehouse, patience_seconds=study.patience_seconds, tell=notifier())
    counts = RunCounts(study)
    # Tasks share one client: to make one takes 30 ms, as it loads all certificates.
    with (
        logged(f"audit {study.name}"),
        RunRow("audit", flow_run.id, place, counts) as row,
        SyncClientContext.get_or_create(),
    ):
        # On the command line, the command itself names ignored files.
        ignored = [problem for _, problem in ignored_files()] if is_from_form() else []
        for note in [*counts.unsaved, *ignored]:
            get_run_logger().warning(note)
        await ServerMessages().send(lambda: report_killed_runs(place))
        study.check()
        step("making pairs")
        made = make_pairs(study, STEPS)
        counts.count_dropped(made.perturbed)
        judges, prompts = (
            judge_table(study.judges),
            prompt_table(study.prompts, reworded=study.reworded),
        )
        left_out = {name: dropped_params(study.judges, name) for name in study.prompts}
        counts.left_out = merge_dropped(left_out.values())
        ballots = ballots_of(study, made.shown, judges, left_out, STEPS)
        require_asked_in_wave(study, made.pairs, ballots, place)
        row.save(
            (Questions, made.dataset.questions),
            (Answers, made.dataset.answers),
            (Versions, made.dataset.versions),
            (Perturbations, made.perturbations),
            (PerturbedAnswers, made.perturbed),
            (Pairs, made.pairs),
            (Judges, judges),
            (Prompts, prompts),
            (Ballots, ballots),
        )

        categories = categories_of(made.dataset)
        pairs, shown, perturbed, known = made.pairs, made.shown, made.perturbed, made.dataset.known
        # Asking may take hours; free the texts, which are in the warehouse.
        del made

        claims = RunBallots(row.run, place, counts)
        waiting = claims.waiting(ballots)
        asked = counts.leave_gaps(ballots, waiting, not_ready(study))
        schedule = Schedule(study.votes_per_pair, study.stop, study.probe)
        votes = await cast_all(ballots, asked, shown, schedule, claims)
        step("counting votes")
        # Imported while the judges were asked.
        from flows.results.audit_results import save_results
        from flows.results.result_stages import log_votes, rate_votes

        compared, alone = by_form(ballots)
        stops = mark_stops(compared, votes, schedule)
        counts.count_stopped(stops, votes)
        new = waiting["ballot_id"]
        vote_log = log_votes(
            pairs,
            compared,
            judges,
            votes,
            waiting=new,
            stops=stops,
            categories=categories,
            known=known,
        )
        ratings = (
            Ratings.empty()
            if alone.is_empty()
            else rate_votes(
                pairs, alone, judges, votes, waiting=new, categories=categories, known=known
            )
        )
        vote_log = with_people(vote_log, pairs, study, place)
        counts.count_gaps(vote_log, place, votes_on(pairs, alone, votes))
        if counts.kept is None:
            await save_results(row, pairs, vote_log, ratings, perturbed)
    get_run_logger().info(counts.summary())
    prune_results()
    outcomes.append(counts.outcome())
    return outcomes[-1]
