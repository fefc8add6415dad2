"""The answer of a calibration: who may replace people, or agrees with them; labels to check."""

import json
from collections.abc import Sequence
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import AltTests
from schemas.frame import Row
from schemas.keys import JUDGE
from tasks.agreement.compare import ComparisonWithPeople
from tasks.agreement.measures import COEFFICIENTS, DESCRIPTIVE, TO_DECIDE
from tasks.agreement.pass_words import VERDICTS as PASS_PAIRS
from tasks.conclusions.rules import AGREES, BIASED, DISAGREES, INCONCLUSIVE
from tasks.counting.annotations import HUMANS
from tasks.counting.positions import VERDICTS
from tasks.gates.summaries import REASONS_SHOWN
from tasks.kit.defaults import calibration_limits
from tasks.kit.printable import first_few
from tasks.readers.expressions import with_point
from tasks.reporting.advice import MARKS, ORDER, Advice
from tasks.reporting.agreement_rows import MOST_UNREADABLE, NAMES, labelled
from tasks.reporting.wording import (
    clean,
    clip,
    count,
    interval,
    listing,
    number,
    who_of,
    with_who,
)

MAY = "may replace people"
OF_PAIRS = (
    "Here a win counts only if both orders give it; the study's gate agreement counts each vote, "
    "and decides"
)
OF_EARLIER_VERSION = (
    "An earlier version saved this agreement without a conclusion: run `voirdire calibrate` on the "
    "same labels again"
)

OR_NAME_IT = (
    ", or name the label that passes with --pass LABEL: labels other than people's two are then "
    "invalid"
)
RARE = 0.1
"""A label that no person gave is named if at most this share of items has it."""


def label_warnings(comparison: ComparisonWithPeople) -> list[str]:
    """Say which labels and grades a user should check, why, and what to do."""
    return [
        *_odd_lines(comparison),
        *_unusual_grade_lines(comparison),
        *_fraction_lines(comparison.confusion),
        *_rare_label_lines(comparison),
    ]


def _odd_lines(comparison: ComparisonWithPeople) -> list[str]:
    """Name the few labels of people that turn all labels into names, and say what to do."""
    words = ", ".join(f"{good} and {bad}" for good, bad in PASS_PAIRS)
    lines = []
    odd = dict.fromkeys((each.criterion, each.odd) for each in comparison.unusual if each.odd)
    for criterion, found in odd:
        read, what, todo = "grades", "number", "Correct or empty the label."
        if point := with_point(json.loads(found.label)):
            todo = f"It has a decimal comma: write {point:.40}."
        if found.most == "pass_fail":
            read, what = "pass and fail", "word for pass or fail"
            todo = (
                f"Words for pass and fail: {words}. Correct or empty the label or, if it is right, "
                "name the one that passes with --pass LABEL: the others fail."
            )
        lines.append(
            f"Labels{_of(criterion)} are compared as names, not as {read}, because {found.odd} of "
            f"{count(found.labels, 'label')} of people {'is' if found.odd == 1 else 'are'} no "
            f"{what}: {clip(clean(found.label), 60)} (item {clip(clean(found.item), 40)}). {todo}"
        )
    return lines


def _unusual_grade_lines(comparison: ComparisonWithPeople) -> list[str]:
    """Say which few grades of people are not whole, and where judges use another scale."""
    lines = []
    fractions = dict.fromkeys(
        (each.criterion, each.fractions) for each in comparison.unusual if each.fractions
    )
    for criterion, few in fractions:
        named = listing(first_few([f"{grade:g}" for grade in few.grades], MOST_UNREADABLE))
        lines.append(
            f"{few.number} of {count(few.given, 'grade')} of people{_of(criterion)} "
            f"{'is' if few.number == 1 else 'are'} not whole: {named} (item "
            f"{clip(clean(few.item), 40)}). The grade nearest to a mean grade of people may "
            f"be such a grade, so {few.changed} of {count(few.items, 'item')} count as another "
            "grade in agreement, kappa and the confusion matrix than without. Correct the grade if "
            "it is a mistake."
        )
    alike: dict[tuple[Any, ...], list[str]] = {}
    ranges = [(each.criterion, one) for each in comparison.unusual for one in each.ranges]
    for criterion, found in ranges:
        judges = alike.setdefault((criterion, found.judged, found.people), [])
        judges += [clip(clean(found.judge), 40)] * (found.judge not in judges)
    for (criterion, judged, people), judges in alike.items():
        ours, theirs = (f"{low:g} to {high:g}" for low, high in (judged, people))
        lines.append(
            f"Grades{_of(criterion)} of {listing(judges)} are from {ours}, those of people from "
            f"{theirs}. If these are two scales, bias, mean error, agreement, kappa and a "
            "threshold compare numbers of different meaning: write both on one scale. If it is "
            "one, declare it with "
            "--scale LOW HIGH."
        )
    return lines


