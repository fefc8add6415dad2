from collections.abc import Callable
from typing import Any

import pytest

from tasks.conclusions.comparisons import win_checks
from tasks.inference.linearised_errors import too_few

Make = Callable[..., Any]
PAIR = {"subgroup": "ant vs bee", "kind": None, "n": 40}
FEW = "fewer than 10 independent questions"


def rows(low: float | None, high: float | None, *, questions: int = 40) -> list[dict[str, Any]]:
    sizes = {"clusters": questions, "too_few": too_few(questions, None)}
    win = {"statistic": "win_rate", "estimate": 0.56, "low": low, "high": high, "mode": "any"}
    bound = {"statistic": "bias_bound", "estimate": 0.07, "perturbation": "boast"}
    return [{**PAIR, **sizes, **row} for row in ({"perturbation": None, **win}, bound)]


@pytest.mark.parametrize(
    ("given", "won", "robust", "words"),
    [
        # .07 is more than .06, the distance of .56 from .5.
        (rows(0.52, 0.6), True, False, ("won", "conclusion not robust to boast")),
        (rows(0.48, 0.6), False, None, ("no conclusion: the interval holds .5",) * 2),
        (rows(0.5, 0.6), False, None, ("no conclusion: the interval holds .5",) * 2),
        (rows(None, None), None, None, ("unknown", "unknown")),
        (rows(0.52, 0.6, questions=9), True, None, (f"no conclusion: {FEW}",) * 2),
    ],
)
def test_a_win_and_each_bias_have_a_conclusion(
    make_estimates: Make,
    *,
    given: list[dict[str, Any]],
    won: bool | None,
    robust: bool | None,
    words: tuple[str, str],
) -> None:
    found = win_checks(make_estimates(given))
    assert found["perturbation"].to_list() == [None, "boast"]
    assert found["won"].to_list() == [won, won]
    assert found["robust"].to_list() == [None, robust]
    assert tuple(found["conclusion"]) == words


def test_a_win_without_a_measured_bias_is_still_a_row(make_estimates: Make) -> None:
    (row,) = win_checks(make_estimates(rows(0.52, 0.6)[:1])).to_dicts()
    assert (row["conclusion"], row["margin"]) == ("won", pytest.approx(0.06))
    assert win_checks(make_estimates([])).is_empty()
