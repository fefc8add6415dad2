"""May a judge replace human annotators? The alternative annotator test."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks._families import benjamini_yekutieli
from tasks._margins import (
    Counts,
    Kind,
    Test,
    check_epsilon,
    is_constant,
    needs_score,
    score_test,
    t_test,
)  # fmt: skip
from tasks.scorings import Gaps, Scoring
from tasks.scorings._labels import read_labels
from tasks.scorings._panel import Codes, Panel, make_panel

Flags = NDArray[np.int8]

LEAST = 30
"""Instances that an annotator needs, by default."""
LEVEL = 0.05
"""Of the false discovery rate over annotators."""
PASSES = 0.5
RECOMMENDED = 3
CURVE = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
TESTS = ("auto", "score", "t")

JUDGES = pl.Schema({
    "judge": pl.String, "metric": pl.String, "epsilon": pl.Float64, "epsilon_kind": pl.String,
    "test": pl.String, "winning_rate": pl.Float64, "advantage_probability": pl.Float64,
    "human_advantage_probability": pl.Float64, "tied": pl.Float64, "passed": pl.Boolean,
    "annotators": pl.Int64, "instances": pl.Int64, "dropped": pl.Int64, "unreadable": pl.Int64,
    "reason": pl.String,
})  # fmt: skip
"""One row per judge and epsilon. ``instances`` have a label of the judge and of two people or more;
``dropped`` are other instances that someone labelled; ``tied`` is a mean over annotators too."""

ANNOTATORS = pl.Schema({
    "judge": pl.String, "metric": pl.String, "epsilon": pl.Float64, "epsilon_kind": pl.String,
    "annotator": pl.String, "n": pl.Int64, "better": pl.Int64, "worse": pl.Int64,
    "advantage_probability": pl.Float64, "human_advantage_probability": pl.Float64,
    "tied": pl.Float64, "test": pl.String, "p_value": pl.Float64, "p_value_t": pl.Float64,
    "p_value_score": pl.Float64, "rejected": pl.Boolean, "unreadable": pl.Int64,
    "reason": pl.String,
})  # fmt: skip
"""One row per judge, epsilon and annotator left out, who does ``better`` than the judge, or
``worse``, in so many of ``n`` instances; ``rejected``: the judge is not worse by epsilon."""


class AltTest(NamedTuple):
    """What became of each judge, and of each against every annotator."""

    judges: pl.DataFrame
    annotators: pl.DataFrame


class Labels(NamedTuple):
    """Labels as numbers: who (sorted), which item, which value; and who gave unreadable ones."""

    names: list[str]
    who: Codes
    item: Codes
    code: Codes
    unreadable: Codes


def alt_test(
    humans: pl.DataFrame,
    judges: pl.DataFrame,
    scoring: Scoring,
    *,
    epsilons: Sequence[float] = (0.1,),
    kind: Kind = "additive",
    test: Test = "auto",
    least: int = LEAST,
) -> AltTest:
    """Leave each annotator out, and ask whether the judge fits the others as well.

    An annotator's hypothesis is that the judge fits at least as well as the annotator less often
    than the reverse, by epsilon or more. It is tested on items with a label of the judge, of the
    annotator and of another person. The winning rate is the share of annotators for whom it is
    rejected (Benjamini-Yekutieli); a judge passes at .5. The advantage probability is the chance,
    averaged over annotators, that the judge fits at least as well.

    Parameters
    ----------
    humans, judges
        One label per row: ``annotator``, ``item`` and ``label``, which is JSON, or null if it
        could not be read.
    least
        Instances below which an annotator is left out of the family, but not of the others.

    References
    ----------
    Calderon, Reichart & Dror (2025), arXiv:2501.10970.
    """
    for epsilon in epsilons:
        check_epsilon(epsilon, kind)
    if test not in TESTS:
        raise ValueError(f"no test {test!r}. Known: {', '.join(TESTS)}.")
    if least < 1:
        raise ValueError(f"annotators need {least} instances; it must be 1 or more.")
    values, people, machines = _encode(humans, judges, scoring)
    counted = _count(values, people, machines, scoring)
    parts: list[pl.DataFrame] = []
    rows: list[dict[str, Any]] = []
    for judge, (n, better, worse, kept, dropped) in enumerate(counted):
        for epsilon in epsilons:
            same = {
                "judge": machines.names[judge], "metric": scoring.name, "epsilon": float(epsilon),
                "epsilon_kind": kind,
            }  # fmt: skip
            each = _annotators(
                n, better, worse, epsilon=float(epsilon), kind=kind, test=test, least=least
            ).with_columns(
                pl.Series("annotator", people.names, pl.String),
                pl.Series("unreadable", people.unreadable),
                **{name: pl.lit(value) for name, value in same.items()},
            )
            parts.append(each.select(*ANNOTATORS).cast(ANNOTATORS))
            labelled = bool((machines.who == judge).any())
            rows.append({
                **same, "test": test, **_verdict(each, kept, least, labelled=labelled),
                "instances": kept, "dropped": dropped,
                "unreadable": int(machines.unreadable[judge]),
            })  # fmt: skip
    tables = pl.concat(parts) if parts else pl.DataFrame(schema=ANNOTATORS)
    return AltTest(pl.DataFrame(rows, schema=JUDGES), tables)


def _encode(
    humans: pl.DataFrame, judges: pl.DataFrame, scoring: Scoring
) -> tuple[list[Any], Labels, Labels]:
    """Give numbers to values and items, the same in both files."""
    texts = pl.concat([humans["label"], judges["label"]]).drop_nulls().unique().sort()
    read = read_labels(scoring.labels, [json.loads(text) for text in texts])
    places = {value: None for value in read if value is not None}
    values = list(places)
    number = {value: code for code, value in enumerate(values)}
    codes = pl.DataFrame({
        "label": texts,
        "code": pl.Series([-1 if v is None else number[v] for v in read], dtype=pl.Int64),
    })  # fmt: skip
    items = pl.concat([humans["item"], judges["item"]]).drop_nulls().unique().sort()
    return values, _labels(humans, items, codes), _labels(judges, items, codes)


def _labels(frame: pl.DataFrame, items: pl.Series, codes: pl.DataFrame) -> Labels:
    names = frame["annotator"].unique().sort()
    numbered = (
        frame.lazy()
        .select("annotator", "item", "label")
        .join(_numbers(names, "annotator", "who"), on="annotator", how="left")
        .join(_numbers(items, "item", "place"), on="item", how="left")
        .join(codes.lazy(), on="label", how="left")
        # An annotator without any label has a row without an item.
        .filter(pl.col("place").is_not_null())
        .select("who", "place", pl.col("code").fill_null(-1))
        .sort("who", "place")
        .collect()
    )
    who, item, code = (numbered[c].to_numpy() for c in ("who", "place", "code"))
    twice = np.flatnonzero((np.diff(who) == 0) & (np.diff(item) == 0))
    if twice.size:
        raise ValueError(
            f"{names[int(who[twice[0]])]!r:.60} labels item {items[int(item[twice[0]])]!r:.60} "
            f"more than once ({twice.size} labels too many). Keep one label each."
        )
    kept = code >= 0
    missing = np.bincount(who[~kept], minlength=len(names))
    return Labels(names.to_list(), who[kept], item[kept], code[kept], missing)


def _numbers(values: pl.Series, name: str, number: str) -> pl.LazyFrame:
    places = pl.int_range(len(values), eager=True, dtype=pl.Int64).alias(number)
    return pl.DataFrame([values.alias(name), places]).lazy()


def _count(
    values: list[Any], people: Labels, machines: Labels, scoring: Scoring
) -> Iterator[tuple[Counts, Counts, Counts, int, int]]:
    """Yield, per judge, by annotator: instances, and in how many either fits better."""
    most = max((int(x.max()) + 1 for x in (people.item, machines.item) if x.size), default=0)
    per_item = np.bincount(people.item, minlength=most)
    shared = per_item >= 2
    place = np.cumsum(shared) - 1
    held = shared[people.item]
    who, nobody = people.who[held], np.zeros(len(people.names), np.int64)
    panel = make_panel(values, place[people.item[held]], people.code[held])
    gaps = scoring.prepare(panel) if held.any() else None
    present, first = np.unique(who, return_index=True)
    bounds = np.searchsorted(machines.who, np.arange(len(machines.names) + 1))
    for start, stop in pairwise(bounds):
        item, code = machines.item[start:stop], machines.code[start:stop]
        ours = shared[item]
        kept = int(ours.sum())
        dropped = int(np.union1d(np.flatnonzero(per_item), item).size) - kept
        if gaps is None or not kept:
            yield nobody, nobody, nobody, kept, dropped
            continue
        asked = np.full(panel.size.size, -1)
        asked[place[item[ours]]] = code[ours]
        n, better, worse = nobody.copy(), nobody.copy(), nobody.copy()
        for total, rows in zip((n, better, worse), _outcomes(panel, gaps, asked), strict=True):
            total[present] = np.add.reduceat(rows[panel.row], first, dtype=np.int64)
        yield n, better, worse, kept, dropped


def _outcomes(panel: Panel, gaps: Gaps, asked: Codes) -> tuple[Flags, Flags, Flags]:
    """Tell, per row of the panel, whether the judge labelled the item, and who fits better."""
    labelled = (asked >= 0)[panel.item]
    # Any label will do where the judge gave none: what comes of it is not counted.
    gap = gaps(np.where(asked >= 0, asked, panel.code[panel.starts[:-1]]))
    outcomes = labelled, labelled & (gap < 0), labelled & (gap > 0)
    n, better, worse = (each.view(np.int8) for each in outcomes)
    return n, better, worse


def _annotators(
    n: Counts, better: Counts, worse: Counts, *, epsilon: float, kind: Kind, test: Test, least: int
) -> pl.DataFrame:
    """Test against each annotator; below ``least`` instances there is no p."""
    asked = n >= least
    t = t_test(n, better, worse, epsilon, kind)
    score = score_test(n, better, worse, epsilon, kind)
    by_score = needs_score(n, better, worse) if test == "auto" else np.full(n.size, test == "score")
    p = _null(np.where(by_score, score, t), asked)
    with np.errstate(invalid="ignore"):
        judge, human, tied = (n - better) / n, (n - worse) / n, (n - better - worse) / n
    adjusted = benjamini_yekutieli(p)
    return pl.DataFrame({
        "n": n, "better": better, "worse": worse,
        "advantage_probability": _null(judge, n > 0),
        "human_advantage_probability": _null(human, n > 0), "tied": _null(tied, n > 0),
        "test": pl.Series(np.where(by_score, "score", "t")).set(p.is_null(), None),
        "p_value": p, "p_value_t": _null(t, asked), "p_value_score": _null(score, asked),
        "rejected": adjusted <= LEVEL,
        "reason": _reasons(n, better, worse, least),
    })  # fmt: skip


def _reasons(n: Counts, better: Counts, worse: Counts, least: int) -> pl.Series:
    reasons = {
        "no instance shared with the judge and another person": n == 0,
        f"fewer than {least} instances": n < least,
        "one instance has no t": n == 1,
        "all differences are alike: no t, its p is 0 or 1": is_constant(n, better, worse),
    }
    told = np.select(list(reasons.values()), list(reasons), default="")
    return pl.Series(told.tolist(), dtype=pl.String).replace("", None)


def _null(values: NDArray[np.float64], told: NDArray[np.bool_]) -> pl.Series:
    return pl.Series(np.where(told, values, np.nan), dtype=pl.Float64).fill_nan(None)


def _verdict(each: pl.DataFrame, kept: int, least: int, *, labelled: bool) -> dict[str, Any]:
    """Sum up the annotators that were tested."""
    tested = each.filter(pl.col("p_value").is_not_null())
    share: Any = tested["rejected"].mean()
    return {
        "winning_rate": share, "passed": None if share is None else share >= PASSES,
        **{
            name: tested[name].mean()
            for name in ("advantage_probability", "human_advantage_probability", "tied")
        },
        "annotators": tested.height,
        "reason": _reason(tested.height, kept, least, labelled=labelled),
    }  # fmt: skip


def _reason(tested: int, kept: int, least: int, *, labelled: bool) -> str | None:
    """Say why there is no winning rate, or why to doubt it."""
    if not labelled:
        return "the judge gave no label that can be read"
    if not kept:
        return "no instance has a label of the judge and of two people"
    if not tested:
        return f"no annotator has {least} instances"
    few = f"fewer than {RECOMMENDED} annotators, which is too few to trust the winning rate"
    return few if tested < RECOMMENDED else None
