"""Columns by which the items of a log can be split."""

import polars as pl

from schemas.calibration import Ratings
from schemas.judging import VoteLog
from tasks.logs.items import names_of_slices


def test_only_fields_that_divide_the_items_are_named() -> None:
    fields = {
        # Each item has one value, and some value belongs to several items.
        "language": ["de", "en", "de", "en"],
        "constant": ["x"] * 4,
        "own": ["1", "2", "3", "4"],
        # The items are a, a, b and c: the first has two values.
        "attempt": ["1", "2", "1", "1"],
    }
    items = ["a", "a", "b", "c"]
    rows = [
        (item, field, value)
        for field, values in fields.items()
        for item, value in zip(items if field == "attempt" else "abcd", values, strict=True)
    ]
    metadata = pl.DataFrame(rows, schema=["item", "field", "value"], orient="row")
    assert names_of_slices(VoteLog.empty(), Ratings.empty(), metadata) == ["language"]
