"""One request to one model."""

import asyncio
import json
import math
import os
import re
from collections.abc import Awaitable
from functools import cache
from typing import Any

from tasks.engine.http import HOOKS, Door, Preview, door_of_call, unreached, without_objects
from tasks.engine.journal import CallError, Reply
from tasks.engine.limits import retry_after
from tasks.engine.litellm_adapter import litellms_client, load_litellm, price_of, supported
from tasks.kit.printable import redact
from tasks.providers import Judge, Provider, api_base
from tasks.simulation.judge import Traits, answer, answer_json

BY_SESSION = {"openai", "azure"}
"""Routes that take no client of ours, but the one that all of them share."""

OWN_CLIENT = {"cohere", "cohere_chat"}
"""Routes that take no client at all, so that our hooks are added to the one of litellm."""

PERMANENT = {400, 401, 402, 403, 404, 405, 413, 422}
"""Of these the next attempt brings the same: bad key, unknown model, content policy, too long."""

ANSWERED = {409, 425, 429, *range(500, 600)} - {504, 524}
"""The provider said no, so it charges nothing; a call that vanished may have been answered.

So may one that a gateway gave up (408, 504, 524): whoever is behind it goes on.
"""

SPENT = (b"insufficient_quota", b"billing_hard_limit", b"billing hard limit")
"""In a 429 that waiting does not mend: the money is used up, not the minute."""

ADVICE = re.compile(r"[^.;]*(litellm\.)?`?drop_params", re.IGNORECASE)
INSTEAD = (
    "Leave it out of params, or give another value"
    ' (unsupported = "drop" leaves out what litellm can drop)'
)

LARGEST = 2**63 - 1
Params = dict[str, Any]
_clients: dict[str, Any] = {}


async def call(
    provider: Provider,
    judge: Judge,
    messages: list[dict[str, str]],
    params: dict[str, Any],
    door: Door,
) -> Reply:
    """Ask once, through the door. litellm and the libraries under it try nothing again.

    Raises
    ------
    CallError
        If there is no reply; its text is redacted. What the door refuses with is passed on.
    """
    door.most_bytes = provider.max_reply_bytes
    dropped: list[str] = []
    try:
        if provider.simulated:
            await door.enter()
            reply = _simulate(judge, messages, {**judge.params, **params})
            door.leave()
            reply = reply._replace(seconds=door.seconds or 0.0)
        else:
            request, dropped = request_of(provider, judge, messages, params)
            async with door.within(_seconds(request["timeout"], provider)):
                response = await _send(request, judge, door)
            door.leave()
            reply = _reply(response, door.seconds or 0.0, judge)
    except Exception as error:
        lost = None if door.came else unreached(door.refusal or error, provider)
        raise lost or door.refusal or _fault(error, provider, door) from error
    return reply._replace(dropped_params=json.dumps(dropped) if dropped else None)


def _simulate(judge: Judge, messages: list[dict[str, str]], params: Params) -> Reply:
    """Return what a simulated judge replies; its tokens are words."""
    traits = _traits(judge.judge, json.dumps(params["traits"], sort_keys=True))
    form = params.get("response_format")
    names = form["json_schema"]["schema"]["required"] if form else ()
    asked = messages, traits, params["seed"]
    text = answer_json(*asked, names) if names else answer(*asked)
    prompt = sum(len(message["content"].split()) for message in messages)
    completion = len(text.split())
    price = judge.usd_per_million
    return Reply(
        text=text,
        model=judge.model,
        finish_reason="stop",
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost_usd=price.cost(prompt, completion) if price else 0.0,
    )


@cache
def _traits(_: str, traits: str) -> Traits:
    return Traits(**json.loads(traits))


async def _send(request: dict[str, Any], judge: Judge, door: Door) -> Any:
    litellm, route = load_litellm(), _route(judge.model)
    door.needs_cost = _priced(judge.model) and not judge.usd_per_million
    door_of_call.set(door)
    if route in OWN_CLIENT:
        # A call that passes by its door is noticed, see `Engine`.
        own = litellms_client(route, ssl_verify=request.get("ssl_verify"))
        own.client.event_hooks = HOOKS
    elif route not in BY_SESSION:
        request["client"] = _hooked(judge.provider)
    else:
        litellm.aclient_session = _hooked("").client
    return await litellm.acompletion(**request)


