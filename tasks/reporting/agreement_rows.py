"""A judge's agreement with people as rows of texts, for the terminal and the report."""

import json
import math
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from schemas.calibration import ConfusionMatrix, Disagreements, HumanAgreement
from schemas.frame import Row
from tasks.agreement.compare import MOST_LISTED, ComparisonWithPeople
from tasks.agreement.label_kinds import HAS, LACKS
from tasks.calibration.label_values import NUMBER, TIED, why_unreadable
from tasks.conclusions.rules import INCONCLUSIVE
from tasks.counting.annotations import HUMANS, PERSON
from tasks.kit.defaults import TARGET_HALF_WIDTH, calibration_limits
from tasks.kit.printable import first_few
from tasks.reporting.wording import (
    bounds,
    clean,
    clip,
    count,
    listing,
    number,
    p_value,
    thousands,
    who_of,
)

NAMES = {
    "agreement": "agreement",
    "kappa": "kappa",
    "kappa_linear": "kappa, linear",
    "kappa_quadratic": "kappa, quadratic",
    "tpr": "TPR",
    "tnr": "TNR",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "mean_error": "mean error",
    "bias": "bias",
    "corrected_ppi": "corrected, PPI++",
    "corrected_rogan_gladen": "corrected, Rogan-Gladen",
    "people_agreement": "people",
    "people_error": "people, mean error",
}
"""Statistics in the order of the tables."""
COMPACT = {
    "pass_fail": ("agreement", "kappa", "tpr", "tnr", "bias"),
    "grade": ("kappa_quadratic", "spearman", "mean_error", "bias"),
    "name": ("agreement", "kappa"),
}
"""Statistics of the tables that compare judges, criteria or slices, by kind of labels."""
MOST_WORDS = 12
"""Most labels of a confusion matrix that is shown."""
MOST_IN_REPORT = 50
"""Most disagreements of each judge and criterion that the report lists."""
MOST_UNREADABLE = 3
"""Most invalid labels that are named."""
AGAINST = ("the majority of people", "the mean grade of people")
VERDICT_NOTES = {"tpr": "that people pass", "tnr": "that people fail"}
LABEL_NOTES = {
    "tpr": "to which people give the label",
    "tnr": "to which people do not give the label",
}
LONGEST_TEXT = 2000
WHOLE = ("dataset", "judge", "prompt", "wave", "criterion")


class StatisticTexts(NamedTuple):
    """One statistic as texts."""

    name: str
    estimate: str
    interval: str
    note: str


class Matrix(NamedTuple):
    """A confusion matrix: labels, and per label of people how often each label of the judge."""

    words: list[str]
    rows: list[tuple[str, list[int]]]


class AgreementRow(NamedTuple):
    """A judge, criterion or slice as one row of a table."""

    name: str
    items: int
    texts: list[tuple[str, str]]
    """Estimate and interval of each statistic."""
    p: str
    finding: str
    simulated: bool = False


class Disagreement(NamedTuple):
    """An item on which the judge and people differ."""

    item: str
    human: str
    judge: str
    texts: list[tuple[str, str]]
    """Names and contents of the item's texts."""


HELPS = (
    "People's labels are numbers: `--threshold GRADE` counts grades from GRADE on as "
    "passes, and `--scale LOW HIGH` compares grades"
)
OTHER_WORDS = "Write labels of the judge in the same form as people's"
"""What helps if no label of a judge can be read, where people's are numbers, and else."""


class JudgeView(NamedTuple):
    """All that is shown of one judge and criterion."""

    title: str
    simulated: bool
    items: str
    against: str
    """What the judge is compared with: people, or the combined label of several."""
    kind: str
    whole: AgreementRow
    """All its items as one row, for a table that compares judges and criteria."""
    measures: list[StatisticTexts]
    matrix: Matrix | None
    slices: list[AgreementRow]
    split_by: str
    """The column of all slices, or ``slice`` if there are several."""
    disagreements: list[Disagreement]
    differing: str
    """How many items those are; a long list is cut."""
    labels: str
    """How many labels more would settle what is open."""
    unreadable: str
    """Items with an invalid label of people or of the judge; empty for results that were saved."""
    kappa: float | None
    """Agreement beyond chance; of grades the quadratic one."""


