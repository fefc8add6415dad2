from collections.abc import Callable
from typing import Any

import pytest

Import = Callable[[str], Any]
pytestmark = pytest.mark.slow


def test_planted_biases_of_ratings_are_recovered(benchmark: Import) -> None:
    rows = benchmark("pointwise").recovery(20_000, seed=5)
    assert set(rows["judge"]) == {"leniency", "length", "reference", "ceiling", "flaw"}
    worst = {unit: part["off"].abs().max() for (unit,), part in rows.group_by("unit")}
    assert worst["share"] < 0.015
    assert worst["points"] < 0.05
    assert worst["sd"] < 0.05
    found = {(r["judge"], r["statistic"]): r["estimate"] for r in rows.to_dicts()}
    # What is planted before rounding, where the scale does not end.
    assert found["length", "rating_shift_sham"] == pytest.approx(0.3, abs=0.05)
    assert found["reference", "rating_shift"] == pytest.approx(0.9, abs=0.05)
    # At the ceiling ratings cannot move that far.
    assert found["ceiling", "rating_shift"] < 0.7


def test_intervals_and_tests_of_ratings_keep_their_level(benchmark: Import) -> None:
    bench = benchmark("pointwise")
    rows = bench.coverage(bench.QUIET, 142, 200, 11)
    # Three standard errors of .95 in 200 studies are .046; the mode is taken as given.
    for row in rows.filter(~rows["statistic"].is_in(["modal_share"])).to_dicts():
        assert row["coverage"] == pytest.approx(0.95, abs=0.05), row
        if row["statistic"] in bench.SHIFTS:
            assert row["rejected"] == pytest.approx(0.05, abs=0.046), row
    pairs = bench.contrasts(bench.QUIET, bench.QUIET, 142, 200, 11)
    assert set(pairs["statistic"]) == {"rating_sham_contrast", "pass_rate_sham_contrast"}
    for row in pairs.to_dicts():
        assert row["coverage"] == pytest.approx(0.95, abs=0.05), row
        assert row["rejected"] == pytest.approx(0.05, abs=0.046), row