async def preview_body(request: dict[str, Any], judge: Judge) -> dict[str, Any]:
    """Return the body that a request would send; nothing is sent.

    Raises
    ------
    Exception
        If litellm refuses it.
    """
    preview = Preview()
    try:
        await _send(request, judge, preview)
    except Exception:
        if preview.body is None:
            raise
    body: dict[str, Any] = json.loads(preview.body or b"{}")
    return body


def _hooked(provider: str) -> Any:
    """Return a provider's client, or the shared one (of no name), whose calls pass their doors."""
    if provider not in _clients:
        _clients[provider] = load_litellm().AsyncHTTPHandler(event_hooks=HOOKS)
    return _clients[provider]


async def hang_up() -> None:
    """Close the connections to all providers."""
    while _clients:
        await _clients.popitem()[1].client.aclose()
    if load_litellm.cache_info().currsize:
        load_litellm().aclient_session = None


@cache
def _route(model: str) -> str:
    return str(load_litellm().get_llm_provider(model=model)[1])


async def litellm_call(verb: str, provider: Provider, timeout: float, **words: Any) -> Any:
    """Make another of litellm's calls to a provider, such as ``acreate_batch``.

    Raises
    ------
    CallError
        If there is no whole reply within ``timeout`` seconds; its text is redacted.
    """
    litellm = load_litellm()
    # litellm may keep the client that it makes here for single calls.
    litellm.aclient_session = _hooked("").client
    words = {"timeout": timeout, **_connection(provider), **words}
    return await guarded(getattr(litellm, verb)(**words), provider, timeout)


async def guarded(work: Awaitable[Any], provider: Provider, seconds: float) -> Any:
    """Do work at a provider within ``seconds``; whatever goes wrong is a ``CallError``."""
    clock = asyncio.timeout(seconds)
    try:
        # The libraries underneath allow as much between two bytes.
        async with clock:
            return await work
    except Exception as error:
        if clock.expired():
            late = f"Timeout: the whole answer took longer than {seconds:g} s"
            raise CallError(late, passing=True, free=False) from error
        raise unreached(error, provider) or _call_error(error, provider) from error


def read_reply(body: dict[str, Any], provider: Provider, judge: Judge, seconds: float) -> Reply:
    """Read a reply that came in a batch as one that came by itself.

    Raises
    ------
    CallError
        If it is none.
    """
    try:
        litellm = load_litellm()
        response = litellm.convert_to_model_response_object(
            response_object=body, model_response_object=litellm.ModelResponse()
        )
        return _reply(response, seconds, judge)
    except Exception as error:
        raise _call_error(error, provider) from error


