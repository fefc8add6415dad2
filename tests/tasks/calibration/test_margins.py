from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from tasks.calibration.non_inferiority import check_epsilon, needs_score, score_test, t_test

KINDS = ["additive", "multiplicative"]
COUNTS = st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60)).filter(
    lambda three: sum(three) >= 2
)
EPSILON = st.floats(0, 0.95).map(lambda e: round(e, 3))


def arrays(better: int, worse: int, tied: int) -> tuple[Any, Any, Any]:
    return tuple(np.array([x]) for x in (better + worse + tied, better, worse))  # type: ignore[return-value]


def greatest(better: int, worse: int, tied: int, e: float, kind: str) -> float:
    """Maximise the likelihood at the margin by search, as a second implementation."""

    def chances(x: float) -> tuple[float, float, float]:
        lead = x + e if kind == "additive" else e + (1 - e) * x
        return lead, x, 1 - lead - x

    def minus(x: float) -> float:
        return -sum(
            k * np.log(max(p, 1e-300))
            for k, p in zip((better, worse, tied), chances(x), strict=True)
            if k
        )

    most = (1 - e) / 2 if kind == "additive" else (1 - e) / (2 - e)
    grid = np.linspace(0, most, 2001)
    near = grid[int(np.argmin([minus(x) for x in grid]))]
    step = grid[1]
    found = optimize.minimize_scalar(
        minus,
        bounds=(max(0, near - step), min(most, near + step)),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return float(found.x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("better", "worse", "tied", "e"),
    [
        (5, 3, 22, 0.1),
        (0, 0, 30, 0.1),
        (12, 1, 40, 0.2),
        (1, 12, 7, 0.15),
        (0, 9, 3, 0.3),
        (7, 0, 3, 0.05),
        (20, 20, 160, 0.1),
    ],
)
def test_the_score_test_has_its_variance_at_the_most_likely_margin(
    better: int, worse: int, tied: int, e: float, kind: Any
) -> None:
    n = better + worse + tied
    x = greatest(better, worse, tied, e, kind)
    if kind == "additive":
        off, variance = better - worse - n * e, 2 * x + e - e**2
    else:
        lead = e + (1 - e) * x
        off = better - (1 - e) * worse - n * e
        variance = lead + (1 - e) ** 2 * x - e**2
    p = stats.norm.cdf(off / np.sqrt(n * variance))
    assert score_test(*arrays(better, worse, tied), e, kind)[0] == pytest.approx(p, abs=1e-5)


def test_at_epsilon_zero_the_score_test_is_mcnemars() -> None:
    # z = (b - c) / sqrt(b + c) = (5 - 12) / sqrt(17)
    p = stats.norm.cdf(-7 / 17**0.5)
    for kind in KINDS:
        assert score_test(*arrays(5, 12, 30), 0.0, kind)[0] == pytest.approx(p, abs=1e-12)  # type: ignore[arg-type]


@given(COUNTS, EPSILON)
def test_t_is_scipys(counts: tuple[int, int, int], e: float) -> None:
    better, worse, tied = counts
    judge = np.array([0.0] * better + [1.0] * (worse + tied))
    human = np.array([1.0] * better + [0.0] * worse + [1.0] * tied)
    for kind, difference, margin in (
        ("additive", human - judge, e),
        ("multiplicative", human - judge / (1 - e), 0.0),
    ):
        p = t_test(*arrays(*counts), e, kind)[0]  # type: ignore[arg-type]
        if np.ptp(difference) == 0:
            reached = difference[0] - margin
            assert p == 1.0 if reached > 0 else p == 0.0 if reached < 0 else np.isnan(p)
        else:
            wanted = stats.ttest_1samp(difference, margin, alternative="less").pvalue
            assert p == pytest.approx(wanted, abs=1e-9)


@given(COUNTS, EPSILON, EPSILON)
def test_a_wider_margin_is_never_harder(
    counts: tuple[int, int, int], one: float, two: float
) -> None:
    low, high = sorted((one, two))
    given_ = arrays(*counts)
    for test in (t_test, score_test):
        hard, easy = test(*given_, low, "additive")[0], test(*given_, high, "additive")[0]
        assert np.isnan(hard) or easy <= hard + 1e-9


def test_constant_differences_have_no_t() -> None:
    # all tied: 0 lies below a margin of .1, and at one of 0 t is 0/0
    for kind in KINDS:
        assert np.isnan(t_test(*arrays(0, 0, 9), 0.0, kind)[0])  # type: ignore[arg-type]
    assert t_test(*arrays(0, 0, 9), 0.1, "additive")[0] == 0
    assert t_test(*arrays(0, 0, 9), 0.1, "multiplicative")[0] == 0
    # the human always better: 1 reaches any margin
    assert t_test(*arrays(9, 0, 0), 0.3, "additive")[0] == 1
    assert t_test(*arrays(0, 9, 0), 0.0, "multiplicative")[0] == 0
    # without any variance there is nothing to go by
    assert np.isnan(score_test(*arrays(0, 0, 9), 0.0, "additive")[0])
    assert np.isnan(t_test(*arrays(0, 1, 0), 0.1, "additive")[0])
    assert np.isnan(score_test(*arrays(0, 0, 0), 0.1, "additive")[0])


def test_when_the_default_is_the_score_test() -> None:
    n = np.array([49, 50, 50, 50, 50])
    better = np.array([20, 10, 10, 10, 50])
    worse = np.array([20, 10, 9, 20, 0])
    assert needs_score(n, better, worse).tolist() == [True, False, True, False, True]


@pytest.mark.parametrize("epsilon", [-0.1, 1.0, 1.5, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", KINDS)
def test_a_margin_out_of_range_is_refused(epsilon: float, kind: Any) -> None:
    with pytest.raises(ValueError, match="must be at least 0 and below 1"):
        check_epsilon(epsilon, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [10, 20, 30])
def test_the_score_test_keeps_its_level_in_few_items(n: int, kind: Any) -> None:
    # methods, section 8: on the boundary at most .07 at .05; t up to .34
    random = np.random.default_rng(1)
    sizes, of_t = [], []
    for e in (0.1, 0.2):
        for x in (0.02, 0.05, 0.1, 0.2, 0.3):
            lead = e + x if kind == "additive" else e + (1 - e) * x
            drawn = random.multinomial(n, [lead, x, 1 - lead - x], 10_000)
            counts = np.full(10_000, n), drawn[:, 0], drawn[:, 1]
            sizes.append((score_test(*counts, e, kind) <= 0.05).mean())
            of_t.append((t_test(*counts, e, kind) <= 0.05).mean())
    assert max(sizes) <= 0.07
    assert max(of_t) > max(sizes)