def judge_views(comparison: ComparisonWithPeople) -> list[JudgeView]:
    """Return a view of each judge and criterion, in order of their names."""
    measures = comparison.measures
    people = measures.filter(judge=HUMANS)
    judges = measures.filter(pl.col("judge") != HUMANS)
    judges = judges.with_columns(who_of(judges))
    several = judges["criterion"].n_unique() > 1
    alone = measures["p_value"].count() == 1
    views = []
    for key, rows in judges.group_by(WHOLE, maintain_order=True):
        cell = dict(zip(WHOLE, key, strict=True))
        own = pl.all_horizontal(pl.col(n).eq_missing(pl.lit(v, pl.String)) for n, v in cell.items())
        same = pl.col("criterion").eq_missing(pl.lit(cell["criterion"], pl.String))
        yardstick = people.filter(same, pl.col("dataset") == cell["dataset"]).to_dicts()
        title = " / ".join(filter(None, [rows["who"][0], cell["criterion"] if several else ""]))
        unread = comparison.unread.filter(same, pl.col("dataset") == cell["dataset"])
        tables = (comparison.confusion, comparison.disagreements, comparison.unreadable)
        confusion, differing, unreadable = (each.filter(own) for each in tables)
        of_judge = comparison._replace(
            measures=HumanAgreement.draft(rows.drop("who")),
            confusion=ConfusionMatrix.draft(confusion),
            disagreements=Disagreements.draft(differing),
            unreadable=unreadable,
            unread=unread,
        )
        views.append(_view(clip(clean(title), 80), of_judge, yardstick, alone=alone))
    return views


def _view(title: str, found: ComparisonWithPeople, people: list[Row], *, alone: bool) -> JudgeView:
    """Return the view of one judge; ``alone`` says that its only p-value is not adjusted."""
    rows, differing = found.measures, found.disagreements
    columns = rows["slice_column"].drop_nulls().unique().to_list()
    whole = {row["statistic"]: row for row in rows.filter(pl.col("slice").is_null()).to_dicts()}
    first = next(iter(whole.values()))
    of_label = found.confusion["human_label"].is_in([HAS, LACKS]).any()
    listed = {**whole, **{row["statistic"]: row for row in people}}
    measures = [
        _measure(name, listed[name], whole, alone=alone, of_label=of_label)
        for name in NAMES
        if name in listed and not (first["kind"] == "grade" and name == "kappa")
    ]
    cut = differing.height == MOST_LISTED
    of_judge = unreadable_line(found.unreadable, none_read=_size(whole) == 0)
    unread = found.unread
    of_people = f"invalid labels of people: {_named(unread)}" if unread.height else ""
    differing_items = ("or more disagreements",) * 2 if cut else ("disagreement", "disagreements")
    return JudgeView(
        title,
        bool(first["simulated"]),
        _items(whole, found),
        AGAINST[first["kind"] == "grade"] if people else "people",
        first["kind"],
        _part(title, whole)._replace(simulated=bool(first["simulated"])),
        measures,
        _matrix(found.confusion),
        list(_slices(rows.filter(pl.col("slice").is_not_null()))),
        clip(clean(columns[0]), 30) if len(columns) == 1 else "slice",
        [_disagreement(row, grades=first["kind"] == "grade") for row in differing.to_dicts()],
        count(differing.height, *differing_items),
        _labels(whole),
        "; ".join(filter(None, (of_people, of_judge))),
        whole.get("kappa_quadratic", whole.get("kappa", {})).get("estimate"),
    )


def unreadable_line(rows: pl.DataFrame, *, none_read: bool) -> str:
    """Name the first items with an invalid label of the judge, and what helps."""
    rows = rows.filter(pl.col("label") != TIED)
    if rows.is_empty():
        return ""
    # A judge that also gives one half is a judge of grades, though its 0 and 1 can be read.
    grades = rows["graded"].all() if none_read else rows["graded"].any()
    helps = HELPS if grades else OTHER_WORDS if none_read else ""
    return f"invalid labels of the judge: {_named(rows)}{f'. {helps}' if helps else ''}"


def _named(rows: pl.DataFrame) -> str:
    named = [
        f"{clip(clean(item), 40)} ({clip(clean(why_unreadable(label) or label), 60)})"
        for item, label in rows["item", "label"].head(MOST_UNREADABLE).rows()
    ]
    return listing(first_few(named, MOST_UNREADABLE, rows.height))


