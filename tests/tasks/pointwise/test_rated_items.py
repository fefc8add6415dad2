from collections.abc import Callable
from typing import Any

import polars as pl

from tasks.pointwise.rated_items import quantities

Make = Callable[..., Any]


def test_what_ratings_measure_is_worded_by_kind_and_scale(make_ratings: Make) -> None:
    of = {
        "single": [{}],
        "half": [{"lowest": 0.5, "highest": 5.0}],
        "open": [{"lowest": None, "highest": None}],
        "binary": [{"kind": "label"}],
        "rubric": [{"criterion": "tone"}, {"criterion": "depth", "highest": 5.0}],
        "labels": [{"criterion": name, "kind": "label"} for name in ("rude", "off topic")],
        "pair": [{"kind": "verdict", "lowest": None, "highest": None}],
    }
    rows = [
        {"prompt": prompt, "sample": "s", "value": 1.0, **row}
        for prompt, some in of.items()
        for row in some
    ]
    found = quantities(make_ratings(rows)).sort("prompt").select("prompt", "quantity")
    assert found.rows() == [
        ("binary", "pass or fail"),
        ("half", "grades from 0.5 to 5"),
        ("labels", "labels off topic, rude"),
        ("open", "grades"),
        ("rubric", "criteria depth (1 to 5), tone (1 to 10), the whole from 0 to 1"),
        ("single", "grades from 1 to 10"),
    ]
    assert found.schema["quantity"] == pl.String
