"""A calibration: its inputs and parameters, and its run from start to end."""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from flows.labels.sources import Sources, label_source, sources_of
from flows.running.run_row import is_taken, row_without_calls, save_completed
from flows.studies.calibration import Calibration
from schemas.calibration import (
    KINDS_OF_EPSILON,
    Advantages,
    AltTests,
    ConfusionMatrix,
    Disagreements,
    HumanAgreement,
)
from schemas.results import Annotations, Estimates
from tasks.agreement.compare import ComparisonWithPeople, Options, compare
from tasks.agreement.declared_labels import (
    by_criterion,
    require_grades,
    require_positive,
    suitable_metrics,
)
from tasks.calibration.agreement import agree
from tasks.calibration.calibrate import (
    Terms,
    Trial,
    annotations_of,
    try_judges,
    why_none_is_tested,
)
from tasks.calibration.label_values import TIED, Labelled
from tasks.calibration.similarity import find_metric
from tasks.kit.defaults import calibrated_by
from tasks.kit.printable import several
from tasks.progress import step
from tasks.reporting.agreement_rows import unreadable_line
from tasks.reporting.calibration_report import named_by_criterion
from tasks.reporting.wording import number
from warehouse.store import Saving, Warehouse

LAST = """
select parameters from runs where study = ? and flow = 'calibrate' and state = 'completed'
order by started_at desc limit 1
"""
ALONE = (
    "it needs labels of two people or more, on enough common items (`--min-instances` of "
    "calibrate)."
)
SOURCES = {
    "study": "the votes of study",
    "table": "labels in",
    "log": "labels in",
    "humans": "people's labels in",
    "judges": "judges' labels in",
}


class NotComparableError(ValueError):
    """No item has a label of a judge that can be compared with one of a person."""


class CalibrationSteps(NamedTuple):
    """The steps of a calibration: plain functions, or the same as cached stages."""

    try_judges: Callable[[Labelled, Terms], Trial] = try_judges
    annotate: Callable[[Labelled, str], DataFrame[Annotations]] = annotations_of
    agree: Callable[[DataFrame[Annotations], Any], DataFrame[Estimates]] = agree
    compare: Callable[[list[Labelled], Options], ComparisonWithPeople] = compare


class Calibrated(NamedTuple):
    """Results of a calibration."""

    tests: DataFrame[AltTests]
    advantages: DataFrame[Advantages]
    annotations: DataFrame[Annotations]
    agreement: DataFrame[Estimates]
    comparison: ComparisonWithPeople
    """Each judge against the combined labels of people."""
    metric_tests: DataFrame[AltTests]
    """All tests, if there are several metrics and kinds of epsilon; else none."""
    metric_advantages: DataFrame[Advantages]
    untested: str = ""
    """Why the alternative annotator test tests no judge."""

    def drawn(self) -> dict[str, pl.DataFrame]:
        """Return the frames that charts read, by name."""
        return {
            "alt_tests": self.tests,
            "metric_tests": self.metric_tests,
            "advantages": self.advantages,
            "agreement": named_by_criterion(self.agreement, self.comparison.measures),
        }


def calibrate_labels(
    calibration: Calibration, warehouse: Warehouse, steps: CalibrationSteps | None = None
) -> Calibrated:
    """Read the labels, test the judges against people, and measure agreement.

    Raise NotComparableError if no item has labels of a judge and of a person that can be compared.
    """
    step("reading labels")
    return calibrate_sources(calibration, sources_of(calibration, warehouse), steps)


def calibrate_sources(
    calibration: Calibration, sources: Sources, steps: CalibrationSteps | None = None
) -> Calibrated:
    """Test judges against people and measure agreement, from labels that are read.

    Raise NotComparableError if no item has labels of a judge and of a person that can be compared.
    """
    with calibrated_by(calibration.thresholds, calibration.interval):
        return _calibrate(calibration, sources, steps or CalibrationSteps())


