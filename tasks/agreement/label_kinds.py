"""Kinds of labels (pass and fail, grades, names), their values, and labels that need a check."""

import json
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import polars as pl

from tasks.agreement.pass_words import PASS_WORDS, is_failure
from tasks.calibration.label_values import as_word, nearest_whole, read_labels, readings

ScaleKind = Literal["pass_fail", "grade", "name"]

PASS, FAIL = "pass", "fail"
HAS, LACKS = "has the label", "lacks the label"
"""What is said of an item where the verdict is whether it has a label."""
WORDS = {word: PASS if passes else FAIL for word, passes in PASS_WORDS.items()}
FEW = 0.1
"""Largest share of people's grades that are no whole numbers, where the others are."""
LEAST_GRADES = 20
"""Fewest grades of the judge, and of people, whose ranges are compared."""
TIMES = 1.8
"""Ratio of the two highest grades from which on two ranges of grades differ."""


class Declared(NamedTuple):
    """How the user declares labels to be read; null where the labels themselves decide."""

    positive: str | None = None
    """The label that counts as a pass."""
    scale: tuple[float, float] | None = None
    """Ends of the scale of grades."""
    threshold: float | None = None
    """Grades from this one on pass."""

    @property
    def has_grades(self) -> bool:
        """Whether grades are declared: the few labels that are no numbers are invalid ones."""
        return self.scale is not None or self.threshold is not None


AS_GIVEN = Declared()


def scale_of(low: float | None, high: float | None) -> tuple[float, float] | None:
    """Return a scale of grades; None without ends.

    Raise ValueError for a scale with one end, or whose ends are not in order.
    """
    if low is None and high is None:
        return None
    if low is not None and high is not None and low >= high:
        raise ValueError(
            f"of a scale the low end ({low:g}) must be below the high end ({high:g}): write "
            f"{high:g} {low:g}."
        )
    if low is None or high is None:
        raise ValueError(
            f"the scale from {low} to {high} is not one: give its lowest and its highest grade."
        )
    return low, high


class LabelReading(NamedTuple):
    """How the labels of one criterion are read."""

    kind: ScaleKind
    positive: str | None = None
    """The label that counts as a pass; null for the usual words."""
    low: float | None = None
    high: float | None = None
    """Ends of the scale of grades; null if not declared."""
    threshold: float | None = None
    """Grades from this one on pass, the others fail, and words for pass and fail stay verdicts;
    null if grades stay grades."""
    whole: bool = False
    """Whether the word of a grade is the nearest whole grade (see ``as_whole``)."""


def reading_of(people: pl.Series, declared: Declared = AS_GIVEN) -> LabelReading:
    """Return how to read the labels, from those that people gave (as JSON).

    They are verdicts if all are usual words for pass and fail, or if one is declared to be a pass;
    grades if all are numbers (with a declared scale or threshold: more than half), which become
    verdicts by a threshold; else names.
    """
    positive, scale, threshold = declared
    graded = are_mostly_numbers(people) if declared.has_grades else are_numbers(people)
    if threshold is not None and graded:
        low, high = scale or (None, None)
        return LabelReading("pass_fail", low=low, high=high, threshold=threshold)
    words = [word for word in readings("text", people).values() if isinstance(word, str)]
    if positive is not None:
        low, high = scale if scale and graded else (None, None)
        return LabelReading("pass_fail", positive.strip(), low, high)
    if words and not (scale and graded) and all(word.strip().lower() in WORDS for word in words):
        return LabelReading("pass_fail")
    if graded:
        return LabelReading("grade", None, *(scale or (None, None)))
    return LabelReading("name")


def positive_of(positive: str | None, labels: pl.Series) -> str | None:
    """Return the label of a pass if it is among the ``labels`` (JSON) of a criterion, else null."""
    if positive is None:
        return None
    words = values_of(labels, LabelReading("name"))["word"].drop_nulls()
    known = {str(word).strip().lower() for word in words}
    return positive if positive.strip().lower() in known else None


def are_numbers(labels: pl.Series) -> bool:
    """Tell whether all labels (JSON) are numbers, and there are any."""
    numbers = readings("number", labels).values()
    return bool(numbers) and None not in numbers


def are_mostly_numbers(labels: pl.Series) -> bool:
    """Tell whether more than half of the labels (JSON) are numbers."""
    graded = [label for label, number in readings("number", labels).items() if number is not None]
    return labels.is_in(graded).sum() * 2 > labels.count()


class OddLabels(NamedTuple):
    """Labels that make all labels names, although most are verdicts or grades."""

    most: ScaleKind
    """What most labels are."""
    item: str
    label: str
    """The first of the others (as JSON), and its item."""
    odd: int
    labels: int
    """Number of the other labels, and of all labels."""


def odd_labels(people: pl.DataFrame, reading: LabelReading) -> OddLabels | None:
    """Return the few labels (``item``, ``label`` as JSON) that make names of all; else None."""
    given = people.drop_nulls(["item", "label"])
    if reading.kind != "name" or given.is_empty():
        return None
    words, numbers = (readings(kind, given["label"]) for kind in ("text", "number"))
    verdicts = [label for label, word in words.items() if str(word).strip().lower() in WORDS]
    grades = [label for label, number in numbers.items() if number is not None]
    rows = given.with_columns(
        pass_fail=pl.col("label").is_in(verdicts), grade=pl.col("label").is_in(grades)
    )
    most: ScaleKind = "grade" if rows["grade"].sum() > rows["pass_fail"].sum() else "pass_fail"
    others = rows.filter(~pl.col(most))
    if others.height * 2 >= rows.height:
        return None
    return OddLabels(most, others["item"][0], others["label"][0], others.height, rows.height)


