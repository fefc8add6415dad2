"""A calibration: its inputs and parameters, and its run from start to end."""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import polars as pl
from pandera.typing.polars import DataFrame

from flows.results.vote_summary import newer_line
from flows.running.run_row import NOTHING_ASKED, first_row
from flows.studies.calibration import Calibration
from schemas.calibration import (
    Advantages,
    AltTests,
    ConfusionMatrix,
    Disagreements,
    HumanAgreement,
    Ratings,
)
from schemas.results import Annotations, Estimates
from tasks.agreement.compare import Comparison, Options, compare
from tasks.agreement.sources import items_of, labelled_by_table, readable_labels, require_positive
from tasks.annotate import annotate
from tasks.calibration.agreement import agree
from tasks.calibration.calibrate import (
    Labelled,
    Terms,
    Trial,
    annotations_of,
    label_kind,
    labelled_by_files,
    labelled_by_votes,
    require_tested,
    require_two_names,
    try_judges,
)
from tasks.calibration.rated_labels import labels_of_ratings
from tasks.kit.defaults import calibrated_by
from tasks.logs.labels import labels_in_log
from tasks.readers.label_table import LabelColumns, read_label_table
from tasks.readers.labels import read_labels
from warehouse.peek import require_file
from warehouse.store import Saving, Warehouse

ALONE = "it needs labels of two people"
TAKEN = """
    select count(*) as n from runs where study = ? and flow <> 'calibrate'
        and (state <> 'failed' or run in (select run from vote_log))
"""
VOTERS = """
    select distinct judge from vote_log
    where study = ? and human and choice in ('first', 'second', 'tie')
"""
TEXTS = """
    select sample, question, target from pairs
    where arm = 'control' and pair_id in (select pair_id from study_pairs where study = ?)
"""
LAST = """
select parameters from runs where study = ? and flow = 'calibrate' and state = 'completed'
order by started_at desc limit 1
"""
SOURCES = {
    "study": "the votes of study",
    "table": "labels in",
    "humans": "people's labels in",
    "judges": "judges' labels in",
}


class Steps(NamedTuple):
    """The steps of a calibration: plain functions, or the same as cached stages."""

    try_judges: Callable[[Labelled, Terms], Trial] = try_judges
    annotate: Callable[[Labelled, str], DataFrame[Annotations]] = annotations_of
    agree: Callable[[DataFrame[Annotations], Any], DataFrame[Estimates]] = agree
    compare: Callable[[list[Labelled], list[pl.DataFrame], Options], Comparison] = compare


class Sources(NamedTuple):
    """Labels of each dataset, for comparison with people and for the alternative annotator test."""

    labelled: list[Labelled]
    items: list[pl.DataFrame]
    """What is known of the items; see :class:`tasks.readers.label_table.LabelTable`."""
    for_test: list[Labelled]
    untested: str = ""
    """Why the alternative annotator test is not run."""


class Calibrated(NamedTuple):
    """Results of a calibration."""

    tests: DataFrame[AltTests]
    advantages: DataFrame[Advantages]
    annotations: DataFrame[Annotations]
    agreement: DataFrame[Estimates]
    comparison: Comparison
    """Each judge against the combined labels of people."""


def calibrate_labels(
    calibration: Calibration, warehouse: Warehouse, steps: Steps | None = None
) -> Calibrated:
    """Read the labels, test the judges against people, and measure agreement.

    Raises
    ------
    ValueError
        If no judge can be tested against anybody.
    """
    with calibrated_by(calibration.thresholds):
        return _calibrate(calibration, warehouse, steps or Steps())


def _calibrate(calibration: Calibration, warehouse: Warehouse, steps: Steps) -> Calibrated:
    terms = calibration.terms()
    options = calibration.options()
    sources = sources_of(calibration, warehouse)
    require_positive(sources.labelled, options.positive, label_source(calibration))
    labelled = sources.for_test
    # Neither needs the other, and of millions of labels either takes seconds.
    with ThreadPoolExecutor(1) as pool:
        annotating = [
            pool.submit(copy_context().run, steps.annotate, each, terms.metric) for each in labelled
        ]
        tested = [] if sources.untested else labelled
        trials = [steps.try_judges(each, terms) for each in tested]
        if calibration.table is None and not sources.untested:
            require_tested(labelled, trials, terms)
        parts = [each.result() for each in annotating]
    # Each is checked already, and datasets share no key.
    annotations = parts[0] if len(parts) == 1 else Annotations.draft(pl.concat(parts))
    several = not sources.untested
    agreement = steps.agree(annotations, label_kind(terms.metric)) if several else Estimates.empty()
    return Calibrated(
        AltTests.of(pl.concat([AltTests.empty(), *(trial.judges for trial in trials)])),
        Advantages.of(pl.concat([Advantages.empty(), *(trial.annotators for trial in trials)])),
        annotations,
        agreement,
        steps.compare(sources.labelled, sources.items, options),
    )


