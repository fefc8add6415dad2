"""Frames of the alternative annotator test, which compares judges with people."""

import pandera.polars as pa

from schemas.frame import counted, name, optional, share
from schemas.judging import Measured

KINDS_OF_EPSILON = ["additive", "multiplicative"]
TESTS = ["auto", "score", "t"]
MARGIN = ("dataset", "judge", "prompt", "wave", "metric", "epsilon", "epsilon_kind")


class Margins(Measured):
    """Columns that identify a test."""

    metric: str = name("how well a label fits those of others")
    epsilon: float = pa.Field(ge=0, lt=1, description="how much worse than people a judge may be")
    epsilon_kind: str = pa.Field(isin=KINDS_OF_EPSILON, description="additive or multiplicative")
    asked: bool = pa.Field(description="whether this epsilon was asked for; others are the curve")


class AltTests(Margins, table="alt_tests", key=MARGIN):
    """One row per dataset, judge, prompt, wave, metric, epsilon and its kind."""

    test: str = pa.Field(isin=TESTS, description="which test was asked for")
    winning_rate: float = share(
        "share of annotators whom the judge replaces at no loss beyond epsilon", nullable=True
    )
    passed: bool = optional("whether that is .5 or more")
    advantage_probability: float = share(
        "chance, averaged over annotators, that the judge fits at least as well", nullable=True
    )
    low: float = share("lower end of its interval", nullable=True)
    high: float = share("upper end of its interval", nullable=True)
    level: float = pa.Field(gt=0, lt=1, nullable=True, description="level of the interval")
    method: str = name("how the interval was made")
    human_advantage_probability: float = share("the reverse of it", nullable=True)
    tied: float = share("share of instances on which both fit alike", nullable=True)
    annotators: int = counted("annotators tested")
    n: int = counted("instances with a label of the judge and of two people or more")
    dropped: int = counted("other instances that someone labelled")
    unreadable: int = counted("labels of the judge that cannot be read")
    reason: str = name("why there is no winning rate, or why to doubt it", nullable=True)
    simulated: bool = optional("true for an offline judge; null if unknown")


class Advantages(Margins, table="advantages", key=(*MARGIN, "annotator")):
    """One row per judge, margin and annotator left out."""

    annotator: str = name("who is left out")
    n: int = counted("instances with a label of the judge, the annotator and another person")
    better: int = counted("of these, those that the annotator fits better")
    worse: int = counted("of these, those that the judge fits better")
    advantage_probability: float = share(
        "share that the judge fits at least as well", nullable=True
    )
    low: float = share("lower end of its interval", nullable=True)
    high: float = share("upper end of its interval", nullable=True)
    level: float = pa.Field(gt=0, lt=1, nullable=True, description="level of the interval")
    method: str = name("how the interval was made")
    human_advantage_probability: float = share(
        "share that the annotator fits at least as well", nullable=True
    )
    tied: float = share("share that both fit alike", nullable=True)
    test: str = pa.Field(isin=TESTS[1:], nullable=True, description="the test that decides")
    p_value: float = share("raw p of that test; null if not tested, or if it is 0/0", nullable=True)
    p_value_t: float = share("raw p of the t-test", nullable=True)
    p_value_score: float = share("raw p of the score test", nullable=True)
    p_adjusted: float = share(
        "Benjamini-Yekutieli over the annotators of the judge at this margin", nullable=True
    )
    rejected: bool = optional("whether the judge is not worse by epsilon, at .05")
    unreadable: int = counted("labels of the annotator that cannot be read")
    reason: str = name("why there is no p, or what is odd about it", nullable=True)
    simulated: bool = optional("true for an offline judge; null if unknown")