class Fractions(NamedTuple):
    """Grades of people that are no whole numbers, as nearly all others are."""

    grades: tuple[float, ...]
    """The distinct ones, in order."""
    item: str
    """The item of the first."""
    number: int
    given: int
    """How many there are, and how many grades people gave."""
    changed: int
    items: int
    """How many items count as another grade because of them, and how many people graded."""


class Ranges(NamedTuple):
    """The lowest and the highest grade of a judge and of people, which differ clearly."""

    judge: str
    judged: tuple[float, float]
    people: tuple[float, float]


def is_whole() -> pl.Expr:
    """Tell whether a ``value`` is a whole number."""
    return pl.col("value") == pl.col("value").floor()


def few_fractions(people: pl.DataFrame, changed: int) -> Fractions | None:
    """Return the few grades (``item``, ``value``) that are not whole, if they change items."""
    found = people.filter(~is_whole())
    if not changed or found.height > FEW * people.height:
        return None
    grades = tuple(found["value"].unique().sort())
    sizes = (found.height, people.height, changed, people["item"].n_unique())
    return Fractions(grades, found["item"][0], *sizes)


def differing_ranges(judges: pl.DataFrame, people: pl.Series) -> Iterator[Ranges]:
    """Yield the judges (``name``, ``judge_value``) whose highest grade is far from people's.

    Grades that are all equal have no range.
    """
    theirs = people.drop_nulls()
    if theirs.len() < LEAST_GRADES or theirs.n_unique() == 1:
        return
    low, high = float(theirs.min()), float(theirs.max())  # type: ignore[arg-type]
    value = pl.col("judge_value")
    of_judges = judges.group_by("name", maintain_order=True).agg(
        value.min().alias("low"), value.max().alias("high"), value.count().alias("given")
    )
    for name, lowest, highest, given in of_judges.rows():
        ends = sorted((highest or 0.0, high))
        if (
            given >= LEAST_GRADES
            and lowest < highest
            and ends[0] > 0
            and ends[1] >= TIMES * ends[0]
        ):
            yield Ranges(name, (lowest, highest), (low, high))


def values_of(labels: pl.Series, reading: LabelReading, known: Sequence[str] = ()) -> pl.DataFrame:
    """Return each distinct label (JSON) with its ``word`` and, for an order, its ``value``.

    Both are null for a label that is not readable as this kind. ``known`` are the words of people,
    which are fails if the pass is named.
    """
    distinct = labels.drop_nulls().unique().sort()
    given = [json.loads(label) for label in distinct]
    words: list[str | None]
    verdicts = {PASS: 1.0, FAIL: 0.0} if reading.kind == "pass_fail" else {}
    if reading.kind == "grade":
        numbers = [_on_scale(number, reading) for number in read_labels("number", given)]
        values = pl.Series(numbers, dtype=pl.Float64)
        words = [as_word(each) for each in (nearest_whole(values) if reading.whole else values)]
    elif (least := reading.threshold) is not None:
        # A number off the scale is invalid, also 1 and 0, which else are words for pass and fail.
        words = [
            WORDS.get(str(label).strip().lower())
            if number is None
            else None
            if (grade := _on_scale(number, reading)) is None
            else (FAIL, PASS)[int(grade >= least)]
            for label, number in zip(given, read_labels("number", given), strict=True)
        ]
    else:
        words = [as_word(each) for each in read_labels("text", given)]
        if reading.kind == "pass_fail":
            words = [_verdict(word, reading, known) for word in words]
    if reading.kind != "grade":
        values = pl.Series([verdicts.get(word or "") for word in words], dtype=pl.Float64)
    return pl.DataFrame(
        {"label": distinct, "word": words, "value": values},
        schema={"label": pl.String, "word": pl.String, "value": pl.Float64},
    )


def read_beside(labels: pl.Series, people: pl.Series, reading: LabelReading) -> pl.DataFrame:
    """Return the ``word`` and ``value`` of labels that are compared with people's.

    A text with which tools report a failed grader is invalid too, unless people give it.
    """
    words = values_of(people, LabelReading("name"))["word"].drop_nulls()
    known = [str(word).strip().lower() for word in words]
    found = values_of(labels, reading, known)
    failed = [
        word is not None and is_failure(word) and word.strip().lower() not in known
        for word in found["word"]
    ]
    return found.with_columns(pl.when(~pl.Series(failed, dtype=pl.Boolean)).then("word"))


def unreadable_labels(labels: pl.Series, people: pl.Series) -> pl.Series:
    """Return the distinct labels of judges (JSON) that cannot be compared with people's.

    Without labels of people, the other labels of judges say what kind they are.
    """
    if people.drop_nulls().is_empty():
        words = values_of(labels, LabelReading("name"))
        people = words.filter(~pl.col("word").map_elements(is_failure, pl.Boolean))["label"]
    found = read_beside(labels, people, reading_of(people))
    return found.filter(pl.col("word").is_null())["label"]


def _on_scale(number: object, reading: LabelReading) -> float | None:
    if not isinstance(number, float):
        return None
    above = reading.low is None or number >= reading.low
    return number if above and (reading.high is None or number <= reading.high) else None


def _verdict(word: str | None, reading: LabelReading, known: Sequence[str]) -> str | None:
    if word is None:
        return None
    plain, positive = word.strip().lower(), reading.positive
    (number,) = read_labels("number", [plain])
    # On a declared scale there are grades only, and what is no number of it is invalid.
    if reading.low is not None and _on_scale(number, reading) is None:
        return None
    if positive is None:
        return WORDS.get(plain)
    if plain == positive.lower():
        return PASS
    if plain in known or WORDS.get(plain) == FAIL:
        return FAIL
    # Where people's pass is a word of their own, a judge may say it with a usual one.
    return WORDS.get(plain) if positive.lower() not in WORDS else None
