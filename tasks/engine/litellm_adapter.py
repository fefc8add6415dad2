"""Everything that is used of litellm: functions, settings, responses, parameters, prices.

No other file imports litellm, nor does this one before it must. The docs of litellm do not promise
the client that it keeps for some routes (:func:`litellms_client`), the file of its prices
(``TABLE``, as an import takes seconds), and what saves CPU time in client.py: cost and fallbacks.

``python -m tasks.engine.litellm_adapter`` reads JSON ``[[model, params]]`` from standard input and
writes, for each, the parameters that the model does not support.
"""

import gc
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from schemas.keys import LARGEST_INTEGER
from tasks.engine.journal import Reply
from tasks.kit.printable import redact
from tasks.providers import Judge, Provider, api_base

SETTINGS = {
    # A request follows the judge's file, even if litellm's defaults change.
    "drop_params": False,
    "modify_params": False,
    "add_function_to_prompt": False,
    "use_litellm_proxy": False,
    "reasoning_auto_summary": False,
    "openai_system_messages_first": False,
    "route_all_chat_openai_to_responses": False,
    "enable_anthropic_prompt_caching": False,
    # An estimate must not pass for the usage that a provider reports.
    "disable_token_counter": True,
    "suppress_debug_info": True,
}
"""Module settings of litellm."""

