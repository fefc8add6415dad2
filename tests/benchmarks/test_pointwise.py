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
    # Three standard errors of .95 in 200 studies are .046.
    for row in rows.to_dicts():
        assert row["coverage"] == pytest.approx(0.95, abs=0.05), row
        if row["statistic"] in bench.SHIFTS:
            assert row["rejected"] == pytest.approx(0.05, abs=0.046), row
    pairs = bench.contrasts(bench.QUIET, bench.QUIET, 142, 200, 11)
    assert set(pairs["statistic"]) == {"rating_sham_contrast", "pass_rate_sham_contrast"}
    for row in pairs.to_dicts():
        assert row["coverage"] == pytest.approx(0.95, abs=0.05), row
        assert row["rejected"] == pytest.approx(0.05, abs=0.046), row


def test_rare_events_are_covered_as_often_as_computed_without_simulation(benchmark: Import) -> None:
    bench = benchmark("pointwise")
    # With 60 items, a fifth of the time of 142, the events are as rare.
    rows = bench.coverage(bench.JUDGES["ceiling"], 60, 150, 3, ("scale_use", "rating_shift"))
    exact = rows.drop_nulls("exact")
    shares = {"floor_share", "ceiling_share"}
    shifts = {"pass_rate_shift", "pass_rate_shift_sham", "pass_rate_sham_shift"}
    assert set(exact["statistic"]) == shares | shifts
    for row in exact.to_dicts():
        error = (row["exact"] * (1 - row["exact"]) / row["studies"]) ** 0.5
        assert row["coverage"] == pytest.approx(row["exact"], abs=3 * error), row


def test_exact_coverage_of_a_share_of_nearly_0_is_the_chance_of_no_event(
    benchmark: Import,
) -> None:
    bench, exact = benchmark("pointwise"), benchmark("exact_coverage")
    ceiling = bench.JUDGES["ceiling"]
    lowest = bench.chances(ceiling, 0.0)[:, 0]
    # An item has two answers of two grades each. The interval of one grade of 568 begins above the
    # truth of .00002.
    none = (bench.WEIGHTS @ (1 - lowest) ** 2) ** (2 * 142)
    assert exact.exact_coverage("floor_share", ceiling, 142) == pytest.approx(none, abs=1e-7)


def test_the_share_of_the_mode_is_that_of_the_grade_most_frequent_in_the_study(
    benchmark: Import,
) -> None:
    bench = benchmark("pointwise")
    rows = bench.coverage(bench.JUDGES["leniency"], 142, 600, 1, ("scale_use",))
    [row] = rows.filter(statistic="modal_share").to_dicts()
    # .230 of grades are 6 and .208 are 7, which is the mode of a quarter of the studies.
    assert 0.222 < row["truth"] < 0.228
    assert row["coverage"] == pytest.approx(0.938, abs=0.03)
