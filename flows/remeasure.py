"""Recompute all results of a study from its stored votes; no judge is asked."""

from pathlib import Path
from typing import Any

from prefect import flow, get_run_logger
from prefect.runtime import flow_run
from prefect.states import Completed

from flows.publishing.answers import place_of, show_answer, study_answer
from flows.results.remeasure import remeasure_study
from flows.results.result_stages import as_tasks
from flows.results.up_to_date import renew_report
from flows.serving.allowed_paths import allowed_warehouse
from flows.serving.run_labels import run_name, tag_run
from warehouse.path_checks import default_path
from warehouse.store import Warehouse


@flow(name="remeasure", flow_run_name=run_name, on_running=[tag_run])
def remeasure(
    study: str = "quick",
    warehouse: str | None = None,
    *,
    formulas: bool = False,
    too_fast_seconds: float | None = None,
) -> Any:
    """Recompute the estimates, findings and drifts of a study; replace them and the report.

    ``study`` is its name. ``formulas`` skips bootstrap and permutation tests, for many millions of
    votes. Votes of people that took less than ``too_fast_seconds`` (default: the limit of the
    study) are excluded. The default place of the
    warehouse is the environment variable VOIRDIRE_WAREHOUSE, else ``voirdire.duckdb`` in the
    current folder; a run of a deployment may name one in the folder that is served.
    """
    place = Path(allowed_warehouse(warehouse) or default_path()).absolute()
    found = remeasure_study(
        study,
        place,
        formulas=formulas,
        run=flow_run.id,
        too_fast_seconds=too_fast_seconds,
        wrap=as_tasks,
    )
    log = get_run_logger()
    log.info(found.message)
    report = place_of(renew_report(study, Warehouse(place), log.warning))
    show_answer(study_answer(found.study, found.concluded, found.message, report, place))
    return Completed(message=found.message)
