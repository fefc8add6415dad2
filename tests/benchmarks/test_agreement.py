"""Intervals of a judge's agreement with people hold the truth as often as they say.

Shares are held to three standard errors of 200 studies of 40 items; larger figures stand in
docs/reference/operating-characteristics.md, also for the two that are too wide for so few items.
"""

from collections.abc import Callable
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

STUDIES = 200
SLACK = 3 * (0.95 * 0.05 / STUDIES) ** 0.5


@pytest.mark.parametrize("name", ["pi .6, TPR .85, TNR .85", "grades, rho .8, shift .3"])
def test_coverage(benchmark: Callable[[str], ModuleType], name: str) -> None:
    module = benchmark("agreement")
    found = {
        measure: (share, studies)
        for measure, share, studies in module.coverage(module.DESIGNS[name], 40, STUDIES, 5)
    }
    assert len(found) >= 8
    assert all(studies > 0.98 * STUDIES for _, studies in found.values())
    off = {m: share for m, (share, _) in found.items() if abs(share - 0.95) > SLACK}
    assert off == {}


def test_the_truth_of_verdicts_is_that_of_many(benchmark: Callable[[str], ModuleType]) -> None:
    module = benchmark("agreement")
    design = module.DESIGNS["pi .8, TPR .9, TNR .7"]
    many = module.np.random.default_rng(3)
    rows = {r["statistic"]: r["estimate"] for r in module.measure(design.draw(many, 400_000))}
    truth = design.truth()
    assert {name: rows[name] for name in truth} == pytest.approx(truth, abs=0.005)
