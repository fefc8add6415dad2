"""Size of the alternative annotator test where items share clusters."""

import pytest

from benchmarks.alt_test import sizes, true_margin

pytestmark = pytest.mark.slow


def test_a_test_by_clusters_keeps_its_size() -> None:
    with_clusters, without = sizes(15, 8, 150, true_margin())
    # 450 tests in 150 independent studies: .05 and three standard errors of the studies.
    assert with_clusters < 0.05 + 3 * (0.05 * 0.95 / 150) ** 0.5
    assert without > 2 * with_clusters
