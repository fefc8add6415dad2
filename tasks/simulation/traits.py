"""Traits: the parameters of a simulated judge."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from tasks.validation.strict_models import Written
from tasks.validation.toml_tables import entry

Feature = Literal["reference", "beauty", "padding", "factual_error", "gender_bias"]


def _not_tiny(temperature: float) -> float:
    if 0 < temperature < 0.01:
        raise ValueError(f"temperature {temperature} must be 0 or at least 0.01.")
    return temperature


class Traits(Written):
    """Parameters of a simulated judge, in logits unless stated."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    omega: float = Field(default=0, ge=0)
    """Standard deviation of the gap of quality between two answers."""
    nu: float = Field(default=0, ge=0, le=100)
    """Weight of a tie: its chance is nu / (2 + nu) between equal answers."""
    kappa: float = 0
    """How much the first slot is favoured; below 0, the second."""
    psi: float = Field(default=0, ge=0)
    """Standard deviation of the noise of a prompt, shared by its repeats."""
    upsilon: float = Field(default=0, ge=0)
    """Standard deviation, between answers, of the effect of each feature in ``effects``. A mean
    effect of 0 there plants a bias that only differs between answers."""
    pi: float = Field(default=1, ge=0, le=1)
    """Chance that a feature of an answer is noticed at all."""
    lam: float = 0
    """What length adds to an answer, per unit of the log ratio of lengths in characters."""
    temperature: Annotated[float, AfterValidator(_not_tiny)] = Field(default=1, ge=0, le=100)
    """Divides the logits of a vote: at 0 the judge always gives the likeliest one."""
    lapse: float = Field(default=0, ge=0, le=1)
    """Chance of a vote drawn from the three choices alike."""
    iota: float = Field(default=0, ge=0, le=1)
    """Chance of a reply without a verdict."""
    seed: int = 0
    """Judges with different seeds have different opinions on the same answers."""
    uniform: bool = False
    """Draw every vote from the three choices alike: the random judge."""
    sham_taste: float = 0
    """Effect of filler or odd spacing, which shams contain, and other answers may contain."""
    effects: dict[Feature, float] = {}
    """Feature of an answer -> its mean effect on the odds of that answer."""
    slope: float = Field(default=0.1, ge=0)
    """For ratings of single answers: share of the scale's width per logit of quality."""
    leniency: float = 0
    """Share of the scale's width that is added to each rating."""
    grade_noise: float = Field(default=0.05, ge=0)
    """Standard deviation of the noise of each rating, as a share of the scale's width."""
    ceiling: float = Field(default=1, gt=0, le=1)
    """Highest grade that is given, as a share of the scale's width."""
    pass_at: float = 0.5
    """An answer passes, or gets a label, from this share of the scale's width on."""
    reference_weight: float = 0
    """Logits for all of the reference's long words, if the prompt shows a reference answer."""
    wordings: dict[str, float] = {}
    """Text in the system message -> logits it adds to a rated answer, or to the second slot."""
    mention: float = 0
    """Logits for a label whose words are all in the answer, if the prompt asks for labels."""
    waves: dict[str, dict[str, Any]] = {}
    """Label of a wave -> the traits that differ in it, to try how drift is found."""

    @model_validator(mode="after")
    def _checked_waves(self) -> Self:
        for wave in self.waves:
            self.in_wave(wave)
        return self

    def in_wave(self, wave: str) -> "Traits":
        """Return the traits that the judge has in a wave."""
        if wave not in self.waves:
            return self
        table = {**self.model_dump(exclude={"waves"}), **self.waves[wave]}
        return entry(Traits, f"waves.{wave}", table, show_values=True, waves={})


WHERE = "See docs/reference/providers.md for the meaning of each trait."


def read_traits(place: str, table: object) -> Traits:
    """Validate the traits in a provider file.

    A ValueError gives all problems: the place, the trait, its value and what is allowed.
    """
    try:
        return entry(Traits, place, table, show_values=True)
    except ValueError as error:
        raise ValueError(f"{error} {WHERE}") from error
