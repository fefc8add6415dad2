"""Cohen's kappa from sums, against the coefficients that its users compute."""

import numpy as np
import pytest

from tasks.agreement.coefficients import cohen_kappa
from tasks.agreement.kappa import kappa


@pytest.mark.parametrize("power", [None, 1, 2])
def test_from_counts_as_from_labels(power: int | None) -> None:
    # By hand: O = 4/6 and E = 1 - (3 * 2 + 2 * 2 + 1 * 2) / 36 unweighted, so kappa = 0.
    one, other = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 1, 2, 0])
    scale = np.abs(np.arange(3)[:, None] - np.arange(3)).astype(float)
    distance = (scale > 0).astype(float) if power is None else scale**power
    counts = (np.bincount(each, minlength=3) for each in (one, other))
    apart = distance[one, other].sum()
    found = kappa(6, apart, *counts, None if power is None else distance)
    if power is None:
        assert found == pytest.approx(0)
    assert found == pytest.approx(cohen_kappa(one, other, distance, np.arange(6)).estimate)


def test_with_one_label_chance_is_certain() -> None:
    assert np.isnan(kappa(4, 0, np.array([4, 0]), np.array([4, 0])))
