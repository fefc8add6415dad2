"""Thresholds of a study: what is relevant, what excludes a judge, what a gate tolerates."""

from pydantic import BaseModel, ConfigDict, Field

from tasks.kit.defaults import EXCLUSION_LIMITS, LOG_ODDS_MINIMUM, MINIMA, MINIMUM


class Thresholds(BaseModel):
    """Limits that decide findings, exclusions and gates (methods, sections 3, 5, 11 and 15)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    minimum_shift: float = Field(
        default=MINIMUM, gt=0, lt=1, description="Smallest mean preference shift that matters."
    )
    minimum_log_odds: float = Field(
        default=LOG_ODDS_MINIMUM, gt=0, lt=10, description="Smallest log-odds shift that matters."
    )
    minimum_asr_difference: float = Field(
        default=MINIMA["dasr_drift"],
        gt=0,
        lt=1,
        description="Smallest difference in attack success between two judges that matters.",
    )
    most_position_gap: float = Field(
        default=EXCLUSION_LIMITS["position_gap"],
        gt=0,
        lt=0.5,
        description="A judge with a larger position gap is left out of means of attack success.",
    )
    most_ties: float = Field(
        default=EXCLUSION_LIMITS["tie_rate"],
        gt=0,
        lt=1,
        description="A judge with a larger share of ties is left out of them too.",
    )
    most_invalid: float = Field(
        default=EXCLUSION_LIMITS["invalid_rate"],
        gt=0,
        lt=1,
        description="A judge with a larger share of invalid votes is left out, and fails validity.",
    )
    most_agreement_lost: float = Field(
        default=0.10,
        gt=0,
        lt=1,
        description="A judge that loses more of the agreement of people fails agreement.",
    )


DEFAULTS = Thresholds()