def _fraction_lines(confusion: pl.DataFrame) -> list[str]:
    """Name judges whose grades are mostly fractions while people's are whole numbers."""
    number = {
        side: pl.col(f"{side}_label").cast(pl.String).cast(pl.Float64, strict=False)
        for side in ("human", "judge")
    }
    whole = {side: (each == each.floor()).fill_null(value=False) for side, each in number.items()}
    cells = confusion.group_by("criterion", "judge", "prompt", maintain_order=True).agg(
        fractions=pl.col("items").filter(number["judge"].is_not_null() & ~whole["judge"]).sum(),
        items=pl.col("items").sum(),
        plain=whole["human"].all(),
    )
    found = cells.filter("plain", 2 * pl.col("fractions") >= pl.col("items"))
    lines = []
    for criterion in found["criterion"].unique(maintain_order=True):
        rows = found.filter(pl.col("criterion").eq_missing(pl.lit(criterion, pl.String)))
        names = rows["judge"].cast(pl.String).unique(maintain_order=True)
        lines.append(
            f"Most grades{_of(criterion)} of {listing([clip(clean(name), 40) for name in names])} "
            "are fractions, and those of people are whole numbers: agreement, linear kappa and the "
            "confusion matrix compare whether two grades are equal. Quadratic kappa, correlations, "
            "bias and mean error compare the numbers."
        )
    return lines


def _rare_label_lines(comparison: ComparisonWithPeople) -> list[str]:
    """Say which rare labels of a judge people never gave: failures to give a verdict, maybe.

    Only of names: a judge of pairs may say *tie* where people never do.
    """
    named = comparison.measures.filter(kind="name").select("criterion").unique()
    about = ["criterion", "judge", "prompt"]
    found = (
        comparison.confusion.join(named, on="criterion", nulls_equal=True)
        .with_columns(pl.col("human_label", "judge_label").cast(pl.String))
        .with_columns(
            alone=~pl.col("judge_label").is_in(pl.col("human_label").implode()).over("criterion"),
            whole=pl.col("items").sum().over(about),
            two=pl.col("human_label").n_unique().over("criterion") == 2,
        )
        .filter(pl.col("alone") & ~pl.col("judge_label").is_in(VERDICTS))
        .group_by(*about, "judge_label", maintain_order=True)
        .agg(pl.col("items").sum(), pl.col("whole", "two").first())
        .filter(pl.col("items") <= RARE * pl.col("whole"))
        .sort("items", descending=True, maintain_order=True)
    )
    return [
        f"No item has {clip(clean(row['judge_label']), 60)} as people's label"
        f"{_of(row['criterion'])}, but {clip(clean(row['judge']), 40)} gave it to {row['items']} "
        f"of {count(row['whole'], 'item')}: it counts as a disagreement. If it stands for a reply "
        f"without a verdict, empty it{OR_NAME_IT if row['two'] else ''}."
        for row in found.head(MOST_UNREADABLE).to_dicts()
    ]


def _of(criterion: str | None) -> str:
    return f" of {clip(clean(criterion), 40)}" if criterion else ""


