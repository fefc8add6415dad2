"""Frames of the alternative annotator test, which compares judges with people."""

import pandera.polars as pa

from schemas.frame import counted, name, optional, share
from schemas.judging import Measured

KINDS_OF_EPSILON = ["additive", "multiplicative"]
TESTS = ["auto", "score", "t"]
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
        "winning rate: share of annotators than whom the judge is not worse by epsilon",
        nullable=True,
    )
    passed: bool = optional("true if the winning rate is at least .5")
    advantage_probability: float = share(
        "chance, averaged over annotators, that the judge aligns with the others at least "
        "as well as the annotator",
        nullable=True,
    )
    low: float = share("lower bound of its interval", nullable=True)
    high: float = share("upper bound of its interval", nullable=True)
    level: float = pa.Field(
        gt=0, lt=1, nullable=True, description="confidence level of the interval"
    )
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
    unreadable: int = counted("number of unreadable labels of the judge")
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
    level: float = pa.Field(
        gt=0, lt=1, nullable=True, description="confidence level of the interval"
    )
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
    unreadable: int = counted("number of unreadable labels of the annotator")
    reason: str = name("why there is no p-value, or what limits it", nullable=True)
    simulated: bool = optional("true for a simulated judge; null if unknown")
