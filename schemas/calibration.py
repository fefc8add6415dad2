"""Frames of ratings, and of judges compared with people."""

from typing import get_args

import pandera.polars as pa

from schemas.curation import KINDS, VERDICTS
from schemas.frame import counted, name, optional, share
from schemas.judging import ARMS, SIDES, Measured, author, size
from schemas.keys import EpsilonKind, Test

KINDS_OF_EPSILON = [*get_args(EpsilonKind)]
TESTS = [*get_args(Test)]
RATINGS = ["number", "label", "verdict"]
MARGIN = ("dataset", "judge", "prompt", "wave", "metric", "epsilon", "epsilon_kind")


class Margins(Measured):
    """Columns that identify a test."""

    metric: str = name("similarity metric between two labels")
    epsilon: float = pa.Field(
        ge=0,
        lt=1,
        description="non-inferiority margin: how much worse than a person the judge may be",
    )
    epsilon_kind: str = pa.Field(
        isin=KINDS_OF_EPSILON, description="kind of margin: additive or multiplicative"
    )
    asked: bool = pa.Field(
        description="true for the requested epsilon; other values belong to the curve"
    )


class AltTests(Margins, table="alt_tests", key=MARGIN):
    """One row per dataset, judge, prompt, wave, metric, epsilon and its kind."""

    test: str = pa.Field(isin=TESTS, description="requested test: auto, score or t")
    winning_rate: float = share(
        "winning rate: share of annotators for whom the test shows that the judge is not worse by "
        "epsilon",
        nullable=True,
    )
    passed: bool = optional(
        "true if the winning rate is at least `least_winning_rate` of the calibration, by "
        "default .5"
    )
    advantage_probability: float = share(
        "chance, averaged over annotators, that the judge aligns with the others at least "
        "as well as the annotator",
        nullable=True,
    )
    low: float = share("lower bound of its interval", nullable=True)
    high: float = share("upper bound of its interval", nullable=True)
    level: float = optional("confidence level of the interval", gt=0, lt=1)
    method: str = name("method of the interval")
    human_advantage_probability: float = share(
        "chance, averaged over annotators, that the annotator aligns with the others "
        "at least as well as the judge",
        nullable=True,
    )
    tied: float = share("share of instances on which both align equally well", nullable=True)
    annotators: int = counted("annotators tested")
    n: int = counted("number of instances with a label of the judge and of two or more people")
    dropped: int = counted("number of other labelled instances")
    unreadable: int = counted("number of invalid labels of the judge")
    reason: str = name("why there is no winning rate, or why it is doubtful", nullable=True)
    simulated: bool = optional("true for a simulated judge; null if unknown")


class Advantages(Margins, table="advantages", key=(*MARGIN, "annotator")):
    """One row per judge, margin and annotator who is left out."""

    annotator: str = name("the annotator who is left out")
    n: int = counted(
        "number of instances with a label of the judge, the annotator and another person"
    )
    better: int = counted("number of these on which the annotator aligns better")
    worse: int = counted("number of these on which the judge aligns better")
    advantage_probability: float = share(
        "share of instances on which the judge aligns at least as well", nullable=True
    )
    low: float = share("lower bound of its interval", nullable=True)
    high: float = share("upper bound of its interval", nullable=True)
    level: float = optional("confidence level of the interval", gt=0, lt=1)
    method: str = name("method of the interval")
    human_advantage_probability: float = share(
        "share of instances on which the annotator aligns at least as well", nullable=True
    )
    tied: float = share("share of instances on which both align equally well", nullable=True)
    test: str = optional("test that decides: score or t", isin=TESTS[1:])
    p_value: float = share(
        "raw p-value of that test; null if not tested, or if it is undefined (0/0)", nullable=True
    )
    p_value_t: float = share("raw p-value of the t test", nullable=True)
    p_value_score: float = share("raw p-value of the score test", nullable=True)
    p_adjusted: float = share(
        "p-value adjusted by Benjamini-Yekutieli over the judge's annotators at this margin",
        nullable=True,
    )
    rejected: bool = optional("true if the test at .05 rejects that the judge is worse by epsilon")
    unreadable: int = counted("number of invalid labels of the annotator")
    reason: str = name("why there is no p-value, or what limits it", nullable=True)
    simulated: bool = optional("true for a simulated judge; null if unknown")