def calibration_advice(
    alt_tests: DataFrame[AltTests], comparison: ComparisonWithPeople
) -> list[Advice]:
    """Return a line per judge: whether it may replace people or, without a test, agrees with them.

    A judge that passes the alternative annotator test may replace people: with care if a note
    doubts the test or the judge is biased, and not if it does not agree with people's combined
    label, because where people agree by chance only, any judge passes. One that fails is not shown
    to be able to. Without a test, a judge agrees with people if it agrees on each criterion beyond
    the limit ``least_agreement``: with care unless its bias is irrelevant.
    Judges that may be used come first.
    """
    whole = comparison.measures.filter(pl.col("judge") != HUMANS, pl.col("slice_column").is_null())
    asked = tests_shown(alt_tests)
    both = [frame.select(pl.col(JUDGE).cast(pl.String)) for frame in (asked, whole)]
    # Judges of both parts get their names together: the test may not cover each dataset.
    every = pl.concat(both).unique(maintain_order=True)
    named = every.with_columns(who_of(every))
    tests = {_key(row): row for row in asked.to_dicts()}
    measured: dict[tuple[str, ...], list[Row]] = {}
    for row in with_who(whole).to_dicts():
        measured.setdefault(_key(row), []).append(row)
    labels = ["human_label", "judge_label"]
    said = comparison.confusion.unpivot(labels, index=list(JUDGE), value_name="label")
    by_judge = said.group_by(JUDGE).agg(pl.col("label").unique())
    of_pairs = {_key(row) for row in by_judge.to_dicts() if {*row["label"]} <= {*VERDICTS}}
    lines = []
    for row in named.to_dicts():
        test, rows = tests.get(_key(row)), measured.get(_key(row), [])
        first, by_votes = test or rows[0], _key(row) in of_pairs
        name = clip(clean(row["who"]), 60)
        line = _advice(name, test, rows, simulated=bool(first["simulated"]), by_votes=by_votes)
        lines.append(line)
    return sorted(lines, key=lambda line: ORDER.index(line.level))


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[column] for column in JUDGE)


def calibration_policy(*, tested: bool) -> str:
    """Say what decides the answer, with the limits in force; ``tested``: whether the test was."""
    limits = calibration_limits()
    by_test = (
        "A judge may replace people if it passes the alternative annotator test (winning rate "
        f"of at least {number(limits.least_winning_rate)}) and is not shown to disagree with "
        "people's combined label (on pairs, the gate agreement tests that); with care if its bias "
        "is relevant"
    )
    alone = (
        "A judge agrees with people if the whole 95 % interval of its kappa (for grades: of "
        f"Spearman's correlation) lies above {number(limits.least_agreement)}, but with care "
        "unless its bias is shown to be irrelevant (labels that are names have none)"
    )
    return (
        f"{by_test if tested else alone}. Nothing is concluded from fewer than "
        f"{limits.fewest_questions} independent items (`thresholds` of the calibration)."
    )


