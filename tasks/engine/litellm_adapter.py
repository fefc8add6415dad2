"""All that we take from litellm: its functions, settings, prices, and parameters of models.

No other file imports litellm, by public names only; importing this file does not import it yet.

``python -m tasks.engine.litellm_adapter`` reads JSON ``[[model, params]]`` from standard input and
writes, for each, the parameters that litellm knows the model not to take.
"""

import gc
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tasks.kit.printable import redact
from tasks.providers import Judge, Provider, api_base

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


TABLE = "model_prices_and_context_window_backup.json"


PROMPT, COMPLETION = "input_cost_per_token", "output_cost_per_token"


CACHING = "cache_creation_input_token_cost"


TIERED = re.compile(
    rf"(?P<what>{PROMPT}|{CACHING}|{COMPLETION}|output_cost_per_reasoning_token)(?P<hour>_above_1hr)?"
    r"(_above_(?P<above>\d+)k_tokens)?(_(?P<tier>[a-z]+))?"
)


"""Prices of text in litellm's table: by length of the prompt, and by tier."""


LOCAL = {"lemonade", "ollama", "ollama_chat"}


"""Routes by which 0 is what a token costs; by others it stands where litellm knows no price."""


class Price(NamedTuple):
    """US dollars per token."""

    prompt: float
    completion: float


def route_of(model: str) -> str:
    """Return the provider that litellm asks for a model: its first part, or as its table says."""
    route, *rest = model.split("/", maxsplit=1)
    return route if rest else str(_table().get(model, {}).get("litellm_provider", "openai"))


def price_of(judge: Judge, *, simulated: bool) -> Price | None:
    """Return the judge's price in its mode: its own, litellm's, or null if nobody knows it."""
    if simulated:
        return Price(0.0, 0.0)
    if judge.usd_per_million:
        own = judge.usd_per_million
        return Price(own.prompt / 1e6, own.completion / 1e6)
    entry = _entry(judge.model)
    if judge.mode == "live":
        if PROMPT not in entry:
            return None
        return _unless_free(judge, Price(entry[PROMPT], entry.get(COMPLETION, 0.0)))
    in_batch = f"{PROMPT}_batches", f"{COMPLETION}_batches"
    if any(name not in entry for name in in_batch):
        return None
    return _unless_free(judge, Price(entry[in_batch[0]], entry[in_batch[1]]))


def highest_price(judge: Judge, prompt_tokens: int | None = None) -> Price | None:
    """Return what a token costs at most, with a prompt of at most so many tokens.

    A batch whose price is unknown costs no more than live; a live call that names no tier may get
    the priority that its key is set to; tokens that are thought or cached may cost more.
    """
    live = judge.model_copy(update={"mode": "live"})
    price = price_of(judge, simulated=False)
    tiers = {"batches"} if price and judge.mode == "batch" else _tiers(judge.params)
    price = price or price_of(live, simulated=False)
    if price is None or judge.usd_per_million:
        return price
    entry, hour = _entry(judge.model), "'1h'" in str(judge.params)
    prompt, completion = price
    for name, usd in entry.items():
        found = TIERED.fullmatch(name)
        if not found or (tiers and (found["tier"] or "") not in tiers):
            continue
        if found["hour"] and not hour:
            continue
        if prompt_tokens is not None and prompt_tokens <= 1000 * int(found["above"] or 0):
            continue
        if found["what"] in {PROMPT, CACHING}:
            prompt = max(prompt, usd)
        else:
            completion = max(completion, usd)
    factor = _factor(judge.params, entry)
    return Price(prompt * factor, completion * factor)


def _tiers(params: dict[str, Any]) -> set[str]:
    """Return which of litellm's tiers may be charged; none: any."""
    named = params.get("service_tier", "auto")
    return {"auto": {"", "priority"}, "default": {""}, "flex": {"", "flex"}}.get(str(named), set())


def _factor(params: dict[str, Any], entry: dict[str, Any]) -> float:
    """Return by how much all that is chosen beside a tier may multiply a price."""
    factor = 1.0
    if {"inference_geo", "speed"} & {*params}:
        for value in (entry.get("provider_specific_entry") or {}).values():
            factor *= max(1.0, value) if isinstance(value, int | float) else 1.0
    return factor


def _unless_free(judge: Judge, price: Price) -> Price | None:
    """Take a price of nothing for one that is missing, unless the model runs on one's own."""
    return price if any(price) or route_of(judge.model) in LOCAL else None


def _entry(model: str) -> dict[str, Any]:
    """Return litellm's entry of a model, by its full name, or by its own if its route is meant."""
    table = _table()
    entry = table.get(model)
    if entry is None:
        entry = table.get(model.split("/", 1)[-1])
        if entry is None:
            return {}
        theirs, ours = str(entry.get("litellm_provider", "openai")), route_of(model)
        # The table tells parts of a route apart: bedrock_converse, vertex_ai-language-models.
        if not theirs.startswith(ours.removesuffix("_chat")):
            return {}
    return entry


@cache
def _table() -> dict[str, dict[str, Any]]:
    package = find_spec("litellm")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError("litellm is not installed, so no prices are known.")
    path = Path(package.submodule_search_locations[0]) / TABLE
    table: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return table


if __name__ == "__main__":
    sys.stdout.write(json.dumps([refused(*asked) for asked in json.load(sys.stdin)]) + "\n")
