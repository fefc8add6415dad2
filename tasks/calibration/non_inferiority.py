"""Non-inferiority tests of a judge against one annotator, and reasons why none could be run.

Compared with the other people's labels, the annotator fits better in ``better`` of ``n`` items, the
judge fits better in ``worse``, and the rest are tied. p is small if the judge is not worse by more
than epsilon: *additive*, an amount of probability, or *multiplicative*, a share of the annotator's.
"""

from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.keys import EpsilonKind
from tasks.calibration.label_values import Floats, LabelKind
from tasks.inference.quantiles import normal_below, t_below

Counts = NDArray[np.int64]

FEW, FEW_UNTIED = 50, 20
"""With fewer items, or fewer items that are not tied, the t-test rejects too often."""


def check_epsilon(epsilon: float, kind: EpsilonKind) -> None:
    """Raise an error for a margin outside [0, 1)."""
    if not 0 <= epsilon < 1:
        raise ValueError(
            f"epsilon {epsilon} ({kind}) must be at least 0 and below 1. Usual values: .2 for "
            "experts, .15 for skilled annotators, .1 for crowd workers."
        )


class Clustering(NamedTuple):
    """How clusters of items change the tests of one margin, in the shape of the counts.

    The t-test has the cluster-robust variance of the mean difference (CR2), at least that of
    independent items, and its degrees of freedom. The score test has the counts divided by the
    design effect.
    """

    variance: Floats
    freedom: Floats
    effect: Floats
    """At least 1; items of a cluster that are copies of each other count as one item."""


class ItemDifference(NamedTuple):
    """What an item adds: where the annotator fits better, the judge does, neither; and the margin.

    E - F against epsilon (Calderon, Reichart & Dror 2025), or (1 - epsilon) E - F against 0.
    """

    gain: float
    loss: float
    tie: float
    margin: float

    @classmethod
    def of(cls, epsilon: float, kind: EpsilonKind) -> Self:
        """Return the differences that a margin compares."""
        if kind == "additive":
            return cls(1.0, -1.0, 0.0, epsilon)
        return cls(1 - epsilon, -1.0, -epsilon, 0.0)

    def moments(self, n: Counts, better: Counts, worse: Counts) -> tuple[Floats, Floats]:
        """Return the mean and the sum of squared deviations; NaN without items."""
        tied = n - better - worse
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (better * self.gain + worse * self.loss + tied * self.tie) / n
            squares = (
                better * (self.gain - mean) ** 2
                + worse * (self.loss - mean) ** 2
                + tied * (self.tie - mean) ** 2
            )
        return mean, squares


def is_constant(n: Counts, better: Counts, worse: Counts) -> NDArray[np.bool_]:
    """Tell where all differences are equal, so that t is undefined."""
    tied = n - better - worse
    constant: NDArray[np.bool_] = (better == n) | (worse == n) | (tied == n)
    return constant


def t_test(
    n: Counts,
    better: Counts,
    worse: Counts,
    epsilon: float,
    kind: EpsilonKind,
    *,
    clusters: Clustering | None = None,
) -> Floats:
    """Return the p-value of the paired t-test; NaN for fewer than two items and where t is 0 / 0.

    If all differences are equal, t is infinite, so p is 1 beyond the margin and 0 below it. If all
    equal the margin, as for a judge that copies a person at epsilon 0, t is 0 / 0 and there is no
    p-value.
    """
    difference = ItemDifference.of(epsilon, kind)
    mean, squares = difference.moments(n, better, worse)
    margin = difference.margin
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = squares / (n - 1) / n if clusters is None else clusters.variance
        freedom = n - 1.0 if clusters is None else clusters.freedom
        p: Floats = t_below(freedom, (mean - margin) / np.sqrt(variance))
    at_margin = np.where(mean == margin, np.nan, np.where(mean > margin, 1.0, 0.0))
    p = np.where(is_constant(n, better, worse), at_margin, p)
    return np.where(n < 2, np.nan, p)