def label_source(calibration: Calibration) -> str:
    """Name where labels of people come from, for messages."""
    file = calibration.table or calibration.humans
    return Path(file).name if file else f"study {calibration.study}"


def sources_of(calibration: Calibration, warehouse: Warehouse) -> Sources:
    """Return the labels to compare, from a table, from files or from votes in the warehouse."""
    if calibration.humans and calibration.humans == calibration.judges:
        log = labels_in_log(Path(calibration.humans), calibration.metric)
        if log is not None:
            tested = any(each.humans["annotator"].n_unique() > 1 for each in log)
            return Sources(log, [items_of(each) for each in log], log, "" if tested else ALONE)
    if calibration.study and calibration.judges is None:
        ratings = warehouse.read(Ratings, among=pl.DataFrame({"study": [calibration.study]}))
        if not ratings.is_empty():
            return _sources_of_ratings(calibration, warehouse, ratings)
    if calibration.table is None:
        labelled = labels_of(calibration, warehouse)
        return Sources(labelled, [items_of(each) for each in labelled], labelled)
    columns = LabelColumns(
        tuple(calibration.judge_columns),
        tuple(calibration.human_columns),
        calibration.item_column,
        calibration.cluster_column,
        calibration.criterion_column,
        tuple(calibration.slice_columns),
    )
    table = read_label_table(Path(calibration.table), columns)
    one = labelled_by_table(calibration.name, table)
    untested = "" if len(table.humans) > 1 else ALONE
    return Sources([one], [table.items], [readable_labels(one, calibration.options())], untested)


def _sources_of_ratings(
    calibration: Calibration, warehouse: Warehouse, ratings: DataFrame[Ratings]
) -> Sources:
    """Return the labels of a study whose judges rated single answers."""
    texts = {
        item: json.dumps({"question": question, "answer": answer}, ensure_ascii=False)
        for item, question, answer in warehouse.query(TEXTS, [calibration.study]).iter_rows()
    }
    people = read_labels(Path(calibration.humans)) if calibration.humans else None
    found = labels_of_ratings(ratings, texts, people)
    labelled = [each for each in found if not each.labelled.humans.is_empty()]
    if not labelled:
        raise ValueError(
            f"the data of study {calibration.study!r} have no labels of people. Add a column "
            "human_label, human_grade or human_CRITERION to the data and audit them again (no vote "
            "is asked twice), or give labels with --humans FILE."
        )
    several = any(each.labelled.humans["annotator"].n_unique() > 1 for each in labelled)
    return Sources(
        [each.labelled for each in labelled],
        [each.items for each in labelled],
        [readable_labels(each.labelled, calibration.options()) for each in labelled],
        "" if several else ALONE,
    )


def labels_of(calibration: Calibration, warehouse: Warehouse) -> list[Labelled]:
    """Return the labels of people and judges, from files or from votes in the warehouse.

    Raises
    ------
    ValueError
        If there is neither, or nobody is in it; with the next step.
    """
    files = [
        read_labels(Path(file)) if file else None
        for file in (calibration.humans, calibration.judges)
    ]
    humans, judges = files
    if humans is not None and judges is not None:
        return [labelled_by_files(calibration.name, humans, judges)]
    if calibration.study is None:
        missing = "--judges FILE" if calibration.humans else "--humans FILE"
        whose = "judges'" if calibration.humans else "people's"
        raise ValueError(
            f"the {whose} labels are missing. Give a file with {missing}, or name the STUDY in the "
            "warehouse whose votes are the labels."
        )
    voted = labelled_by_votes(votes_of(calibration.study, warehouse), calibration.metric)
    newer = newer_votes(calibration, warehouse)
    if humans is None:
        _require_labels(voted, calibration.study, newer, warehouse)
    return [_completed(each, humans, judges, calibration.study, newer) for each in voted]


def _require_labels(voted: list[Labelled], study: str, newer: str, warehouse: Warehouse) -> None:
    """Reject votes of people if fewer than two people voted on unperturbed pairs."""
    labelled = {name for each in voted for name in each.humans["annotator"]}
    others = sorted({*warehouse.query(VOTERS, [study])["judge"]} - labelled)
    if len(labelled) > 1 or not others:
        return
    some = f"only {min(labelled)}" if labelled else "nobody"
    raise ValueError(
        f"no judge can be tested: {some} voted on unperturbed pairs of {study!r}, and the test "
        f"needs labels of two people. {', '.join(others)} voted on perturbed pairs only. "
        + (f"{newer}." if newer else f"Collect more votes with `voirdire booth {study}`.")
    )


def newer_votes(calibration: Calibration, warehouse: Warehouse) -> str:
    """Describe the votes of people that are not in the results yet; empty if there are none."""
    if calibration.humans or calibration.study is None:
        return ""
    return newer_line(calibration.study, warehouse)


