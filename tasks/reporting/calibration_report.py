"""The report of a calibration: one self-contained page."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Advantages, AltTests, HumanAgreement
from schemas.frame import Row
from schemas.results import Estimates
from tasks.agreement.compare import ComparisonWithPeople
from tasks.calibration.agreement import alpha_for_labels, kappa_for_labels
from tasks.counting.annotations import HUMANS
from tasks.drawing.metric_rows import metric_rows
from tasks.inference.intervals import cluster_adjusted
from tasks.kit.defaults import calibration_limits
from tasks.reporting.agreement_rows import (
    MOST_IN_REPORT,
    AgreementRow,
    JudgeView,
    columns_of,
    judge_views,
)
from tasks.reporting.calibration_answer import calibration_advice, calibration_policy, tests_shown
from tasks.reporting.page import drawings, page
from tasks.reporting.rows import CellText, Judged, said
from tasks.reporting.summary import simulated_sentence
from tasks.reporting.wording import (
    count,
    formulas,
    listing,
    number,
    p_value,
    thousands,
    with_who,
)

TEMPLATE = "calibration.html.j2"
VERDICTS = {None: "not testable", True: "passes", False: "fails"}
NONE = CellText("none")
TOO_FEW_LABELS = "The labels do not suffice to measure how well people agree with each other."
MOST_UNFOLDED = 6
"""With more judges and criteria, the details of each are folded."""


class CalibrationFacts(NamedTuple):
    """Facts about a calibration that the frames do not hold."""

    name: str
    people: str
    """Source of the labels of people."""
    judges: str
    run: str
    code_version: str
    when: str
    """ISO 8601, given by the caller, so that equal facts give equal bytes."""
    warehouse: str
    least: int
    """Minimum number of instances of an annotator."""


def calibration_report(
    facts: CalibrationFacts,
    alt_tests: DataFrame[AltTests],
    advantages: DataFrame[Advantages],
    agreement: DataFrame[Estimates],
    comparison: ComparisonWithPeople,
    *,
    metric_tests: DataFrame[AltTests] | None = None,
) -> str:
    """Write the report as one HTML file that loads nothing from elsewhere.

    ``metric_tests`` are all tests if there are several metrics and kinds of epsilon.
    """
    several = AltTests.empty() if metric_tests is None else metric_tests
    agreement = named_by_criterion(agreement, comparison.measures)
    views = judge_views(comparison)
    frames: dict[str, pl.DataFrame] = {
        "alt_tests": alt_tests,
        "metric_tests": several,
        "advantages": advantages,
        "agreement": agreement,
    }
    shown = tests_shown(alt_tests)
    judges = shown.to_dicts()
    names = shown["judge"].unique().sort().to_list()
    return page(
        TEMPLATE,
        drawings(**frames),
        facts=facts,
        choices={"Judge": names} if len(names) > 1 else {},
        views=views,
        slice_columns=columns_of,
        overviews=_overviews(views),
        most_listed=MOST_IN_REPORT,
        most_unfolded=MOST_UNFOLDED,
        under=_under(judges, views),
        simulated=_simulated(alt_tests, comparison.measures),
        policy=calibration_policy(tested=bool(judges)),
        advice=[line.typeset() for line in calibration_advice(alt_tests, comparison)],
        judges=tested(alt_tests),
        least_winning_rate=number(calibration_limits().least_winning_rate),
        metrics=[_metric(row) for row in metric_rows(several)],
        people=about_people(agreement),
        sets="mean_jaccard" in agreement["statistic"],
        agreement=judge_rows(agreement),
        people_rows=_groups(judges, with_who(advantages.filter("asked"))),
        provenance=_provenance(facts, judges),
    )


def tested(alt_tests: DataFrame[AltTests]) -> list[Judged]:
    """Return a row per tested judge, the best first: its winning rate, its advantage, a verdict."""
    return [_judge(row) for row in tests_shown(alt_tests).to_dicts()]


def _simulated(*results: pl.DataFrame) -> str:
    """Say which judges are simulated, whatever was computed of them."""
    rows = pl.concat([each.select("judge", "simulated") for each in results]).unique()
    judges = rows.filter(pl.col("judge") != HUMANS)
    return simulated_sentence({*judges["judge"]}, formulas(judges))


def _overviews(views: Sequence[JudgeView]) -> list[tuple[list[str], list[AgreementRow]]]:
    """Return a table per kind of labels, if there are several judges or criteria."""
    kinds = dict.fromkeys(view.kind for view in views) if len(views) > 1 else ()
    return [(columns_of(kind), [v.whole for v in views if v.kind == kind]) for kind in kinds]


def _under(judges: Sequence[Row], views: Sequence[JudgeView]) -> str:
    if not judges:
        return f"{count(len(views), 'comparison')} of judges with people"
    first = judges[0]
    return (
        f"Metric {first['metric']}, {first['epsilon_kind']} epsilon {number(first['epsilon'])}, "
        f"test {first['test']}"
    )


def _judge(row: Row) -> Judged:
    ap = said({**row, "estimate": row["advantage_probability"]})
    left = [
        count(row[column], one)
        for column, one in (("dropped", "instance"), ("unreadable", "label"))
        if row[column]
    ]
    return Judged.of(
        row,
        _rate(row["winning_rate"]),
        ap if row["advantage_probability"] is not None else NONE,
        *(_rate(row[c]) for c in ("human_advantage_probability", "tied")),
        thousands(row["annotators"]),
        thousands(row["n"]),
        listing(left) or "none",
        finding=CellText(verdict(row), row["reason"] or ""),
    )


def verdict(row: Row) -> str:
    """Say whether a judge passes the test, and whether that is doubtful (its reason says why)."""
    doubt = ", doubtful" if row["passed"] is not None and row["reason"] else ""
    return VERDICTS[row["passed"]] + doubt


def _rate(value: float | None, note: str = "") -> CellText:
    return CellText("none" if value is None else number(value), note)


def _metric(row: Row) -> Judged:
    known = {"estimate": row["advantage_probability"], **row, "reason": None}
    return Judged.of(
        row,
        row["metric"],
        said(known) if row["advantage_probability"] is not None else NONE,
        _rate(row["human_advantage_probability"]),
        *(_rate(rate, VERDICTS[passed]) for rate, passed in row["rates"].values()),
    )


def _groups(judges: Sequence[Row], advantages: pl.DataFrame) -> list[dict[str, Any]]:
    """Return all annotators against each judge."""
    parts = advantages.sort("annotator").partition_by("who", as_dict=True)
    found = []
    for judge in judges:
        rows = parts[judge["who"],].to_dicts() if (judge["who"],) in parts else []
        replaced = sum(bool(row["rejected"]) for row in rows)
        tested = sum(row["rejected"] is not None for row in rows)
        lead = f"may replace {thousands(replaced)} of {count(tested, 'person', 'people')}"
        each = [_person(row) for row in rows]
        named = {"judge": judge["who"], "simulated": judge["simulated"]}
        found.append({**named, "summary": lead, "rows": each})
    return found


def _person(row: Row) -> Judged:
    verdict = {None: "not tested", True: "may be replaced", False: "not shown"}[row["rejected"]]
    known = row["advantage_probability"] is not None
    raw = [
        f"{name} {p_value(row[column])}"
        for name, column in (("t", "p_value_t"), ("score", "p_value_score"))
        if row[column] is not None
    ]
    invalid = count(row["unreadable"], "invalid label") if row["unreadable"] else ""
    return Judged.of(
        {"who": row["annotator"], "simulated": False},
        said({**row, "estimate": row["advantage_probability"]}) if known else NONE,
        *(_rate(row[c] if known else None) for c in ("human_advantage_probability", "tied")),
        p_value(row["p_adjusted"]),
        CellText(p_value(row["p_value"]), ", ".join(raw)),
        CellText(thousands(row["n"]), invalid),
        finding=CellText(verdict, row["reason"] or ""),
    )


def _provenance(facts: CalibrationFacts, judges: Sequence[Row]) -> dict[str, str]:
    people, judged = facts.people, facts.judges
    labels = {"name": facts.name, "labels of people": people, "labels of judges": judged}
    run = {
        "run": facts.run,
        "code version": facts.code_version,
        "run begun": facts.when,
        "warehouse": facts.warehouse,
    }
    compared = {
        "judges against people": "several people: the most frequent label, or the mean grade;"
        " p-values of all criteria and slices adjusted together (Benjamini-Hochberg)"
    }
    first = judges[0] if judges else {}
    tests = first and {
        "metric": first["metric"],
        "epsilon": f"{number(first['epsilon'])}, {first['epsilon_kind']}: "
        + (
            "a difference of probabilities"
            if first["epsilon_kind"] == "additive"
            else "a share of the person's own advantage probability (a different hypothesis)"
        ),
        "test": f"{first['test']}; the tables above show both p-values",
        "minimum instances of a person": thousands(facts.least),
        "adjustment": "Benjamini-Yekutieli over people, .05, for each judge",
        "intervals": f"level .95; advantage probabilities: {cluster_adjusted()}, at the effective"
        f" size of independent items; agreement: {cluster_adjusted()}, else cluster bootstrap"
        " (2 000 draws, seeded)",
    }
    return labels | tests | compared | run


class Agreement:
    """Estimates of a calibration on one dataset: about judges, groups and people."""

    def __init__(self, agreement: DataFrame[Estimates], dataset: str) -> None:
        """Split the estimates of a dataset; names of judges are unique among all datasets."""
        ceiling = agreement.filter(pl.col("statistic") == "noise_ceiling")
        self.models = ceiling["judge"].unique().to_list()
        is_model = pl.col("judge").is_in(self.models)
        judges = with_who(agreement.filter(is_model)).sort("who")
        own = pl.col("dataset") == dataset
        self.judges = judges.filter(own)
        self.groups = agreement.filter(own, pl.col("judge") == HUMANS)
        """Estimates of all people together."""
        of_people = ~pl.col("subgroup").is_in(["", HUMANS])
        self.people = agreement.filter(own, ~is_model, of_people)
        self.kappa = kappa_for_labels(agreement.filter(own))
        self.alpha = alpha_for_labels(agreement.filter(own))


def judge_rows(agreement: DataFrame[Estimates]) -> list[Judged]:
    """Return a row per judge and dataset: its agreement with people."""
    sets = "mean_jaccard" in agreement["statistic"]
    rows = []
    for found in (Agreement(agreement, dataset) for dataset in datasets_of(agreement)):
        for (who,), own in found.judges.group_by("who", maintain_order=True):
            of_all = {r["statistic"]: r for r in own.filter(subgroup=HUMANS).to_dicts()}
            people = own.filter(~pl.col("subgroup").is_in([HUMANS, *found.models]))
            texts = [
                said(of_all.get("below_ceiling")),
                said(of_all.get("noise_ceiling")),
                said(of_all.get("ceiling_ratio")),
                _range(people, found.kappa, of_all),
                *([_range(people, "mean_jaccard", of_all)] if sets else []),
                said(of_all.get(found.alpha)),
            ]
            rows.append(Judged(str(who), bool(own["simulated"].any()), texts))
    return sorted(rows, key=lambda row: row.judge)


def _range(people: pl.DataFrame, statistic: str, of_all: dict[str, Row]) -> CellText:
    """Write the mean over people, and the range."""
    values = people.filter(statistic=statistic)["estimate"].drop_nulls().to_list()
    if not values:
        return CellText("none", (of_all.get("cohen_kappa") or {}).get("reason") or "")
    ends = f"{number(min(values))} to {number(max(values))}" if len(values) > 1 else ""
    return CellText(number(sum(values) / len(values)), ends)


def datasets_of(agreement: DataFrame[Estimates]) -> list[str]:
    """Return the datasets, which share neither people nor items."""
    return agreement["dataset"].unique().sort().to_list()


def named_by_criterion(
    agreement: DataFrame[Estimates], measures: DataFrame[HumanAgreement]
) -> DataFrame[Estimates]:
    """Name the criteria of a single dataset, which are measured apart, without the dataset."""
    criteria = measures.drop_nulls("criterion").select("dataset", "criterion").unique()
    names = {f"{dataset}: {criterion}": criterion for dataset, criterion in criteria.rows()}
    if criteria["dataset"].n_unique() != 1 or not {*agreement["dataset"]} <= names.keys():
        return agreement
    return Estimates.draft(agreement.with_columns(pl.col("dataset").cast(pl.String).replace(names)))


def about_people(agreement: DataFrame[Estimates]) -> str:
    """Summarise, in a sentence per dataset, how well people agree with each other."""
    names = datasets_of(agreement)
    sentences = [_about(Agreement(agreement, name)) for name in names]
    if len(names) < 2:
        return next(iter(sentences), TOO_FEW_LABELS)
    return " ".join(f"{name}: {text}" for name, text in zip(names, sentences, strict=True))


def _about(found: Agreement) -> str:
    pairs = found.people.filter(statistic="agreement")["estimate"].drop_nulls().to_list()
    kappas = found.people.filter(statistic=found.kappa)["estimate"].drop_nulls().to_list()
    alpha = found.groups.filter(statistic=found.alpha).to_dicts()
    parts = []
    if pairs:
        parts.append(
            f"mean agreement {_mean(pairs)} over {count(len(pairs), 'pair')}"
            f" ({number(min(pairs))} to {number(max(pairs))})"
        )
    if kappas:
        parts.append(f"mean kappa {_mean(kappas)}")
    if alpha:
        text = said(alpha[0])
        parts.append(f"Krippendorff's alpha {text.text} {text.note}".strip())
    if not parts:
        return TOO_FEW_LABELS
    return f"Agreement among people: {'; '.join(parts)}."


def _mean(values: Sequence[float]) -> str:
    return number(sum(values) / len(values))
