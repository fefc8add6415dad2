"""Alternative annotator test of whether a judge may replace human annotators."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from schemas.calibration import Advantages, AltTests
from schemas.keys import EpsilonKind, Test
from tasks.calibration.advantage_variance import ClusterSums, clustering
from tasks.calibration.alignment import LeftOut, count_each, encode
from tasks.calibration.label_values import OWN_CLUSTER, Floats
from tasks.calibration.non_inferiority import (
    Counts,
    check_epsilon,
    is_constant,
    needs_score,
    score_test,
    t_test,
)
from tasks.inference.intervals import proportions
from tasks.inference.multiplicity import benjamini_yekutieli
from tasks.kit.defaults import ALPHA, calibration_limits
from tasks.metrics import Metric

LEAST = 30
"""Default minimum of instances per annotator."""
FEW = "fewer than {} annotators, which is too few to trust the winning rate"
ALIKE = "all labels of people are equal, so any judge that always gives that label passes"
STRANGE = "the judge uses no label that people use; check the spelling"
ZERO_BY_ZERO = (
    "judge and annotator always align equally well, and epsilon is 0: the test is 0/0, "
    "so there is no p-value"
)
CURVE = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
TESTS = ("auto", "score", "t")
LATER = ("dataset", "prompt", "wave", "simulated", "asked", "level", "method")
"""Columns that a calibration adds (:func:`tasks.calibration.calibrate.try_judges`)."""
JUDGES, ANNOTATORS = (
    pl.Schema({name: kind for name, kind in frame.dtypes().items() if name not in LATER})
    for frame in (AltTests, Advantages)
)


class AltTest(NamedTuple):
    """Results per judge, and per judge and annotator."""

    judges: pl.DataFrame
    annotators: pl.DataFrame


def alt_test(
    humans: pl.DataFrame,
    judges: pl.DataFrame,
    metric: Metric,
    *,
    epsilons: Sequence[float] = (0.1,),
    kind: EpsilonKind = "additive",
    test: Test = "auto",
    least: int = LEAST,
    clusters: pl.DataFrame | None = None,
) -> AltTest:
    """Test whether the judge fits the other people as well as each annotator who is left out.

    The null hypothesis for an annotator: the judge fits at least as well as the annotator less
    often than the reverse, by epsilon or more. It is tested on items with labels of the judge, the
    annotator and another person. The winning rate is the share of annotators for whom it is
    rejected (Benjamini-Yekutieli); a judge passes at
    ``least_winning_rate``. The advantage probability is the
    probability, averaged over annotators, that the judge fits at least as well; it gets a Wilson
    interval at the effective sample size given by the variance between clusters.

    Parameters
    ----------
    humans, judges
        One label per row: ``annotator``, ``item`` and ``label``, as JSON, or null if invalid.
    least
        Annotators with fewer instances are not tested; their labels still serve the others.
    clusters
        ``cluster`` of each ``item``, if items are not independent of each other. The tests and
        intervals rest on the variance between clusters.

    References
    ----------
    Calderon, Reichart & Dror (2025), arXiv:2501.10970.
    """
    for epsilon in epsilons:
        check_epsilon(epsilon, kind)
    if test not in TESTS:
        raise ValueError(f"no test {test!r}. Known: {', '.join(TESTS)}.")
    if least < 1:
        raise ValueError(f"the minimum of instances is {least}; it must be 1 or more.")
    values, items, people, machines = encode(humans, judges, metric)
    grouped = None if clusters is None else _clusters(items, clusters)
    if grouped is not None and np.unique(grouped).size == grouped.size:
        grouped = None
    counted = list(count_each(values, people, machines, metric, least=least, clusters=grouped))
    shape = len(machines.names), len(epsilons), len(people.names)
    counts = tuple(
        np.array([each[i] for each in counted], np.int64).reshape(shape[0], shape[2])
        for i in range(3)
    )
    sums = [left.spread.sums for left in counted]
    each = _each(counts, sums, epsilons, kind, test=test, least=least) | _intervals(
        counted, counts, len(epsilons)
    )
    same = {"metric": metric.name, "epsilon_kind": kind}
    keys = pl.DataFrame(
        [(judge, epsilon) for judge in machines.names for epsilon in epsilons],
        schema={"judge": pl.String, "epsilon": pl.Float64},
        orient="row",
    )
    rows = [
        _verdict(each, at, left, least, metric) | {"unreadable": int(lost)} | same | {"test": test}
        for judge, (left, lost) in enumerate(zip(counted, machines.unreadable, strict=True))
        for at in ((judge, margin) for margin in range(shape[1]))
    ]
    verdicts = pl.DataFrame(rows, schema={c: t for c, t in JUDGES.items() if c not in keys})
    labelled = pl.DataFrame(
        {"annotator": people.names, "unreadable": people.unreadable},
        schema={"annotator": pl.String, "unreadable": pl.Int64},
    )
    kinds: dict[str, Any] = {**ANNOTATORS, "rejected": pl.Float64}  # NaN where it is not known
    cells = (
        keys.join(labelled, how="cross")
        .with_columns(pl.Series(n, array.ravel().tolist(), kinds[n]) for n, array in each.items())
        .with_columns(cs.float().fill_nan(None), pl.col("test", "reason").replace("", None))
        .with_columns(**{name: pl.lit(value) for name, value in same.items()})
        .cast({"rejected": pl.Boolean})
    )
    return AltTest(
        pl.concat([keys, verdicts], how="horizontal").select(*JUDGES), cells.select(*ANNOTATORS)
    )


def _clusters(items: pl.Series, clusters: pl.DataFrame) -> NDArray[np.int64]:
    """Return the index of each item's cluster; an item without one is its own cluster."""
    found = (
        pl.DataFrame({"item": items})
        .join(
            clusters.select("item", "cluster").unique("item"),
            on="item",
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.coalesce("cluster", OWN_CLUSTER))
    )
    return (found["cluster"].rank("dense") - 1).cast(pl.Int64).to_numpy()


