"""The only import of litellm, by its public functions and settings; importing this is cheap.

``python -m tasks.engine.litellm_adapter`` reads JSON ``[[model, params]]`` from standard input and
writes, for each, the parameters that litellm knows the model not to take.
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from tasks.engine.redaction import redact
from tasks.providers import Judge

SETTINGS = {
    # A request is what the judge's file says, also where litellm's defaults change.
    "drop_params": False,
    "modify_params": False,
    "add_function_to_prompt": False,
    "use_litellm_proxy": False,
    "reasoning_auto_summary": False,
    "openai_system_messages_first": False,
    "route_all_chat_openai_to_responses": False,
    "enable_anthropic_prompt_caching": False,
    # Its estimate for a provider that reports no usage is no report.
    "disable_token_counter": True,
    "suppress_debug_info": True,
}
"""Module settings of litellm."""

ENVIRONMENT = {
    # In any other mode litellm reads a file .env, which may name other addresses.
    "LITELLM_MODE": "PRODUCTION",
    # Otherwise it downloads its price table when it is imported.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}

CONNECTION = {
    "api_base",
    "api_key",
    "api_version",
    "base_url",
    "deployment_id",
    "max_retries",
    "organization",
    "request_timeout",
    "timeout",
}
"""Parameters in litellm's list that say where and how a call goes."""

HEADERS = {"default_headers", "extra_headers"}
"""Parameters that litellm sends on without translating them."""

Params = dict[str, Any]


@cache
def load_litellm() -> Any:
    """Import litellm, which takes seconds and 170 MB, and apply our settings.

    Garbage is not collected meanwhile: with thousands of new classes that takes a tenth of the
    time.
    """
    os.environ.update(ENVIRONMENT)
    gc.disable()
    import litellm

    gc.freeze()
    gc.enable()
    for name, value in SETTINGS.items():
        setattr(litellm, name, value)
    return litellm


def litellms_client(route: str, **params: Any) -> Any:
    """Return the client that litellm itself makes for a route, and keeps for these parameters."""
    load_litellm()
    from litellm.llms.custom_httpx.http_handler import get_async_httpx_client

    return get_async_httpx_client(route, params)


def worker_environment() -> dict[str, str]:
    """Return the environment of a process that imports litellm.

    Without the variables by which litellm would change requests, which no ballot records.
    """
    changing = [
        name
        for name in os.environ
        if name.startswith(("DEFAULT_", "LITELLM_"))
        and not name.startswith(("LITELLM_LOG", "LITELLM_PROXY_"))
        and not name.endswith("_KEY")
    ]
    kept = {name: value for name, value in os.environ.items() if name not in changing}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


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
    litellm = load_litellm()
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
    ours = [
        each for each in asked if each in set(litellm.OPENAI_CHAT_COMPLETION_PARAMS) - CONNECTION
    ]
    dropped = {each for each in ours if each not in known}
    kept = _without(asked, dropped)
    if isinstance(_translate(name, route, kept, drop=False), litellm.UnsupportedParamsError):
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
        made: Params = load_litellm().get_optional_params(
            model=name, custom_llm_provider=route, drop_params=drop, **given
        )
    except Exception as error:  # noqa: BLE001 - the call itself tells what is wrong
        return error
    return made


def _without(params: Params, names: set[str]) -> Params:
    return {name: value for name, value in params.items() if name not in names}


def refused_params(asked: Sequence[tuple[str, dict[str, Any]]]) -> list[list[str]]:
    """Return the names of the parameters that would be dropped, for each (model, parameters).

    Raises
    ------
    RuntimeError
        If litellm cannot tell.
    """
    return _refused_elsewhere(json.dumps(asked, sort_keys=True)) if asked else []


@cache
def _refused_elsewhere(asked: str) -> list[list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "tasks.engine.litellm_adapter"],
        input=asked,
        env=worker_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(
            'which parameters unsupported = "drop" leaves out could not be found out: '
            f"{redact(said)[:500]}. Nothing was asked."
        )
    told: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    sys.stdout.write(json.dumps([refused(*asked) for asked in json.load(sys.stdin)]) + "\n")
