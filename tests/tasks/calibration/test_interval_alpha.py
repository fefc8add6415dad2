from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from tasks.calibration.agreement import NAME, interval_alpha
from tasks.counting.annotations import blocks
from tasks.statistics import STATISTICS

Make = Callable[..., pl.DataFrame]


def test_moments_give_what_coincidences_give(make_annotations: Make) -> None:
    random = np.random.default_rng(5)
    rows = [
        {"annotator": who, "item": f"i{i:02}", "label": str(value), "value": float(value)}
        for i in range(30)
        for who in ("Ann", "Bob", "Cid", "Dan")
        if random.random() < 0.7
        for value in (int(random.integers(0, 6)),)
    ]
    annotations = make_annotations(rows)
    (block,) = blocks(annotations)
    (found,) = interval_alpha(block, "humans", block.human)
    known = STATISTICS["krippendorff_alpha"].draft(annotations=annotations)
    (row,), (other,) = found.to_dicts(), known.filter(statistic=NAME).to_dicts()
    for column in ("estimate", "low", "high"):
        assert row[column] == pytest.approx(other[column])
    assert [row[c] for c in ("n", "dropped", "judge")] == [
        other[c] for c in ("n", "dropped", "judge")
    ]


def test_labels_without_order_have_none(make_annotations: Make) -> None:
    rows = [{"annotator": who, "item": "i", "label": "x", "value": None} for who in ("Ann", "Bob")]
    (block,) = blocks(make_annotations(rows))
    assert interval_alpha(block, "humans", block.human) == []
