"""Checks of provider files: no secrets, and only parameters of the model."""

import math
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

NAMES_INSTEAD = {
    "name its variable as key_variable under [provider]": "api_key",
    "give api_base under [provider]": "api_base base_url",
    "give timeout_seconds under [provider]": "timeout request_timeout",
    "give attempts under [provider]": "num_retries max_retries retry_policy retry_strategy",
    'say unsupported = "drop"': "drop_params additional_drop_params",
    "give all of it as the judge's model, as in openai/NAME": (
        "model models custom_llm_provider model_alias_map use_litellm_proxy"
    ),
    "give extra_headers, without a key": "headers",
    "give words of the judge's own as its system": (
        "messages prompt_id prompt_variables custom_prompt_dict roles"
    ),
    "each ballot is one whole reply": (
        "n best_of candidate_count candidateCount stream stream_options"
    ),
    "give max_tokens, which litellm translates": (
        "max_output_tokens maxOutputTokens max_new_tokens max_tokens_to_sample max_gen_len "
        "num_predict n_predict"
    ),
    "a judge reads what it is shown, and no budget bounds what a search costs": (
        "web_search_options"
    ),
    "a vote is the judge's own reply": (
        "fallbacks context_window_fallback_dict mock_response mock_tool_calls mock_timeout cache "
        "caching acompletion client litellm_logging_obj"
    ),
}
"""What to do instead -> the parameters that are refused."""
INSTEAD = {name: what for what, names in NAMES_INSTEAD.items() for name in names.split()}
INSTEAD_IN_BODY = INSTEAD | dict.fromkeys(
    ("max_tokens", "max_completion_tokens", "service_tier", "speed", "inference_geo"),
    "give it in params itself, where a budget counts it",
)
"""Parameter -> the same for ``extra_body``, which litellm sends without translating it."""

SECRET = re.compile(
    r"authorization|cookie|credential|secret|passw|api[-_]?key|access[-_]?key|(^|[-_])token$|^key$",
    re.IGNORECASE,
)

HOST = re.compile(
    r"([a-z]{1,10}:/*)?(localhost|[a-z0-9-]{1,20}([.][a-z0-9-]{1,20}){1,4})(:[0-9]{1,5})?"
    r"(/[a-z0-9-]{0,12}){0,3}"
)
"""An address without anything that may be a secret: no user, no query, no long part."""


def refuse_params(params: dict[str, Any]) -> None:
    """Check that a judge's parameters are parameters of the model and hold no secret.

    A ValueError gives the name of the parameter, not its value, and what to do instead.
    """
    for name in params:
        if name in INSTEAD:
            raise ValueError(f"params.{name} is not a parameter of the model: {INSTEAD[name]}.")
    for place, _ in _values(params.get("extra_body")):
        if (name := place.removeprefix("generationConfig.")) in INSTEAD_IN_BODY:
            raise ValueError(
                f"params.extra_body.{place} is not allowed there: {INSTEAD_IN_BODY[name]}."
            )
    found = list(_values(params))
    for place, value in found:
        fits = value is None or isinstance(value, str | int | float | dict | list)
        if not fits or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(
                f"params.{place} ({value}) is a {type(value).__name__}, which JSON, and so a "
                "request, cannot hold. Give a string, a finite number, true, false, a list or a "
                "table."
            )
    for place, _ in found:
        if SECRET.search(place.rsplit(".", maxsplit=1)[-1]):
            raise ValueError(
                f"params.{place} would put a secret into the warehouse. Leave it out, set it in "
                "the environment and name its variable as key_variable or in variables under "
                "[provider]."
            )


def refuse_secrets(address: str, name: str) -> str:
    """Return a web address if it contains no user, password or key; ``name`` is its source.

    Raises
    ------
    ValueError
        Otherwise; the error shows the address only if it is a mere host, as in localhost:8080/v1.
    """
    try:
        parts = urlsplit(address)
        is_web = not address or (parts.scheme in {"http", "https"} and bool(parts.hostname))
    except ValueError:
        is_web = False
    if not is_web:
        # A key in the place of the address is no name of a host.
        shown = f"is {address!r}, but {name} " if HOST.fullmatch(address) else ""
        raise ValueError(f"{name} {shown}must be an address that begins with http:// or https://.")
    if "@" in parts.netloc or any(SECRET.search(key) for key, _ in parse_qsl(parts.query)):
        raise ValueError(
            f"{name} holds a user, password or key, which would be put into the warehouse. "
            "Leave it out, and name the variable of the key as key_variable under [provider]."
        )
    return address


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
