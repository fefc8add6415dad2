"""Report pages, from a run as it ends or from the warehouse."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from flows.publishing.evidence import EXAMPLES
from flows.publishing.served_files import reports_of
from flows.results.vote_summary import PROBED, alike_line, left_out_line
from flows.running.readiness import TOTAL_USD
from flows.running.run_row import is_calibration, why_without_results
from flows.studies import STUDIES, Study, with_prompts
from schemas.conclusions import Voters
from schemas.curation import PerturbedAnswers
from schemas.results import Estimates
from schemas.runs import Runs
from tasks.charts import charts_of
from tasks.counting import question_order
from tasks.curate import is_data_file
from tasks.drawing.render import picture
from tasks.inference import bootstrap, logistic, permutation
from tasks.kit.defaults import DEFAULTS, Thresholds
from tasks.prompts import is_known, prompt_of
from tasks.report import ReportFacts, SavedVotes, report
from tasks.results import CONCLUDED, Conclusions
from tasks.statistics import dasr_posterior
from tasks.validation.unknown_names import ALL_STUDIES, unknown
from warehouse.atomic_files import write_private
from warehouse.path_checks import studies_in
from warehouse.store import Warehouse

MOST_EXAMPLES, EXAMPLES_IN_ALL = 10, 400
"""Examples of a finding in a report, and of all findings, which keeps a large report readable."""
BY_PEOPLE = "select judge, choice from vote_log where study = ? and human"
COSTS = f"""
    select judge, prompt, sum(votes)::bigint as asked, {TOTAL_USD} as cost_usd
    from mart.cost where wave = ? and study = ? group by all
"""  # noqa: S608 - SQL of our own
"""What each judge cost in a wave, whichever run of the study asked it."""
NUMBERS = """
    select * from mart.numbers where study = ?
    order by statistic, perturbation, judge, subgroup, mode, dataset, prompt, wave
"""
MADE_BY = "select distinct run from estimates where study = ?"
AUDITED = """
    select flow, parameters from runs where study = ? and flow = 'audit'
    order by started_at desc limit 1
"""
STUDIES_WITH_RESULTS = """
    select study from estimates
    except select study from runs where flow = 'calibrate' order by study
"""
WITH_REPORTS = """
    select study from estimates
    union select study from runs where flow = 'calibrate' and state = 'completed' order by study
"""


def report_path(warehouse: Path, study: str) -> Path:
    """Return where a study's report is written: beside the warehouse."""
    return reports_of(warehouse) / f"{study}.html"


def facts_of(run: Mapping[str, Any], warehouse: Path) -> ReportFacts:
    """Return what a report says about a run, from its row in ``runs``."""
    study = study_of(run)
    return ReportFacts(
        study=study.name,
        dataset=study.dataset,
        mode=study.mode,
        votes_per_pair=study.votes_per_pair,
        seeds={
            # A file of votes has no seed of its own: what was perturbed, was perturbed elsewhere.
            **({} if run["flow"] == "measure" else {"study": study.seed}),
            "bootstrap": bootstrap.SEED,
            "bootstrap with refit": logistic.SEED,
            "permutation": permutation.SEED,
            "posterior": dasr_posterior.SEED,
            "order of questions in sequence": question_order.SEED,
        },
        run=run["run"],
        code_version=run["code_version"],
        when=f"{run['started_at']:%Y-%m-%dT%H:%M:%SZ}",
        warehouse=warehouse.name,
        asked=run["asked"] or 0,
        from_warehouse=run["from_warehouse"] or 0,
        failed=run["failed"] or 0,
        planned=run["planned"] or 0,
        gaps=run["error"] or "",
        tokens=(run["prompt_tokens"] or 0) + (run["completion_tokens"] or 0),
        cost_usd=run["cost_usd"],
        prompts={name: prompt_of(name).digest for name in study.prompts if is_known(name)},
        thresholds=thresholds_of(run),
        wave=study.wave,
        from_file=run["flow"] == "measure",
    )


