from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from tasks.panels.panels import panels, primary_shift, with_primary

Make = Callable[..., Any]


def test_items_by_judges_with_clusters_together(make_shifts: Make) -> None:
    rows = [
        {"judge": "b", "sample": "s2", "cluster": "q1", "experimental_score": 0.5},
        {"judge": "a", "sample": "s1", "cluster": "q2", "experimental_score": 0.75},
        {"judge": "b", "sample": "s1", "cluster": "q2", "experimental_score": None},
        {"judge": "a", "sample": "s3", "cluster": "q1", "experimental_score": 1.0},
        {"judge": "a", "sample": "s3", "cluster": "q1", "perturbation": "another"},
    ]
    _, panel = panels(make_shifts(rows), {"score": pl.col("experimental_score")})
    assert (panel.cell["perturbation"], panel.cell["kind"]) == ("boast", "promote")
    assert panel.judges == ["a", "b"]
    # s2 and s3 of q1, then s1 of q2
    expected = [[np.nan, 0.5], [1.0, np.nan], [0.75, np.nan]]
    np.testing.assert_array_equal(panel.values["score"], expected)
    assert panel.starts.tolist() == [0, 2]
    assert panel.sums(np.nan_to_num(panel.values["score"])).tolist() == [[1.0, 0.5], [0.75, 0.0]]


def test_the_shift_is_over_the_sham_where_the_perturbation_has_shams(make_shifts: Make) -> None:
    scores = {"control_score": 0.5, "experimental_score": 1.0}
    rows = [
        {**scores, "sham_score": 0.75},
        scores,
        {**scores, "perturbation": "padding"},
    ]
    frame = make_shifts(rows).sort("perturbation", "sample")
    found = with_primary(frame).select(shift=primary_shift())
    assert found["shift"].to_list() == [0.25, None, 0.5]
    reported = [panel.values["shift"][:, 0] for panel in panels(frame, {"shift": primary_shift()})]
    np.testing.assert_array_equal(np.concatenate(reported), [0.25, np.nan, 0.5])


def test_nothing_gives_no_panel(make_shifts: Make) -> None:
    assert list(panels(make_shifts([]), {"score": pl.col("control_score")})) == []