def _advice(
    name: str, test: Row | None, rows: Sequence[Row], *, simulated: bool, by_votes: bool
) -> Advice:
    """Return the line of a judge; ``by_votes``: a gate tests its agreement (on pairs)."""
    agreed = [row for row in rows if row["statistic"] == COEFFICIENTS[row["kind"]]]
    apart = [row for row in agreed if row["finding"] == DISAGREES and not by_votes]
    biases = [row for row in rows if row["statistic"] == "bias"]
    biased = [row for row in biases if row["finding"] == BIASED]
    passed = test["passed"] if test else None
    shown, more_labels, undecided = [*apart, *biased], None, agreed[:0]
    # Only results of an earlier version have an interval without a finding.
    earlier = [] if by_votes else [r for r in agreed if not r["finding"] and r["low"] is not None]
    if passed and not apart:
        careful = bool(shown or earlier or (test and test["reason"]))
        level, word = "use with care" if careful else "use", MAY
    elif passed is None and by_votes:
        level, word, shown = "not enough data", "not decided here", agreed
    elif passed is None and agreed and all(row["finding"] == AGREES for row in agreed):
        limits = [row for row in biases if row["finding"] in {BIASED, INCONCLUSIVE}]
        level, word = "use with care" if limits else "use", "agrees with people"
        shown = [*limits, *agreed]
    elif apart:
        level, word = "do not use", "does not agree with people"
    else:
        level = "not enough data"
        word = level if passed is None else f"not shown that it {MAY}"
        undecided = [row for row in agreed if row["finding"] == INCONCLUSIVE]
        shown += [*undecided, *earlier]
        # The agreement decides only where no test does.
        more_labels = _labels_that_decide(rows, undecided) if passed is None else None
    word += ", with care" * (level == "use with care")
    texts = [_in_words(row, limited=not by_votes) for row in shown]
    why = [*(_test_in_words(test) if test else ()), *texts[:REASONS_SHOWN]]
    if others := shown[REASONS_SHOWN:]:
        why.append(f"{count(len(others), 'more reason')} below")
    if not why:
        found = (row["reason"] for row in (*agreed, *rows))
        reasons = (each for each in found if each not in {None, "", DESCRIPTIVE})
        why = [next(reasons, "nothing is compared")]
    said = "; ".join(why)
    if by_votes and passed is None:
        said += f". {OF_PAIRS}"
    if earlier:
        said += f". {OF_EARLIER_VERSION}"
    one_label = any(r["statistic"] == "majority_share" and r["estimate"] == 1 for r in rows)
    if undecided and one_label:
        said += (
            f". People gave all items one label, and so {NAMES['kappa']} is 0 whatever a judge "
            "says: label items that deserve another one"
        )
    elif more_labels:
        labels = labelled(more_labels, undecided[0], "more ")
        said += f". About {labels} like these would decide the agreement"
    return Advice(MARKS[level], word, name, simulated, f"{said[:1].upper()}{said[1:]}")


def _labels_that_decide(rows: Sequence[Row], undecided: Sequence[Row]) -> int | None:
    """Return how many more labelled items would decide the ``undecided`` agreements.

    One agreement below the limit suffices to say that a judge does not agree; else all of them are
    to lie above it. Null if no number that can be named would decide.
    """
    needed = {_part(row): row["estimate"] for row in rows if row["statistic"] == TO_DECIDE}
    least = calibration_limits().least_agreement
    below = [needed.get(_part(row)) for row in undecided if row["estimate"] < least]
    if decisive := [each for each in below if each is not None]:
        return int(min(decisive))
    every = [needed.get(_part(row)) for row in undecided]
    known = [each for each in every if each is not None]
    return int(max(known)) if known and len(known) == len(every) else None


def _part(row: Row) -> tuple[str | None, ...]:
    return row["criterion"], row["wave"], row["prompt"]


def _test_in_words(test: Row) -> list[str]:
    if test["passed"] is None:
        return [f"not tested: {test['reason']}"]
    advantage, of_people = (
        number(test[name]) for name in ("advantage_probability", "human_advantage_probability")
    )
    among = count(test["annotators"], "person", "people")
    ends = interval(test["low"], test["high"])
    return [
        f"winning rate {number(test['winning_rate'])} among {among}",
        f"advantage probability {advantage} {ends}, that of people {of_people}",
        *([test["reason"]] if test["reason"] else []),
    ]


def _in_words(row: Row, *, limited: bool = True) -> str:
    """Say what a coefficient or a bias is, and what is concluded."""
    said = f"{NAMES[row['statistic']]} {number(row['estimate'])}"
    if row["estimate"] is not None:
        known = row["low"] is not None
        said += f" {interval(row['low'], row['high']) if known else 'without an interval'}"
    for word, part in (("on", row["criterion"]), ("in wave", row["wave"])):
        said += f" {word} {clip(clean(part), 40)}" if part else ""
    least = calibration_limits().least_agreement
    found = row["finding"] if row["statistic"] == "bias" else f"limit {number(least)}"
    return f"{said} ({found})" if limited else said


def tests_shown(alt_tests: DataFrame[AltTests]) -> pl.DataFrame:
    """Return the tests at the chosen margin, the best judge first."""
    return with_who(alt_tests.filter("asked")).sort(
        -pl.col("winning_rate"), -pl.col("advantage_probability"), "who", nulls_last=True
    )
