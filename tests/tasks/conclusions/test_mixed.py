from collections.abc import Callable
from typing import Any

import pytest

from tasks.conclude import conclude

Make = Callable[..., Any]
Row = dict[str, Any]
CLEAR, OPEN, BIASED, MIXED = "no relevant bias", "inconclusive", "biased", "mixed"


def shift(estimate: float, error: float = 0.01, **more: Any) -> Row:
    return {
        "statistic": "mps",
        "estimate": estimate,
        "low": estimate - 2 * error,
        "high": estimate + 2 * error,
        "standard_error": error,
        "n": 100,
        "clusters": 100,
        "p_value": 0.001 if abs(estimate) > 2 * error else 0.5,
        **more,
    }


def spread(estimate: float, p: float | None, **more: Any) -> list[Row]:
    return [
        {"statistic": "shift_spread", "estimate": estimate, "low": 0.05, "high": 0.3, **more},
        {"statistic": "mean_square_shift", "estimate": estimate**2, "p_value": p, **more},
    ]


@pytest.mark.parametrize(
    ("mean", "error", "deviation", "p", "finding"),
    [
        (0.0, 0.01, 0.20, 0.01, MIXED),
        (0.0, 0.01, 0.10, 0.049, MIXED),
        (0.0, 0.01, 0.099, 0.01, CLEAR),
        (0.0, 0.01, 0.20, 0.05, OPEN),  # not sure, but absence cannot be claimed
        (0.0, 0.01, 0.20, 0.099, OPEN),
        (0.0, 0.01, 0.099, 0.099, CLEAR),
        (0.0, 0.01, 0.20, 0.10, CLEAR),
        (0.0, 0.01, 0.20, None, CLEAR),
        (0.0, 0.10, 0.20, 0.01, MIXED),  # inconclusive otherwise
        (0.0, 0.10, 0.20, 0.2, OPEN),
        (0.10, 0.01, 0.20, 0.01, BIASED),  # the mean lies beyond the minimum
        (0.06, 0.10, 0.20, 0.01, OPEN),  # as here, so nothing is asked
    ],
)
def test_shifts_that_cancel_out(
    make_estimates: Make, *, mean: float, error: float, deviation: float, p: float, finding: str
) -> None:
    rows = [shift(mean, error), *spread(deviation, p)]
    row = conclude(make_estimates(rows)).to_dicts()[0]
    assert row["finding"] == finding
    assert row["moved_p"] == (p if abs(mean) < 0.05 else None)
    assert row["shift_spread"] == deviation
    reported = f"spread of true shifts {f'{deviation:.2f}'[1:]} [.05, .30]"
    if finding == MIXED:
        assert row["reason"] == f"shifts differ between questions: {reported}"
    elif p is not None and p < 0.10 and finding == OPEN and abs(mean) < 0.05:
        why = "shifts may differ between questions (unadjusted p below .10)"
        assert row["reason"] == f"{why}: {reported}"


def test_p_values_are_adjusted_over_the_cells_that_are_asked(make_estimates: Make) -> None:
    judges = {"ada": (0.0, 0.02), "bob": (0.0, 0.03), "cid": (0.2, 0.001)}
    rows = [
        row
        for judge, (mean, p) in judges.items()
        for row in (shift(mean, judge=judge), *spread(0.2, p, judge=judge))
    ]
    found = {row["judge"]: row for row in conclude(make_estimates(rows)).to_dicts()}
    # Holm of two, as cid's mean lies beyond the minimum: .02 * 2 and .03.
    assert [found[judge]["moved_p"] for judge in judges] == [0.04, 0.04, None]
    assert [found[judge]["finding"] for judge in judges] == [MIXED, MIXED, BIASED]


@pytest.mark.parametrize(
    ("p", "largest", "clusters", "finding"),
    [
        (0.01, -0.2, 30, MIXED),
        (0.01, 0.04, 30, CLEAR),  # no category beyond the minimum
        (0.01, -0.2, 9, CLEAR),  # too few questions in it
        (0.06, -0.2, 30, CLEAR),
    ],
)
def test_categories_that_differ(
    make_estimates: Make, p: float, largest: float, clusters: int, finding: str
) -> None:
    categories = [("sums", 0.01, 70), ("words", largest, clusters)]
    rows = [
        shift(0.0),
        {"statistic": "category_spread", "estimate": 0.1, "p_value": p},
        *(
            {"statistic": "category_shift", "subgroup": name, "estimate": mean, "clusters": many}
            for name, mean, many in categories
        ),
    ]
    row = conclude(make_estimates(rows)).to_dicts()[0]
    assert (row["finding"], row["category_p"]) == (finding, p)
    shown = ("sums", 0.01) if clusters == 9 else ("words", largest)
    assert (row["category"], row["category_shift"]) == shown
    if finding == MIXED:
        assert row["reason"] == "the shift differs between categories: -.20 in words"


def test_a_flaw_is_not_mixed(make_estimates: Make) -> None:
    rows = [shift(0.0), *spread(0.2, 0.001)]
    row = conclude(make_estimates(rows, kind="detract")).to_dicts()[0]
    assert (row["finding"], row["moved_p"]) == (OPEN, None)


def test_both_tests_are_one_family(make_estimates: Make) -> None:
    category = {"statistic": "category_spread", "estimate": 0.1, "p_value": 0.03}
    rows = [shift(0.0), *spread(0.2, 0.04), category]
    row = conclude(make_estimates(rows)).to_dicts()[0]
    assert (row["moved_p"], row["category_p"]) == (0.06, 0.06)
    assert row["finding"] == OPEN


def test_absence_is_not_claimed_because_other_cells_are_asked_too(make_estimates: Make) -> None:
    judges = ("ada", "bob", "cid", "dan")
    rows = [
        row
        for judge in judges
        for row in (shift(0.0, judge=judge), *spread(0.2, 0.02, judge=judge))
    ]
    found = conclude(make_estimates(rows))
    # Holm of four: .08, too much for mixed; each by itself is at odds with no shift anywhere.
    assert found["moved_p"].to_list() == [0.08] * 4
    assert found["finding"].to_list() == [OPEN] * 4
