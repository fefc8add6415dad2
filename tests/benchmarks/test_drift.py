"""What the canary sees: a small, seeded benchmarks/drift.py."""

from collections.abc import Callable
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

Import = Callable[[str], ModuleType]
STUDIES = 60


def test_a_canary_at_a_middle_temperature_sees_most_changes(benchmark: Import) -> None:
    # operating-characteristics.md: .733 of 400 studies; three binomial standard errors of 60.
    power = benchmark("drift").canary_power(0.5, STUDIES, 5)
    assert power == pytest.approx(0.733, abs=3 * (0.733 * 0.267 / STUDIES) ** 0.5)
