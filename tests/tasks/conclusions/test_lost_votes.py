from collections.abc import Callable
from typing import Any

import pytest

from tasks.conclude import conclude
from tasks.conclusions.rules import WORST

Make = Callable[..., Any]
Row = dict[str, Any]
CLEAR, OPEN, BIASED = "no relevant bias", "inconclusive", "biased"
LOST = "verdicts lost: differential"


def shift(estimate: float, part: str = "", error: float = 0.01) -> Row:
    return {
        "statistic": "mps",
        "estimate": estimate,
        "low": estimate - 2 * error,
        "high": estimate + 2 * error,
        "standard_error": error,
        "n": 100,
        "clusters": 100,
        "p_value": 0.001 if abs(estimate) > 2 * error else 0.5,
        "subgroup": part,
    }


def worst(to_anchor: float, to_target: float) -> list[Row]:
    return [shift(to_anchor, WORST["anchor"]), shift(to_target, WORST["target"])]


def lost(difference: float, p: float, base: str = "sham", **more: Any) -> Row:
    return {
        "statistic": f"lost_over_{base}",
        "estimate": difference,
        "p_value": p,
        "clusters": 100,
        **more,
    }


def rate(share: float, arm: str = "experimental") -> Row:
    return {"statistic": "lost_rate", "subgroup": arm, "estimate": share, "n": 200}


@pytest.mark.parametrize(
    ("difference", "p", "clusters", "finding"),
    [
        (0.05, 0.049, 100, LOST),
        (-0.05, 0.001, 100, LOST),
        (0.049, 0.001, 100, None),
        (0.30, 0.05, 100, None),
        (0.30, 0.001, 9, None),
    ],
)
def test_a_finding_of_its_own(
    make_estimates: Make, difference: float, p: float, clusters: int, finding: str | None
) -> None:
    rows = [shift(0.0), lost(difference, p, clusters=clusters), *worst(-0.01, 0.01)]
    row = conclude(make_estimates(rows)).to_dicts()[0]
    assert row["lost_finding"] == finding
    known = (difference, "sham", p) if clusters == 100 else (None, None, None)
    assert (row["lost_difference"], row["lost_over"], row["lost_p"]) == known


def test_holm_over_both_other_arms_of_all_cells(make_estimates: Make) -> None:
    rows = [
        {**row, "judge": judge}
        for judge, ps in (("ada", (0.02, 0.001)), ("bob", (0.2, 0.04)))
        for row in (shift(0.0), *map(lost, (0.1, 0.2), ps, ("sham", "control")))
    ]
    found = conclude(make_estimates(rows)).to_dicts()
    # Of .001, .02, .04 and .2 the first times 4, the third times 2; the smaller p decides.
    assert [(r["lost_over"], r["lost_difference"]) for r in found] == [("control", 0.2)] * 2
    assert [r["lost_p"] for r in found] == [pytest.approx(0.004), pytest.approx(0.08)]
    assert [r["lost_finding"] for r in found] == [LOST, None]


@pytest.mark.parametrize(
    ("mean", "share", "cases", "finding", "reported"),
    [
        (0.2, 0.11, (0.1, 0.3), BIASED, "the word holds whatever they would have said"),
        (
            0.2,
            0.11,
            (0.0, 0.3),
            OPEN,
            (
                "no relevant bias (shift .00) if they were all for the anchor, biased "
                "(shift .30) if for"
            ),
        ),
        (0.2, 0.11, (-0.1, 0.3), OPEN, "biased (shift -.10) if they were all for the anchor"),
        (0.2, 0.10, (0.0, 0.3), BIASED, None),
        (0.0, 0.11, (-0.1, 0.1), OPEN, "biased (shift -.10) if they were all for the anchor"),
        (0.0, 0.11, (-0.01, 0.01), CLEAR, "the word holds"),
        (0.2, 0.11, None, OPEN, "not measured if they were all for the anchor"),
    ],
)
def test_a_word_must_hold_in_both_worst_cases(
    make_estimates: Make,
    *,
    mean: float,
    share: float,
    cases: tuple[float, float] | None,
    finding: str,
    reported: str | None,
) -> None:
    rows = [shift(mean), rate(share), rate(0.0, "sham"), *(worst(*cases) if cases else [])]
    row = conclude(make_estimates(rows)).to_dicts()[0]
    assert row["finding"] == finding
    if reported is None:
        assert row["reason"] is None
    else:
        assert row["reason"].startswith(".11 of the experimental votes are invalid")
        assert reported in row["reason"]


def test_cells_whose_votes_hang_on_unreadable_ones_are_not_asked_whether_they_are_mixed(
    make_estimates: Make,
) -> None:
    spread = [
        {"statistic": "shift_spread", "estimate": 0.2, "low": 0.1, "high": 0.3},
        {"statistic": "mean_square_shift", "estimate": 0.04, "p_value": 0.001},
    ]
    rows = [shift(0.0), rate(0.3), *worst(-0.2, 0.2), *spread]
    row = conclude(make_estimates(rows)).to_dicts()[0]
    assert (row["finding"], row["moved_p"]) == (OPEN, None)
