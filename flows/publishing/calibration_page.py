"""The page of a calibration, and its charts as files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from flows.publishing.pages import Stored, report_path
from flows.publishing.report_files import write_report_file
from flows.results.calibration import Calibrated
from flows.studies.calibration import Calibration
from schemas.calibration import Advantages, AltTests, ConfusionMatrix, Disagreements, HumanAgreement
from schemas.results import Annotations, Estimates
from schemas.runs import Runs
from tasks.agreement.compare import ComparisonWithPeople
from tasks.calibration.rated_labels import PEOPLE
from tasks.kit.defaults import CalibrationThresholds, calibrated_by
from tasks.reporting.calibration_report import CalibrationFacts, calibration_report
from warehouse.store import Warehouse

FRAMES = (AltTests, Advantages, Annotations, Estimates)
COMPARED = (HumanAgreement, ConfusionMatrix, Disagreements)


def publish_calibration(found: Calibrated, row: Mapping[str, Any], warehouse: Warehouse) -> Path:
    """Write the report of a calibration next to the warehouse."""
    calibration = Calibration.stored(row["parameters"])
    path = report_path(warehouse.path, calibration.name)
    write_report_file(path, _page(calibration, found, row, warehouse))
    return path


def stored_calibration(warehouse: Warehouse, name: str) -> Stored | None:
    """Return the report of a saved calibration; None if no calibration has this name."""
    among = pl.DataFrame({"study": [name]})
    runs = warehouse.read(Runs, among=among).sort("started_at")
    if runs.is_empty() or runs["flow"][-1] != "calibrate":
        return None
    row = runs.row(-1, named=True)
    frames: list[Any] = warehouse.read_all((*FRAMES, *COMPARED), among=among)
    tests, advantages, annotations, agreement, *compared = frames
    several = tests.n_unique(["metric", "epsilon_kind"]) > 1
    comparison = ComparisonWithPeople(*compared)
    parameters = json.loads(row["parameters"])
    thresholds = CalibrationThresholds(**parameters.pop("thresholds", {}))
    calibration = Calibration.model_construct(**parameters, thresholds=thresholds)
    own = {"metric": calibration.metric, "epsilon_kind": calibration.epsilon_kind}
    found = Calibrated(
        tests.filter(**own),
        advantages.filter(**own),
        annotations,
        agreement,
        comparison,
        tests if several else AltTests.empty(),
        advantages if several else Advantages.empty(),
    )
    return Stored(_page(calibration, found, row, warehouse), found.drawn())


def _page(
    calibration: Calibration, found: Calibrated, row: Mapping[str, Any], warehouse: Warehouse
) -> str:
    own = calibration.table
    votes = Path(own).name if own else f"votes of study {calibration.study}"
    people, judges = (
        Path(file).name if file else votes for file in (calibration.humans, calibration.judges)
    )
    if people == votes and {*found.annotations.filter("human")["annotator"]} == {PEOPLE}:
        people = f"a column of the data of study {calibration.study}"
    facts = CalibrationFacts(
        name=calibration.name,
        people=people,
        judges=judges,
        run=row["run"],
        code_version=row["code_version"],
        when=f"{row['started_at']:%Y-%m-%dT%H:%M:%SZ}",
        warehouse=warehouse.path.name,
        least=calibration.min_instances,
    )
    with calibrated_by(calibration.thresholds, calibration.interval):
        return calibration_report(
            facts,
            found.tests,
            found.advantages,
            found.agreement,
            found.comparison,
            metric_tests=found.metric_tests,
        )
