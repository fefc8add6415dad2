"""The stages from the votes to the report as Prefect tasks, and those of a calibration."""

from typing import Any

from tasks import aggregate, conclude, report, results
from tasks import annotate as annotating
from tasks.agreement import compare as comparing
from tasks.calibration import agreement as agreeing
from tasks.calibration import calibrate
from tasks.drift import alerts
from tasks.judging import rated_votes
from tasks.kit.stage import cached_function, stage, uncached_task

log_votes = stage(aggregate.log_votes)
rate_votes = stage(rated_votes.rate_votes)
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
    """Make uncached tasks of steps, named like those of an audit: a run's page shows them."""
    plain: list[Any] = [*steps]
    names = [getattr(step, "name", None) for step in RESULTS]
    return results.Steps(*(uncached_task(*each) for each in zip(plain, names, strict=True)))


# Not cached: a report names its run, so no other run could use it, and it is stored as a file.
write_report = uncached_task(report.report)

try_judges = stage(calibrate.try_judges)
label_items = stage(calibrate.annotations_of)
agree = stage(agreeing.agree)
compare = stage(comparing.compare)
