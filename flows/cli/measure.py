"""`voirdire measure`: compute and print the statistics of a file of votes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import polars as pl
from pandera.typing.polars import DataFrame
from rich.console import Console

from flows.cli.printing.calibration_tables import show_table
from flows.cli.printing.live import Printer, View
from flows.cli.printing.measure_tables import (
    missing,
    show_counts,
    show_gates,
    show_rows,
    show_summary,
)
from flows.cli.printing.ranking_table import BIAS, show_categories
from flows.cli.printing.tables import print_line
from flows.cli.printing.terminal import echo_data, echo_json
from flows.labels.sources import Sources, sources_as_declared
from flows.publishing.csv_escaping import csv_text
from flows.results.calibration import Calibrated, NotComparableError, calibrate_sources
from flows.results.saved_votes import require_free, save_file
from flows.results.study_results import results_in_log
from flows.running.run_row import CODE_VERSION
from flows.studies.calibration import Calibration, make_calibration
from schemas.keys import ShareInterval
from schemas.results import Estimates
from tasks.agreement.label_kinds import Declared
from tasks.conclusions.derived_columns import COLUMNS, SCORECARD
from tasks.kit.command_line import print_notice, say
from tasks.kit.defaults import DEFAULTS, share_interval
from tasks.kit.printable import several
from tasks.logs.declared_ratings import with_declared
from tasks.logs.labels import labels_of_log, log_or_votes
from tasks.logs.log_description import (
    counts_of,
    limits_of,
    missing_of,
    recognised_line,
    recognised_lines,
    with_intervals,
)
from tasks.logs.log_reader import (
    MANY,
    Log,
    NoLogError,
    is_long,
    log_of_votes,
    people_in,
    read_log,
)
from tasks.progress import current_status, step
from tasks.readers.fastchat import described
from tasks.readers.label_table import described_labels
from tasks.readers.votes import read_votes
from tasks.reporting.advice import not_measured, policy
from tasks.reporting.calibration_answer import label_warnings
from tasks.reporting.summary import marks_of
from tasks.reporting.wording import listing
from tasks.results import Conclusions
from tasks.statistics import STATISTICS, filled_columns, lacking_line
from tasks.validation.unknown_names import unknown
from warehouse.store import query_unsaved

KEY = list(Estimates.place().key)
ADDED = (
    "p_adjusted",
    "adjustment",
    "finding",
    "p_holm",
    "p_by",
    "e_rejected",
    "shrunk",
    "shrunk_error",
    "votes",
    "invalid_rate",
    "design",
    "epoch",
    "code_version",
)
"""Columns of ``mart.numbers`` that a row of JSON or CSV has besides the columns of an estimate."""
NUMBERS = """
    select * replace (coalesce(subgroup, '') as subgroup) from mart.numbers where study = $study
