"""Labels of people and judges as arrays, and how often each fits the other people better."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tasks.calibration.advantage_variance import (
    AdvantageMoments,
    Flags,
    LabelPlaces,
    no_spread,
    spread_of,
)
from tasks.calibration.label_values import Codes, Panel, make_panel, read_labels
from tasks.calibration.non_inferiority import Counts
from tasks.kit.printable import several
from tasks.metrics import Gaps, Metric


class Labels(NamedTuple):
    """Labels as integer codes (annotator, item, value), sorted; invalid labels by annotator."""

    names: list[str]
    who: Codes
    item: Codes
    code: Codes
    unreadable: Codes


class LeftOut(NamedTuple):
    """Leave-one-out results of one judge by annotator: instances, and who fits better."""

    n: Counts
    better: Counts
    worse: Counts
    spread: AdvantageMoments
    """Between-cluster moments of the advantage, by annotator and for their mean."""
    instances: int
    """Number of items with labels of the judge and of two or more people."""
    dropped: int
    """Number of other items that anyone labelled."""
    labelled: bool
    alike: bool
    """Whether people give one and the same label throughout the instances."""
    strange: bool = False
    """Whether the judge uses none of the people's names."""


def encode(
    humans: pl.DataFrame, judges: pl.DataFrame, metric: Metric
) -> tuple[list[Any], pl.Series, Labels, Labels]:
    """Encode values and items (sorted) as integers, shared by both frames."""
    texts = pl.concat([humans["label"], judges["label"]]).drop_nulls().unique().sort()
    read = read_labels(metric.labels, [json.loads(text) for text in texts])
    places = {value: None for value in read if value is not None}
    values = list(places)
    number = {value: code for code, value in enumerate(values)}
    codes = np.array([-1 if v is None else number[v] for v in read], np.int64)
    items = pl.concat([humans["item"], judges["item"]]).drop_nulls().unique().sort()
    return (
        values,
        items,
        _labels(humans, items, texts, codes),
        _labels(judges, items, texts, codes),
    )


def _labels(frame: pl.DataFrame, items: pl.Series, texts: pl.Series, codes: Codes) -> Labels:
    names = frame["annotator"].unique().sort()
    # An annotator without labels has one row without an item.
    rows = frame.filter(pl.col("item").is_not_null())
    who, item = _places(rows["annotator"], names), _places(rows["item"], items)
    code = np.append(codes, -1)[_places(rows["label"], texts)]
    key = who * len(items) + item
    if not (np.diff(key) > 0).all():
        order = np.argsort(key, kind="stable")
        who, item, code = who[order], item[order], code[order]
    twice = np.flatnonzero((np.diff(who) == 0) & (np.diff(item) == 0))
    if twice.size:
        raise ValueError(
            f"{names[int(who[twice[0]])]!r:.60} labels item {items[int(item[twice[0]])]!r:.60} "
            f"more than once ({several(twice.size, 'label')} too many). Keep one label each."
        )
    kept = code >= 0
    missing = np.bincount(who[~kept], minlength=len(names))
    return Labels(names.to_list(), who[kept], item[kept], code[kept], missing)


def _places(values: pl.Series, among: pl.Series) -> Codes:
    """Return the index of each value in the sorted values; -1 for null."""
    found: Codes = values.cast(pl.Enum(among)).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    return found


def count_each(
    values: list[Any],
    people: Labels,
    machines: Labels,
    metric: Metric,
    *,
    least: int,
    clusters: Codes | None = None,
) -> Iterator[LeftOut]:
    """Yield the leave-one-annotator-out results of each judge.

    ``clusters`` are the clusters of the items, by default each item itself. The mean advantage is
    over annotators with at least ``least`` items.
    """
    most = max((int(x.max()) + 1 for x in (people.item, machines.item) if x.size), default=0)
    per_item = np.bincount(people.item, minlength=most)
    shared = per_item >= 2
    place = np.cumsum(shared) - 1
    held = shared[people.item]
    who, zeros = people.who[held], np.zeros(len(people.names), np.int64)
    panel = make_panel(values, place[people.item[held]], people.code[held])
    gaps = metric.prepare(panel) if held.any() else None
    # Rows are sorted by code within an item.
    lowest, highest = panel.code[panel.starts[:-1]], panel.code[panel.starts[1:] - 1]
    present, first = np.unique(who, return_index=True)
    # Numbers can be close without being equal, and a user's function can compare anything.
    named = metric.labels in ("text", "set")
    known = _names(values, panel.code) if named else set()
    places = LabelPlaces.of(who, people.item[held], clusters, len(people.names))
    bounds = np.searchsorted(machines.who, np.arange(len(machines.names) + 1))
    for start, stop in pairwise(bounds):
        item, code = machines.item[start:stop], machines.code[start:stop]
        ours = shared[item]
        kept = int(ours.sum())
        alone = int((per_item[item] == 0).sum())
        dropped = int(np.count_nonzero(per_item)) + alone - kept
        if gaps is None or not kept:
            none = no_spread(len(people.names))
            yield LeftOut(zeros, zeros, zeros, none, kept, dropped, item.size > 0, alike=False)
            continue
        asked = np.full(panel.size.size, -1)
        asked[place[item[ours]]] = code[ours]
        n, better, worse = zeros.copy(), zeros.copy(), zeros.copy()
        there, lost, won = (rows[panel.row] for rows in _outcomes(panel, gaps, asked))
        outcomes = there, lost, won
        for total, rows in zip((n, better, worse), outcomes, strict=True):
            total[present] = np.add.reduceat(rows, first, dtype=np.int64)
        spread = spread_of(places, outcomes, (n, better, worse), least)
        alike = bool(lowest[asked >= 0].min() == highest[asked >= 0].max())
        strange = named and known.isdisjoint(_names(values, asked[asked >= 0]))
        yield LeftOut(
            n, better, worse, spread, kept, dropped, labelled=True, alike=alike, strange=strange
        )


def _names(values: Sequence[Any], codes: Codes) -> set[Any]:
    """Return the distinct names in some labels; an empty set counts as a name."""
    labels = [values[code] for code in np.unique(codes).tolist()]
    one = [label if isinstance(label, frozenset) and label else [label] for label in labels]
    return {name for names in one for name in names}


def _outcomes(panel: Panel, gaps: Gaps, asked: Codes) -> tuple[Flags, Flags, Flags]:
    """Tell for each label whether the judge labelled its item, and which of the two fits better."""
    labelled = (asked >= 0)[panel.item]
    # Where the judge gave no label any code will do, as the result is not counted.
    gap = gaps(np.where(asked >= 0, asked, panel.code[panel.starts[:-1]]))
    outcomes = labelled, labelled & (gap < 0), labelled & (gap > 0)
    n, better, worse = (each.view(np.int8) for each in outcomes)
    return n, better, worse