def render_page(
    run: Mapping[str, Any],
    warehouse: Warehouse,
    concluded: Conclusions,
    voters: DataFrame[Voters],
    *,
    perturbed: DataFrame[PerturbedAnswers],
    saved: Callable[[], object] = lambda: None,
    render: Callable[..., str] = report,
) -> str:
    """Render the report of a run, given its row in ``runs`` and its results.

    ``saved`` returns when the results are in the warehouse, which is read then.
    """
    facts = facts_of(run, warehouse.path)._replace(persons=frozenset(voters["judge"]))
    cells = concluded.findings.filter(pl.col("perturbation").is_not_null()).height
    most = max(1, min(MOST_EXAMPLES, EXAMPLES_IN_ALL // max(cells, 1)))

    def read() -> SavedVotes:
        saved()
        votes = saved_votes(warehouse, study_of(run), facts.wave, most)
        # A file of votes does not say why a person's vote is invalid, nor what votes cost.
        return votes._replace(people="", costs=None) if facts.from_file else votes

    return render(facts, concluded, perturbed, read)


def saved_votes(warehouse: Warehouse, study: Study, wave: str, most: int) -> SavedVotes:
    """Return what a report states about the saved votes, from one visit of the warehouse.

    Each cell has up to ``most`` examples.
    """
    probed, by_people, numbers, costs, shown = warehouse.query_all(
        (PROBED, {"study": study.name}),
        *((query, [study.name]) for query in (BY_PEOPLE, NUMBERS)),
        (COSTS, [wave, study.name]),
        (EXAMPLES, {"study": study.name, "wave": wave, "most": most}),
    )
    lines = (left_out_line(by_people, study), alike_line(probed.rows()))
    people, alike = (f"{line}." if line else "" for line in lines)
    return SavedVotes(people, alike, numbers, costs, shown)


def thresholds_of(run: Mapping[str, Any]) -> Thresholds:
    """Return the limits that the results of a run were concluded by."""
    # Names in a file of votes need not be known here; it is measured with the defaults.
    return DEFAULTS if run["flow"] == "measure" else study_of(run).thresholds


def study_of(run: Mapping[str, Any]) -> Study:
    """Return the study of a run; of votes from a file no name in it need be known here."""
    if run["flow"] == "measure":
        return Study.model_construct(**with_prompts(json.loads(run["parameters"])))
    return Study.stored(run["parameters"])


def saved_study(name: str, path: Path) -> Study | None:
    """Return a study that an audit saved under a name of its own (``--name``), if there is one.

    Its settings are those of its results; where its audits left none, those of the last one, which
    the same command continues.
    """
    if name in STUDIES or name not in studies_in(path):
        return None
    warehouse = Warehouse(path)
    audits = warehouse.query(AUDITED, [name])
    if warehouse.query(MADE_BY, [name]).is_empty() and not audits.is_empty():
        return study_of(audits.row(0, named=True))
    run = run_of_results(warehouse, name)
    return None if run["flow"] == "measure" else study_of(run)


def require_data(study: Study, saved: Study | None, warehouse: Path, command: str) -> None:
    """Require the data file of a saved study, whose path may be relative to another folder.

    Raise ValueError if the path of the audit leads to no file from here.
    """
    file = Path(study.dataset)
    is_own = saved is not None and is_data_file(study.dataset) and study.dataset == saved.dataset
    if not is_own or file.is_absolute() or file.expanduser().exists():
        return
    beside = warehouse.absolute().parent / file
    known = quote(str(beside.resolve())) if beside.is_file() else "PATH"
    found = f" The folder of the warehouse leads to {beside.resolve()}." if known != "PATH" else ""
    raise ValueError(
        f"study {study.name!r} was audited with the data file {study.dataset!r:.200}. This path is "
        f"relative to the folder in which the audit ran, and leads to no file from {Path.cwd()}."
        f"{found} Run the command in the folder of the audit, or name the file: `voirdire "
        f"{command} {quote(study.name)} --dataset {known}`."
    )


def run_of_results(
    warehouse: Warehouse, study: str, *, calibrations: bool = False
) -> dict[str, Any]:
    """Return the row of the run that made a study's results.

    ``calibrations`` says whether the command also takes calibrations, so that an error names them.
    Raise LookupError if no run of the study has left results, ValueError for a calibration.
    """
    made_by = warehouse.query(MADE_BY, [study])["run"].to_list()
    every = warehouse.read(Runs, among=pl.DataFrame({"study": [study]}))
    if is_calibration(study, warehouse):
        raise ValueError(
            f"{study!r} is a calibration: it compares labels of judges and people, and has no "
            "gates, costs or settings of a study. Name a study that `voirdire audit` or `voirdire "
            f"measure` saved, see the results with `voirdire report {quote(study)}`, or measure "
            "again with `voirdire calibrate FILE`."
        )
    runs = every.filter(pl.col("run").is_in(made_by))
    if runs.is_empty():
        if why := why_without_results(study, warehouse):
            raise LookupError(why)
        rows = warehouse.query(WITH_REPORTS if calibrations else STUDIES_WITH_RESULTS)
        known = rows["study"].to_list()
        step = "`voirdire list studies` shows the studies to run."
        raise unknown("results of study", study, known, ALL_STUDIES, step=step)
    return runs.sort("started_at").row(-1, named=True)


class Stored(NamedTuple):
    """The report of saved results, and the frames that its charts show."""

    page: str
    drawn: Mapping[str, pl.DataFrame]


def stored_page(warehouse: Warehouse, study: str) -> Stored:
    """Write the report of a study from the run that made its results.

    Raise LookupError if no run of the study has left results.
    """
    run = run_of_results(warehouse, study, calibrations=True)
    frames: list[Any] = warehouse.read_all(
        [Voters, *CONCLUDED], among=pl.DataFrame({"study": [study]})
    )
    voters, concluded = frames[0], Conclusions(*frames[1:])
    perturbed = _perturbed(warehouse, study_of(run), concluded.estimates)
    page = render_page(run, warehouse, concluded, voters, perturbed=perturbed)
    return Stored(page, concluded.in_mode(study_of(run).mode).drawn())


def write_pictures(frames: Mapping[str, pl.DataFrame], folder: Path) -> list[Path]:
    """Write each panel of each chart of these frames as SVG and as PNG; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for chart in charts_of(*frames):
        drawn = [picture(spec) for spec in chart(**frames)]
        for number, panel in enumerate(drawn, 1):
            many = f"_{number}" if len(drawn) > 1 else ""
            for suffix, content in panel.items():
                file = folder / f"{chart.name}{many}.{suffix}"
                write_private(file, content)
                written.append(file)
    return written


def _perturbed(
    warehouse: Warehouse, study: Study, estimates: DataFrame[Estimates]
) -> DataFrame[PerturbedAnswers]:
    """Read the perturbed answers of the study's perturbations, seed and dataset."""
    datasets = estimates["dataset"].unique().implode()
    rows = warehouse.read(
        PerturbedAnswers,
        among=pl.DataFrame(
            {"perturbation": study.asked(), "seed": [study.seed] * len(study.asked())},
            schema={"perturbation": pl.String, "seed": pl.Int64},
        ),
    )
    return PerturbedAnswers.of(
        rows.filter(pl.col("question_id").str.split("/").list.first().is_in(datasets))
    )