"""
UNSAVED = {"study": "measure"}
"""Parameters of queries on results that are not saved."""
MOST_PEOPLE = 10
"""Maximum number of people who have rows of their own in a table."""


def show_measures(
    votes: Path,
    mode: str,
    form: str,
    only: Sequence[str],
    warehouse: Path | None = None,
    *,
    interval: ShareInterval = "wilson",
    people: str | None = None,
    mapping: Mapping[str, str] | None = None,
    slices: Sequence[str] = (),
    positive: str | None = None,
    scale: tuple[float, float] | None = None,
    threshold: float | None = None,
    random_labels: bool = False,
    view: View,
) -> None:
    """Print the estimates of a file of votes; with a warehouse, save them there first.

    ``positive``, ``scale``, ``threshold`` and ``random_labels`` say how judges are compared with
    people, as in ``voirdire calibrate``.
    """
    low, high = scale or (None, None)
    calibration = make_calibration(
        name="unsaved",
        humans=str(votes),
        judges=str(votes),
        slice_columns=list(slices),
        positive=positive,
        scale_low=low,
        scale_high=high,
        interval=interval,
        random_labels=random_labels,
        threshold=threshold,
    )
    if form != "table" or only:
        _refuse_unused(calibration, partial(_calibrate_command, votes.name, mapping, people))
    gates = SCORECARD in only
    if gates and set(only) != {SCORECARD}:
        raise ValueError(
            f"--only {SCORECARD} shows gates, not estimates, and cannot be combined with other "
            "names. Run the command once for each."
        )
    rows = [] if gates else _rows_of(only)
    step("reading votes")
    log = log_or_votes(votes, people, mapping, slices) or _votes_in(votes)
    both = _labels_of_both(log, calibration)
    log = _with_declared(log, calibration.declared(), both)
    for line in recognised_lines(log) if log.titles else ():
        current_status().tell(line)
    if warehouse:
        _require_votes(votes, log)
        require_free(votes, warehouse)
    with share_interval(interval):
        found = results_in_log(log, mode)
    concluded = found.concluded
    estimates = concluded.estimates
    if warehouse:
        study = save_file(votes, mode, log.votes, found, warehouse)
        current_status().tell(
            f"{several(log.votes.height, 'vote')} and all results saved as study {study} in "
            f"{warehouse}. `voirdire report {study} --warehouse {warehouse}` writes the report."
        )
    if form == "table" and not only:
        _show_all(
            votes.name,
            log,
            concluded,
            view,
            calibration=calibration,
            mode=mode,
            both=both,
            more=_calibrate_command(votes.name, mapping, people),
        )
        return
    if gates:
        view.close()
        advised = concluded.recommendations
        absent = not_measured(advised, people=len(people_in(log)))
        rule = policy(DEFAULTS, advised, gates=concluded.gates)
        about = () if advised.is_empty() else (absent, rule)
        _show(concluded.gates, form, partial(show_gates, about=about))
        return
    numbers = query_unsaved(concluded.tables(), NUMBERS, UNSAVED).with_columns(
        code_version=pl.lit(CODE_VERSION)
    )
    chosen = estimates.join(
        numbers.select(*KEY, *ADDED), on=KEY, how="left", nulls_equal=True, maintain_order="left"
    )
    if only:
        chosen = chosen.filter(pl.col("statistic").is_in(rows))
    view.close()
    persons = people_in(log)
    listed, folded = _without_many_people(chosen, persons) if form == "table" else (chosen, "")
    _show(listed, form, partial(show_rows, marks=marks_of(estimates, persons)))
    if folded:
        say(folded)
    present = set(chosen["statistic"])
    makers = {row: name for name, entry in STATISTICS.items() for row in entry.gives}
    for name in only:
        if present.isdisjoint(_rows_of([name])):
            statistic = name if name in STATISTICS else makers[name]
            why = missing_of(log, statistic) if log.titles else missing(log.votes, statistic)
            print_notice(f"{name}: no rows, because {why}.")


def _show_all(
    file: str,
    log: Log,
    concluded: Conclusions,
    view: View,
    *,
    calibration: Calibration,
    mode: str,
    both: Sources | None,
    more: str,
) -> None:
    """Print recommendations, tables and, if there are both, how judges agree with people."""
    bias = query_unsaved(concluded.tables(), BIAS, UNSAVED)
    agreement = _agreement(calibration, both) if both else None
    for line in label_warnings(agreement.comparison) if agreement else ():
        current_status().tell(line)
    view.close()
    console = Printer()
    if log.titles:
        show_counts(console, with_intervals(counts_of(log), concluded.estimates))
        if concluded.estimates.is_empty():
            return
    persons = people_in(log)
    listed, folded = _without_many_people(concluded.estimates, persons)
    shown = concluded._replace(estimates=listed)
    # Single answers have no mode.
    title = f"{file}, mode {mode}" if not log.votes.is_empty() else file
    # For single answers with one label each, the comparison begins with the gate agreement.
    single = agreement is not None and agreement.tests.is_empty() and not _has_verdicts(log)
    if agreement and single:
        show_table(calibration, agreement, more=more)
        print_line(console, "")
    show_summary(console, title, shown, bias, None if single else len(persons))
    if folded:
        print_line(console, folded)
    shifts = f"`voirdire measure {file} --only category_shift`"
    show_categories(console, concluded.category_shifts, shifts)
    if line := _lacking(log):
        print_line(console, line)
    if agreement and not single:
        show_table(calibration, agreement, more=more)
    elif agreement is None and _has_both(log) and is_long(log):
        line = f"More than {MANY} votes and ratings are compared with people by {more} only."
        print_line(console, line)


def _calibrate_command(
    file: str, mapping: Mapping[str, str] | None, people: str | None, *options: str
) -> str:
    """Return the command that prints the whole comparison with people, with ``options``."""
    used = [name for name, given in (("--map", mapping), ("--people", people)) if given]
    used += options
    same = f" with the same {listing(used)}" if used else ""
    return f"`voirdire calibrate {file} --format json`{same}"


def _refuse_unused(calibration: Calibration, instead: Callable[[str], str]) -> None:
    """Refuse options of the comparison with people where only statistics are printed.

    ``instead`` returns the command that takes an option.
    """
    unused = {
        "--slice": calibration.slice_columns and "splits the agreement of judges with people",
        "--random-labels": calibration.random_labels and "corrects means by the labels of people",
    }
    for option, why in unused.items():
        if why:
            raise ValueError(
                f"{option} {why}, which the tables of all statistics show. Leave out --only and "
                f"--format, or take it from {instead(option)}."
            )


def _with_declared(log: Log, declared: Declared, both: Sources | None) -> Log:
    """Read grades and labels as declared; refuse to do so where there is nothing to read."""
    positive, scale, threshold = declared
    used = [
        *([f"--pass {positive!r:.60}"] if positive is not None else []),
        *([f"--scale {scale[0]:g} {scale[1]:g}"] if scale else []),
        *([f"--threshold {threshold:g}"] if threshold is not None else []),
    ]
    if not used:
        return log
    if (log.ratings["kind"] != "verdict").any():
        return with_declared(log, declared)
    if both is None:
        raise ValueError(
            f"{used[0]} says how grades and labels are read, and {log.name} has verdicts on "
            "pairs. Leave it out."
        )
    return log


def _without_many_people(
    rows: pl.DataFrame, persons: Collection[str]
) -> tuple[DataFrame[Estimates], str]:
    """Leave out the rows of single people if there are many; return a line that says so."""
    found = {*rows["judge"]} & {*persons}
    if len(found) <= MOST_PEOPLE:
        return cast("DataFrame[Estimates]", rows), ""
    others = rows.filter(~pl.col("judge").is_in(sorted(found)))
    line = (
        f"Numbers of single people ({len(found)}) are not listed; "
        "`--format csv` and `--format json` print them too."
    )
    return cast("DataFrame[Estimates]", others), line


def _votes_in(file: Path) -> Log:
    """Read the votes of a file that may lack some columns, or say what else it is."""
    if summary := described(file) or described_labels(file):
        raise ValueError(summary)
    return log_of_votes(file.name, read_votes(file))


def show_recognised(
    path: Path, people: str | None = None, mapping: Mapping[str, str] | None = None
) -> None:
    """Print what a file or folder is, what can be computed from it, and what cannot and why."""
    try:
        log = read_log(path, people, mapping)
    except NoLogError:
        if not (summary := described(path)):
            raise
        say(summary)
        return
    if log is None:
        if summary := described(path) or described_labels(path):
            say(summary)
            return
        log = log_of_votes(path.name, read_votes(path))
    what = (
        recognised_line(log)
        if log.titles
        else f"votes for `voirdire measure`, {several(log.rows, 'row')}"
    )
    say(f"{path.name}: {what}.")
    for line in (*(limits_of(log) if log.titles else ()), _lacking(log)):
        if line:
            say(f"- {line}")
    if log.titles:
        show_counts(Printer(), counts_of(log))


def _labels_of_both(log: Log, calibration: Calibration) -> Sources | None:
    """Return the labels of judges and people on the same items; null without, or of too many rows.

    Raise ValueError for slices that the log does not have.
    """
    slices = calibration.slice_columns
    if slices and not _has_both(log):
        raise ValueError(
            f"--slice {slices[0]!r:.60} splits the agreement of judges with people, and {log.name} "
            "does not have rows of both. Leave it out."
        )
    if not _has_both(log) or (is_long(log) and not slices):
        return None
    declared = calibration.declared()
    labelled = labels_of_log(log, calibration.metric, slices, declared)
    return sources_as_declared(labelled, declared) if labelled and not is_long(log) else None


def _agreement(calibration: Calibration, both: Sources) -> Calibrated | None:
    """Compare judges with people, as ``voirdire calibrate`` does; null if no label compares."""
    try:
        return calibrate_sources(calibration, both)
    except NotComparableError as error:
        current_status().tell(f"{error}")
        return None


def _has_both(log: Log) -> bool:
    """Tell whether there are rows of judges and of people."""
    humans = (rows["human"].fill_null(value=False) for rows in (log.votes, log.ratings))
    return len({human for each in humans for human in each.unique()}) > 1


def _has_verdicts(log: Log) -> bool:
    """Tell whether there are verdicts on pairs, with their order or without."""
    return not log.votes.is_empty() or (log.ratings["kind"] == "verdict").any()


def _lacking(log: Log) -> str:
    """Say which columns the statistics of pairs lack, and the statistics of single answers."""
    verdict = pl.col("kind") == "verdict"
    verdicts = log.ratings.filter(verdict).rename({"label": "rated", "correct": "label"})
    single = log.ratings.filter(~verdict)
    of_pairs = lacking_line(filled_columns(log.votes, verdicts)) if _has_verdicts(log) else ""
    alone = lacking_line(filled_columns(single), single=True) if single.height else ""
    return " ".join(filter(None, (of_pairs, alone)))


def _require_votes(path: Path, log: Log) -> None:
    """Refuse to save a log as a study of votes, if it has more than votes."""
    if path.is_dir() or not log.ratings.is_empty() or log.votes.is_empty():
        raise ValueError(
            f"{path.name} cannot be saved: --warehouse saves one file of votes whose order is "
            "known, and this log has ratings, or several files. Leave out --warehouse, or save "
            "ratings of judges and people with `voirdire calibrate`."
        )


def _show(
    rows: pl.DataFrame, form: str, show_table: Callable[[Console, pl.DataFrame], None]
) -> None:
    if form == "json":
        echo_json(rows.to_dicts())
    elif form == "csv":
        echo_data(csv_text(rows))
    else:
        show_table(Printer(), rows)


def _rows_of(names: Sequence[str]) -> list[str]:
    """Return the row names that each given name stands for: a statistic or one of its rows."""
    gives = {name: entry.gives for name, entry in STATISTICS.items()}
    single = {row: (row,) for rows in gives.values() for row in rows}
    known = {**single, **gives}
    for name in names:
        if name in COLUMNS:
            raise ValueError(
                f"{name!r} is a derived column, not a statistic. `--format json` or `--format csv` "
                f"prints it, and `voirdire list {name}` explains it."
            )
        if name not in known:
            raise unknown("statistic", name, sorted([*known, SCORECARD]))
    return [row for name in names for row in {*known[name], *single.get(name, ())}]
