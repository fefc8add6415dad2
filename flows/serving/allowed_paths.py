"""Files that a run from the Prefect UI may name: those inside the served folders.

Whoever fills in a form is not who serves it. A run on the command line has no deployment, and its
user may name any file of his own; no parameter says which of the two a run is.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from prefect.context import FlowRunContext
from prefect.runtime import deployment

from flows.running.run_row import first_row, record_failure
from flows.studies import STUDIES, Study
from schemas.keys import content_key
from tasks.datasets import DATASETS
from tasks.kit import home
from warehouse.peek import default_path
from warehouse.store import Warehouse

if TYPE_CHECKING:
    from flows.results.calibration import Calibration

DATA = "datasets"
"""Folder, in the user's own, of the files that forms may name."""


def is_from_form() -> bool:
    """Tell whether this flow run was made from a deployment, so perhaps by a form."""
    context = FlowRunContext.get()
    if context and (run := context.flow_run) and not (run.deployment_id or run.parent_task_run_id):
        # Prefect's runtime would ask the server for the same.
        return False
    return deployment.id is not None


def admit(study: Study, warehouse: str | None, run: str) -> tuple[Study, str | None]:
    """Return an audit's study and warehouse as a form may name them; a refusal leaves a row.

    It is in the warehouse that the form names, or in the served one if that is what is refused.

    Raises
    ------
    ValueError
        If a file lies elsewhere. Nothing is said of what is there.
    """
    began, place = datetime.now(UTC), None
    try:
        place = allowed_warehouse(warehouse)
        return allowed_study(study), place
    except ValueError as error:
        # The study's own fingerprint would read the file.
        fingerprint = content_key("refused", study.model_dump_json())
        row = first_row("audit", run, study, began, fingerprint)
        record_failure(row, Warehouse(place), error)
        raise


def allowed_warehouse(given: str | None) -> str | None:
    """Return the warehouse of a run; a form may name one beside that which is served.

    Raises
    ------
    ValueError
        If it lies elsewhere. Nothing is said of what is there.
    """
    return served_warehouse(given) if is_from_form() else given


def served_warehouse(given: str | None) -> str | None:
    """Return the warehouse that a form means; null is the served one.

    Raises
    ------
    ValueError
        If it lies outside the folder of the served one.
    """
    if given is None:
        return None
    served = default_path()
    name = given if given.endswith(".duckdb") else f"{given}.duckdb"
    named = given if not given.strip("./") or given in {str(served), served.name} else name
    place = _inside(named, [served.parent])
    if place is None:
        raise ValueError(
            "warehouse must be a name, or a path inside the folder of the warehouse that is "
            f"served, such as {served.name}. Only `voirdire audit --warehouse` takes any other."
        )
    return str(place)


def allowed_study(study: Study) -> Study:
    """Return a study whose files a form may name: a bundled dataset, or one of the own folder.

    Raises
    ------
    ValueError
        If a file or folder lies elsewhere. Nothing is said of what is there.
    """
    if not is_from_form():
        return study
    ours = [file.study for file in STUDIES.values()]
    changes: dict[str, str] = {}
    if study.dataset not in {*DATASETS, *(one.dataset for one in ours)}:
        changes["dataset"] = _data_file("dataset", study.dataset)
    if study.folder is not None and study.folder not in {one.folder for one in ours}:
        changes["folder"] = _data_file("folder", study.folder)
    return study.model_copy(update=changes)


def allowed_calibration(calibration: "Calibration") -> "Calibration":
    """Return a calibration whose files of labels a form may name.

    Raises
    ------
    ValueError
        If one lies elsewhere. Nothing is said of what is there.
    """
    if not is_from_form():
        return calibration
    named = {"humans": calibration.humans, "judges": calibration.judges}
    changes = {name: _data_file(name, file) for name, file in named.items() if file is not None}
    return calibration.model_copy(update=changes)


def _data_file(what: str, given: str) -> str:
    place = _inside(given, [home.home() / DATA])
    if place is None:
        known = f" or one of {', '.join(DATASETS)}" if what == "dataset" else ""
        raise ValueError(
            f"{what} must be a path inside the folder {DATA} of VOIRDIRE_HOME (else of "
            f"./{home.DEFAULT}){known}. Only the command line takes any other."
        )
    return str(place)


def _inside(given: str, folders: list[Path]) -> Path | None:
    """Return the place that is meant if it lies in one of the folders, wherever links lead."""
    if not given.strip("./") or not given.isprintable() or ".." in Path(given).parts:
        return None
    for folder in folders:
        try:
            root = folder.resolve()
            place = (root / given).resolve()
        except (OSError, RuntimeError, ValueError):
            # A loop of links, or a name that no file can have.
            return None
        if place != root and place.is_relative_to(root):
            return place
    return None
