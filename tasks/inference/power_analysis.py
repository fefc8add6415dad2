"""Power analysis: the smallest effect that a design can detect (methods, section 4)."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tasks.inference.quantiles import normal_quantile
from tasks.kit.defaults import ALPHA, POWER

if TYPE_CHECKING:
    import polars as pl


class Spread(NamedTuple):
    """Variance of one sample's shift: ``votes / m + samples`` at m votes per arm."""

    votes: float
    """Variance from voting noise, which averages out over more votes."""
    samples: float
    """Variance between samples, which remains however many votes are cast."""


# Fitted to the sigma at m = 2 and 6 in methods, section 4. At m = 4 they give .282 (typical, .28
# there), .216 (sharp, .21) and .324 (noisy, .33).
#
# For single answers the quality cancels between arms, so what remains is the noise of repeats: in
# units of the variance of grades 2 (1 - ICC) / m; of passes E[2 p (1 - p)] / m, which is the chance
# that two verdicts on one answer differ. The values are those of the judge of
# benchmarks/pointwise.py, rounded.
ICC, FLIPS = 0.75, 0.22
SPREADS = {
    "typical": Spread(0.2907, 0.0068),
    "sharp": Spread(0.1728, 0.0036),
    "noisy": Spread(0.2520, 0.0421),
    "grades": Spread(2 * (1 - ICC), 0.0),
    "passes": Spread(FLIPS, 0.0),
}
ASR_VOTES = 6
ASR_SIGMA = (0.58, 0.67)
"""Sigma of dASR at 6 votes in each of the three arms, typical judge: with no effect, with one logit
of effect."""

LOGIT_DASR = 0.245
"""dASR of a planted effect of one logit, typical judge (methods, section 4)."""


def shift_sigma(votes_per_pair: int, judge: str = "typical") -> float:
    """Return the standard deviation of one sample's shift.

    Examples
    --------
    >>> [round(shift_sigma(m), 3) for m in (2, 4, 6)]
    [0.39, 0.282, 0.235]
    """
    spread = SPREADS[judge]
    return math.sqrt(spread.votes / votes_per_pair + spread.samples)


def rescaled_sigma(sigma: float, votes: int, to: int, judge: str = "typical") -> float:
    """Rescale ``sigma`` from ``votes`` to ``to`` votes per arm, with this judge's noise share."""
    return sigma * shift_sigma(to, judge) / shift_sigma(votes, judge)


def pooled_spread(endpoints: "pl.DataFrame", by: Sequence[str]) -> "pl.DataFrame":
    """Return the spread of a judge's shifts, as of independent samples, from several endpoints.

    The variance of each mean times its number of samples, averaged by degrees of freedom. Shifts
    that are all equal have no standard error, but an interval: what the questions that were not
    asked may do.

    Parameters
    ----------
    endpoints
        Estimates with the columns of ``by`` and ``by_logits``.
    by
        Columns of what is pooled.

    Returns
    -------
    DataFrame
        A row for each of ``by``: ``sigma, shifts`` (number of samples), ``easy`` (whether effects
        in logits decide) and ``df``.
    """
    import polars as pl

    half = (pl.col("high") - pl.col("low")) / 2
    error = pl.coalesce("standard_error", half / float(normal_quantile(1 - ALPHA / 2)))
    variance = (error**2 * pl.col("n") * pl.col("df")).sum() / pl.col("df").sum()
    return endpoints.group_by(by).agg(
        sigma=variance.sqrt(),
        shifts=pl.col("n").sum(),
        easy=pl.col("by_logits").fill_null(value=False).any(),
        df=pl.col("df").sum(),
    )


def smallest_effect(
    samples: int, sigma: float, power: float = POWER, alpha: float = ALPHA
) -> float | None:
    """Return ``(z_{1 - alpha/2} + z_power) sigma / sqrt(N)``; null without samples.

    Examples
    --------
    2.8016 * .39 / sqrt(142):

    >>> round(smallest_effect(142, 0.39), 4)
    0.0917
    """
    return _quantile_sum(power, alpha) * sigma / math.sqrt(samples) if samples else None


def samples_needed(effect: float, sigma: float) -> int | None:
    """Return ``((z_{1 - alpha/2} + z_power) sigma / effect)^2``, rounded up; null for no effect.

    Examples
    --------
    (2.8016 * .39 / .05)^2 = 477.5:

    >>> samples_needed(0.05, 0.39)
    478
    """
    return math.ceil((_quantile_sum(POWER, ALPHA) * sigma / effect) ** 2) if effect else None


def smallest_dasr(samples: int) -> float | None:
    """Return the smallest dASR detected at six votes per arm, typical judge; null without samples.

    Its sigma grows with the effect, from the lower to the upper value of ``ASR_SIGMA``, so
    ``d = k (low + (high - low) d / .245)`` with ``k = (z_{1 - alpha/2} + z_power) / sqrt(N)``.

    Examples
    --------
    >>> round(smallest_dasr(142), 2)
    0.15
    """
    if not samples:
        return None
    low, high = ASR_SIGMA
    k = _quantile_sum(POWER, ALPHA) / math.sqrt(samples)
    # No sigma is known for effects beyond one logit: the upper value is used.
    slope = (high - low) / LOGIT_DASR
    found = k * low / (1 - k * slope) if k * slope < 1 else math.inf
    return found if found <= LOGIT_DASR else k * high


def samples_needed_dasr(effect: float) -> int | None:
    """Return the samples needed for a dASR at six votes, typical judge; null for no effect.

    Examples
    --------
    (2.8016 * .67 / .245)^2 = 58.7, as in methods, section 4:

    >>> samples_needed_dasr(0.245)
    59
    """
    low, high = ASR_SIGMA
    sigma = low + (high - low) * min(abs(effect) / LOGIT_DASR, 1.0)
    return samples_needed(effect, sigma)


def smallest_drift(samples: int, votes_per_pair: int, alpha: float = ALPHA) -> float | None:
    """Return the smallest detectable change of a shift between two waves of the same samples.

    The variance between samples cancels; only the voting noise counts, twice.

    Examples
    --------
    2.8016 sqrt(2 * .2907 / 2) / sqrt(100):

    >>> round(smallest_drift(100, 2), 2)
    0.15
    """
    sigma = math.sqrt(2 * SPREADS["typical"].votes / votes_per_pair)
    return smallest_effect(samples, sigma, alpha=alpha)


def _quantile_sum(power: float, alpha: float) -> float:
    return float(normal_quantile(1 - alpha / 2) + normal_quantile(power))
