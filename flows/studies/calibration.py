"""Parameters of a calibration: where labels are, and how they are compared."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from flows.studies import Parameters
from flows.studies.study import SUFFIX
from schemas.keys import EpsilonKind, ShareInterval, Test, content_key, file_digest
from tasks.agreement.compare import Options
from tasks.agreement.label_kinds import Declared, scale_of
from tasks.calibration.calibrate import Terms
from tasks.calibration.non_inferiority import check_epsilon
from tasks.calibration.similarity import find_metric
from tasks.kit.code_digest import code_digest
from tasks.kit.defaults import CALIBRATION, CalibrationThresholds
from tasks.metrics import METRICS
from tasks.readers.bounded import without_gz
from tasks.validation.invalid_values import NAME_PATTERN, problems_in

LONGEST_NAME = 64


class Calibration(Parameters):
    """Parameters of a calibration: labels, metric, margin and test."""

    name: str = Field(default="calibration", pattern=NAME_PATTERN)
    """Name under which results are saved. A later calibration of the same name replaces them."""
    study: str | None = None
    """Study in the warehouse whose votes are the labels where no file is given: anchor, tie or
    target, for each control pair."""
    humans: str | None = None
    """Path of a .json, .csv or .parquet file with the labels of people."""
    judges: str | None = None
    """Path of a file with the labels of judges, in the same format."""
    table: str | None = None
    """Path of a .csv, .jsonl or .parquet file with one row per item, and a column for each judge
    and each person."""
    log: str | None = None
    """Path of a log of another tool (or a folder of them) with the labels of one side; a file has
    those of the other."""
    items: str | None = None
    """Path of a .csv, .jsonl or .parquet file with one row per item of the files of labels: its
    texts, and columns of slices."""
    mapping: dict[str, str] = {}
    """Columns of a log -> dotted paths of their fields, for a table in no known format."""
    people: str | None = Field(
        default=None,
        description="Pattern of names, such as expert_*: count only these people of a log. "
        "Default: all people.",
    )
    judge_columns: list[str] = []
    """Columns of judges in the table. Default: judge."""
    human_columns: list[str] = []
    """Columns of people in the table. Default: human."""
    item_column: str | None = None
    """Column that identifies items. Default: id or item, if there."""
    cluster_column: str | None = None
    """Column whose values group items that are not independent."""
    criterion_column: str | None = None
    """Column that names the criterion of each row."""
    slice_columns: list[str] = []
    """Columns whose values also get results of their own."""
    positive: str | None = None
    """Label that counts as a pass. Default: pass, yes, true, 1, ..."""
    scale_low: float | None = None
    """Lowest grade of the scale."""
    scale_high: float | None = None
    """Highest grade of the scale."""
    threshold: float | None = None
    """Grades from this one on pass: passes and fails are compared, not grades."""
    interval: ShareInterval = "wilson"
    """Confidence interval for proportions (cluster-adjusted)."""
    random_labels: bool = False
    """Whether the items with a label of people are a random sample of all items."""
    metric: str = Field(default="accuracy", json_schema_extra={"enum": list(METRICS)})
    """Similarity metric between two labels."""
    all_metrics: bool = False
    """Also test with every other metric that suits the labels, and with both kinds of epsilon."""
    epsilon: float = 0.1
    """Non-inferiority margin: how much worse than a person a judge may be. Usual values: .2 for
    experts, .15 for skilled annotators, .1 for crowd workers."""
    epsilon_kind: EpsilonKind = "additive"
    """Whether epsilon is subtracted from a person's advantage probability (additive) or is a share
    of it (multiplicative)."""
    test: Test = "auto"
    """Test of non-inferiority. auto: the score test for few instances, else the t test."""
    min_instances: int = Field(default=30, ge=1)
    """Minimum number of instances of an annotator who is tested."""

    thresholds: CalibrationThresholds = CALIBRATION
    """Limits that decide what is concluded. The defaults are those of the methods; with other
    values results are hard to compare with other calibrations."""

    def terms(self) -> Terms:
        """Return the terms of the test.

        Raise ValueError or LookupError for an epsilon outside its range or an unknown metric.
        """
        check_epsilon(self.epsilon, self.epsilon_kind)
        find_metric(self.metric)
        path = Path(self.metric.rpartition(":")[0])
        digest = _digest(path) if ":" in self.metric else ""
        return Terms(
            self.metric,
            self.epsilon,
            self.epsilon_kind,
            self.test,
            self.min_instances,
            digest,
        )

    def declared(self) -> Declared:
        """Return how labels are read.

        Raise ValueError for a scale with one end, or whose ends are not in order.
        """
        return Declared(self.positive, scale_of(self.scale_low, self.scale_high), self.threshold)

    def options(self) -> Options:
        """Return how labels are read and compared; raise ValueError as :meth:`declared` does."""
        return Options(self.declared(), self.random_labels)

    def fingerprint(self) -> str:
        """Return a digest of all that decides its results, but for votes in a warehouse."""
        named = (self.humans, self.judges, self.table, self.log, self.items)
        files = [_digest(Path(file)) for file in named if file]
        return content_key(self.model_dump(), files, code_digest())

    def require_own_metric_elsewhere(self) -> None:
        """Reject a metric in a file of the user: a form must not start a program."""
        if ":" in self.metric:
            raise ValueError(
                f"metric {self.metric!r:.80} is a function of your own, which only `voirdire "
                f"calibrate --metric` can run. Use one of: {', '.join(METRICS)}."
            )


def make_calibration(*, called: Mapping[str, str] | None = None, **given: Any) -> Calibration:
    """Return a calibration, named after its study or file if no name is given.

    Raise ValueError for values that are not allowed, which it names by the options from which they
    were taken, ``called``.
    """
    if not given.get("name"):
        people = given.get("log") or given.get("table") or given.get("humans")
        given["name"] = _name(given.get("study"), people, given.get("judges"))
    try:
        return Calibration(**given)
    except ValidationError as error:
        raise ValueError(problems_in(error, Calibration, called)) from error


def _name(study: str | None, humans: str | None, judges: str | None) -> str:
    """Return the name of a study or file as a name of results: other characters become hyphens."""
    if humans:
        named, suffix = without_gz(Path(humans)).stem, ""
    else:
        file = f"-{without_gz(Path(judges)).stem}" if judges else ""
        named, suffix = (f"{study}{file}", SUFFIX) if study else ("", "")
    allowed = re.sub(r"[^A-Za-z0-9_.-]+", "-", named).strip("-")
    return f"{allowed[: LONGEST_NAME - len(suffix)]}{suffix}" or "calibration"


def _digest(path: Path) -> str:
    if path.is_dir():  # a folder of logs
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return content_key([(str(file.relative_to(path)), file_digest(file)) for file in files])
    return file_digest(path)
