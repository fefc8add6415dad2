from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.inference.intervals import tango
from tasks.statistics.rating_shift import CONSTANT, UNMOVED, rating_shift

Make = Callable[..., Any]
Row = dict[str, Any]
ARMS = ("control", "experimental", "sham")


def samples(*arms: list[float | None], **more: Any) -> Iterator[Row]:
    for arm, values in zip(ARMS, arms, strict=False):
        for i, value in enumerate(values):
            yield {"sample": f"s{i}", "arm": arm, "value": value, **more}


def rows(ratings: Any) -> dict[str, Row]:
    found = rating_shift(ratings=ratings)
    return {r["statistic"]: r for r in found.filter(subgroup="").to_dicts()}


def test_the_shift_in_points_in_deviations_and_in_passes(make_ratings: Make) -> None:
    # The docstring's example, with a sham.
    made = make_ratings(samples([4, 6, 8], [5, 6, 10], [4, 5, 8]), passes_at=6.0)
    found = rows(made)
    assert {name: row["estimate"] for name, row in found.items()} == pytest.approx(
        {
            "rating_shift": 1.0,
            "rating_shift_sham": 4 / 3,
            "rating_sham_shift": -1 / 3,
            "rating_shift_sd": 1 / np.sqrt(8 / 3),
            "rating_shift_sham_sd": 4 / 3 / np.sqrt(8 / 3),
            "rating_sham_shift_sd": -1 / 3 / np.sqrt(8 / 3),
            "pass_rate_shift": 0.0,
            "pass_rate_shift_sham": 1 / 3,
            "pass_rate_sham_shift": -1 / 3,
            "pass_flips": 0.0,
            "pass_flips_sham": 1 / 3,
        }
    )
    # A t test of the paired differences 1, 0, 2.
    test = stats.ttest_1samp([1, 0, 2], 0)
    low, high = test.confidence_interval()
    row = found["rating_shift"]
    assert (row["low"], row["high"], row["p_value"]) == pytest.approx((low, high, test.pvalue))
    assert (row["unit"], row["kind"], row["floor"]) == ("points", "promote", None)
    assert found["rating_shift_sham_sd"]["unit"] == "sd"
    assert found["rating_shift_sham"]["floor"] == "sham"


def test_the_error_of_the_deviation_counts(make_ratings: Make) -> None:
    random = np.random.default_rng(8)
    before = random.normal(5, 1.5, 400)
    shift = random.normal(0.6, 1.0, 400)
    made = make_ratings(
        samples([*before.tolist()], [*(before + shift).tolist()]), lowest=-5.0, highest=15.0
    )
    row = rows(made)["rating_shift_sd"]
    assert row["estimate"] == pytest.approx(shift.mean() / before.std())
    # A jackknife as the second implementation.
    kept = ~np.eye(400, dtype=bool)
    effects = [shift[k].mean() / before[k].std() for k in kept]
    error = np.sqrt(399 * np.var(effects))
    assert row["standard_error"] == pytest.approx(error, rel=0.02)


def test_an_equal_shift_everywhere_has_an_interval_and_equal_controls_no_deviation(
    make_ratings: Make,
) -> None:
    found = rows(make_ratings(samples([3.0, 5.0] * 10, [4.0, 6.0] * 10)))
    points, deviations = found["rating_shift"], found["rating_shift_sd"]
    assert (points["estimate"], deviations["estimate"]) == pytest.approx((1, 1))
    assert points["low"] < 1 < points["high"]
    assert deviations["low"] == pytest.approx(points["low"])
    assert deviations["p_value"] == points["p_value"] < 0.001
    found = rows(make_ratings(samples([3.0] * 20, [4.0, 5.0] * 10)))
    assert found["rating_shift"]["estimate"] == pytest.approx(1.5)
    assert found["rating_shift_sd"]["estimate"] is None
    assert found["rating_shift_sd"]["reason"] == CONSTANT


def test_unreadable_ratings_and_anchors_do_not_count(make_ratings: Make) -> None:
    made = make_ratings(
        [
            *samples([4, 6, None], [5, None, 9]),
            {"sample": "s0", "value": 9, "side": "anchor"},
            {"sample": "s0", "value": 7, "arm": "experimental", "repeat": 1},
        ]
    )
    row = rows(made)["rating_shift"]
    assert (row["estimate"], row["n"], row["dropped"]) == (pytest.approx(2.0), 1, 2)


def test_passes_and_flips(make_ratings: Make) -> None:
    made = make_ratings(samples([1, 1, 0, 0], [1, 0, 0, 1], [1, 1, 0, 0]), kind="label")
    found = rows(made)
    assert "rating_shift" not in found
    assert found["pass_rate_shift"]["estimate"] == 0
    assert found["pass_flips"]["estimate"] == 0.5
    assert found["pass_flips_sham"]["estimate"] == 0
    assert found["pass_flips"]["floor"] is None


