from collections.abc import Callable
from typing import Any

import pytest

from tasks.conclusions.comparisons import contrasts

Make = Callable[..., Any]


def test_the_words_are_those_of_the_mart(make_estimates: Make) -> None:
    pair = {"statistic": "mps_contrast", "judge": "ada", "standard_error": 0.01, "clusters": 12}
    rows = [
        {**pair, "subgroup": "bea", "estimate": 0.1, "p_value": 0.0001},
        {**pair, "subgroup": "cleo", "estimate": 0.01, "p_value": 0.4},
        {**pair, "subgroup": "dora", "estimate": 0.1, "p_value": 0.04},
        {**pair, "subgroup": "", "statistic": "asr", "estimate": 0.3},
    ]
    found = contrasts(make_estimates(rows))
    reported = found.select("other", "contrast", "p_holm", "finding").rows()
    # Holm of .0001, .04, .4: three, two and one times.
    assert reported == [
        ("bea", 0.1, pytest.approx(0.0003), "biased"),
        ("cleo", 0.01, pytest.approx(0.4), "no relevant bias"),
        ("dora", 0.1, pytest.approx(0.08), "inconclusive"),
    ]
