"""The stages as Prefect tasks, in the order in which an audit runs them."""

from typing import Any

from tasks import aggregate, conclude, curate, judge, pair, perturb, report, results
from tasks import annotate as annotating
from tasks.calibration import agreement as agreeing
from tasks.calibration import calibrate
from tasks.drift import alerts
from tasks.kit.stage import cached_function, stage, uncached_task

# Not cached: its input is a name, and the file with that name may have changed.
import_dataset = uncached_task(curate.import_dataset)
perturb_answers = stage(perturb.perturb, run_name="perturb {name}")
pair_up = stage(pair.pair_up)
draw_ballots = stage(judge.draw_ballots)
# Not cached: votes are stored in the warehouse, and only ballots without a vote get here.
cast_votes = uncached_task(judge.cast_votes)
log_votes = stage(aggregate.log_votes)
count_votes = stage(aggregate.count_votes)
tally_votes = stage(aggregate.tally_votes)
match_groups = stage(aggregate.match_groups)
annotate = stage(annotating.annotate)
match_models = stage(aggregate.match_models)
measure = stage(aggregate.measure_all)
# Not a task: a study with many waves would run many of them each night.
measure_wave = cached_function(alerts.measure_wave)
conclude_findings = stage(conclude.conclude)
RESULTS = results.Steps(
    count_votes, tally_votes, match_groups, match_models, annotate, measure, conclude_findings
)


def as_tasks(steps: results.Steps) -> results.Steps:
    """Make uncached tasks of steps, named as in an audit, so that a run's page shows them."""
    plain: list[Any] = [*steps]
    names = [getattr(step, "name", None) for step in RESULTS]
    return results.Steps(*(uncached_task(*each) for each in zip(plain, names, strict=True)))


# Not cached: a report names its run, so no other run could use it, and it is stored as a file.
write_report = uncached_task(report.report)

try_judges = stage(calibrate.try_judges)
label_items = stage(calibrate.annotations_of)
agree = stage(agreeing.agree)