def _calibrate(calibration: Calibration, sources: Sources, steps: CalibrationSteps) -> Calibrated:
    terms = calibration.terms()
    kind = find_metric(terms.metric).labels
    options = calibration.options()
    source = label_source(calibration)
    require_positive(sources.labelled, options.declared, source)
    require_grades(sources.labelled, options.declared, source)
    labelled = sources.for_test
    step("testing judges")
    # Neither needs the other, and of millions of labels either takes seconds.
    with ThreadPoolExecutor(1) as pool:
        annotating = [
            pool.submit(copy_context().run, steps.annotate, part, terms.metric)
            for each in labelled
            for part in by_criterion(each)
        ]
        people = (each.humans.drop_nulls("item")["annotator"].n_unique() for each in labelled)
        tested = labelled if max(people, default=0) > 1 else []
        trials = [steps.try_judges(each, terms) for each in tested]
        untested = why_none_is_tested(labelled, trials, terms) if tested else ALONE
        parts = [each.result() for each in annotating]
    # Each is checked already, and datasets share no key.
    annotations = parts[0] if len(parts) == 1 else Annotations.draft(pl.concat(parts))
    step("testing judges with other metrics")
    others = _other_trials(calibration, tested, terms, steps)
    step("measuring agreement of annotators")
    agreement = steps.agree(annotations, kind) if tested else Estimates.empty()
    step("comparing judges with people")
    comparison = steps.compare(sources.labelled, options)
    if untested and not _is_compared(comparison):
        trials = trials or [steps.try_judges(each, terms) for each in labelled]
        why = why_none_is_tested(labelled, trials, terms)
        # A metric of another kind of labels may be why they are invalid.
        named = "graded" if kind != "text" else pl.lit(value=True)
        if unread := unreadable_line(comparison.unreadable.filter(named), none_read=True):
            why = f"{unread}."
        elif tied := comparison.unreadable.filter(label=TIED).height:
            why = (
                f"on {several(tied, 'item')} the repeats of the judge tie, and no other has a "
                "label of both. An odd number of repeats ties less often."
            )
        raise NotComparableError(f"judges and people cannot be compared: {why}")
    return Calibrated(
        *_together(trials),
        annotations,
        agreement,
        comparison,
        *(_together([*trials, *others]) if others else Trial(AltTests.empty(), Advantages.empty())),
        untested,
    )


def _is_compared(comparison: ComparisonWithPeople) -> bool:
    """Tell whether some item has labels of a judge and of people that can be compared."""
    compared = pl.col("statistic").is_in(["agreement", "spearman"])
    return comparison.measures.filter(compared)["estimate"].count() > 0


def _together(trials: Sequence[Trial]) -> Trial:
    return Trial(
        AltTests.of(pl.concat([AltTests.empty(), *(trial.judges for trial in trials)])),
        Advantages.of(pl.concat([Advantages.empty(), *(trial.annotators for trial in trials)])),
    )


def _other_trials(
    calibration: Calibration, labelled: Sequence[Labelled], terms: Terms, steps: CalibrationSteps
) -> list[Trial]:
    """Run the test with the other metrics that suit the labels, and both kinds of epsilon."""
    if not calibration.all_metrics:
        return []
    metrics = suitable_metrics([each.humans["label"] for each in labelled], terms.metric)
    pairs = [(metric, kind) for metric in metrics for kind in KINDS_OF_EPSILON]
    others = [
        terms._replace(metric=metric, kind=kind)
        for metric, kind in pairs
        if (metric, kind) != (terms.metric, terms.kind)
    ]
    return [steps.try_judges(each, other) for other in others for each in labelled]


def require_free(
    calibration: Calibration, warehouse: Warehouse, *, name_given: bool = True
) -> None:
    """Reject a name under which other results are saved.

    Results of an audit or of measured votes are never replaced; results of a calibration from other
    labels are replaced only if the user gave the name.
    """
    if not warehouse.path.is_file():
        return
    if is_taken(calibration.name, warehouse, "calibrate"):
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
    step("saving results")
    row = row_without_calls("calibrate", calibration, run)
    warehouse.start_run(row)
    one = found.metric_tests.is_empty()
    savings = [
        Saving(Annotations, found.annotations),
        Saving(Estimates, found.agreement),
        Saving(AltTests, found.tests if one else found.metric_tests),
        Saving(Advantages, found.advantages if one else found.metric_advantages),
        Saving(HumanAgreement, found.comparison.measures),
        Saving(ConfusionMatrix, found.comparison.confusion),
        Saving(Disagreements, found.comparison.disagreements),
    ]
    save_completed(row, warehouse, savings)
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
    certain = passed - doubtful
    beyond = " beyond doubt" if doubtful else ""
    if doubtful:
        more = f", {several(doubtful, 'more passes', 'more pass')} with doubt{more}"
    return (
        f"{certain} of {asked.height} judges may replace people{beyond} ({calibration.metric}, "
        f"{calibration.epsilon_kind} epsilon {number(calibration.epsilon)}){more}"
    )
