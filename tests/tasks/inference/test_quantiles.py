import numpy as np
import pytest
from scipy import stats

from tasks.inference.quantiles import widened


@pytest.mark.parametrize("clusters", [2, 20, 142])
def test_widened_level(clusters: int) -> None:
    # Hesterberg (2015), by scipy's own distributions.
    far = stats.t.ppf(0.975, clusters - 1) * (clusters / (clusters - 1)) ** 0.5
    assert widened(0.95, clusters) == pytest.approx(1 - 2 * stats.norm.sf(far))


def test_percentiles_of_few_clusters_hold_their_level() -> None:
    # Means of 20 normal values, 400 draws each: .95 has a standard error of .0069 at 1000 studies;
    # percentiles of 95 % cover .93 at most.
    random = np.random.default_rng(4)
    held = {0.95: 0, float(widened(0.95, 20)): 0}
    weights = random.multinomial(20, np.full(20, 1 / 20), 400) / 20
    for values in random.standard_normal((1000, 20)):
        drawn = weights @ values
        for level in held:
            low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
            held[level] += bool(low <= 0 <= high)
    narrow, wide = held.values()
    assert narrow < 940 < wide < 971
