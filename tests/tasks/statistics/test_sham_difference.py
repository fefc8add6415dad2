from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.mps_sham import mps_sham
from tasks.statistics.sham_difference import sham_difference

Make = Callable[..., Any]


def both(sample: str, first: float, second: float, after: float) -> list[dict[str, Any]]:
    shared = {"sample": sample, "control_score": 0.5, "experimental_score": after}
    return [
        {**shared, "sham_score": first, "perturbation": "boast"},
        {**shared, "sham_score": second, "perturbation": "boast/second"},
    ]


def test_docstring_example(make_shifts: Make) -> None:
    shifts = make_shifts([*both("a", 0.5, 1.0, 1.0), *both("b", 1.0, 1.0, 0.0)])
    (row,) = sham_difference(shifts=shifts).to_dicts()
    assert (row["perturbation"], row["estimate"], row["n"]) == ("boast", 0.25, 2)
    # Deviations 1/4 and -1/4: SE = sqrt(2 * 1/8) / 2 = 1/4
    assert row["standard_error"] == pytest.approx(0.25)


def test_it_is_the_difference_of_the_shifts_over_each(make_shifts: Make) -> None:
    shifts = make_shifts([*both("a", 0.5, 0.25, 1.0), *both("b", 0.0, 0.75, 0.5)])
    first, second = mps_sham(shifts=shifts)["estimate"]
    assert sham_difference(shifts=shifts)["estimate"].item() == pytest.approx(first - second)


def test_without_a_second_sham_there_is_no_row(make_shifts: Make) -> None:
    assert sham_difference(shifts=make_shifts(both("a", 0.5, 1.0, 1.0)[:1])).is_empty()
    assert sham_difference(shifts=make_shifts(both("a", 0.5, 1.0, 1.0)[1:])).is_empty()
