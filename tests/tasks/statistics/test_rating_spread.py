from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tasks.statistics.rating_spread import rating_spread

Make = Callable[..., Any]
Row = dict[str, Any]


def rows(made: Any) -> dict[tuple[str, str], Row]:
    found = rating_spread(ratings=made).to_dicts()
    return {(row["statistic"], row["subgroup"]): row for row in found}


def test_products_of_repeats_cancel_their_noise(make_ratings: Make) -> None:
    # Shifts of 1, 1 and 0, 0; the control ratings 4 and 6 have deviation 1.
    given = [
        {"sample": s, "arm": arm, "repeat": r, "value": base + (arm == "experimental") * by}
        for s, base, by in (("a", 4.0, 1.0), ("b", 6.0, 0.0))
        for arm in ("control", "experimental")
        for r in range(2)
    ]
    found = rows(make_ratings(given))
    assert found["rating_spread", ""]["estimate"] == pytest.approx(0.5)
    assert found["rating_mean_square", ""]["estimate"] == pytest.approx(0.5)
    assert found["rating_spread", ""]["unit"] == "sd"


def test_a_planted_spread_is_recovered(make_ratings: Make) -> None:
    random = np.random.default_rng(6)
    quality, true = random.normal(0, 1.5, 3000), random.normal(0.4, 0.6, 3000)
    given = [
        {"sample": f"s{i}", "arm": arm, "repeat": r, "value": v}
        for arm, by in (("control", 0.0), ("sham", 0.0), ("experimental", true))
        for r in range(2)
        for i, v in enumerate(quality + by + random.normal(0, 0.8, 3000))
    ]
    found = rows(make_ratings(given, lowest=-10.0, highest=10.0))
    assert found["rating_spread", ""]["estimate"] == pytest.approx(0.6 / 1.7, abs=0.03)
    assert found["rating_mean_square", ""]["estimate"] == pytest.approx(0.52 / 2.89, abs=0.02)
    assert found["rating_mean_square", ""]["p_value"] < 0.001


def test_one_vote_tells_no_spread(make_ratings: Make) -> None:
    given = [
        {"sample": s, "arm": arm, "value": 5.0}
        for s in "abc"
        for arm in ("control", "experimental")
    ]
    assert rows(make_ratings(given)) == {}
    assert rating_spread(ratings=make_ratings([])).is_empty()


def test_criteria_are_compared_with_their_mean(make_ratings: Make) -> None:
    shifts = {"style": [1.0, 0.0, 2.0, 1.0], "truth": [0.0, 0.0, 1.0, -1.0]}
    base = [4.0, 6.0, 4.0, 6.0]  # deviation 1
    given = [
        {
            "sample": f"s{i}",
            "arm": arm,
            "criterion": name,
            "weight": 1.0,
            "value": base[i] + (by if arm == "experimental" else 0.0),
        }
        for name, some in shifts.items()
        for i, by in enumerate(some)
        for arm in ("control", "experimental")
    ]
    found = rows(make_ratings(given))
    assert found["criterion_shift", "style"]["estimate"] == pytest.approx(1.0)
    assert found["criterion_shift", "truth"]["estimate"] == pytest.approx(0.0)
    spread = found["criterion_spread", ""]
    assert spread["estimate"] == pytest.approx(0.5)
    # Half the differences 1, 0, 1 and 2; the same test of both criteria, so Holm doubles it.
    alone = stats.ttest_1samp(np.array([1.0, 0.0, 1.0, 2.0]) / 2, 0).pvalue
    assert spread["p_value"] == pytest.approx(2 * alone)


def test_passes_are_in_shares(make_ratings: Make) -> None:
    given = [
        {"sample": s, "arm": arm, "repeat": r, "kind": "label", "value": v}
        for s, values in (("a", (0, 1)), ("b", (0, 0)))
        for arm, v in zip(("control", "experimental"), values, strict=True)
        for r in range(2)
    ]
    found = rows(make_ratings(given))
    assert found["rating_mean_square", ""]["estimate"] == pytest.approx(0.5)
    assert found["rating_mean_square", ""]["unit"] == "share"