ENVIRONMENT = {
    # In any other mode litellm reads .env, which may set other addresses.
    "LITELLM_MODE": "PRODUCTION",
    # Otherwise litellm downloads its price table when it is imported.
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
"""Parameters in litellm's list that concern the connection, not the model."""

HEADERS = {"default_headers", "extra_headers"}
"""Parameters that litellm sends without translating them."""

Params = dict[str, Any]


@cache
def load_litellm() -> Any:
    """Import litellm, which takes seconds and 170 MB, and apply our settings.

    Garbage collection is off meanwhile: with thousands of new classes it takes a tenth of the time.
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
    """Return the client that litellm makes, and keeps, for a route and these parameters.

    Its function is internal. Other routes take our client (``client=`` of ``acompletion``, or
    ``litellm.aclient_session``); for Cohere, litellm passes neither on to the code that sends.
    """
    load_litellm()
    from litellm.llms.custom_httpx.http_handler import get_async_httpx_client

    return get_async_httpx_client(route, params)


def worker_environment() -> dict[str, str]:
    """Return the environment of a process that imports litellm.

    Variables that would make litellm change requests are removed, because ballots do not record
    them.
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


def reply_of(response: Any, seconds: float, judge: Judge) -> Reply:
    """Return the reply in litellm's response.

    Raise ValueError if the response has no choices.
    """
    if not response.choices:
        raise ValueError("the provider's reply holds no choices")
    choice, usage = response.choices[0], getattr(response, "usage", None)
    # If a provider reports no usage, litellm reports 0; but no prompt has 0 tokens.
    prompt_tokens = _count(getattr(usage, "prompt_tokens", None)) or None
    completion_tokens = _count(getattr(usage, "completion_tokens", None))
    if judge.usd_per_million:
        cost = judge.usd_per_million.cost(prompt_tokens, completion_tokens)
    elif is_priced(judge.model):
        # The documented place of the cost.
        cost = getattr(response, "_hidden_params", {}).get("response_cost")
    else:
        cost = None
    # The text by which a model refuses to fill a schema: newer litellm has it as `refusal`.
    fields = getattr(choice.message, "provider_specific_fields", None) or {}
    refused = getattr(choice.message, "refusal", None) or fields.get("refusal")
    refusal = refused if isinstance(refused, str) and not choice.message.content else ""
    token, probability = _first_token(choice)
    return Reply(
        text=valid_text(choice.message.content or refusal),
        model=_text_or_none(response.model),
        fingerprint=_text_or_none(getattr(response, "system_fingerprint", None)),
        finish_reason="refusal" if refusal else _text_or_none(choice.finish_reason),
        seconds=seconds,
        prompt_tokens=prompt_tokens,
        completion_tokens=None if prompt_tokens is None else completion_tokens,
        cost_usd=_amount(cost) if prompt_tokens else None,
        first_token=token,
        first_probability=probability,
    )


def _first_token(choice: Any) -> tuple[str | None, float | None]:
    """Return the reply's first token and its probability; nulls if they are not reported."""
    content = _part(_part(choice, "logprobs"), "content")
    if not isinstance(content, list) or not content:
        return None, None
    token, logprob = (_part(content[0], name) for name in ("token", "logprob"))
    if not isinstance(token, str) or not isinstance(logprob, int | float) or math.isnan(logprob):
        return None, None
    return valid_text(token), math.exp(min(float(logprob), 0.0))


def _part(whole: Any, name: str) -> Any:
    """Return a part of an object that litellm has parsed, or of a table that it has not."""
    return whole.get(name) if isinstance(whole, dict) else getattr(whole, name, None)


def _count(value: object) -> int | None:
    """Return a number of tokens; null if the reported value cannot be one."""
    return value if isinstance(value, int) and 0 <= value <= LARGEST_INTEGER else None


def _amount(value: object) -> float | None:
    known = isinstance(value, int | float) and math.isfinite(value) and value >= 0
    return float(value) if known else None  # type: ignore[arg-type]


def valid_text(text: str) -> str:
    """Return a text verbatim, except for lone surrogates, which no file can hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def _text_or_none(value: object) -> str | None:
    return None if value is None else valid_text(str(value))


def supported(judge: Judge, params: Params) -> tuple[Params, list[str]]:
    """Return the parameters that are sent, and those left out if the judge drops unsupported ones.

    Otherwise litellm refuses a request with an unsupported parameter.
    """
    if judge.unsupported == "error":
        return params, []
    dropped = refused(judge.model, params)
    return {name: value for name, value in params.items() if name not in dropped}, dropped


def refused(model: str, params: Params) -> list[str]:
    """Return the names of parameters that a model does not support, or not with this value."""
    # Each ballot has another seed; its value does not matter here.
    alike = {**params, "seed": 0} if "seed" in params else params
    return list(_refused(model, json.dumps(alike, sort_keys=True)))


@cache
def _refused(model: str, params: str) -> tuple[str, ...]:
    litellm = load_litellm()
    try:
        name, route, *_ = litellm.get_llm_provider(model=model)
    except litellm.exceptions.BadRequestError:
        # The call itself reports a model that litellm does not know.
        return ()
    known = litellm.get_supported_openai_params(name, custom_llm_provider=route)
    if known is None:
        # litellm uses this list for routes without one of their own.
        known = litellm.get_supported_openai_params(name, custom_llm_provider="openai") or []
    asked: Params = json.loads(params)
    ours = [
        each for each in asked if each in set(litellm.OPENAI_CHAT_COMPLETION_PARAMS) - CONNECTION
    ]
    dropped = {each for each in ours if each not in known}
    kept = _without(asked, dropped)
    if isinstance(_translate(name, route, kept, drop=False), litellm.UnsupportedParamsError):
        # A value is refused. litellm can drop it but does not say which: find those without effect.
        sent = _translate(name, route, kept, drop=True)
        for each in sorted({*ours} - dropped - HEADERS):
            if _translate(name, route, _without(kept, {each}), drop=True) == sent:
                dropped.add(each)
                kept = _without(kept, {each})
    return tuple(sorted(dropped))


def _translate(name: str, route: str, params: Params, *, drop: bool) -> Params | Exception:
    """Return the parameters as litellm translates them for a route, or its error."""
    # litellm changes its argument.
    given = json.loads(json.dumps(params))
    try:
        made: Params = load_litellm().get_optional_params(
            model=name, custom_llm_provider=route, drop_params=drop, **given
        )
    except Exception as error:  # noqa: BLE001 - the call itself reports it
        return error
    return made


def _without(params: Params, names: set[str]) -> Params:
    return {name: value for name, value in params.items() if name not in names}


def refused_params(asked: Sequence[tuple[str, dict[str, Any]]]) -> list[list[str]]:
    """Return the names of the parameters that would be dropped, for each (model, parameters).

    Another process finds them, so that this one need not import litellm.

    Raise RuntimeError if that process fails.
    """
    what = 'looking up the parameters that unsupported = "drop" leaves out'
    if not asked:
        return []
    given = json.dumps(asked, sort_keys=True)
    found: list[list[str]] = from_process("tasks.engine.litellm_adapter", given, what)
    return found


@cache
def from_process(module: str, asked: str, what: str) -> Any:
    """Return what a module prints, as JSON, when it is run with ``asked`` as its input.

    Raise RuntimeError if it fails, which says ``what`` failed.
    """
    done = subprocess.run(  # noqa: S603 - a module of this package
        [sys.executable, "-m", module],
        input=asked,
        env=worker_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.splitlines() or ["it printed nothing"])[-1]
        why = redact(last)[:500].rstrip(".")
        raise RuntimeError(f"{what} failed: {why}. Nothing was asked. Correct this, and try again.")
    return json.loads(done.stdout.splitlines()[-1])


OTHER_VARIABLES = {
    "bedrock": ["AWS_BEDROCK_RUNTIME_ENDPOINT", "BEDROCK_MANTLE_API_BASE"],
    "mistral": ["MISTRAL_AZURE_API_BASE"],
    "vertex_ai": ["VERTEXAI_API_BASE", "VERTEX_API_BASE"],
}
"""Variables of addresses, besides ``ROUTE_API_BASE`` and ``ROUTE_BASE_URL`` of every route."""

PROXY_VARIABLE = "USE_LITELLM_PROXY"


def diverting(provider: Provider, judge: Judge) -> list[str]:
    """Return the variables that are set and would send a judge's calls to another address."""
    if provider.simulated:
        return []
    route = route_of(judge.model).removesuffix("_chat")
    names = [PROXY_VARIABLE]
    # The address in a provider's file overrides the other variables.
    if not api_base(provider):
        usual = (f"{route.upper()}_API_BASE", f"{route.upper()}_BASE_URL")
        names += [*usual, *OTHER_VARIABLES.get(route, [])]
    unset = {"", "0", "false"}
    return [name for name in names if os.environ.get(name, "").strip().lower() not in unset]


TABLE = "model_prices_and_context_window_backup.json"
PROMPT, COMPLETION = "input_cost_per_token", "output_cost_per_token"
CACHING = "cache_creation_input_token_cost"
TIERED = re.compile(
    rf"(?P<what>{PROMPT}|{CACHING}|{COMPLETION}|output_cost_per_reasoning_token)(?P<hour>_above_1hr)?"
    r"(_above_(?P<above>\d+)k_tokens)?(_(?P<tier>[a-z]+))?"
)
"""Prices of text in litellm's table: by length of the prompt, and by tier."""

LOCAL = {"lemonade", "ollama", "ollama_chat"}
"""Routes of models on the user's machine, where a price of 0 is meant; elsewhere it is unknown."""

SERVED = {"hosted_vllm", "litellm_proxy", "ollama_chat", "openrouter"}
"""Routes that litellm's table of prices does not name as providers."""


class Price(NamedTuple):
    """US dollars per token."""

    prompt: float
    completion: float


def route_of(model: str) -> str:
    """Return litellm's provider of a model: the first part of its name, or as in its table."""
    route, *rest = model.split("/", maxsplit=1)
    return route if rest else str(_table().get(model, {}).get("litellm_provider", "openai"))


def has_route(model: str) -> bool:
    """Tell whether a model's name begins with a usual provider, as far as its table tells."""
    route, *rest = model.split("/", maxsplit=1)
    return bool(rest) and (route in SERVED or route in _routes())


@cache
def _routes() -> frozenset[str]:
    return frozenset(str(entry.get("litellm_provider")) for entry in _table().values())


def price_of(judge: Judge, *, simulated: bool) -> Price | None:
    """Return the price in the judge's mode: from its file, else litellm's, else null."""
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


@cache
def is_priced(model: str) -> bool:
    """Tell whether litellm knows the price of a model."""
    return price_of(Judge(judge="", provider="", model=model), simulated=False) is not None


def highest_price(judge: Judge, prompt_tokens: int | None = None) -> Price | None:
    """Return the highest price of a token, with a prompt of at most ``prompt_tokens``.

    A batch whose price is unknown costs no more than live calls. A live call without a tier may get
    the priority tier of its key. Thinking and caching may cost more.
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
    """Return which of litellm's tiers may be charged; an empty set means any."""
    named = params.get("service_tier", "auto")
    return {"auto": {"", "priority"}, "default": {""}, "flex": {"", "flex"}}.get(str(named), set())


def _factor(params: dict[str, Any], entry: dict[str, Any]) -> float:
    """Return the highest factor on the price from options other than a tier."""
    factor = 1.0
    if {"inference_geo", "speed"} & {*params}:
        for value in (entry.get("provider_specific_entry") or {}).values():
            factor *= max(1.0, value) if isinstance(value, int | float) else 1.0
    return factor


def _unless_free(judge: Judge, price: Price) -> Price | None:
    """Return the price; null for a price of 0, unless the model runs on the user's machine."""
    return price if any(price) or route_of(judge.model) in LOCAL else None


def _entry(model: str) -> dict[str, Any]:
    """Return litellm's entry of a model, by its full name, or without its route if that agrees."""
    table = _table()
    if model in table:
        return table[model]
    entry = table.get(model.split("/", 1)[-1], {})
    theirs, ours = str(entry.get("litellm_provider", "openai")), route_of(model)
    # The table distinguishes parts of a route: bedrock_converse, vertex_ai-language-models.
    return entry if theirs.startswith(ours.removesuffix("_chat")) else {}


@cache
def _table() -> dict[str, dict[str, Any]]:
    package = find_spec("litellm")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError("litellm, which has the prices, is not installed: `make setup`.")
    path = Path(package.submodule_search_locations[0]) / TABLE
    table: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return table


if __name__ == "__main__":
    sys.stdout.write(json.dumps([refused(*asked) for asked in json.load(sys.stdin)]) + "\n")
