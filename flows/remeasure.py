"""All results of a study again, from its stored votes; calls no model."""

from typing import Any

from prefect import flow, get_run_logger
from prefect.runtime import flow_run
from prefect.states import Completed

from flows.results.remeasure import measure_anew
from flows.serving.allowed_paths import allowed_warehouse
from flows.serving.run_labels import run_name, tag_run
from tasks.result_stages import as_tasks


@flow(
    name="remeasure",
    flow_run_name=run_name,
    on_running=[tag_run],
)
def remeasure(
    study: str = "quick",
    warehouse: str | None = None,
    *,
    formulas: bool = False,
    too_fast_seconds: float | None = None,
) -> Any:
    """Replace estimates, findings and drifts of a study by those of this version of voirdire.

    ``study`` is the name under which its votes are kept. ``formulas`` leaves out bootstrap and
    permutations, for many millions of votes. Votes of people that took less than
    ``too_fast_seconds`` (the study's own limit, if null) are left out. The default place of the
    warehouse is the environment variable VOIRDIRE_WAREHOUSE, else ``voirdire.duckdb`` in the
    current folder; a run of a deployment may name one in the folder that is served.
    """
    told = measure_anew(
        study,
        allowed_warehouse(warehouse),
        formulas=formulas,
        run=flow_run.id,
        too_fast_seconds=too_fast_seconds,
        shown=as_tasks,
    )
    get_run_logger().info(told)
    return Completed(message=told)