def adjustment_line(measures: pl.DataFrame) -> str:
    """Say how the p-values of all judges, criteria and slices are adjusted; empty if one is."""
    many = measures["p_value"].count()
    if many < 2:
        return ""
    return f"p-values are adjusted together over {count(many, 'test')} (Benjamini-Hochberg)"


def columns_of(kind: str) -> list[str]:
    """Return the names of the statistics that tables show of this kind of labels."""
    return [NAMES[name] for name in COMPACT[kind]]


def _measure(
    name: str, row: Row, whole: dict[str, Row], *, alone: bool, of_label: bool
) -> StatisticTexts:
    notes = [_note(name, row, whole, alone=alone, of_label=of_label), row["reason"]]
    texts = number(row["estimate"]), bounds(row).strip(" ")
    return StatisticTexts(NAMES[name], *texts, "; ".join(filter(None, notes)))


def _note(name: str, row: Row, whole: dict[str, Row], *, alone: bool, of_label: bool) -> str:
    """Explain a number by what it is to be compared with."""
    if name == "agreement" and "agreement_by_chance" in whole and row["n"]:
        chance, most = (whole[n]["estimate"] for n in ("agreement_by_chance", "majority_share"))
        return f"by chance {number(chance)}, most frequent label {number(most)}"
    if name in {"tpr", "tnr"}:
        words = LABEL_NOTES if of_label else VERDICT_NOTES
        return f"of {count(row['n'], 'item')} {words[name]}"
    if name == "bias" and row["estimate"] is not None:
        return _bias_note(row, whole, alone=alone, of_label=of_label)
    if name.startswith("corrected") and "all_judged_mean" in whole:
        return _correction_note(name, row, whole)
    if name.startswith("people_"):
        return "each person against the others, left out in turn"
    return ""


def _bias_note(row: Row, whole: dict[str, Row], *, alone: bool, of_label: bool) -> str:
    rate = "share with the label" if of_label else "pass rate"
    rates = row["kind"] == "pass_fail"
    judge, people = (number(whole[n]["estimate"]) for n in ("judge_mean", "human_mean"))
    said = f"judge minus people: {rate if rates else 'mean grade'} {judge} and {people}"
    limits, why = calibration_limits(), []
    if row["p_value"] is not None:
        why.append(f"{'' if alone else 'adjusted '}p {p_value(row['p_adjusted'])}")
    if row["finding"] == INCONCLUSIVE:
        in_sds = f"{number(limits.minimum_grade_bias)} SD of the judge's grades"
        why.append(f"relevant from {number(limits.minimum_rate_bias) if rates else in_sds}")
    finding = f"; {row['finding']}" if row["finding"] else ""
    because = f" ({'; '.join(why)})" if why else ""
    return f"{said}{finding}{because}"


def _correction_note(name: str, row: Row, whole: dict[str, Row]) -> str:
    if name == "corrected_rogan_gladen":
        return f"the {count(row['n'], 'item')} without a label of people"
    judged, tied = whole["all_judged_mean"], whole["agreement"]["tied"]
    but = f" without the {thousands(tied)} on which people are tied" if tied else ""
    items = count(judged["n"], "judged item")
    return f"all {items}{but}; judge {number(judged['estimate'])}"


def _items(whole: dict[str, Row], found: ComparisonWithPeople) -> str:
    row = whole["agreement"]
    tied = found.unreadable.filter(label=TIED).height
    valid = "valid " if found.unread.height else ""
    of_labels = row["prompt"] == PERSON
    missing = "without a label of the judge" if of_labels else "without a reply of the judge"
    kept_apart = [
        f"{thousands(many)} {what}"
        for many, what in (
            (row["missing"], missing),
            (row["invalid"] - tied, "with an invalid label of the judge"),
            (
                tied,
                "on which the repeats of the judge tie (an odd number of repeats ties less often)",
            ),
            (row["tied"], "on which people are tied"),
            (row["unlabelled"], f"without a {valid}label of people"),
        )
        if many
    ]
    apart = f"; left out: {listing(kept_apart)}" if kept_apart else ""
    ranked = _size(whole) - int(row["n"])
    by_rank = f", {thousands(ranked)} of them by rank only" if ranked else ""
    return f"{count(_size(whole), 'item')} compared{by_rank}{apart}"


