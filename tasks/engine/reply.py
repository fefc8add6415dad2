"""The reply to a request, as both sides of the pipe read it."""

from typing import NamedTuple


class Reply(NamedTuple):
    """What came of one request, with all its attempts."""

    text: str
    model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    seconds: float = 0.0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    attempts: int = 1
    dropped_params: str | None = None
    """Parameters that the model does not take and that were left out, as JSON."""
    first_token: str | None = None
    first_probability: float | None = None
    """The chance of the first token, where the provider tells log probabilities."""
    error: str | None = None
    """Set if there is no reply; then nothing else counts."""


class CallError(Exception):
    """A call that brought no reply."""

    def __init__(
        self,
        text: str,
        *,
        passing: bool,
        retry_after: float | None = None,
        free: bool = True,
        unreadable: bool = False,
        unreached: bool = False,
    ) -> None:
        super().__init__(text)
        self.passing = passing
        """Whether it may be gone the next time."""
        self.retry_after = retry_after
        """Seconds that the provider asks to wait."""
        self.free = free
        """Whether the provider surely takes no money for it: it refused, it did not vanish."""
        self.unreadable = unreadable
        """Whether a whole answer came that is no completion."""
        self.unreached = unreached
        """Whether there was no connection, so that nothing was sent."""
