"""Calibrate: read labels, test which judges may replace people, measure agreement, save."""

from typing import Any

from prefect import flow, get_run_logger
from prefect.runtime import flow_run
from prefect.states import Completed

from flows.labels.sources import changed_prompts, newer_votes
from flows.publishing.answers import calibration_answer, place_of, show_answer
from flows.publishing.calibration_page import publish_calibration
from flows.results import result_stages
from flows.results.calibration import (
    CalibrationSteps,
    calibrate_labels,
    in_words,
    keep_calibration,
    require_free,
)
from flows.serving.allowed_paths import allowed_calibration, allowed_warehouse
from flows.serving.run_labels import run_name, tag_run
from flows.studies.calibration import Calibration
from tasks.reporting.calibration_answer import label_warnings
from warehouse.store import Warehouse


@flow(name="calibrate", flow_run_name=run_name, on_running=[tag_run])
def calibrate(calibration: Calibration, warehouse: str | None = None) -> Any:
    """Test which judges may replace people (alternative annotator test), and save the results.

    The default place of the warehouse is the environment variable VOIRDIRE_WAREHOUSE, else
    ``voirdire.duckdb`` in the current folder. A run of a deployment may name files of the served
    folders only.
    """
    calibration = allowed_calibration(calibration)
    place = Warehouse(allowed_warehouse(warehouse))
    calibration.require_own_metric_elsewhere()
    require_free(calibration, place)
    steps = CalibrationSteps(
        result_stages.try_judges,
        result_stages.label_items,
        result_stages.agree,
        result_stages.compare,
    )
    found = calibrate_labels(calibration, place, steps)
    for line in label_warnings(found.comparison):
        get_run_logger().warning("%s", line)
    row = keep_calibration(calibration, found, place, flow_run.id)
    page = publish_calibration(found, row, place)
    if changed := changed_prompts(calibration, place):
        get_run_logger().warning("%s.", changed)
    message = in_words(calibration, found.tests)
    get_run_logger().info("%s. Report: %s", message, page)
    show_answer(calibration_answer(found, f"{message}.", place_of(page), place.path))
    if newer := newer_votes(calibration, place):
        get_run_logger().warning("%s.", newer)
        message = f"{message}. {newer}"
    return Completed(message=message)
