"""A litellm call that keeps no log of itself."""

from datetime import UTC, datetime
from typing import Any

from litellm.litellm_core_utils.litellm_logging import Logging  # noqa: TID251 - see _client


class Quiet(Logging):
    """Stands in for the object that litellm logs each call with, to callbacks nobody registers.

    It makes a payload for them, and prices the call twice: a third of the CPU time of a call. The
    signatures are litellm's, whose version is pinned.
    """

    def __init__(self, model: str, messages: list[dict[str, str]], *, priced: bool) -> None:
        super().__init__(
            model=model, messages=messages, stream=False, call_type="acompletion",
            start_time=datetime.now(UTC).replace(tzinfo=None), litellm_call_id="", function_id="",
        )  # fmt: skip
        self._priced = priced
        """Whether litellm's price is wanted; its search for one that is unknown takes long."""
        self.update_environment_variables(
            model=model, user="", optional_params={}, litellm_params={"acompletion": True}
        )

    def response_cost_calculator(self, *words: Any, **named: Any) -> float | None:
        """Price a call if litellm is to."""
        if not self._priced:
            return None
        cost: float | None = super().response_cost_calculator(*words, **named)
        return cost

    async def async_success_handler(self, *_: Any, **__: Any) -> None:
        """Log nothing."""

    def success_handler(self, *_: Any, **__: Any) -> None:
        """Log nothing."""

    async def dispatch_success_handlers(self, *_: Any, **__: Any) -> None:
        """Log nothing."""