def _intervals(
    counted: Sequence[LeftOut], counts: tuple[Counts, ...], margins: int
) -> dict[str, NDArray[Any]]:
    """Return the interval of each advantage probability, which is the same at every margin."""
    n, better, _ = counts
    moments = {
        "num": n - better,
        "den": n,
        **{
            name: np.array([getattr(left.spread, name) for left in counted]).reshape(n.shape)
            for name in ("clusters", "freedom", "squares", "den_squares")
        },
    }
    found = proportions(pl.DataFrame({name: each.ravel() for name, each in moments.items()}))
    shape = n.shape[0], margins, n.shape[1]
    return {
        side: np.broadcast_to(
            found[side].cast(pl.Float64).fill_null(np.nan).to_numpy().reshape(n.shape)[:, None],
            shape,
        )
        for side in ("low", "high")
    }


def _each(
    counts: tuple[Counts, ...],
    sums: Sequence[ClusterSums | None],
    epsilons: Sequence[float],
    kind: EpsilonKind,
    *,
    test: Test,
    least: int,
) -> dict[str, NDArray[Any]]:
    """Test every judge at every margin against each annotator; the axes have this order.

    With fewer than ``least`` instances there is no p-value. Where the test is 0/0 there is none
    either, and the hypothesis is not rejected.
    """
    n, better, worse = counts
    t, score, by_score = (
        np.stack(each, axis=1)
        for each in zip(
            *(_tests(counts, sums, epsilon, kind, test) for epsilon in epsilons), strict=True
        )
    )
    t, score = np.where((n >= least)[:, None], (t, score), np.nan)
    p = np.where(by_score, score, t)
    tested = (n >= least)[:, None] & (by_score | (n > 1)[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = {
            "advantage_probability": (n - better) / n,
            "human_advantage_probability": (n - worse) / n,
            "tied": (n - better - worse) / n,
        }
    undefined = np.isnan(p) & tested
    # These stay in the family: a smaller family at epsilon 0 would reject more.
    adjusted = _adjusted(np.where(undefined, 1.0, p))
    same = {"n": n, "better": better, "worse": worse, **shares}
    wide = {name: np.broadcast_to(array[:, None], p.shape) for name, array in same.items()}
    names = np.where(by_score, "score", "t").astype(object)
    return wide | {
        "test": np.where(tested, names, ""),
        "p_value": p,
        "p_value_t": t,
        "p_value_score": score,
        "p_adjusted": np.where(undefined, np.nan, adjusted),
        "rejected": np.where(tested, adjusted <= ALPHA, np.nan),
        "reason": _reasons(counts, undefined, least),
    }


def _tests(
    counts: tuple[Counts, ...],
    sums: Sequence[ClusterSums | None],
    epsilon: float,
    kind: EpsilonKind,
    test: Test,
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the p-values of both tests at a margin, and where the score test decides."""
    n, better, worse = counts
    clusters = clustering(counts, sums, epsilon, kind)
    chosen = (
        needs_score(n, better, worse, clusters)
        if test == "auto"
        else np.full(n.shape, test == "score")
    )
    t, score = (
        each(n, better, worse, epsilon, kind, clusters=clusters) for each in (t_test, score_test)
    )
    return t, score, chosen


def _adjusted(p: Floats) -> Floats:
    """Adjust p-values, with each judge and margin as a family; NaN without a p-value."""
    adjusted = np.empty(p.shape)
    for at in np.ndindex(p.shape[:2]):
        adjusted[at] = benjamini_yekutieli(pl.Series(p[at]).fill_nan(None)).to_numpy()
    return adjusted


def _reasons(counts: tuple[Counts, ...], undefined: NDArray[np.bool_], least: int) -> NDArray[Any]:
    n, better, worse = (np.broadcast_to(each[:, None], undefined.shape) for each in counts)
    reasons = {
        "no instance has labels of the judge and of another person": n == 0,
        f"fewer than {least} instances": n < least,
        "t is undefined for one instance": n == 1,
        ZERO_BY_ZERO: undefined & is_constant(n, better, worse),
        "t is undefined for one cluster": undefined,
        "all differences are equal: t is infinite, its p is 0 or 1": is_constant(n, better, worse),
    }
    return np.select(list(reasons.values()), list(reasons), default="").astype(object)


def _verdict(
    each: dict[str, NDArray[Any]], at: tuple[int, int], left: LeftOut, least: int, metric: Metric
) -> dict[str, Any]:
    """Summarise a judge's results over the tested annotators."""
    known = ~np.isnan(each["rejected"][at])
    tested = int(known.sum())

    def mean(name: str) -> float | None:
        return float(each[name][at][known].mean()) if tested else None

    rate = mean("rejected")
    return {
        "winning_rate": rate,
        "passed": None if rate is None else rate >= calibration_limits().least_winning_rate,
        **{
            name: mean(name)
            for name in ("advantage_probability", "human_advantage_probability", "tied")
        },
        "low": _known(left.spread.low),
        "high": _known(left.spread.high),
        "annotators": tested,
        "n": left.instances,
        "dropped": left.dropped,
        "reason": _reason(tested, left, least, metric),
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def _reason(tested: int, left: LeftOut, least: int, metric: Metric) -> str | None:
    """Give the reason why there is no winning rate, or why to doubt it."""
    numbers = metric.labels == "number"
    needed = f", which metric {metric.name} needs" if numbers else ""
    if not left.labelled:
        return f"the judge gave no {'number' if numbers else 'valid label'}{needed}"
    if not left.instances:
        labels = "numbers" if numbers else "labels"
        return f"no instance has {labels} of the judge and of two people{needed}"
    if not tested:
        return f"no annotator has {least} instances"
    fewest = calibration_limits().recommended_annotators
    doubts = {FEW.format(fewest): tested < fewest, ALIKE: left.alike, STRANGE: left.strange}
    return "; ".join(doubt for doubt, there in doubts.items() if there) or None
