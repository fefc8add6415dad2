"""Checks of provider files: no secrets, and only parameters of the model."""

import math
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

INSTEAD = {
    **dict.fromkeys(("api_key",), "name its variable as key_variable under [provider]"),
    **dict.fromkeys(("api_base", "base_url"), "give api_base under [provider]"),
    **dict.fromkeys(("timeout", "request_timeout"), "give timeout_seconds under [provider]"),
    **dict.fromkeys(
        ("num_retries", "max_retries", "retry_policy", "retry_strategy"),
        "give attempts under [provider]",
    ),
    **dict.fromkeys(("drop_params", "additional_drop_params"), 'say unsupported = "drop"'),
    **dict.fromkeys(
        ("model", "models", "custom_llm_provider", "model_alias_map", "use_litellm_proxy"),
        "give all of it as the judge's model, as in openai/NAME",
    ),
    **dict.fromkeys(("headers",), "give extra_headers, without a key"),
    **dict.fromkeys(
        ("messages", "prompt_id", "prompt_variables", "custom_prompt_dict", "roles"),
        "give words of the judge's own as its system",
    ),
    **dict.fromkeys(
        ("n", "best_of", "candidate_count", "candidateCount", "stream", "stream_options"),
        "each ballot is one whole reply",
    ),
    **dict.fromkeys(
        (
            "max_output_tokens",
            "maxOutputTokens",
            "max_new_tokens",
            "max_tokens_to_sample",
            "max_gen_len",
            "num_predict",
            "n_predict",
        ),
        "give max_tokens, which litellm translates",
    ),
    **dict.fromkeys(
        ("web_search_options",),
        "a judge reads what it is shown, and no budget bounds what a search costs",
    ),
    **dict.fromkeys(
        (
            "fallbacks",
            "context_window_fallback_dict",
            "mock_response",
            "mock_tool_calls",
            "mock_timeout",
            "cache",
            "caching",
            "acompletion",
            "client",
            "litellm_logging_obj",
        ),
        "a vote is the judge's own reply",
    ),
}
"""Parameter that is refused -> what to do instead."""

INSTEAD_IN_BODY = {
    **INSTEAD,
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens", "service_tier", "speed", "inference_geo"),
        "give it in params itself, where a budget counts it",
    ),
}
"""The same for ``extra_body``, which litellm sends without translating it."""

SECRET = re.compile(
    r"authorization|cookie|credential|secret|passw|api[-_]?key|access[-_]?key|(^|[-_])token$|^key$",
    re.IGNORECASE,
)


def refuse_params(params: dict[str, Any]) -> None:
    """Check that a judge's parameters are parameters of the model and hold no secret.

    Raises
    ------
    ValueError
        With the name of the parameter, not its value, and what to do instead.
    """
    for name in params:
        if name in INSTEAD:
            raise ValueError(f"params.{name} is not a parameter of the model: {INSTEAD[name]}.")
    body = params.get("extra_body")
    for place in _places(body):
        if (name := place.removeprefix("generationConfig.")) in INSTEAD_IN_BODY:
            raise ValueError(
                f"params.extra_body.{place} is not allowed there: {INSTEAD_IN_BODY[name]}."
            )
    for place, value in _values(params):
        if not _is_json(value):
            raise ValueError(
                f"params.{place} ({value}) is a {type(value).__name__}, which JSON, and so a "
                "request, cannot hold. Give a string, a finite number, true, false, a list or a "
                "table."
            )
    for place in _places(params):
        if SECRET.search(place.rsplit(".", maxsplit=1)[-1]):
            raise ValueError(
                f"params.{place} would put a secret into the warehouse. Leave it out, set it in "
                "the environment and name its variable as key_variable or in variables under "
                "[provider]."
            )


def _is_json(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int | dict | list)


def refuse_secrets(address: str, name: str) -> str:
    """Return a web address if it contains no user, password or key; ``name`` is its source.

    Raises
    ------
    ValueError
        Otherwise; the error does not show the address.
    """
    parts = _split(address, name)
    if "@" in parts.netloc or any(SECRET.search(key) for key, _ in parse_qsl(parts.query)):
        raise ValueError(
            f"{name} holds a user, password or key, which would be put into the warehouse. "
            "Leave it out, and name the variable of the key as key_variable under [provider]."
        )
    return address


def _split(address: str, name: str) -> SplitResult:
    """Split a web address; refuse any other without showing it."""
    try:
        parts = urlsplit(address)
        is_web = not address or (parts.scheme in {"http", "https"} and bool(parts.hostname))
    except ValueError:
        is_web = False
    if not is_web:
        raise ValueError(f"{name} must be an address that begins with http:// or https://.")
    return parts


def _places(value: Any) -> Iterator[str]:
    """Yield the path of every key in nested tables."""
    return (place for place, _ in _values(value))


def _values(value: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of every key in nested tables; elements of a list share one path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{before}{key}", inner
            yield from _values(inner, f"{before}{key}.")
    elif isinstance(value, list):
        for inner in value:
            if not isinstance(inner, dict | list):
                yield before.removesuffix("."), inner
            yield from _values(inner, before)
