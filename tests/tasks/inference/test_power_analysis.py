import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from benchmarks.simulated_ratings import QUIET, truths
from tasks.inference.power_analysis import (
    FLIPS,
    ICC,
    rescaled_sigma,
    samples_needed,
    shift_sigma,
    smallest_dasr,
    smallest_drift,
    smallest_effect,
)
from tasks.simulation.judge import probabilities


@pytest.mark.parametrize(("votes", "sigma"), [(2, 0.39), (4, 0.28), (6, 0.235)])
def test_sigma_of_the_typical_judge(votes: int, sigma: float) -> None:
    # methods.md, section 4, as printed: .39, .28, .235.
    assert shift_sigma(votes) == pytest.approx(sigma, abs=0.003)


@pytest.mark.parametrize(
    ("samples", "votes", "shift"),
    [
        # methods.md, section 4: 142 questions see an MPS of .092 at 2 votes per arm, .055 at 6.
        (142, 2, 0.092),
        (142, 6, 0.055),
        # Its table: N for the true MPS of the row, m = 2 and m = 6.
        (5514, 2, 0.015),
        (1979, 6, 0.015),
        (881, 2, 0.037),
        (318, 6, 0.037),
        (221, 2, 0.074),
        (80, 6, 0.074),
        (57, 2, 0.144),
        (21, 6, 0.144),
    ],
)
def test_smallest_shift_of_the_printed_table(samples: int, votes: int, shift: float) -> None:
    assert smallest_effect(samples, shift_sigma(votes)) == pytest.approx(shift, abs=0.001)


def test_smallest_shift_by_hand() -> None:
    # (1.959964 + .841621) * sqrt(.2907 / 2 + .0068) / sqrt(100) = 2.801585 * .390064 / 10.
    assert smallest_effect(100, shift_sigma(2)) == pytest.approx(0.109280, abs=5e-7)


@given(
    st.integers(1, 10_000), st.integers(1, 12), st.floats(0.5, 0.99), st.sampled_from([0.05, 0.01])
)
def test_the_shift_is_found_with_that_power(
    samples: int, votes: int, power: float, alpha: float
) -> None:
    shift = smallest_effect(samples, shift_sigma(votes), power, alpha)
    assert shift is not None
    error = shift_sigma(votes) / samples**0.5
    # The power of the one tail that matters, by scipy.
    assert norm.sf(norm.isf(alpha / 2) - shift / error) == pytest.approx(power, abs=1e-9)


@pytest.mark.parametrize(
    ("judge", "votes", "sigma"),
    [
        # methods.md, section 4, as printed.
        ("sharp", 2, 0.30),
        ("sharp", 4, 0.21),
        ("sharp", 6, 0.18),
        ("noisy", 2, 0.41),
        ("noisy", 4, 0.33),
        ("noisy", 6, 0.29),
    ],
)
def test_sigma_of_other_judges(judge: str, votes: int, sigma: float) -> None:
    assert shift_sigma(votes, judge) == pytest.approx(sigma, abs=0.0065)


class Truth(NamedTuple):
    mps: float
    sigma: float
    dasr: float
    sigma_dasr: float


def nodes(number: int, sd: float) -> tuple[np.ndarray, np.ndarray]:
    at, weight = np.polynomial.hermite_e.hermegauss(number)
    return sd * at, weight / weight.sum()


def sums(margin: np.ndarray, votes: int) -> np.ndarray:
    """Distribution of the sum of ``votes`` votes (-1, 0, 1 toward A2) at each margin."""
    first, tie, second = probabilities(margin, 0.5, 1.0, 0.0)
    out = np.ones((*margin.shape, 1))
    for _ in range(votes):
        longer = np.zeros((*margin.shape, out.shape[-1] + 2))
        for place, chance in enumerate((first, tie, second)):
            longer[..., place : place + out.shape[-1]] += out * np.asarray(chance)[..., None]
        out = longer
    return out


