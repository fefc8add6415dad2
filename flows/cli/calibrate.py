"""`voirdire calibrate`: run a calibration without a server and print its results."""

from pathlib import Path
from typing import Any

from flows.cli.printing.calibration_tables import as_objects, as_rows, show_table
from flows.cli.printing.live import View
from flows.cli.printing.terminal import echo_data, echo_json
from flows.labels.sources import changed_prompts, label_source, newer_votes, sources_of
from flows.results.calibration import (
    Calibrated,
    calibrate_sources,
    in_words,
    keep_calibration,
    nothing_to_correct,
    require_free,
)
from flows.studies.calibration import Calibration, make_calibration
from tasks.kit.command_line import given_options, say
from tasks.logs.labels import log_or_votes
from tasks.logs.log_description import recognised_lines
from tasks.progress import current_status, step
from tasks.readers.label_table import is_label_table
from tasks.readers.labels import read_labels
from tasks.readers.votes import LOGS, NO_FORMAT
from tasks.reporting.calibration_answer import label_warnings
from warehouse.store import Warehouse


def show_calibration(
    source: str | None,
    humans: Path | None,
    judges: Path | None,
    form: str,
    *,
    items: Path | None = None,
    curve: bool,
    plan: bool,
    name: str | None = None,
    people: str | None = None,
    mapping: dict[str, str],
    warehouse: Path | None = None,
    pictures: Path | None = None,
    save: bool = True,
    view: View,
    **options: Any,
) -> None:
    """Print how well judges agree with people, or plan how many instances the test needs."""
    place = Warehouse(warehouse)
    files = (humans, judges)
    log = Path(source) if source and _is_in_log(source, files, people, mapping, place) else None
    joined = log if any(files) else None
    if log:
        humans, judges = files if joined else (log, log)
        source = None
    else:
        _refuse_options_of_logs(people, mapping, source, files)
    calibration = make_calibration(
        name=name or ("unsaved" if not save or plan else None),
        humans=humans and str(humans.resolve()),
        judges=judges and str(judges.resolve()),
        log=joined and str(joined.resolve()),
        items=items and str(items.resolve()),
        mapping=mapping,
        people=people,
        called=given_options(),
        **_source(source, (humans, judges), items, options, log=log),
    )
    if plan:
        from flows.cli.plan import show_label_plan

        labels = (
            read_labels(humans) if humans else sources_of(calibration, place).for_test[0].humans
        )
        terms = calibration.terms()
        view.close()
        show_label_plan(labels, terms, form, label_source(calibration))
        return
    step("reading labels")
    # What is wrong with the labels comes before a name that is taken.
    sources = sources_of(calibration, place)
    if save:
        require_free(calibration, place, name_given=bool(name))
    found = calibrate_sources(calibration, sources)
    for line in label_warnings(found.comparison):
        current_status().tell(line)
    for line in filter(
        None, (newer_votes(calibration, place), changed_prompts(calibration, place))
    ):
        current_status().tell(f"{line}.")
    if calibration.random_labels and (why := nothing_to_correct(found)):
        current_status().tell(f"--random-labels: nothing to correct: {why}.")
    # Whatever takes long comes before the first line of the results.
    places = _keep(calibration, found, place) if save else []
    if pictures:
        from flows.publishing.pages import write_pictures

        step("drawing")
        places.append(f"{len(write_pictures(found.drawn(), pictures))} pictures in {pictures}.")
    view.close()
    if form == "json":
        echo_json(as_objects(found, curve=curve))
    elif form == "csv":
        echo_data(as_rows(found, curve=curve).write_csv())
    else:
        show_table(calibration, found, curve=curve, saved=save)
    for line in places:
        say(line, err=True)


def _is_in_log(
    source: str,
    files: tuple[Path | None, Path | None],
    people: str | None,
    mapping: dict[str, str],
    place: Warehouse,
) -> bool:
    """Tell whether a log has the labels, and say what was recognised.

    A name without a suffix or a folder is a study's, if the warehouse has it, else a file's or
    folder's.
    """
    path = Path(source)
    if all(files) or not path.exists():
        return False
    may_be_study = place.path.is_file() and not _looks_like_path(source)
    if may_be_study and not place.query(AUDITED, [source]).is_empty():
        return False
    log = log_or_votes(path, people, mapping)
    if log is None:
        if path.suffix.lower() in LOGS and not any(files):
            raise ValueError(f"{path.name}: {NO_FORMAT}.")
        if path.is_file() and not any(files) and not is_label_table(source):
            raise ValueError(
                f"{path.name} is a file of no known kind. A table with a row per item is .csv, "
                ".jsonl or .parquet; a log of another tool also .json or .eval. Save it as one of "
                "them."
            )
        return False
    lines = recognised_lines(log) if log.titles else []
    # A file of the other side may hold what this log lacks.
    for line in lines[:1] if any(files) else lines:
        current_status().tell(line)
    return True


