"""How the emulated provider behaves."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tasks.providers._offline import Traits


class Manners(BaseModel):
    """How the provider behaves; all of it can be changed while it runs (``POST /manners``)."""

    model_config = ConfigDict(extra="forbid")

    seed: int = 0
    latency: float = Field(default=0.0, ge=0)
    """Seconds until a reply."""
    faults: dict[str, float] = {}
    """Chance of each: ``busy`` is 429, ``error`` 500, ``hang`` no reply for ``hang_seconds``,
    ``reset`` a dropped connection, ``truncated`` half a body, ``garbage`` a body that is no JSON,
    ``mute`` a good reply without a verdict, ``endless`` a body that does not end (before a
    gigabyte), ``bomb`` one that inflates to a gigabyte."""
    retry_after: float = Field(default=0.2, ge=0)
    """Seconds named in ``Retry-After`` of a 429."""
    hang_seconds: float = Field(default=30.0, ge=0)
    requests_per_minute: int = Field(default=0, ge=0)
    """More get 429; 0: no limit."""
    tokens_per_minute: int = Field(default=0, ge=0)
    """Words of prompts; more get 429; 0: no limit."""
    concurrency: int = 0
    """More at once get 429; 0: no limit."""
    key: str = ""
    """The only API key that is let in; empty: all are."""
    models: list[str] = []
    """The only models that there are; empty: any."""
    refused: list[str] = []
    """Parameters that the model does not take: 400."""
    context: int = 0
    """Words that fit into the model; 0: any number."""
    forbidden: str = ""
    """A prompt with this text breaks the content policy."""
    traits: dict[str, Traits] = {}
    """Model -> the synthetic judge that answers for it; others answer by a hash of the request. A
    change while it runs is a model that changes without a word."""
    vary: bool = False
    """Draw every reply of a model with ``traits`` anew, as above temperature 0; else the same
    request gets the same reply. Which it is depends on ``seed`` and how often it was asked."""
    batch_seconds: float = Field(default=0.0, ge=0)
    """From the creation of a batch to its end."""
    batch_errors: float = Field(default=0.0, ge=0, le=1)
    """Chance that a line of a batch fails."""
    batch_end: Literal["completed", "failed", "expired", "cancelled"] = "completed"
    """How batches end."""
    batch_left: float = Field(default=0.5, ge=0, le=1)
    """Share of its lines that a batch leaves out if it expires or is cancelled."""
    batch_vanishes: bool = False
    """Drop the connection when a batch has been created."""
