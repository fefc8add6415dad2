"""Save the votes and results of a file of votes as a study."""

from pathlib import Path
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame
from pydantic import ValidationError

from flows.results.study_results import StudyResults
from flows.running.run_row import is_taken, row_without_calls, save_completed
from flows.studies import Study
from schemas.judging import VoteLog
from schemas.keys import content_key, file_digest
from tasks.kit.code_digest import code_digest
from tasks.readers.bounded import without_gz
from warehouse.path_checks import require_folder
from warehouse.store import Saving, Warehouse


def require_free(votes: Path, warehouse: Path) -> None:
    """Refuse a file whose name is not a valid study name, or already names an audit.

    Raise ValueError before anything is saved.
    """
    require_folder(warehouse)
    name = without_gz(votes).stem
    try:
        Study(name=name)
    except ValidationError as error:
        raise ValueError(
            f"{votes.name}: the study gets the name of the file, and {name!r} is not a valid "
            "name. A name has 1 to 64 letters, digits, '_', '.' and '-'. Rename the file."
        ) from error
    if is_taken(name, Warehouse(warehouse), "measure"):
        raise ValueError(
            f"{votes.name}: {warehouse} already has another study named {name!r}, whose "
            "results would be replaced. Rename the file, or name another --warehouse."
        )


def save_file(
    votes: Path, mode: str, log: DataFrame[VoteLog], found: StudyResults, warehouse: Path
) -> str:
    """Save a file's votes and results in one transaction; return the study's name."""
    study, place = _study(without_gz(votes).stem, mode, log), Warehouse(warehouse)
    digest = content_key(file_digest(votes), mode, code_digest())
    cast = log["choice"].count()
    row = row_without_calls(
        "measure", study, fingerprint=digest, planned=log.height, from_warehouse=cast
    )
    place.start_run(row)
    save_completed(row, place, [Saving(VoteLog, log), *(Saving(*each) for each in found.tables())])
    return study.name


def _study(name: str, mode: str, log: DataFrame[VoteLog]) -> Study:
    """Describe a file as a study, without validation: its judges need not be in the catalogue."""
    planned = log.filter(pl.col("arm").cast(pl.String) != "reworded")
    each: dict[str, Any] = {
        column: planned[column].drop_nulls().unique().sort().to_list()
        for column in ("dataset", "perturbation", "judge", "prompt")
    }
    pair = ("dataset", "judge", "prompt", "wave", "sample", "arm", "perturbation")
    sizes = log.group_by(pair).agg(asked=pl.col("stopped").is_null().sum())["asked"]
    described: dict[str, Any] = {
        "name": name,
        "mode": mode,
        "dataset": ", ".join(each["dataset"]),
        "judges": each["judge"],
        "perturbations": each["perturbation"],
        "prompts": each["prompt"],
        "votes_per_pair": sizes.mode().max(),
    }
    return Study.model_construct(**described)
