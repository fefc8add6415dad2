"""Differences between judges' rating shifts, by hand and against the difference of their rows."""

from collections.abc import Callable
from typing import Any

import pytest
from scipy import stats

from tasks.statistics.rating_contrast import rating_contrast
from tasks.statistics.rating_shift import rating_shift

Make = Callable[..., Any]
ONE: dict[str, list[Any]] = {"control": [4, 6, 8], "experimental": [5, 6, 10]}
OTHER: dict[str, list[Any]] = {"control": [4, 6, 8], "experimental": [4, 6, 8]}
DEVIATION = (8 / 3) ** 0.5


def of(arms: dict[str, list[Any]], **more: Any) -> list[dict[str, Any]]:
    return [
        {"sample": f"s{i}", "arm": arm, "value": value, **more}
        for arm, values in arms.items()
        for i, value in enumerate(values)
    ]


def found(ratings: Any) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = rating_contrast(ratings=ratings).to_dicts()
    return {(row["statistic"], row["judge"], row["subgroup"]): row for row in rows}


def test_docstring_example(make_ratings: Make) -> None:
    rows = found(make_ratings([*of(ONE, judge="ada"), *of(OTHER, judge="bea")], passes_at=6))
    assert {key: row["estimate"] for key, row in rows.items()} == {
        ("rating_contrast", "ada", "bea"): pytest.approx(1 / DEVIATION),
        ("pass_rate_contrast", "ada", "bea"): 0.0,
    }
    assert {(row["unit"], row["n"]) for row in rows.values()} == {("sd", 3), ("share", 3)}


def test_prompts_of_a_judge_and_judges_with_a_prompt_are_compared(make_ratings: Make) -> None:
    rows = [
        row
        for judge, arms in (("ada", ONE), ("bea", OTHER))
        for prompt in ("mild", "stern")
        for row in of(arms, judge=judge, prompt=prompt)
    ]
    compared = sorted(
        (row["judge"], row["prompt"], row["subgroup"])
        for row in rating_contrast(ratings=make_ratings(rows)).to_dicts()
    )
    assert compared == [
        ("ada", "mild", "ada / stern"),
        ("ada", "mild", "bea"),
        ("ada", "stern", "bea"),
        ("bea", "mild", "bea / stern"),
    ]


def _compared(make_ratings: Make, first: dict[str, Any], second: dict[str, Any]) -> set[str]:
    """Return the contrasts of a judge's two prompts, whose ratings have these columns."""
    halves = {name: [value / 10 for value in values] for name, values in ONE.items()}
    rows = [
        row | {"value": float(row["value"] > 0.5) if row.get("kind") == "label" else row["value"]}
        for prompt, more in (("mild", first), ("stern", second))
        for row in of(halves, prompt=prompt, **more)
    ]
    return {statistic for statistic, *_ in found(make_ratings(rows))}


LABEL = {"kind": "label", "lowest": None, "highest": None}


def test_prompts_are_compared_only_if_kind_unit_and_scale_are_the_same(
    make_ratings: Make,
) -> None:
    ten, one = {"lowest": 0.0, "highest": 10.0}, {"lowest": 0.0, "highest": 1.0}
    marked, higher = one | {"passes_at": 0.5}, one | {"passes_at": 0.6}
    rude, wrong = LABEL | {"criterion": "rude"}, LABEL | {"criterion": "wrong"}
    grades, passes = {"rating_contrast"}, {"pass_rate_contrast"}
    for first, second, expected in (
        (one, one, grades),
        (one, ten, set()),
        (one, LABEL, set()),
        (marked, marked, grades | passes),
        (marked, higher, grades),
        (marked, LABEL, set()),
        (LABEL, LABEL, passes),
        (rude, rude, passes),
        (LABEL, rude, set()),
        (rude, wrong, set()),
    ):
        assert _compared(make_ratings, first, second) == expected, (first, second)


def test_it_is_the_difference_of_the_shifts_over_the_sham(make_ratings: Make) -> None:
    sham = {"sham": [4, 7, 8]}
    ratings = make_ratings([*of(ONE | sham, judge="ada"), *of(OTHER | sham, judge="bea")])
    single = {
        row["judge"]: row["estimate"]
        for row in rating_shift(ratings=ratings).to_dicts()
        if row["statistic"] == "rating_shift_sham_sd"
    }
    [(name, *_)], [row] = found(ratings), found(ratings).values()
    assert (name, row["floor"]) == ("rating_sham_contrast", "sham")
    assert row["estimate"] == pytest.approx(single["ada"] - single["bea"])


def test_passes_have_the_t_interval_and_the_swaps_of_paired_differences(
    make_ratings: Make,
) -> None:
    one = {"control": [1, 0, 1, 0, 0], "experimental": [1, 1, 1, 1, 0]}
    other = {"control": [1, 0, 1, 0, 1], "experimental": [1, 0, 0, 1, 1]}
    rows = [*of(one, judge="ada"), *of(other, judge="bea")]
    [row] = found(make_ratings(rows, kind="label")).values()
    # Shifts 0, 1, 0, 1, 0 and 0, 0, -1, 1, 0.
    test = stats.ttest_1samp([0, 1, 1, 0, 0], 0)
    assert row["estimate"] == pytest.approx(0.4)
    # Of 32 swaps, 16 give a sum of +-2.
    assert (row["p_value"], row["method"]) == (0.5, "cluster linearisation, t; all 32 swaps")
    low, high = test.confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx((low, high))


def test_a_judge_that_passes_everything_shows_no_difference(make_ratings: Make) -> None:
    one = {"control": [1, 1, 1], "experimental": [1, 1, 1]}
    other = {"control": [1, 0, 1], "experimental": [1, 1, 0]}
    rows = [*of(one, judge="ada"), *of(other, judge="bea")]
    [row] = found(make_ratings(rows, kind="label")).values()
    assert (row["low"], row["high"], row["p_value"]) == (None, None, None)
    assert "more answers cannot show a shift" in row["reason"]


def test_judges_that_differ_by_nothing_are_in_the_family_as_in_the_ranking(
    make_ratings: Make,
) -> None:
    [row] = found(make_ratings([*of(ONE, judge="ada"), *of(ONE, judge="bea")])).values()
    assert (row["estimate"], row["low"], row["p_value"]) == (0.0, None, 1.0)


def test_one_judge_or_no_perturbation_gives_no_row(make_ratings: Make) -> None:
    assert found(make_ratings(of(ONE))) == {}
    control = {"control": [4, 6, 8]}
    assert found(make_ratings([*of(control, judge="ada"), *of(control, judge="bea")])) == {}