def request_of(
    provider: Provider, judge: Judge, messages: list[dict[str, str]], params: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return all that litellm is told for one call, and which parameters are left out."""
    kept, dropped = supported(judge, {**judge.params, **params})
    request = {
        "timeout": provider.timeout_seconds,
        **_connection(provider),
        **kept,
        "model": judge.model,
        "messages": messages,
        "num_retries": 0,
        "max_retries": 0,
    }
    return request, dropped


@cache
def _priced(model: str) -> bool:
    return price_of(Judge(judge="", provider="", model=model), simulated=False) is not None


def _connection(provider: Provider) -> dict[str, str]:
    """Return key and address: litellm looks for the key under names of its own."""
    name = provider.key_variable
    key = os.environ.get(name, "").strip() if name else ""
    base = api_base(provider)
    # An endpoint of one's own may want no key, but the client wants one to send; where other
    # variables hold the secrets (Bedrock signs its requests) it would be sent in their stead.
    keyless = base and not name and not provider.variables
    return {
        **({"api_key": key or "none"} if key or keyless else {}),
        **({"api_base": base} if base else {}),
    }


def _seconds(timeout: object, provider: Provider) -> float:
    """Return how long an answer may take in all; a judge may have a timeout of its own."""
    return float(timeout) if isinstance(timeout, int | float) else provider.timeout_seconds


def _fault(error: Exception, provider: Provider, door: Door) -> CallError:
    """Say what went wrong with one request, by what came through its door."""
    if door.late:
        return CallError(
            "Timeout: the whole answer took longer than timeout_seconds allows",
            passing=True,
            free=False,
        )
    found = _call_error(error, provider)
    status, body = door.came or (0, b"")
    if status == 429 and any(word in body.lower() for word in SPENT):
        return CallError(f"{found} (no money left: waiting does not help)", passing=False)
    if not found.passing or not 200 <= status < 300:
        return found
    # Whatever follows, the provider answered, and may charge for it.
    if not _is_json(body):
        return CallError(str(found), passing=True, free=False)
    text = f"no completion came (check api_base and model), but {body.decode(errors='replace')}"
    shown = redact(text, provider.secret_variables)[:500]
    return CallError(shown, passing=True, free=False, unreadable=True)


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _call_error(error: Exception, provider: Provider) -> CallError:
    """Say what a fault means; any that is not known to be permanent may be gone the next time."""
    if provider.simulated:
        return CallError(_tell(error, provider)[:500], passing=False)
    known = load_litellm().exceptions
    status = getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", {})
    timeout = isinstance(error, known.Timeout | known.APIConnectionError)
    # Without a key or a model that it knows, litellm says so by errors of its own.
    missing = isinstance(error, known.AuthenticationError)
    permanent = missing or (status in PERMANENT and not timeout)
    text = _tell(error, provider)
    if isinstance(error, known.UnsupportedParamsError):
        # Its advice is about litellm's own settings, which are fixed here.
        text = f"{ADVICE.split(text, maxsplit=1)[0].rstrip(' .,;')}. {INSTEAD}"
    return CallError(
        text[:500],
        passing=not permanent,
        retry_after=retry_after(headers),
        free=not timeout and status in PERMANENT | ANSWERED,
    )


def _reply(response: Any, seconds: float, judge: Judge) -> Reply:
    if not response.choices:
        raise ValueError("the provider's reply holds no choices")
    choice, usage = response.choices[0], getattr(response, "usage", None)
    # Where a provider reports no usage, litellm says 0; but no prompt has 0 tokens.
    prompt_tokens = _count(getattr(usage, "prompt_tokens", None)) or None
    completion_tokens = _count(getattr(usage, "completion_tokens", None))
    if judge.usd_per_million:
        cost = judge.usd_per_million.cost(prompt_tokens, completion_tokens)
    elif _priced(judge.model):
        # As litellm documents it.
        cost = getattr(response, "_hidden_params", {}).get("response_cost")
    else:
        cost = None
    refusal = _refusal(choice.message)
    token, probability = _first_token(choice)
    return Reply(
        text=_clean(choice.message.content or refusal),
        model=_clean_or_none(response.model),
        fingerprint=_clean_or_none(getattr(response, "system_fingerprint", None)),
        finish_reason="refusal" if refusal else _clean_or_none(choice.finish_reason),
        seconds=seconds,
        prompt_tokens=prompt_tokens,
        completion_tokens=None if prompt_tokens is None else completion_tokens,
        cost_usd=_amount(cost) if prompt_tokens else None,
        first_token=token,
        first_probability=probability,
    )


def _first_token(choice: Any) -> tuple[str | None, float | None]:
    """Return the reply's first token and its chance; nulls where they are not told."""
    content = _part(_part(choice, "logprobs"), "content")
    if not isinstance(content, list) or not content:
        return None, None
    token, logprob = (_part(content[0], name) for name in ("token", "logprob"))
    if not isinstance(token, str) or not isinstance(logprob, int | float) or math.isnan(logprob):
        return None, None
    return _clean(token), math.exp(min(float(logprob), 0.0))


def _part(whole: Any, name: str) -> Any:
    """Return a part of what litellm has parsed, or left as the provider sent it."""
    return whole.get(name) if isinstance(whole, dict) else getattr(whole, name, None)


def _refusal(message: Any) -> str:
    """Return the words by which a model refuses to fill a schema, which are no content."""
    told = (getattr(message, "provider_specific_fields", None) or {}).get("refusal")
    return told if isinstance(told, str) and not message.content else ""


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


def _tell(error: Exception, provider: Provider) -> str:
    # litellm appends the traceback of an error that is not an HTTP status.
    text = f"{type(error).__name__}: {_clean(str(error))}".split("\nTraceback", maxsplit=1)[0]
    return redact(without_objects(text), provider.secret_variables)
