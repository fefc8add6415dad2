"""Who is left out of means of attack success: a small, seeded table of exclusion."""

from collections.abc import Callable
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

Import = Callable[[str], ModuleType]
STUDIES = 50


@pytest.mark.parametrize(
    ("suspect", "shares"),
    # docs/reference/operating-characteristics.md, "Exclusion": 142 questions, and 20 of 8 samples.
    [
        ("honest", (0.0, 0.0)),
        ("gap .14", (0.0, 0.004)),
        ("gap .20", (0.844, 0.816)),
        ("gap .31", (1.0, 1.0)),
        ("ties .75", (0.0, 0.0)),
        ("invalid .05", (0.0, 0.0)),
        ("invalid .10", (0.028, 0.008)),
        ("invalid .15", (1.0, 1.0)),
    ],
)
def test_judges_are_left_out_as_requested(
    benchmark: Import, suspect: str, shares: tuple[float, float]
) -> None:
    found = benchmark("characteristics").excluded(suspect, STUDIES, 17)
    reported = dict(found.select("studies", "excluded").iter_rows())
    for share, name in zip(shares, ("142", "20 x 8"), strict=True):
        # Three binomial standard errors; 0 or 1 of 250 studies may be .01 off.
        unsure = min(max(share, 0.01), 0.99)
        off = 3 * (unsure * (1 - unsure) / STUDIES) ** 0.5
        assert reported[name] == pytest.approx(share, abs=off), name
