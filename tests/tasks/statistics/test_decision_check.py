from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.decision_check import ASSUMED, COUNTED, NEVER, NO_BOUND, decision_check

Make = Callable[..., Any]


def study(make_contests: Make, make_shifts: Make, perturbation: str, shift: float) -> Any:
    """Return a win of "bee" by .56 in 100 pairs, longer in 50, and a judge that shifts so much."""
    contests = make_contests(
        {"score": float(i % 25 < 14), "anchor_length": 100, "target_length": 150 if i < 50 else 100}
        for i in range(100)
    )
    shifts = make_shifts(
        {
            "control_score": 0.5,
            "experimental_score": 0.5 + shift + (0.01 if i % 2 else -0.01),
            "perturbation": perturbation,
        }
        for i in range(50)
    )
    found = decision_check(shifts=shifts, contests=contests).to_dicts()
    return {row["statistic"]: row for row in found}


def test_a_bias_that_many_pairs_carry_tips_the_win(make_contests: Make, make_shifts: Make) -> None:
    found = study(make_contests, make_shifts, "padding", 0.14)
    # "bee" wins .56 and is longer in half of the pairs: .06 / .5. The shift's error is .01 *
    # sqrt(50/49) / sqrt 50 = .001429, t(49) 2.0096: (.14 + .002871) * .5.
    assert found["tipping_shift"]["estimate"] == pytest.approx(0.12)
    assert found["bias_bound"]["estimate"] == pytest.approx(0.071435, abs=1e-6)
    assert found["bias_bound"]["subgroup"] == "ant vs bee"
    assert found["bias_bound"]["method"] == COUNTED


@pytest.mark.parametrize(
    "counts",
    [
        {"markup": (4, 7)},
        {"header": (1, 2), "list": (3, 3), "bold": (0, 2)},
        # A heading less, but more of all
        {"header": (2, 1), "list": (1, 1), "bold": (0, 0), "markup": (4, 7)},
    ],
)
def test_markup_is_all_that_was_counted(
    make_contests: Make, make_shifts: Make, counts: dict[str, tuple[int, int]]
) -> None:
    # "bee" wins .56 and has more markup in half of the pairs, alike in the others: .06 / .5.
    contests = make_contests(
        {"score": float(i % 25 < 14)}
        | {f"anchor_{what}": few for what, (few, _) in counts.items()}
        | {f"target_{what}": count[i % 2] for what, count in counts.items()}
        for i in range(100)
    )
    shifts = make_shifts(
        [{"control": "tie", "experimental": "target"}, {"control": "tie", "experimental": "tie"}],
        perturbation="rich_content",
    )
    found = decision_check(shifts=shifts, contests=contests).to_dicts()
    tipping = next(row for row in found if row["statistic"] == "tipping_shift")
    assert (tipping["estimate"], tipping["method"]) == (pytest.approx(0.12), COUNTED)


def test_clusters_are_those_that_a_number_rests_on(make_contests: Make, make_shifts: Make) -> None:
    found = study(make_contests, make_shifts, "padding", 0.14)
    # 50 questions of the shift, 100 of the win: what would reverse it asks for no shift.
    assert {name: row["clusters"] for name, row in found.items()} == {
        "bias_bound": 50,
        "tipping_shift": 100,
    }


def test_what_tips_a_win_needs_no_shift(make_contests: Make, make_shifts: Make) -> None:
    shifts = make_shifts([{"control": "tie"}], perturbation="padding")
    # Lengths of 4 of 10 contests are known, in half of which the winner, by .7, is longer.
    contests = make_contests(
        {"score": float(i < 7)}
        | ({"anchor_length": 100, "target_length": 150 if i < 2 else 100} if i < 4 else {})
        for i in range(10)
    )
    rows = decision_check(shifts=shifts, contests=contests).to_dicts()
    found = {row["statistic"]: row for row in rows}
    tipping, bound = found["tipping_shift"], found["bias_bound"]
    assert (tipping["estimate"], tipping["clusters"]) == (pytest.approx(0.4), 4)
    assert (bound["estimate"], bound["clusters"], bound["reason"]) == (None, 0, NO_BOUND)


def test_unknown_carriers_are_taken_as_all(make_contests: Make, make_shifts: Make) -> None:
    found = study(make_contests, make_shifts, "fake_reference", 0.03)
    assert found["tipping_shift"]["estimate"] == pytest.approx(0.06)
    assert found["bias_bound"]["estimate"] == pytest.approx(0.032871, abs=1e-6)
    assert found["bias_bound"]["method"] == ASSUMED


def test_a_dislike_helps_who_does_not_carry(make_contests: Make, make_shifts: Make) -> None:
    # The loser is never longer, so a dislike of length made nothing of the win.
    assert study(make_contests, make_shifts, "padding", -0.1)["bias_bound"]["estimate"] == 0.0
    found = study(make_contests, make_shifts, "fake_reference", -0.1)
    assert found["bias_bound"]["estimate"] == pytest.approx(0.102871, abs=1e-6)


def test_what_no_winner_carries_reverses_nothing(make_contests: Make, make_shifts: Make) -> None:
    contests = make_contests(
        {"score": float(i < 8), "anchor_length": 100, "target_length": 90} for i in range(10)
    )
    shifts = make_shifts(
        [{"control": "tie", "experimental": "target"}, {"control": "tie", "experimental": "tie"}],
        perturbation="padding",
    )
    found = decision_check(shifts=shifts, contests=contests).to_dicts()
    assert {row["reason"] for row in found} == {"a bound: no interval", NEVER}


def test_only_promote_kinds_and_known_models(make_contests: Make, make_shifts: Make) -> None:
    shifts = make_shifts([{"control": "tie", "experimental": "target"}] * 3, kind="detract")
    contests = make_contests([{"score": 1.0}] * 3)
    assert decision_check(shifts=shifts, contests=contests).is_empty()
    assert decision_check(shifts=shifts, contests=make_contests([])).is_empty()
    assert decision_check(shifts=make_shifts([]), contests=contests).is_empty()


def test_without_an_interval_there_is_no_bound(make_contests: Make, make_shifts: Make) -> None:
    shifts = make_shifts([{"control": "tie", "experimental": "target"}])
    rows = decision_check(shifts=shifts, contests=make_contests([{"score": 1.0}] * 3)).to_dicts()
    found = {row["statistic"]: row for row in rows}
    assert (found["bias_bound"]["estimate"], found["bias_bound"]["reason"]) == (None, NO_BOUND)
    assert found["tipping_shift"]["estimate"] == 0.5
