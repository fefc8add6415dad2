"""What a model takes of the parameters it is asked with, as far as litellm knows.

``python -m tasks.providers._supported`` tells it of JSON on standard input: ``[[model, params]]``.
"""

import json
import sys
from functools import cache
from typing import Any

from tasks.providers import Judge
from tasks.providers._litellm import (
    OPENAI_PARAMS,
    UnsupportedParamsError,
    get_optional_params,
    litellm,
)

CONNECTION = {"api_base", "api_key", "api_version", "base_url", "deployment_id", "max_retries",
              "organization", "request_timeout", "timeout"}  # fmt: skip
"""Of what litellm counts as parameters, what says where and how a call goes."""

HEADERS = {"default_headers", "extra_headers"}
"""What litellm sends on without translating it."""

Params = dict[str, Any]


def supported(judge: Judge, params: Params) -> tuple[Params, list[str]]:
    """Leave out what the model does not take, if the judge says so; litellm refuses it else."""
    if judge.unsupported == "error":
        return params, []
    dropped = refused(judge.model, params)
    return {name: value for name, value in params.items() if name not in dropped}, dropped


def refused(model: str, params: Params) -> list[str]:
    """Return the names of the parameters that a model does not take, or not with their value."""
    # A seed is another for each ballot; it is taken or not, whatever it is.
    alike = {**params, "seed": 0} if "seed" in params else params
    return list(_refused(model, json.dumps(alike, sort_keys=True)))


@cache
def _refused(model: str, params: str) -> tuple[str, ...]:
    try:
        name, route, *_ = litellm.get_llm_provider(model=model)
    except litellm.exceptions.BadRequestError:
        # Whoever asks a model that nobody knows is told so by the call.
        return ()
    known = litellm.get_supported_openai_params(name, custom_llm_provider=route)
    if known is None:
        # For a route that says nothing of itself, litellm goes by this one.
        known = litellm.get_supported_openai_params(name, custom_llm_provider="openai") or []
    asked: Params = json.loads(params)
    ours = [each for each in asked if each in OPENAI_PARAMS - CONNECTION]
    dropped = {each for each in ours if each not in known}
    kept = _without(asked, dropped)
    if isinstance(_translate(name, route, kept, drop=False), UnsupportedParamsError):
        # A value is refused. litellm can drop it, but does not say which: what leaves no trace.
        sent = _translate(name, route, kept, drop=True)
        for each in sorted({*ours} - dropped - HEADERS):
            if _translate(name, route, _without(kept, {each}), drop=True) == sent:
                dropped.add(each)
                kept = _without(kept, {each})
    return tuple(sorted(dropped))


def _translate(name: str, route: str, params: Params, *, drop: bool) -> Params | Exception:
    """Return what litellm makes of parameters for a route, or why it does not."""
    # It changes what it is given.
    given = json.loads(json.dumps(params))
    try:
        made: Params = get_optional_params(
            model=name, custom_llm_provider=route, drop_params=drop, **given
        )
    except Exception as error:  # noqa: BLE001 - the call itself tells what is wrong
        return error
    return made


def _without(params: Params, names: set[str]) -> Params:
    return {name: value for name, value in params.items() if name not in names}


if __name__ == "__main__":
    sys.stdout.write(json.dumps([refused(*asked) for asked in json.load(sys.stdin)]) + "\n")