def votes_of(study: str, warehouse: Warehouse) -> DataFrame[Annotations]:
    """Return the labels of a study: from its votes, else those saved under its name."""
    require_file(
        warehouse.path,
        f"Run `voirdire audit {study}` first, or give files with --humans FILE --judges FILE.",
    )
    tallies = warehouse.tallies(study)
    if not tallies.is_empty():
        return annotate(tallies)  # type: ignore[arg-type]
    saved = warehouse.read(Annotations, among=pl.DataFrame({"study": [study]}))
    if saved.is_empty():
        known = warehouse.query(
            "select study from vote_log union select study from annotations order by study"
        )["study"]
        raise ValueError(
            f"{warehouse.path} has no votes of study {study!r}. It has votes of: "
            f"{', '.join(known) or 'no study'}."
        )
    return saved


def _completed(
    voted: Labelled,
    humans: pl.DataFrame | None,
    judges: pl.DataFrame | None,
    study: str,
    newer: str,
) -> Labelled:
    """Replace labels from votes by the labels of a file, where one is given."""
    if judges is not None:
        ours = labelled_by_files(voted.dataset, voted.humans, judges)
        voted = voted._replace(judges=ours.judges, who=ours.who)
    if humans is not None:
        return require_two_names(voted._replace(humans=humans))
    if voted.humans.is_empty():
        if newer:
            raise ValueError(f"{newer}.")
        raise ValueError(
            f"study {study!r} has votes of models only. Let people vote with "
            f"`voirdire booth {study}`, or give their labels with --humans FILE."
        )
    if voted.who.is_empty():
        raise ValueError(
            f"study {study!r} has votes of people only. Run `voirdire audit {study}`, or give the "
            "judges' labels with --judges FILE."
        )
    return voted


def require_free(
    calibration: Calibration, warehouse: Warehouse, *, name_given: bool = True
) -> None:
    """Reject a name under which other results are saved.

    Results of an audit or of measured votes are never replaced; results of a calibration from other
    labels are replaced only if the user gave the name.
    """
    if not warehouse.path.is_file():
        return
    if warehouse.query(TAKEN, [calibration.name])["n"].item():
        raise ValueError(
            f"{warehouse.path} already has results of a study named {calibration.name!r}, which "
            "this calibration would replace. Choose another name with --name."
        )
    last = warehouse.query(LAST, [calibration.name])["parameters"].to_list()
    if name_given or not last:
        return
    before = _sources(json.loads(last[0]))
    if before != _sources(calibration.model_dump()):
        sources = " and ".join(f"{SOURCES[what]} {where}" for what, where in before.items())
        raise ValueError(
            f"{warehouse.path} already has a calibration named {calibration.name!r} from "
            f"{sources}, which this one would replace. Choose another name with --name, or replace "
            f"it with --name {calibration.name}."
        )


def _sources(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the sources of a calibration's labels, files by their absolute path."""
    given = {what: parameters.get(what) for what in SOURCES}
    return {
        what: where if what == "study" else str(Path(where).resolve())
        for what, where in given.items()
        if where
    }


def keep_calibration(
    calibration: Calibration, found: Calibrated, warehouse: Warehouse, run: str | None = None
) -> dict[str, Any]:
    """Save labels and results in one transaction; return the run's row."""
    run, began = run or str(uuid4()), datetime.now(UTC)
    row = {
        **first_row("calibrate", run, calibration, began),
        **NOTHING_ASKED,
        "state": "running",
        "planned": 0,
        "from_warehouse": 0,
    }
    warehouse.start_run(row)
    savings = (
        (Annotations, found.annotations),
        (Estimates, found.agreement),
        (AltTests, found.tests),
        (Advantages, found.advantages),
        (HumanAgreement, found.comparison.measures),
        (ConfusionMatrix, found.comparison.confusion),
        (Disagreements, found.comparison.disagreements),
    )
    warehouse.save(
        [Saving(model, frame) for model, frame in savings],
        run=run,
        study=calibration.name,
        counts={"ended_at": datetime.now(UTC), "state": "completed"},
    )
    return row


def nothing_to_correct(found: Calibrated) -> str:
    """Say why no pass rate or mean grade was corrected; empty if one was."""
    rows = found.comparison.measures
    if not rows.filter(statistic="corrected_ppi").is_empty():
        return ""
    if not rows["unlabelled"].sum():
        return "every judged item has a label of people"
    return "there are no passes or grades that vary on labelled items"


def in_words(calibration: Calibration, tests: pl.DataFrame) -> str:
    """Summarise in one line how many judges may replace people."""
    asked = tests.filter("asked")
    if asked.is_empty():
        return "agreement with people measured"
    passed, tested = int(asked["passed"].sum()), asked["passed"].count()
    unknown = asked.height - tested
    more = f", {unknown} cannot be tested" if unknown else ""
    doubtful = asked.filter("passed", pl.col("reason").is_not_null()).height
    more = f", {doubtful} of them doubtful{more}" if doubtful else more
    return (
        f"{passed} of {asked.height} judges may replace people ({calibration.metric}, "
        f"{calibration.epsilon_kind} epsilon {calibration.epsilon:g}){more}"
    )
