import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from tasks.statistics._design import shift_sigma, smallest_shift


@pytest.mark.parametrize(("votes", "sigma"), [(2, 0.39), (4, 0.28), (6, 0.235)])
def test_sigma_of_the_typical_judge(votes: int, sigma: float) -> None:
    # methods.md, section 4, as printed: .39, .28, .235.
    assert shift_sigma(votes) == pytest.approx(sigma, abs=0.003)


@pytest.mark.parametrize(
    ("samples", "votes", "shift"),
    [
        # methods.md, section 4: "142 questions detect MPS .092 with 2 votes per arm, .055 with 6".
        (142, 2, 0.092), (142, 6, 0.055),
        # Its table: N for the true MPS of the row, m = 2 and m = 6.
        (5514, 2, 0.015), (1979, 6, 0.015), (881, 2, 0.037), (318, 6, 0.037),
        (221, 2, 0.074), (80, 6, 0.074), (57, 2, 0.144), (21, 6, 0.144),
    ],
)  # fmt: skip
def test_smallest_shift_of_the_printed_table(samples: int, votes: int, shift: float) -> None:
    assert smallest_shift(samples, votes) == pytest.approx(shift, abs=0.001)


def test_smallest_shift_by_hand() -> None:
    # (1.959964 + .841621) * sqrt(.2907 / 2 + .0068) / sqrt(100) = 2.801585 * .390064 / 10.
    assert smallest_shift(100, 2) == pytest.approx(0.109280, abs=5e-7)


def test_no_samples_see_nothing() -> None:
    assert smallest_shift(0, 6) is None


@given(
    st.integers(1, 10_000), st.integers(1, 12), st.floats(0.5, 0.99), st.sampled_from([0.05, 0.01])
)
def test_the_shift_is_found_with_that_power(
    samples: int, votes: int, power: float, alpha: float
) -> None:
    shift = smallest_shift(samples, votes, power, alpha)
    assert shift is not None
    error = shift_sigma(votes) / samples**0.5
    # The power of the one tail that matters, by scipy.
    assert norm.sf(norm.isf(alpha / 2) - shift / error) == pytest.approx(power, abs=1e-9)
