from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import polars as pl
import pytest

from tasks.inference.bootstrap import formulas_only, weights
from tasks.inference.logistic import SEED, CountedItems, fit, refits
from tasks.statistics.length_controlled import EQUAL, FEW, SEPARATED, length_controlled

Make = Callable[..., Any]


def contest(score: float | None, excess: int | None, **more: object) -> dict[str, Any]:
    length = None if excess is None else 1000 + excess
    return {"score": score, "anchor_length": 1000, "target_length": length, **more}


def rows(frame: pl.DataFrame, subgroup: str = "bee") -> dict[str, dict[str, Any]]:
    found = length_controlled(contests=frame).filter(pl.col("subgroup") == subgroup)
    return {row["statistic"]: row for row in found.to_dicts()}


def data(n: int, seed: int = 1) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    excess = random.normal(80, 200, n).round().astype(int)
    chance = 1 / (1 + np.exp(-(0.2 + 0.9 * np.tanh(excess / 200))))
    return [
        contest(float(s), int(d))
        for s, d in zip(random.binomial(4, chance) / 4, excess, strict=True)
    ]


def test_docstring_example(make_contests: Make) -> None:
    shorter = [contest(float(i < 5), -1) for i in range(20)]
    longer = [contest(float(i < 30), 1) for i in range(40)]
    found = rows(make_contests(shorter + longer))
    assert found["length_controlled"]["estimate"] == pytest.approx(0.5)
    assert sum(row["score"] for row in shorter + longer) / 60 == pytest.approx(0.583, abs=1e-3)


def test_against_statsmodels(make_contests: Make) -> None:
    import statsmodels.api as sm

    contests = data(150)
    excess = np.array([row["target_length"] - 1000.0 for row in contests])
    design = sm.add_constant(np.tanh(excess / excess.std(ddof=1)))
    y = [row["score"] for row in contests]
    glm = sm.GLM(y, design, family=sm.families.Binomial()).fit(tol=1e-13)
    robust = sm.GLM(y, design, family=sm.families.Binomial()).fit(cov_type="HC1")
    found = rows(make_contests(contests))
    assert found["length_controlled"]["estimate"] == pytest.approx(
        1 / (1 + np.exp(-glm.params[0])), abs=1e-9
    )
    assert found["length_slope"]["estimate"] == pytest.approx(glm.params[1], abs=1e-9)
    assert {row["seed"] for row in found.values()} == {SEED}
    # Two estimates of one error, the sandwich and the bootstrap: 2000 draws are within 5 %.
    assert found["length_slope"]["standard_error"] == pytest.approx(robust.bse[1], rel=0.1)


def test_the_other_side_is_the_mirror(make_contests: Make) -> None:
    frame = make_contests(data(60))
    bee, ant = rows(frame, "bee"), rows(frame, "ant")
    for name, total in (("length_controlled", 1.0), ("length_slope", None)):
        one, other = bee[name]["estimate"], ant[name]["estimate"]
        assert one == pytest.approx(other if total is None else total - other)


def test_draws_are_fitted_as_if_alone() -> None:
    random = np.random.default_rng(4)
    design = np.column_stack([np.ones(60), random.normal(size=60)])
    y, cluster = random.integers(0, 3, 60) / 2, np.arange(60) // 2
    start = fit(design, y[None], np.ones((1, 60))).coefficients[0]
    draws = refits(design, CountedItems(np.arange(60), cluster, np.ones(60), y), start, draws=50)
    assert draws is not None
    counts = next(weights(30, 50, SEED))
    times = counts[:, cluster]
    slow = fit(design, y * times, times).coefficients
    # A draw's last step is below .01, so it is off by about .0001; draws differ by .5.
    assert np.abs(draws - slow).max() < 1e-3


@pytest.mark.parametrize(
    ("contests", "reason"),
    [
        ([contest(1.0, 5), contest(0.0, 5), contest(0.5, 5), contest(0.5, 5)], EQUAL),
        ([contest(float(d > 0), d) for d in (-9, -5, -1, 2, 4, 8)], SEPARATED),
        ([contest(1.0, d) for d in (-9, -5, -1, 2, 4, 8)], SEPARATED),
        ([contest(1.0, 5), contest(0.0, -5), contest(None, 9), contest(1.0, None)], FEW),
    ],
)
def test_no_finite_fit_is_null(
    make_contests: Make, contests: list[dict[str, Any]], reason: str
) -> None:
    for row in rows(make_contests(contests)).values():
        assert (row["estimate"], row["low"], row["reason"]) == (None, None, reason)


def test_one_question_has_no_interval(make_contests: Make) -> None:
    row = rows(make_contests(data(30), cluster="q"))["length_controlled"]
    assert row["estimate"] is not None
    assert (row["low"], row["reason"]) == (None, "a single cluster: no interval")


def test_unknown_lengths_give_no_row(make_contests: Make) -> None:
    assert length_controlled(contests=make_contests([contest(1.0, None)])).is_empty()
    assert length_controlled(contests=make_contests([])).is_empty()


@pytest.mark.parametrize("formulas", [False, True])
def test_ties_alone_are_not_fitted(make_contests: Make, formulas: bool) -> None:
    with formulas_only() if formulas else nullcontext():
        found = rows(make_contests([contest(0.5, n % 3 - 1) for n in range(30)]))
    for row in found.values():
        assert (row["estimate"], row["reason"]) == (None, "all contests are ties: nothing to fit")
