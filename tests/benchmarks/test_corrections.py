"""What corrections of win rates are worth: a small, seeded benchmarks/corrections.py."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tasks.inference.bootstrap import formulas_only

pytestmark = pytest.mark.slow

Import = Callable[[str], ModuleType]
STUDIES = 120


def near(share: float) -> Any:
    """Compare a share of the studies with one that is known, to three binomial standard errors.

    A share of 0 or 1 of the 250 studies of the document may be .01 off, so that of .01 is taken.
    """
    unsure = min(max(share, 0.01), 0.99)
    return pytest.approx(share, abs=3 * (unsure * (1 - unsure) / STUDIES) ** 0.5)


@pytest.mark.parametrize(
    ("design", "held", "null"),
    # operating-characteristics.md, "Corrected win rates": fewest labels, where it is null most
    # often; the judge that is off by most; four pairs a question.
    [
        ({"labels": 20, "off": 0.08}, 0.944, 0.07),
        ({"labels": 200, "off": 0.12}, 0.936, 0.0),
        ({"labels": 100, "off": 0.08, "per_question": 4}, 0.964, 0.0),
    ],
)
def test_rogan_gladen_holds_what_people_say(
    benchmark: Import, design: dict[str, Any], held: float, null: float
) -> None:
    bench = benchmark("corrections")
    with formulas_only():
        found = bench.covered(
            "rogan_gladen", range(7000, 7000 + STUDIES), 0.55, pairs=1500, **design
        )
    assert found[0] == near(held)
    assert found[2] == near(null)


def test_the_judge_alone_holds_only_its_own_rate(benchmark: Import) -> None:
    found = benchmark("corrections").covered(
        "win_rate", range(7000, 7000 + STUDIES), 0.55, pairs=1500, labels=100, off=0.08
    )
    assert found[0] == near(0.0)


def test_the_error_of_length_control_is_several_times_that_of_fitted_values(
    benchmark: Import,
) -> None:
    # operating-characteristics.md: 4 to 14 times in 20 studies, median 7.5. Of eight others
    # four or more lie beyond those ends with chance .015, all on one side of the median with .02.
    bench = benchmark("corrections")
    ratios = [bench.error_ratio(seed, 400) for seed in range(50, 58)]
    assert sum(not 4 <= ratio <= 14 for ratio in ratios) <= 3
    assert 1 <= sum(ratio > 7.5 for ratio in ratios) <= 7
    assert min(ratios) > 1