def _refuse_options_of_logs(
    people: str | None,
    mapping: dict[str, str],
    source: str | None,
    files: tuple[Path | None, Path | None],
) -> None:
    if mapping:
        why = (
            "--humans and --judges name the labels of both sides already. Leave --map out, or one "
            "of them"
            if all(files)
            else "no FILE is given. Name one"
            if source is None
            else f"{source!r:.80} is a study in the warehouse. Name a FILE, or leave --map out"
            if Path(source).exists()
            else f"there is no file {source!r:.80}. Name a file that exists"
        )
        raise ValueError(f"--map says what the columns of one FILE are, and {why}.")
    if people:
        raise ValueError(
            f"--people {people!r:.80} chooses among the people of a log, and no log is given. "
            "Leave it out; --human names the columns of people in a table."
        )


def _source(
    source: str | None,
    files: tuple[Path | None, Path | None],
    items: Path | None,
    options: dict[str, Any],
    *,
    log: Path | None,
) -> dict[str, Any]:
    """Return the parameters of a calibration that say where labels are and how they are read."""
    low, high = options.pop("scale") or (None, None)
    given = {
        "scale_low": low,
        "scale_high": high,
        **{k: list(v) if isinstance(v, tuple) else v for k, v in options.items()},
    }
    if items and not log and (source or not all(files)):
        raise ValueError(
            f"--items {items} describes the items of two files of labels. Give both --humans and "
            "--judges, or leave --items out: FILE and STUDY have texts of their own."
        )
    if source is None or not is_label_table(source):
        there = OF_ITEMS if items else OF_STUDY if source or log else ()
        if used := [name for name in TABLE_ONLY if options[name] and name not in there]:
            value = options[used[0]]
            column = value if isinstance(value, str) else value[0]
            if log:
                raise ValueError(
                    f"{TABLE_ONLY[used[0]]} {column!r:.60} names a column of a table with a row "
                    f"per item, and {log.name} is read as a log. --map says which field of a log "
                    "of your own holds what."
                )
            if source:
                raise ValueError(
                    f"{TABLE_ONLY[used[0]]} {column!r:.60} names a column of FILE, and "
                    f"{source!r:.80} is read as a study, whose judges are all compared. Leave "
                    "it out; --format json has an object for each judge."
                )
            raise ValueError(
                f"{TABLE_ONLY[used[0]]} {column!r:.60} names a column of FILE, but no FILE is "
                "given. Give a .csv, .jsonl or .parquet file with one row per item"
                + (", or give one for the two files of labels with --items." if all(files) else ".")
            )
        return given | {"study": source}
    if file := files[0] or files[1]:
        option, column = ("--humans", "label") if files[0] else ("--judges", "human_label")
        raise ValueError(
            f"labels are given twice: {source} is read as a table with columns of judges and of "
            f"people, and {option} names {file}. Leave {option} out; or, if {source} has one side "
            f"only, say where, as in `--map item=ID --map {column}=L`."
        )
    return given | {"table": str(Path(source).resolve())}


TABLE_ONLY = {
    "judge_columns": "--judge",
    "human_columns": "--human",
    "slice_columns": "--slice",
    "criterion_column": "--criterion",
    "item_column": "--item",
    "cluster_column": "--cluster",
}
AUDITED = "select run from runs where study = ? and flow <> 'calibrate' limit 1"
AGREEMENT_IS = "Agreement with people is"
OF_ITEMS = ("slice_columns", "item_column", "cluster_column")
OF_STUDY = ("slice_columns",)
"""Those of them that a file of items, or a study or log, has too."""


def _keep(calibration: Calibration, found: Calibrated, place: Warehouse) -> list[str]:
    """Save the results and write the report; say where they are."""
    from flows.publishing.calibration_page import publish_calibration

    row = keep_calibration(calibration, found, place)
    page = publish_calibration(found, row, place)
    tested = not found.tests.filter("asked").is_empty()
    verdict = f"{in_words(calibration, found.tests)}. The results are" if tested else AGREEMENT_IS
    return [f"{verdict} saved under the name {calibration.name!r} in {place.path}; report: {page}"]


def _looks_like_path(name: str) -> bool:
    """Tell whether an argument names a file or folder, rather than a study."""
    return "/" in name or "." in name