@cache
def truth(beta: float, votes: int) -> Truth:
    """Return exact values by quadrature (methods, section 13) of the typical judge.

    It is gullible without its heterogeneity and lapses: omega 1.5, nu .5, kappa .4, psi .5.
    """
    gap, weight = nodes(80, 1.5)
    zeta, zeta_weight = nodes(40, 0.5)

    def arm(shift: float) -> np.ndarray:
        halves = [
            np.einsum(
                "dzk,z->dk",
                sums(gap[:, None] + shift + order * 0.4 + zeta, votes // 2),
                zeta_weight,
            )
            for order in (1, -1)
        ]
        return np.array([np.convolve(a, b) for a, b in zip(*halves, strict=True)])

    control, experimental = arm(0.0), arm(beta)
    score = np.arange(2 * votes + 1) / (2 * votes)
    c, e = control @ score, experimental @ score
    mps = weight @ (e - c)
    square = weight @ (experimental @ score**2 + control @ score**2 - 2 * c * e)
    lost, won = control[:, : votes + 1].sum(1), experimental[:, votes + 1 :].sum(1)
    den = weight @ lost
    dasr = weight @ (lost * (won - 1 + lost)) / den
    residual = 0.0
    for in_c, in_s, s_e in np.ndindex(2, 2, 2):
        chance = np.prod(
            [
                np.where(reported, p, 1 - p)
                for reported, p in ((in_c, lost), (in_s, lost), (s_e, won))
            ],
            axis=0,
        )
        num = (in_c * (s_e - 1 + in_s) + in_s * (s_e - 1 + in_c)) / 2
        residual += weight @ chance * (num - dasr * (in_c + in_s) / 2) ** 2
    return Truth(mps, math.sqrt(square - mps**2), dasr, math.sqrt(residual) / den)


# methods.md, section 4: planted logits, true dASR, true MPS, N and calls by m = 2, 6 and by dASR.
PRINTED = [
    (0.10, 0.021, 0.015, 5514, 22056, 1979, 23748, 6354, 114372),
    (0.25, 0.055, 0.037, 881, 3524, 318, 3816, 947, 17046),
    (0.50, 0.115, 0.074, 221, 884, 80, 960, 235, 4230),
    (1.00, 0.245, 0.144, 57, 228, 21, 252, 59, 1062),
]


@pytest.mark.parametrize("row", PRINTED)
def test_the_printed_table_by_exact_values(row: tuple[float, ...]) -> None:
    beta, dasr, mps, n2, calls2, n6, calls6, n_dasr, calls_dasr = row
    two, six = truth(beta, 2), truth(beta, 6)
    assert two.mps == pytest.approx(six.mps, abs=1e-12)
    assert (round(six.dasr + 1e-4, 3), round(six.mps, 3)) == (dasr, mps)
    # The table's sigmas are simulated: with the exact ones N differs by up to two in 1000, or by
    # the rounding; of dASR by 1 %, but by 7 % at .10, where sigma would be .606 instead of .584.
    assert samples_needed(two.mps, two.sigma) == pytest.approx(n2, rel=0.002, abs=2)
    assert samples_needed(six.mps, six.sigma) == pytest.approx(n6, rel=0.002, abs=1)
    exact = samples_needed(six.dasr, six.sigma_dasr)
    assert exact == pytest.approx(n_dasr, rel=0.08 if beta == 0.1 else 0.012)
    # With the sigma that a printed N implies, N is reproduced to its last digit.
    z = norm.isf(0.025) + norm.isf(0.2)
    for n, delta, sigma in (
        (n2, two.mps, two.sigma),
        (n6, six.mps, six.sigma),
        (n_dasr, six.dasr, six.sigma_dasr),
    ):
        implied = math.sqrt(n - 0.5) * delta / z
        assert samples_needed(delta, implied) == n
        assert implied == pytest.approx(sigma, rel=0.04)
    assert (calls2, calls6, calls_dasr) == (n2 * 2 * 2, n6 * 2 * 6, n_dasr * 3 * 6)


def test_constants_of_the_typical_judge_are_the_exact_ones() -> None:
    for votes in (2, 4, 6):
        assert shift_sigma(votes) == pytest.approx(truth(0.25, votes).sigma, rel=0.007)


def test_smallest_dasr() -> None:
    # N of methods.md, section 4, solved for dASR at 142 samples; sigma grows from .58 to .67.
    found = smallest_dasr(142)
    assert found is not None
    assert round(found, 2) == 0.15
    # What it finds takes that many samples: .58 + .09 * .1494 / .245 = .6349.
    assert samples_needed(found, 0.58 + 0.09 * found / 0.245) in {142, 143}
    assert smallest_dasr(0) is None
    # 2.8016 * .67 / sqrt(20), beyond a logit.
    assert smallest_dasr(20) == pytest.approx(0.4197, abs=1e-4)


@pytest.mark.parametrize(
    ("samples", "votes", "alpha", "shift"),
    [
        # methods.md, section 10: one night against one, at .05 and at the level of 60 cells.
        (100, 2, 0.05, 0.15),
        (100, 2, 1 / 90 / 60, 0.25),
        (142, 6, 0.05, 0.07),
        (142, 6, 1 / 90 / 60, 0.12),
    ],
)
def test_smallest_drift_as_printed(samples: int, votes: int, alpha: float, shift: float) -> None:
    found = smallest_drift(samples, votes, alpha=alpha)
    assert found is not None
    assert round(found, 2) == shift


def test_nothing_to_find_and_nothing_to_find_it_with() -> None:
    assert samples_needed(0.0, 0.39) is None
    assert smallest_effect(0, 0.39) is None
    assert smallest_drift(0, 2) is None


def test_a_sigma_is_rescaled_along_the_typical_one() -> None:
    assert rescaled_sigma(shift_sigma(2), 2, 6) == pytest.approx(shift_sigma(6))
    assert rescaled_sigma(0.3, 4, 4) == 0.3


def test_constants_of_grades_and_passes_are_those_of_the_simulated_judge() -> None:
    """By quadrature over the quality in benchmarks/pointwise.py, rounded."""
    known = truths(QUIET)
    assert pytest.approx(known["rating_icc"], abs=0.01) == ICC
    assert pytest.approx(known["retest_flips"], abs=0.01) == FLIPS
    assert shift_sigma(2, "grades") == pytest.approx((1 - ICC) ** 0.5)
