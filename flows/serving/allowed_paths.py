"""Files that a run from the Prefect UI may name: those inside the served folders.

The person who fills in a form may not be the one who serves it. A run on the command line has no
deployment, and may name any file; no parameter can pretend that a run is of this kind.
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
from tasks.kit import user_folder
from warehouse.path_checks import default_path
from warehouse.store import Warehouse

if TYPE_CHECKING:
    from flows.studies.calibration import Calibration

DATA = "datasets"
"""Subfolder of VOIRDIRE_HOME with the files that forms may name."""


def is_from_form() -> bool:
    """Tell whether this flow run comes from a deployment, so perhaps from a form."""
    context = FlowRunContext.get()
    if context and (run := context.flow_run) and not (run.deployment_id or run.parent_task_run_id):
        # Prefect's runtime would send a request to the server to find the same.
        return False
    return deployment.id is not None


def admit(study: Study, warehouse: str | None, run: str) -> tuple[Study, str | None]:
    """Return an audit's study and warehouse with checked paths.

    A refused run is recorded in the warehouse that the form names, or, if that is refused, in the
    served one.

    Raise ValueError if a file is outside the served folders. The error does not tell whether it
    exists.
    """
    began, place = datetime.now(UTC), None
    try:
        place = allowed_warehouse(warehouse)
        return allowed_study(study), place
    except ValueError as error:
        # Computing the study's own fingerprint would read the file.
        fingerprint = content_key("refused", study.model_dump_json())
        row = first_row("audit", run, study, began, fingerprint)
        record_failure(row, Warehouse(place), error)
        raise


def allowed_warehouse(given: str | None) -> str | None:
    """Return the warehouse of a run; a form may name one in the folder of the served warehouse.

    Raise ValueError if it is elsewhere. The error does not tell whether it exists.
    """
    return served_warehouse(given) if is_from_form() else given


def served_warehouse(given: str | None) -> str | None:
    """Return the warehouse that a form names; null means the served one.

    Raise ValueError if it is outside the folder of the served one.
    """
    if given is None:
        return None
    served = default_path()
    name = given if given.endswith(".duckdb") else f"{given}.duckdb"
    named = given if not given.strip("./") or given in {str(served), served.name} else name
    place = _inside(named, [served.parent])
    if place is None:
        raise ValueError(
            "warehouse must be a name, or a path inside the folder of the served warehouse, such "
            f"as {served.name}. Only `voirdire audit --warehouse` takes any other path."
        )
    return str(place)


def allowed_study(study: Study) -> Study:
    """Return a study with checked paths: a bundled dataset, or files in the user's own folder.

    Raise ValueError if a file or folder is elsewhere. The error does not tell whether it exists.
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
    """Return a calibration with checked paths of its label files.

    Raise ValueError if one is elsewhere. The error does not tell whether it exists.
    """
    if not is_from_form():
        return calibration
    named = {name: getattr(calibration, name) for name in ("humans", "judges", "table", "items")}
    changes = {name: _data_file(name, file) for name, file in named.items() if file is not None}
    return calibration.model_copy(update=changes)


def _data_file(what: str, given: str) -> str:
    place = _inside(given, [user_folder.home() / DATA])
    if place is None:
        known = f" or one of {', '.join(DATASETS)}" if what == "dataset" else ""
        raise ValueError(
            f"{what} must be a path inside the folder {DATA} of VOIRDIRE_HOME (default: "
            f"./{user_folder.DEFAULT}){known}. Only the command line takes any other path."
        )
    return str(place)


def _inside(given: str, folders: list[Path]) -> Path | None:
    """Resolve a path, with its links; return it if it is inside one of the folders."""
    if not given.strip("./") or not given.isprintable() or ".." in Path(given).parts:
        return None
    for folder in folders:
        try:
            root = folder.resolve()
            place = (root / given).resolve()
        except (OSError, RuntimeError, ValueError):
            # A loop of links, or an impossible file name.
            return None
        if place != root and place.is_relative_to(root):
            return place
    return None
