"""The only import of litellm, and the parameters that it supports for a model.

``python -m tasks.engine.litellm_adapter`` reads JSON ``[[model, params]]`` from standard
input.
"""

import gc
import json
import os
import sys
from datetime import UTC, datetime
from functools import cache
from typing import Any

import litellm
from litellm import ModelResponse, Usage
from litellm.constants import OPENAI_CHAT_COMPLETION_PARAMS
from litellm.exceptions import UnsupportedParamsError
from litellm.litellm_core_utils import logging_utils
from litellm.litellm_core_utils.litellm_logging import Logging
from litellm.litellm_core_utils.llm_response_utils.convert_dict_to_response import (
    convert_to_model_response_object,
)
from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
from litellm.llms.custom_llm import CustomLLM
from litellm.utils import get_optional_params

from tasks.providers import Judge
from tasks.simulation.judge import Traits, answer, answer_json

# By these it would change requests, without a trace in the ballots.
for _name in [name for name in os.environ if name.startswith(("DEFAULT_", "LITELLM_"))]:
    if not _name.startswith(("LITELLM_LOG", "LITELLM_PROXY_")) and not _name.endswith("_KEY"):
        del os.environ[_name]
# Else it reads a file .env, which may name other addresses.
os.environ["LITELLM_MODE"] = "PRODUCTION"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
# Nothing listens to litellm's log of each call, and its threads cost more than the call.
os.environ.setdefault("LOGGING_EXECUTOR_MAX_PENDING_TASKS", "0")
# Collecting while thousands of classes are made takes a tenth of the import.
gc.disable()


gc.enable()
gc.freeze()

__all__ = [
    "OPENAI_PARAMS",
    "AsyncHTTPHandler",
    "ModelResponse",
    "Quiet",
    "UnsupportedParamsError",
    "convert_to_model_response_object",
    "get_optional_params",
    "litellm",
]
OPENAI_PARAMS = frozenset(OPENAI_CHAT_COMPLETION_PARAMS)
NEXT_TO_NOTHING = sys.float_info.min


class Offline(CustomLLM):
    """The synthetic judges as a litellm provider."""

    def completion(self, *_: Any, **request: Any) -> ModelResponse:
        """Answer the messages by formula."""
        options = request["optional_params"]
        messages, response = request["messages"], request["model_response"]
        asked = messages, _traits(str(options["traits"]), options["traits"]), options["seed"]
        form = options.get("response_format")
        names = form["json_schema"]["schema"]["required"] if form else ()
        text = answer_json(*asked, names) if names else answer(*asked)
        response.choices[0].message.content = text
        response.choices[0].finish_reason = "stop"
        response.model = f"offline/{request['model']}"
        # litellm looks a price that is missing or 0 up in its table, which takes longer than the
        # answer; the vote says 0, see _reply.
        response._hidden_params["response_cost"] = NEXT_TO_NOTHING  # noqa: SLF001
        prompt = sum(len(message["content"].split()) for message in messages)
        response.usage = Usage(prompt_tokens=prompt, completion_tokens=len(text.split()))
        return response


class Quiet(Logging):
    """Stands in for the object that litellm logs each call with, to callbacks nobody registers.

    It makes a payload for them, and prices the call twice: a third of the CPU time of a call. The
    signatures are litellm's, whose version is pinned.
    """

    def __init__(self, model: str, messages: list[dict[str, str]]) -> None:
        super().__init__(
            model=model,
            messages=messages,
            stream=False,
            call_type="acompletion",
            start_time=datetime.now(UTC).replace(tzinfo=None),
            litellm_call_id="",
            function_id="",
        )
        self.update_environment_variables(
            model=model, user="", optional_params={}, litellm_params={"acompletion": True}
        )

    async def async_success_handler(self, *_: Any, **__: Any) -> None:
        """Log nothing."""

    def success_handler(self, *_: Any, **__: Any) -> None:
        """Log nothing."""

    async def dispatch_success_handlers(self, *_: Any, **__: Any) -> None:
        """Log nothing."""


class Uncounted:
    """Stands in for the tokenizer with which litellm guesses the tokens of who reports none.

    A guess is no report, and the tokenizer takes 60 MB.
    """

    def encode(self, *_: Any, **__: Any) -> list[int]:
        """Count nothing."""
        return []


class Silent:
    """Stands in for the service that times litellm's requests for monitors that nobody runs."""

    async def async_service_success_hook(self, **_: Any) -> None:
        """Tell nobody."""


def _without_files(messages: list[Any], **_: Any) -> list[Any]:
    """Stand in for what replaces the files in messages; ours hold none, and it takes 12 MB."""
    return messages


logging_utils._service_logger = Silent()  # type: ignore[assignment]  # noqa: SLF001
litellm.main.update_messages_with_model_file_ids = _without_files  # type: ignore[attr-defined,assignment]
litellm.main.encoding = Uncounted()  # type: ignore[assignment]
litellm.custom_provider_map = [{"provider": "offline", "custom_handler": Offline()}]
litellm.suppress_debug_info = True
# A request is what the judge's file says, also where litellm's defaults change.
litellm.drop_params = litellm.modify_params = False
litellm.add_function_to_prompt = litellm.use_litellm_proxy = False
litellm.reasoning_auto_summary = litellm.openai_system_messages_first = False
litellm.route_all_chat_openai_to_responses = litellm.enable_anthropic_prompt_caching = False
litellm.api_base = litellm.headers = litellm.organization = litellm.api_version = None
litellm.cache = litellm.model_fallbacks = litellm.fallbacks = litellm.default_fallbacks = None
litellm.num_retries = litellm.num_retries_per_request = None
litellm.model_alias_map = {}
litellm.pre_call_rules, litellm.post_call_rules, litellm.callbacks = [], [], []
_known: dict[str, Traits] = {}


def _traits(key: str, table: dict[str, Any]) -> Traits:
    if key not in _known:
        _known[key] = Traits(**table)
    return _known[key]


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
