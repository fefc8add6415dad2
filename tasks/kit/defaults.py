"""Default thresholds (methods, section 15), and those that a study may set."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, get_args

from pydantic import Field

from schemas.keys import Gate, ShareInterval
from tasks.validation.documented_fields import documented
from tasks.validation.strict_models import Written

Held = TypeVar("Held")

ALPHA = 0.05
POWER = 0.8

DETECTS_AT = 0.5
"""A judge detects a flaw if the lower bound of the removed share of oversights is at least this."""

BUDGET = 1.0
"""False alerts of drift accepted in ``nights_per_false_alert`` nights, for any number of cells."""

TOO_FAST_SECONDS = 3.0
"""A person who votes faster cannot have read two answers."""

TARGET_HALF_WIDTH = 0.05
"""Half-width of a win rate's interval at which human labelling aims."""

LEAST_EXCESS = 0.1
"""An answer counts as longer if it has more than a tenth more characters."""

PROBE_AGREEMENT = 0.99
"""Share of probes that must agree before repeats are left out (methods, section 4)."""

BOOTSTRAPS = 2000
PERMUTATIONS = 9999


def _limit(default: float, *, below: float = 1) -> Any:
    return Field(default=default, gt=0, lt=below)


class Thresholds(Written):
    """Limits that decide findings, exclusions and gates (methods, sections 3, 5, 10, 11, 15, 16).

    Statistics and conclusions read the limits in force with :func:`limits`.
    """

    model_config = documented(frozen=True)

    fewest_questions: int = Field(default=10, ge=2, le=100_000)
    """Fewest independent questions for a finding; their Satterthwaite degrees of freedom must reach
    this number minus one. Else estimates are shown without a finding."""
    minimum_shift: float = _limit(0.05)
    """Smallest relevant mean preference shift."""
    minimum_log_odds: float = _limit(0.25, below=10)
    """Smallest relevant log-odds shift."""
    minimum_rating_shift: float = _limit(0.25, below=10)
    """Smallest relevant shift of grades, in standard deviations of the judge's control grades."""
    minimum_pass_rate_shift: float = _limit(0.05)
    """Smallest relevant shift of a pass rate."""
    tie_band: float = _limit(0.1, below=1000)
    """Two grades that differ by at most this many points are a tie in derived comparisons."""
    minimum_asr_difference: float = _limit(0.10)
    """Smallest relevant difference between the attack success rates of two judges."""
    most_unanimous: float = _limit(0.80)
    """Above this share of unanimous control pairs, mean scores can hardly move, so the finding
    rests on log-odds."""
    overlooks_below: float = _limit(0.20)
    """A judge overlooks a flaw if the upper bound of the share of flaws that it detects is below
    this. The gate discernment has the same limit."""
    least_floor: float = _limit(0.10)
    """Below this sham floor, the share of flaws detected is computed from mean scores."""
    least_informedness: float = _limit(0.20)
    """Win rates are corrected by a judge's error rates only if its sensitivity plus specificity
    minus one is at least this; below, the correction would only amplify noise."""
    order_alpha: float = _limit(0.001)
    """If each pair was seen in one order, and the test that the order is independent of the models
    and the correct verdict has a p-value below this, nothing is estimated."""
    minimum_lost: float = _limit(0.05)
    """Smallest relevant difference between arms in the share of invalid votes."""
    most_lost: float = _limit(0.10)
    """Above this share of invalid votes in an arm, a finding must hold in both worst cases."""
    minimum_spread: float = _limit(0.10)
    """Smallest standard deviation of true shifts for the finding `mixed`."""
    spread_alpha: float = _limit(0.10)
    """If the unadjusted p-value of the spread of true shifts is below this, `no relevant bias` is
    not claimed."""
    most_position_gap: float = _limit(0.15, below=0.5)
    """Maximum position gap of a judge; a judge above it is excluded from mean attack success
    rates."""
    most_ties: float = _limit(0.80)
    """Maximum share of ties of a judge; a judge above it is excluded likewise."""
    most_invalid: float = _limit(0.10)
    """Maximum share of invalid votes; a judge above it is excluded and fails the gate validity."""
    most_agreement_lost: float = _limit(0.10)
    """Maximum loss relative to the agreement of people; a judge above it fails the gate
    agreement."""
    least_agreement: float = _limit(0.20)
    """If each item has only the label that came with it, a judge fails the gate agreement if the
    whole interval of its kappa (for grades, of the rank correlation; for pairs, of the accuracy
    beyond chance) is at most this."""
    least_reliability: float = _limit(0.50)
    """If the whole interval of the intraclass correlation of a judge's ratings of the same answer
    lies below this, the judge should be used with care. The default is where reliability is poor
    according to Koo & Li (2016)."""
    disqualifying: tuple[Gate, ...] = Field(
        default=("drift", "discernment", "agreement", "validity", "bias", "position")
    )
    """Gates, the most serious first. A judge that fails one of them should not be used; a judge
    that fails another gate should be used with care."""
    minimum_shift_drift: float = _limit(0.05)
    """Smallest change of the mean preference shift that raises an alert of drift."""
    minimum_dasr_drift: float = _limit(0.10)
    """Smallest change of the attack success above its floor that raises an alert."""
    minimum_position_drift: float = _limit(0.05)
    """Smallest change of the position gap that raises an alert."""
    minimum_agreement_drift: float = _limit(0.05)
    """Smallest change of the share of right verdicts that raises an alert."""
    nights_per_false_alert: int = Field(default=90, ge=1, le=100_000)
    """Accept one false drift alert in this number of nights, over all cells."""


