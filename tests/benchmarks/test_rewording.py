"""Sensitivity to the wording: planted effects recovered, none where none is planted."""

from collections.abc import Callable
from typing import Any

import pytest

Import = Callable[[str], Any]
pytestmark = pytest.mark.slow


def test_planted_effects_of_the_wording_are_recovered(benchmark: Import) -> None:
    rows = benchmark("rewording").recovery(20_000, seed=5)
    worst = {unit: part["off"].abs().max() for (unit,), part in rows.group_by("unit")}
    assert worst["share"] < 0.015
    assert worst["score"] < 0.015
    assert worst["points"] < 0.05
    found = {(r["planted"], r["statistic"], r["subgroup"]): r["estimate"] for r in rows.to_dicts()}
    # What variant two adds before rounding.
    assert found["grades, noisy", "rating_rewording_shift", "two"] == pytest.approx(0.5, abs=0.05)
    assert found["pairs, steady", "rewording_excess", ""] > 0.2


def test_where_nothing_is_planted_tests_and_intervals_keep_their_level(benchmark: Import) -> None:
    bench = benchmark("rewording")
    for name, judge in bench.QUIET.items():
        # Three standard errors of .95 in 300 studies are .038.
        for row in bench.coverage(judge, 142, 300, 11).to_dicts():
            assert row["coverage"] == pytest.approx(0.95, abs=0.038), (name, row)
            if row["rejected"] is not None:
                assert row["rejected"] == pytest.approx(0.05, abs=0.038), (name, row)
                assert row["truth"] == pytest.approx(0, abs=1e-9)
