"""Variables of litellm's own that would send calls elsewhere, without a trace in the ballots."""

import os

from tasks.providers import Judge, Provider, api_base
from tasks.providers._prices import route_of

OTHERS = {
    "bedrock": ["AWS_BEDROCK_RUNTIME_ENDPOINT", "BEDROCK_MANTLE_API_BASE"],
    "mistral": ["MISTRAL_AZURE_API_BASE"],
    "vertex_ai": ["VERTEXAI_API_BASE", "VERTEX_API_BASE"],
}
"""Beside ``ROUTE_API_BASE`` and ``ROUTE_BASE_URL``, which litellm reads for nearly every route."""

ALWAYS = "USE_LITELLM_PROXY"


def diverting(provider: Provider, judge: Judge) -> list[str]:
    """Return the variables that are set and would send a judge's calls elsewhere."""
    if provider.simulated:
        return []
    route = route_of(judge.model).removesuffix("_chat")
    names = [f"{route.upper()}_API_BASE", f"{route.upper()}_BASE_URL", *OTHERS.get(route, [])]
    # An address that the provider's file gives goes before all of these, but not before a proxy.
    return [name for name in [ALWAYS, *([] if api_base(provider) else names)] if _is_set(name)]


def _is_set(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() not in {"", "0", "false"}
