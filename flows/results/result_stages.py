"""The stages from the votes to the report, and the stages of a calibration, as Prefect tasks."""

from typing import Any

from prefect import Task

from tasks import aggregate, conclude, report, results
from tasks.agreement import compare as comparing
from tasks.calibration import agreement as agreeing
from tasks.calibration import calibrate
from tasks.drift import alerts
from tasks.judging import rated_votes
from tasks.kit.stage import cached_function, stage, uncached_task

log_votes = stage(aggregate.log_votes)
rate_votes = stage(rated_votes.rate_votes)
count_votes = stage(aggregate.count_votes)
measure = stage(aggregate.measure_all)
# Not a task: a study with many waves would run many of them each night.
measure_wave = cached_function(alerts.measure_wave)
conclude_findings = stage(conclude.conclude)
# The other steps take less time than a task.
CACHED_RESULT_STEPS = results.RESULT_STEPS._replace(
    count=count_votes, measure=measure, conclude=conclude_findings
)


def as_tasks(steps: results.ResultSteps) -> results.ResultSteps:
    """Make uncached tasks of the steps that are tasks of an audit: a run's page shows them."""
    made: list[Any] = [
        uncached_task(step, like.name) if isinstance(like, Task) else step
        for step, like in zip(steps, CACHED_RESULT_STEPS, strict=True)
    ]
    return results.ResultSteps(*made)


# Not cached: a report names its run, so no other run could use it, and it is stored as a file.
write_report = uncached_task(report.report)

try_judges = stage(calibrate.try_judges)
label_items = stage(calibrate.annotations_of)
agree = stage(agreeing.agree)
compare = stage(comparing.compare)