def score_test(
    items: Counts,
    better: Counts,
    worse: Counts,
    epsilon: float,
    kind: EpsilonKind,
    *,
    clusters: Clustering | None = None,
) -> Floats:
    """Return the p-value of the score test, its variance at the margin; NaN if that is undefined.

    Additive: Tango (1998), Statistics in Medicine 17. Multiplicative: the same for the ratio
    (methods: the probability of E without F is epsilon + (1 - epsilon) x, of F without E x; the
    likelihood is greatest at the root of a quadratic).
    """
    e = epsilon
    n, b, c = _effective(clusters, items, better, worse)
    tied = n - b - c
    with np.errstate(divide="ignore", invalid="ignore"):
        if kind == "additive":
            x = _root(2.0 * n, -(b + c) + e * (2 * n - b + c), -c * e * (1 - e))
            off, variance = b - c - n * e, 2 * x + e - e * e
        else:
            linear = tied * e * (2 - e) - b * (1 - e) ** 2 - c * ((1 - e) ** 2 - e * (2 - e))
            x = _root(n * (1 - e) * (2 - e), linear, -c * e * (1 - e))
            lead = e + (1 - e) * x
            off, variance = b - (1 - e) * c - n * e, lead + (1 - e) ** 2 * x - e * e
        p: Floats = np.where(variance > 0, normal_below(off / np.sqrt(n * variance)), np.nan)
    return np.where(items < 1, np.nan, p)


def needs_score(
    n: Counts, better: Counts, worse: Counts, clusters: Clustering | None = None
) -> NDArray[np.bool_]:
    """Tell where the default is the score test: few items, few untied ones, or t undefined."""
    items, won, lost = _effective(clusters, n, better, worse)
    few: NDArray[np.bool_] = (items < FEW) | (won + lost < FEW_UNTIED)
    return few | is_constant(n, better, worse)


def _effective(clusters: Clustering | None, *counts: Counts) -> list[Floats]:
    effect = 1.0 if clusters is None else clusters.effect
    return [each / effect for each in counts]


def _root(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return the larger root of a x² + b x + c, without cancellation."""
    root = np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
    larger: Floats = np.where(b > 0, -2 * c / (b + root), (root - b) / (2 * a))
    return np.maximum(larger, 0.0)


NEEDED: Mapping[LabelKind, str] = {
    "text": "names or numbers",
    "number": "numbers",
    "set": "lists of names",
    "any": "labels of any kind",
}


def why_untested(
    humans: pl.DataFrame,
    judges: pl.DataFrame,
    advantages: pl.DataFrame,
    unreadable: Mapping[str, int],
    *,
    metric: str,
    kind: LabelKind,
    least: int,
) -> str:
    """Return the reason and the next step if no judge has a p-value against any annotator.

    Parameters
    ----------
    humans, judges
        ``annotator``, ``item`` and ``label`` (null if empty), readable or not.
    advantages
        Results per judge and annotator: ``n``, and the annotator's ``unreadable`` labels.
    unreadable
        Number of invalid labels of each judge.
    """
    people = {
        str(name): (count, lost)
        for name, count, lost in _counts(humans)
        .join(advantages.group_by("annotator").agg(pl.col("unreadable").max()), on="annotator")
        .sort("annotator")
        .rows()
    }
    known = [name for name, (count, lost) in people.items() if count > lost]
    lost = sum(each for _, each in people.values())
    gave, missing = _counts(judges)["count"].sum(), sum(unreadable.values())
    if not known or missing >= gave:
        whose, option = ("a judge", "judges") if known else ("people", "humans")
        if not (missing if known else humans["label"].count()):
            empty = "the labels of people are all empty" if lost and not known else ""
            none = empty or f"there are no labels of {whose}"
            return f"{none}. Name a file that has some with --{option}."
        return (
            f"metric {metric} needs {NEEDED[kind]}, but no label of {whose} is readable as such: "
            f"{lost} labels of people and {missing} of judges are not. Choose another --metric "
            "(see `voirdire list metrics`), or correct the labels."
        )
    named = [labels["item"].drop_nulls() for labels in (humans, judges)]
    both = named[0].unique().is_in(named[1].implode()).sum()
    if not both and all(map(len, named)):
        of_people, of_judges = (repr(str(items.min()))[:60] for items in named)
        return (
            "no item has labels of a judge and of a person. Items are called, for example, "
            f"{of_people} in the labels of people and {of_judges} in those of judges: give them "
            "the same names."
        )
    if len(known) < 2:
        return (
            f"only {known[0]!r:.60} has labels, but the test compares a judge with a person by the "
            "labels of other people. It needs at least two people; three make it reliable. Add "
            "labels of more people."
        )
    most = int(advantages["n"].sort()[-1])
    if not most:
        return (
            f"no item has labels of a judge and of two people ({both} items have labels of a judge "
            "and of a person). Let several people label the items that the judge labelled."
        )
    return (
        f"no annotator has {least} instances with labels of a judge and of another person (the "
        f"maximum is {most}). Let people label more items, or lower --min-instances."
    )


def _counts(labels: pl.DataFrame) -> pl.DataFrame:
    return labels.group_by("annotator").agg(count=pl.col("item").count())
