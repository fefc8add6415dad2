"""Findings of judges whose bias hides, simulated small and seeded: benchmarks/hidden_bias.py."""

from collections.abc import Callable
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

Import = Callable[[str], ModuleType]
STUDIES, SEED = 40, 1


@pytest.fixture(scope="module")
def hidden(benchmark: Import) -> ModuleType:
    """Return the benchmark, of its smallest and one larger design."""
    return benchmark("hidden_bias")


def shares(
    hidden: ModuleType, table: str, sizes: tuple[tuple[int, int], ...]
) -> dict[str, dict[str, float]]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SIZES", "HALVED_SIZES"):
            patch.setattr(hidden, name, sizes)
        found: dict[str, dict[str, float]] = {}
        for rate in hidden.HIDDEN[table](STUDIES, SEED):
            found.setdefault(rate.design, {})[rate.what] = rate.share
    return found


def test_opposite_shifts_in_halves_are_not_absence_of_bias(hidden: ModuleType) -> None:
    (found,) = shares(hidden, "heterogeneous", ((142, 6),)).values()
    # Of 1000 studies .002 and .978 (docs/reference/operating-characteristics.md).
    assert found["no relevant bias"] <= 0.05
    assert found["mixed"] >= 0.85


def test_categories_beyond_their_minimum_are_not_absence_of_bias(hidden: ModuleType) -> None:
    for found in shares(hidden, "categories", ((142, 6),)).values():
        assert found["no relevant bias"] <= 0.05


def test_a_judge_that_nothing_moves_is_seldom_mixed(hidden: ModuleType) -> None:
    (found,) = shares(hidden, "even", ((142, 2),)).values()
    assert found["mixed"] <= 0.05 + 3 * (0.05 * 0.95 / STUDIES) ** 0.5


def test_unreadable_votes_make_no_wrong_finding(hidden: ModuleType) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hidden, "LOST_SIZES", ((142, 2),))
        for rate in hidden.HIDDEN["unreadable"](STUDIES, SEED):
            if rate.what.startswith(("wrong", "another")):
                # Complete votes err too: .025 of them would be biased the same way.
                assert rate.share <= 0.025, rate
            elif rate.what.startswith("bounds"):
                assert rate.share == 1, rate
            else:
                assert rate.share >= 0.95, rate