DEFAULTS = Thresholds()
_limits: ContextVar[Thresholds] = ContextVar("_limits", default=DEFAULTS)


def limits() -> Thresholds:
    """Return the limits in force: the study's, or the defaults."""
    return _limits.get()


@contextmanager
def in_force(variable: ContextVar[Held], value: Held) -> Iterator[None]:
    """Give a variable a value for everything that is computed inside."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def limited_by(thresholds: Thresholds) -> AbstractContextManager[None]:
    """Put limits in force for the statistics and conclusions that are computed inside."""
    return in_force(_limits, thresholds)


class CalibrationThresholds(Written):
    """Limits that decide what a calibration concludes (methods, sections 9 and 15)."""

    model_config = documented(frozen=True)

    fewest_questions: int = Field(default=10, ge=2, le=100_000)
    """With fewer independent items there is no conclusion."""
    minimum_rate_bias: float = _limit(0.05)
    """Smallest relevant bias of a judge's pass rate, against the labels of people."""
    minimum_grade_bias: float = _limit(0.25, below=10)
    """Smallest relevant bias of a judge's grades, in standard deviations of its grades."""
    least_agreement: float = _limit(0.20)
    """A judge whose kappa or, of grades, rank correlation is at most this does not agree with
    people."""
    least_winning_rate: float = _limit(0.5)
    """A judge passes the alternative annotator test at this winning rate."""
    recommended_annotators: int = Field(default=3, ge=1, le=1000)
    """With fewer annotators the winning rate carries a note that it is not to be trusted."""


_interval: ContextVar[ShareInterval] = ContextVar("_interval", default="wilson")


def chosen_interval() -> ShareInterval:
    """Return the name of the interval for proportions that is in force."""
    return _interval.get()


def share_interval(name: ShareInterval) -> AbstractContextManager[None]:
    """Use the named interval for proportions, at the same effective sample size.

    Raise ValueError if no interval has that name.
    """
    if name not in get_args(ShareInterval):
        known = ", ".join(get_args(ShareInterval))
        raise ValueError(f"no interval {name!r} of a share. Known: {known}.")
    return in_force(_interval, name)


CALIBRATION = CalibrationThresholds()
_calibration: ContextVar[CalibrationThresholds] = ContextVar("_calibration", default=CALIBRATION)


def calibration_limits() -> CalibrationThresholds:
    """Return the limits in force: the calibration's, or the defaults."""
    return _calibration.get()


@contextmanager
def calibrated_by(
    thresholds: CalibrationThresholds, interval: ShareInterval = "wilson"
) -> Iterator[None]:
    """Put the limits and interval of a calibration in force for what is computed inside."""
    own = Thresholds(fewest_questions=thresholds.fewest_questions)
    with in_force(_calibration, thresholds), limited_by(own), share_interval(interval):
        yield
