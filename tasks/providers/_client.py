"""The only file that imports litellm: one request to one model."""

import asyncio
import gc
import math
import os
import sys
import time
from typing import Any, NamedTuple

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
# Nothing listens to litellm's log of each call, and its threads cost more than the call.
os.environ.setdefault("LOGGING_EXECUTOR_MAX_PENDING_TASKS", "0")
# Collecting while thousands of classes are made takes a tenth of the import.
gc.disable()
import litellm  # noqa: E402
from litellm import ModelResponse, Usage  # noqa: E402
from litellm.llms.custom_llm import CustomLLM  # noqa: E402
from tenacity import (  # noqa: E402
    AsyncRetrying,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from tasks.providers import Provider  # noqa: E402
from tasks.providers._offline import Traits, answer  # noqa: E402

gc.enable()
gc.freeze()

PASSING = (
    litellm.exceptions.RateLimitError,
    litellm.exceptions.APIConnectionError,
    litellm.exceptions.Timeout,
    litellm.exceptions.InternalServerError,
    litellm.exceptions.ServiceUnavailableError,
)
LARGEST = 2**63 - 1


class Outcome(NamedTuple):
    """What came of a request."""

    text: str
    model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    seconds: float = 0.0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    attempts: int = 1
    error: str | None = None
    """Set if there is no reply; then nothing else counts."""


NEXT_TO_NOTHING = sys.float_info.min


class Offline(CustomLLM):
    """The synthetic judges as a litellm provider."""

    def completion(self, *_: Any, **request: Any) -> ModelResponse:
        """Answer the messages by formula."""
        options = request["optional_params"]
        messages, response = request["messages"], request["model_response"]
        text = answer(messages, _traits(str(options["traits"]), options["traits"]), options["seed"])
        response.choices[0].message.content = text
        response.choices[0].finish_reason = "stop"
        response.model = f"offline/{request['model']}"
        # litellm looks a price that is missing or 0 up in its table, which takes longer than the
        # answer; the vote says 0, see _outcome.
        response._hidden_params["response_cost"] = NEXT_TO_NOTHING  # noqa: SLF001
        prompt = sum(len(message["content"].split()) for message in messages)
        response.usage = Usage(prompt_tokens=prompt, completion_tokens=len(text.split()))
        return response


litellm.custom_provider_map = [{"provider": "offline", "custom_handler": Offline()}]
litellm.suppress_debug_info = True
_known: dict[str, Traits] = {}


def _traits(key: str, table: dict[str, Any]) -> Traits:
    if key not in _known:
        _known[key] = Traits(**table)
    return _known[key]


async def complete(
    provider: Provider, model: str, messages: list[dict[str, str]], params: dict[str, Any]
) -> Outcome:
    """Ask once; passing faults are tried again, other errors are returned, redacted."""
    call = {
        "timeout": provider.timeout_seconds, **_key(provider), **params,
        "model": model, "messages": messages, "num_retries": 0, "max_retries": 0,
    }  # fmt: skip
    attempt = 0
    began = time.perf_counter()
    try:
        async for trial in AsyncRetrying(
            stop=stop_after_attempt(provider.attempts),
            wait=wait_random_exponential(multiplier=0.5, max=30),
            retry=retry_if_exception(lambda error: not provider.simulated and _passes(error)),
            reraise=True,
        ):
            with trial:
                attempt = trial.retry_state.attempt_number
                began = time.perf_counter()
                # A formula has nothing to wait for, and the blocking call is the cheaper one.
                ask = litellm.completion if provider.simulated else _ask
                response = ask(**call)
                if asyncio.iscoroutine(response):
                    response = await response
        return _outcome(response, time.perf_counter() - began, attempt, free=provider.simulated)
    except Exception as error:  # noqa: BLE001 - whatever a provider does, the other ballots go on
        return Outcome("", attempts=max(attempt, 1), error=_redact(error, provider))


def _key(provider: Provider) -> dict[str, str]:
    """Return the API key as an argument: litellm looks for it under names of its own."""
    name = provider.key_variable
    key = os.environ.get(name, "").strip() if name else ""
    return {"api_key": key} if key else {}


def _passes(error: BaseException) -> bool:
    """Tell whether a fault may be gone the next time; 5xx has no class of its own for each."""
    status = getattr(error, "status_code", None)
    return isinstance(error, PASSING) or (isinstance(status, int) and status >= 500)


def _ask(**call: Any) -> Any:
    return litellm.acompletion(**call)


def _outcome(response: Any, seconds: float, attempts: int, *, free: bool) -> Outcome:
    if not response.choices:
        raise ValueError("the provider's reply holds no choices")
    choice, usage = response.choices[0], getattr(response, "usage", None)
    # Where a provider reports no usage, litellm says 0; but no prompt has 0 tokens.
    prompt_tokens = _count(getattr(usage, "prompt_tokens", None)) or None
    completion_tokens = _count(getattr(usage, "completion_tokens", None))
    cost = getattr(response, "_hidden_params", {}).get("response_cost")
    return Outcome(
        text=_clean(choice.message.content or ""),
        model=_clean_or_none(response.model),
        fingerprint=_clean_or_none(getattr(response, "system_fingerprint", None)),
        finish_reason=_clean_or_none(choice.finish_reason),
        seconds=seconds,
        prompt_tokens=prompt_tokens,
        completion_tokens=None if prompt_tokens is None else completion_tokens,
        cost_usd=0.0 if free else _amount(cost) if prompt_tokens else None,
        attempts=attempts,
    )


def _count(value: object) -> int | None:
    """Return a number of tokens; null if what is reported cannot be one."""
    return value if isinstance(value, int) and 0 <= value <= LARGEST else None


def _amount(value: object) -> float | None:
    known = isinstance(value, int | float) and math.isfinite(value) and value >= 0
    return float(value) if known else None  # type: ignore[arg-type]


def _clean(text: str) -> str:
    """Keep the reply verbatim, except for lone surrogates, which no file can hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def _clean_or_none(value: object) -> str | None:
    return None if value is None else _clean(str(value))


def _redact(error: Exception, provider: Provider) -> str:
    # litellm appends the traceback of an error that is not an HTTP status.
    text = f"{type(error).__name__}: {_clean(str(error))}".split("\nTraceback", maxsplit=1)[0]
    key = _key(provider).get("api_key")
    return (text.replace(key, "[key]") if key else text)[:500]