def test_a_pass_rate_has_the_score_interval_at_its_effective_size(make_ratings: Make) -> None:
    # Of 40 paired passes 5 rise and 2 fall.
    before = [0.0] * 5 + [1.0] * 2 + [1.0] * 33
    after = [1.0] * 5 + [0.0] * 2 + [1.0] * 33
    row = rows(make_ratings(samples(before, after), kind="label"))["pass_rate_shift"]
    assert (row["estimate"], row["method"]) == (pytest.approx(3 / 40), "cluster-adjusted Tango")
    t, z = stats.t(39).ppf(0.975), stats.norm.ppf(0.975)
    # The variance of single votes over that of t is 39, as G / (G - 1) counts; times (z / t)^2.
    ends = tango(*(np.array([value]) for value in (5 / 40, 2 / 40, 39 * (z / t) ** 2)))
    assert (row["low"], row["high"]) == pytest.approx([end.item() for end in ends])
    longer = max(row["estimate"] - row["low"], row["high"] - row["estimate"])
    assert row["standard_error"] == pytest.approx(longer / t)
    difference = np.array(after) - np.array(before)
    # The variance if nothing shifts is 7/40, not 7/40 - (3/40)^2.
    score = stats.ttest_1samp(difference, 0).statistic * (1 - (3 / 40) ** 2 / (7 / 40)) ** 0.5
    assert row["p_value"] == pytest.approx(2 * stats.t(39).sf(score))


@settings(max_examples=25)
@given(st.integers(0, 12), st.integers(0, 4), st.integers(1, 30))
def test_a_pass_rate_shift_is_significant_where_its_interval_excludes_0(
    make_ratings: Make, up: int, down: int, same: int
) -> None:
    before, after = [0.0] * up + [1.0] * (down + same), [1.0] * up + [0.0] * down + [1.0] * same
    row = rows(make_ratings(samples(before, after), kind="label"))["pass_rate_shift"]
    if row["method"] == "cluster-adjusted Tango" and abs(row["p_value"] - 0.05) > 1e-9:
        assert (row["p_value"] < 0.05) == (row["low"] > 0 or row["high"] < 0)


def test_answers_of_one_question_that_flip_together_count_once(make_ratings: Make) -> None:
    before = [0.0] * 6 + [1.0] * 34
    after = [1.0] * 6 + [1.0] * 32 + [0.0] * 2
    for of_question, clusters in ((1, 40), (2, 20)):
        made = [
            {**row, "cluster": f"c{int(row['sample'][1:]) // of_question}"}
            for row in samples(before, after)
        ]
        row = rows(make_ratings(made, kind="label"))["pass_rate_shift"]
        quantile = stats.t(clusters - 1).ppf(0.975) / stats.norm.ppf(0.975)
        size = (clusters - 1) / quantile**2
        ends = tango(*(np.array([value]) for value in (6 / 40, 2 / 40, size)))
        assert (row["low"], row["high"]) == pytest.approx([end.item() for end in ends])


def test_each_criterion_is_a_subgroup_and_the_whole_is_weighted(make_ratings: Make) -> None:
    made = make_ratings(
        [
            *samples([4, 6, 8], [5, 7, 9], criterion="style", weight=1.0),
            *samples([4, 6, 8], [4, 6, 8], criterion="truth", weight=3.0),
        ]
    )
    found = rating_shift(ratings=made).filter(statistic="rating_shift")
    assert dict(found.select("subgroup", "estimate").rows()) == pytest.approx(
        {"": 0.25, "style": 1.0, "truth": 0.0}
    )


def test_nothing_without_perturbed_answers(make_ratings: Make) -> None:
    assert rating_shift(ratings=make_ratings([])).is_empty()
    assert rating_shift(ratings=make_ratings(samples([4, 6]))).is_empty()


GRADES = st.lists(
    st.tuples(st.integers(1, 10), st.integers(1, 10), st.integers(1, 10)), min_size=3, max_size=12
)


@settings(max_examples=25)
@given(GRADES, st.sampled_from([2.0, 10.0]))
def test_deviations_do_not_depend_on_the_scale(
    make_ratings: Make, grades: list[tuple[int, int, int]], factor: float
) -> None:
    arms = [[float(v) for v in arm] for arm in zip(*grades, strict=True)]
    plain = rows(make_ratings(samples(*arms)))
    wide = [[v * factor for v in arm] for arm in arms]
    other = rows(make_ratings(samples(*wide), lowest=factor, highest=10 * factor))
    for name in ("rating_shift", "rating_shift_sham"):
        assert other[name]["estimate"] == pytest.approx(plain[name]["estimate"] * factor)
        mine, its = plain[f"{name}_sd"], other[f"{name}_sd"]
        for end in ("estimate", "low", "high"):
            assert its[end] == (None if mine[end] is None else pytest.approx(mine[end], rel=1e-6))


def test_the_shift_over_the_sham_is_the_difference(make_ratings: Make) -> None:
    found = rows(make_ratings(samples([2, 5, 7, 3], [4, 5, 9, 2], [3, 5, 6, 3])))
    over = {name: found[name]["estimate"] for name in found}
    assert over["rating_shift"] == pytest.approx(
        over["rating_shift_sham"] + over["rating_sham_shift"]
    )
    assert pl.DataFrame([found["rating_shift"]])["clusters"].item() == 4


def test_what_was_not_compared_moves_no_judge(make_ratings: Make) -> None:
    # Of 20 answers all pass in both arms; one more fails in control, and its other rating is lost.
    before = [1.0] * 20 + [0.0]
    made = make_ratings(samples(before, [*([1.0] * 20), None]), kind="label")
    row = rows(made)["pass_rate_shift"]
    assert (row["n"], row["dropped"], row["reason"]) == (20, 1, UNMOVED)
    empty = ("low", "high", "standard_error", "p_value", "df", "boot_low", "boot_high")
    assert [row[name] for name in empty] == [None] * len(empty)
    assert row["method"] == "none"
