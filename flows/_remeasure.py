"""A study's estimates from its saved votes, anew: no judge is asked."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import polars as pl
from pandera.typing.polars import DataFrame

from flows._drift import drift_of
from flows._row import NOTHING_ASKED, first_row
from flows.studies import Study
from schemas.judging import Tallies
from schemas.results import Drifts, Estimates, Findings
from tasks._masks import count_masks
from tasks.aggregate import contests_of, measure_all, shifts_of, verdicts_of
from tasks.annotate import annotate
from tasks.conclude import conclude, endpoints
from tasks.statistics._bootstrap import formulas_only
from warehouse.peek import default_path
from warehouse.store import Saving, Warehouse

NAMES = ("dataset", "judge", "prompt", "wave", "sample", "perturbation", "cluster")
VERDICTS = ("anchor", "tie", "target")
WORDS = ("arm", "kind", "label", "anchor_author", "target_author")
LAST = "select * from runs where study = ? and flow = 'audit' order by started_at desc limit 1"
MODE = "select distinct mode from verdicts where study = ?"


def measure_anew(
    study: str, path: Path | str | None, *, formulas: bool, run: str | None = None
) -> str:
    """Replace a study's estimates, findings and drifts by this version's; return what was done."""
    place = Path(path or default_path())
    if not place.is_file():
        raise ValueError(f"there is no warehouse at {place}. Run `voirdire audit {study}` first.")
    warehouse = Warehouse(place)
    modes = warehouse.query(MODE, [study])["mode"].to_list()
    if not modes:
        known = warehouse.query("select distinct study from vote_log order by study")["study"]
        there = ", ".join(known) or "none"
        raise ValueError(
            f"there are no votes of a study {study!r} in {place}. Its studies are: {there}."
        )
    row = _run_row(warehouse, study, run or str(uuid4()))
    tallies = _tallies(warehouse, study)
    with formulas_only() if formulas else nullcontext():
        estimates = measure_all(**_frames(tallies, modes[0]))
    findings = conclude(endpoints(estimates))
    drifts = drift_of(Study.model_validate_json(row["parameters"]), warehouse)
    warehouse.start_run(row)
    warehouse.save(
        [Saving(Estimates, estimates), Saving(Findings, findings), Saving(Drifts, drifts)],
        run=row["run"], study=study, counts={"ended_at": datetime.now(UTC), "state": "completed"},
    )  # fmt: skip
    return (
        f"{tallies['voted'].sum()} votes of {study}: {estimates.height} estimates and "
        f"{findings.height} findings saved anew. The report: `voirdire report {study}`."
    )


def _tallies(warehouse: Warehouse, study: str) -> DataFrame[Tallies]:
    """Count the votes; names are numbers from here on, as there may be millions of rows."""
    masks = warehouse.masks(study)
    coded = masks.with_columns(pl.col(*NAMES, *WORDS).cast(pl.Categorical))
    names = (coded[name].unique().cast(pl.String).drop_nulls().sort() for name in NAMES)
    ordered = [pl.col(name).cast(pl.Enum(each)) for name, each in zip(NAMES, names, strict=True)]
    return cast("DataFrame[Tallies]", count_masks(coded.with_columns(ordered)))


def _frames(tallies: DataFrame[Tallies], mode: str) -> dict[str, pl.DataFrame]:
    """Return what the statistics read; unchecked, as all of it follows from checked votes."""
    with ThreadPoolExecutor(2) as pool:
        contests, annotations = pool.submit(contests_of, tallies), pool.submit(annotate, tallies)
        verdicts = verdicts_of(tallies, mode).with_columns(
            pl.col("verdict").cast(pl.Enum(VERDICTS))
        )
        shifts = shifts_of(verdicts)
    return {
        "tallies": tallies,
        "shifts": shifts,
        "contests": contests.result(),
        "annotations": annotations.result(),
    }


def _run_row(warehouse: Warehouse, name: str, run: str) -> dict[str, Any]:
    """Return the row of this run: the study is that of its last audit."""
    found = warehouse.query(LAST, [name]).to_dicts()
    if not found:
        raise ValueError(
            f"study {name!r} was measured from a file, not asked. "
            f"Run `voirdire measure VOTES --warehouse {warehouse.path}` on that file again."
        )
    (last,) = found
    study = Study.model_validate_json(last["parameters"])
    began = datetime.now(UTC)
    return {
        **first_row("remeasure", run, study, began, last["fingerprint"]),
        **NOTHING_ASKED, "state": "running", "planned": last["planned"],
        "from_warehouse": (last["from_warehouse"] or 0) + (last["asked"] or 0),
    }  # fmt: skip