def _size(found: dict[str, Row]) -> int:
    """Return how many items are compared; correlations need no common scale."""
    return max(int(found[name]["n"]) for name in ("agreement", "spearman") if name in found)


QUESTIONS = "`voirdire plan` counts the questions that would decide the gates of an audit"


def labelled(many: int, row: Row, more: str = "") -> str:
    """Write a number of labels; where rows belong together, as rows with their clusters."""
    n, clusters = row["n"], row["clusters"]
    if not 0 < clusters < n:
        return count(many, f"{more}labelled item")
    of = math.ceil(many * clusters / n)
    return f"{count(many, f'{more}labelled row')} (of {count(of, 'cluster')})"


def _labels(whole: dict[str, Row]) -> str:
    needed = {
        n: whole[n]["estimate"] for n in ("labels_for_agreement", "labels_for_bias") if n in whole
    }
    parts = []
    if (many := needed.get("labels_for_agreement")) and many > whole["agreement"]["n"]:
        labels = labelled(int(many), whole["agreement"])
        width = f"±{number(TARGET_HALF_WIDTH)}"
        parts.append(f"with {labels} the interval of the agreement would be about {width}")
    bias = whole.get("bias")
    many = needed.get("labels_for_bias")
    if bias and many and bias["finding"] == INCONCLUSIVE and many > bias["n"]:
        limits = calibration_limits()
        in_sds = f"{number(limits.minimum_grade_bias)} SD"
        least = number(limits.minimum_rate_bias) if bias["kind"] == "pass_fail" else in_sds
        parts.append(f"{labelled(int(many), bias)} would detect a bias of {least}")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]} ({QUESTIONS})." if text else ""


def _matrix(confusion: pl.DataFrame) -> Matrix | None:
    words = {*confusion["human_label"], *confusion["judge_label"]}
    if not words or len(words) > MOST_WORDS:
        return None
    # Numbers in their order, before other labels.
    ordered = sorted(words, key=lambda w: (float(w) if NUMBER.fullmatch(w) else float("inf"), w))
    cells = {(h, j): n for h, j, n in confusion["human_label", "judge_label", "items"].rows()}
    rows = [(_shown(h), [cells.get((h, j), 0) for j in ordered]) for h in ordered]
    return Matrix([_shown(word) for word in ordered], rows)


def _shown(word: str) -> str:
    """Return a label with at most two decimals."""
    decimals = word.partition(".")[2] if NUMBER.fullmatch(word) else ""
    return f"{float(word):.2f}" if len(decimals) > 2 else word


def _slices(rows: pl.DataFrame) -> Iterator[AgreementRow]:
    """Yield the slices, the worst first: the lowest agreement, of grades the largest error."""
    several = rows["slice_column"].n_unique() > 1
    name, sign = ("mean_error", -1) if (rows["kind"] == "grade").any() else ("agreement", 1)
    first = sign * pl.col("estimate").filter(pl.col("statistic") == name).first()
    ordered = rows.with_columns(worst=first.over("slice_column", "slice")).sort(
        "slice_column", "worst", nulls_last=True, maintain_order=True
    )
    for (column, value), part in ordered.group_by("slice_column", "slice", maintain_order=True):
        name = f"{column}: {value}" if several else str(value)
        yield _part(name, {row["statistic"]: row for row in part.to_dicts()})


def _part(name: str, found: dict[str, Row]) -> AgreementRow:
    kind = next(iter(found.values()))["kind"]
    texts = []
    for statistic in COMPACT[kind]:
        row = found.get(statistic)
        texts.append((number(row["estimate"]), bounds(row).strip(" ")) if row else ("", ""))
    apart = found.get("agreement_difference") or found.get("error_difference")
    p = p_value(apart["p_adjusted"]) if apart and apart["p_adjusted"] is not None else ""
    finding = found.get("bias", {}).get("finding") or ""
    return AgreementRow(clip(clean(name), 60), _size(found), texts, p, finding)


def _disagreement(row: Row, *, grades: bool) -> Disagreement:
    texts = [
        (clean(name), clip(text, LONGEST_TEXT))
        for name, text in json.loads(row["texts"]).items()
        if isinstance(text, str) and text
    ]
    people = row["human_label"]
    if row["people"] > 1:
        equal = "mean" if grades else round(row["human_share"] * row["people"])
        people += f" ({equal} of {row['people']})"
    return Disagreement(row["item"], people, row["judge_label"], texts)