class Ratings(
    Measured,
    table="ratings",
    key=(
        "dataset",
        "item",
        "criterion",
        "judge",
        "prompt",
        "wave",
        "arm",
        "perturbation",
        "repeat",
    ),
):
    """One row per item, criterion, judge or person, arm and repeat: the rating that was given."""

    judge: str = name("the judge or person who rated")
    prompt: str = name("name of the judge prompt, or unknown")
    item: str = name("what is rated: an answer, or a pair of answers")
    cluster: str = name("unit of independence: the question")
    criterion: str = name(
        "what the rating is about, such as a criterion of a rubric or a label of a set; null if "
        "there is one criterion only",
        nullable=True,
    )
    sample: str = name("sample that the rated answer belongs to; null in logs", nullable=True)
    side: str = optional("which answer of the sample is rated; null in logs", isin=SIDES)
    arm: str = pa.Field(isin=ARMS, description=f"one of {', '.join(ARMS)}; control in logs")
    perturbation: str = name("name of the perturbation; null in control", nullable=True)
    perturbation_kind: str = optional("promote or detract; null in control", isin=KINDS)
    repeat: int = counted("number of the repeat, from 0")
    human: bool = pa.Field(description="true if a person rated")
    kind: str = pa.Field(
        isin=RATINGS, description="number (a grade), label, or verdict on a pair of answers"
    )
    label: str = name(
        "the label, such as pass, anchor or 7; for an invalid rating its unusable text, if the "
        "log has it",
        nullable=True,
    )
    value: float = optional(
        "the grade, 1 for pass or a chosen label and 0 for fail, the label's position on its "
        "scale, or the score of a verdict (0 anchor, 1 target); null if there is none"
    )
    lowest: float = optional("lowest grade of the declared scale; null if unknown")
    highest: float = optional("highest grade of the declared scale; null if unknown")
    weight: float = optional("weight of the criterion in the whole rating; null for 1", ge=0)
    passes_at: float = optional("a grade at or above this passes; null if no grade does")
    human_value: float = optional("mean grade that people gave the item; null if unknown")
    label_chance: float = optional(
        "probability that people were asked about the item; null if unknown", gt=0, le=1
    )
    inconsistent: bool = pa.Field(
        description="true for a tie because the verdicts of the two orders differ"
    )
    invalid: str = name("why there is no rating; null if there is one", nullable=True)
    cached: bool = optional("true if cast in an earlier run; null if unknown")
    simulated: bool = optional("true for a simulated judge; null if unknown")
    category: str = name("group of questions", nullable=True)
    turn: str = name("turn of the conversation that is judged; null if unknown", nullable=True)
    ballot_id: str = name("the ballot; null for people, and in files", nullable=True)
    correct: str = optional("the correct verdict; null if unknown", isin=VERDICTS)
    anchor_author: str = author("anchor")
    target_author: str = author("target")
    anchor_length: int = size("length of the anchor: characters, or tokens in battles of the arena")
    target_length: int = size("length of the target: characters, or tokens in battles of the arena")
    anchor_header: int = size("headings of the anchor")
    target_header: int = size("headings of the target")
    anchor_list: int = size("list items of the anchor")
    target_list: int = size("list items of the target")
    anchor_bold: int = size("bold words of the anchor")
    target_bold: int = size("bold words of the target")


KINDS_OF_LABELS = ["pass_fail", "grade", "name"]
CELL = ("dataset", "judge", "prompt", "wave", "criterion", "slice_column", "slice")


class ByCriterion(Measured):
    """Columns that all of these results begin with."""

    criterion: str = name(
        "what the labels are about, such as a criterion of a rubric or one label of a set; null if "
        "there is only one",
        nullable=True,
    )


class HumanAgreement(ByCriterion, table="human_agreements", key=(*CELL, "statistic")):
    """One row per judge, criterion, slice and statistic of its agreement with people."""

    slice_column: str = name("column that the slice is a value of; null for all", nullable=True)
    slice: str = name("value of that column; null for all items", nullable=True)
    statistic: str = name("name of the statistic")
    kind: str = pa.Field(isin=KINDS_OF_LABELS, description="pass_fail, grade or name")
    estimate: float = optional("null if there is none, see reason")
    low: float = optional("lower bound of the interval")
    high: float = optional("upper bound of the interval")
    level: float = optional("level of the interval", gt=0, lt=1)
    method: str = name("method of the interval")
    df: float = optional("Satterthwaite degrees of freedom", ge=0)
    hits: int = optional("numerator, if the estimate is a share", ge=0)
    n: int = counted("number of items used")
    clusters: int = counted("number of independent clusters used")
    missing: int = counted("items without a label of the judge")
    invalid: int = counted(
        "items on which the judge's label is invalid, such as an error, or its repeats tie; also "
        "those without a label of people"
    )
    unlabelled: int = counted("items with a valid label of the judge and none of people")
    tied: int = counted("items whose people disagree so that no label is the most frequent")
    p_value: float = share("raw two-sided p-value of no difference", nullable=True)
    p_adjusted: float = share("p-value adjusted over all of this calibration", nullable=True)
    adjustment: str = name("how p-values are adjusted; null if there is none", nullable=True)
    finding: str = optional(
        "for the bias: biased, no relevant bias or inconclusive; for the kappa (for grades, "
        "Spearman's correlation) over all items: agrees, does not agree or inconclusive",
        isin=["biased", "no relevant bias", "agrees", "does not agree", "inconclusive"],
    )
    reason: str = name("why an estimate, an interval or a finding is missing", nullable=True)
    simulated: bool = optional("true for a simulated judge; null if unknown")


class ConfusionMatrix(
    ByCriterion,
    table="confusions",
    key=("dataset", "judge", "prompt", "wave", "criterion", "human_label", "judge_label"),
):
    """One row per judge, criterion, label of people and label of the judge that occur together."""

    human_label: str = name("combined label of people")
    judge_label: str = name("label of the judge")
    items: int = pa.Field(ge=1, description="number of items with these two labels")
    share_of_human_label: float = share("share of the items with this label of people")
    simulated: bool = optional("true for a simulated judge; null if unknown")


class Disagreements(
    ByCriterion,
    table="differing_labels",
    key=("dataset", "judge", "prompt", "wave", "criterion", "rank"),
):
    """One row per item on which a judge and people differ, worst first."""

    rank: int = pa.Field(ge=1, description="1 for the worst disagreement of a judge and criterion")
    item: str = name("the item")
    human_label: str = name("combined label of people; for several people's grades the mean")
    judge_label: str = name("label of the judge")
    gap: float = counted("distance of two grades; 1 for other labels, .5 for pairs with one tie")
    people: int = pa.Field(ge=1, description="number of people who labelled the item")
    human_share: float = share("share of them who gave the combined label")
    texts: str = name("other text columns of the item, as a JSON object")
    simulated: bool = optional("true for a simulated judge; null if unknown")
