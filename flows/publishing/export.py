"""Export tables and marts of the warehouse to files."""

import tempfile
from pathlib import Path

import click

from schemas.frame import Result
from schemas.runs import Runs
from tasks.kit.printable import thousands
from tasks.validation.unknown_names import ALL_STUDIES, unknown
from warehouse.atomic_files import naming
from warehouse.descriptions import FRAMES, marts
from warehouse.file_export import Copy
from warehouse.path_checks import existing_path
from warehouse.store import Warehouse, WarehouseError

OF_STUDY = "study = getvariable('study')"
LOG = f"""
    select judge, prompt, perturbation, cluster from vote_log where {OF_STUDY}
    union all select judge, prompt, perturbation, cluster from ratings where {OF_STUDY}
"""
"""Votes on pairs and ratings of single answers."""

REPLIES = f"select ballot_id, pair_id from mart.transcript where {OF_STUDY}"
IN_WAVES = f"""
    select ballot_id, pair_id from ballots
    semi join (from study_pairs where {OF_STUDY}) using (pair_id)
    semi join ({LOG}) using (judge, prompt)
    where wave <> ''
"""
"""Results describe the last wave, but drift is measured against earlier ones."""
ASKED = f"from ballots semi join ({REPLIES} union {IN_WAVES}) using (ballot_id, pair_id)"

FACTS = {
    "ballots": ASKED,
    "votes": f"from votes semi join ({ASKED}) using (ballot_id)",
    "pairs": f"from pairs semi join ({REPLIES}) using (pair_id)",
    "judges": f"from judges semi join ({LOG}) using (judge)",
    "prompts": f"from prompts semi join ({LOG}) using (prompt)",
    "perturbations": f"from perturbations semi join ({LOG}) using (perturbation)",
    **{
        name: f"from {name} where question_id in (select cluster from ({LOG}))"
        for name in ("questions", "answers", "perturbed_answers")
    },
}
"""Facts belong to no study; these are the facts behind the votes of one."""

TRANSIENT = "claims"


def export(study: str | None, folder: Path, form: str, warehouse: Path | None) -> None:
    """Write all tables and marts, or one study's rows of them, into a new folder.

    Raise ValueError if the folder is not empty, LookupError if the warehouse has no such study.
    """
    path = existing_path(warehouse)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "not empty" if folder.is_dir() else "no folder"
        raise ValueError(f"{folder} is {what}. Name a new folder for --output.")
    store = Warehouse(path)
    if study is not None:
        known = store.query("select distinct study from runs order by study")["study"].to_list()
        if study not in known:
            raise unknown("study", study, known, ALL_STUDIES, where=f"in {path}")
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    parent = folder.absolute().parent
    with naming(folder), tempfile.TemporaryDirectory(dir=parent, prefix=".export.") as place:
        draft = Path(place) / "files"
        draft.mkdir(mode=0o700)
        try:
            rows = store.copy(_copies(study), draft, form, study)
        except WarehouseError as error:
            raise WarehouseError(str(error).replace(str(draft), str(folder))) from error
        draft.replace(folder.absolute())
    for name, number in rows.items():
        unit = "row " if number == 1 else "rows"
        click.echo(f"{thousands(number):>10} {unit}  {folder / f'{name}.{form}'}")


def _copies(study: str | None) -> list[Copy]:
    if study is None:
        tables = [frame.place().table for frame in FRAMES]
        copies = [Copy(name, f"from {name}") for name in tables if name != TRANSIENT]
        return copies + [Copy(f"mart.{name}", f"from mart.{name}") for name in marts()]
    results = [f.place().table for f in FRAMES if issubclass(f, Result) or f is Runs]
    return [
        *(Copy(name, sql) for name, sql in FACTS.items()),
        *(Copy(name, f"from {name} where {OF_STUDY}") for name in results),
        *(Copy(f"mart.{name}", f"from mart.{name}", of_study=True) for name in marts()),
    ]
