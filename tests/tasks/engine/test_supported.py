"""What litellm knows models to take; importing it takes seconds."""

import asyncio
from typing import Any

import pytest
from provider_clients import close_clients

from tasks.engine import litellm_adapter
from tasks.engine.client import call
from tasks.engine.litellm_adapter import refused_params, supported
from tasks.engine.queue import Engine
from tasks.providers import Judge, Provider

# litellm and what it builds on warn about each other, which is not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore")

CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("hosted_vllm/x", {"temperature": 0, "verbosity": "low", "seed": 3}, ["verbosity"]),
    # a parameter that litellm does not know goes as it is
    ("hosted_vllm/x", {"top_k": 3}, []),
    ("openai/gpt-4o", {"temperature": 0.5, "max_tokens": 9}, []),
    # taken, but not with this value
    ("openai/gpt-5", {"temperature": 0, "max_completion_tokens": 9}, ["temperature"]),
    ("openai/gpt-5", {"temperature": 1}, []),
    ("openai/o3", {"temperature": 0.5, "top_p": 0.3, "seed": 1}, ["temperature", "top_p"]),
    # whether it is taken depends on another one
    ("openai/gpt-5.5-2026-04-23", {"temperature": 0.5, "reasoning_effort": "none"}, []),
    (
        "openai/gpt-5.5-2026-04-23",
        {"temperature": 0.5, "reasoning_effort": "low"},
        ["temperature"],
    ),
    # what says where a call goes stays
    (
        "azure/gpt-5",
        {"temperature": 0, "api_version": "2025-01-01", "extra_headers": {"x": "y"}},
        ["temperature"],
    ),
    (
        "cohere_chat/command-a-03-2025",
        {"response_format": {"type": "json_object"}, "seed": 1},
        ["response_format"],
    ),
    ("nobody/nothing", {"temperature": 0}, []),
]


def _judge(model: str, **more: Any) -> Judge:
    return Judge(judge="desk/one", provider="desk", model=model, **more)


@pytest.mark.parametrize(("model", "params", "dropped"), CASES)
def test_what_a_model_does_not_take_is_dropped(
    model: str, params: dict[str, Any], dropped: list[str]
) -> None:
    kept = {name: value for name, value in params.items() if name not in dropped}
    assert supported(_judge(model, unsupported="drop"), params) == (kept, dropped)
    assert supported(_judge(model), params) == (params, [])


@pytest.mark.slow
def test_another_process_tells_the_same() -> None:
    asked = [(model, params) for model, params, _ in CASES]
    assert refused_params(asked) == [dropped for *_, dropped in CASES]


def test_no_process_is_started_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litellm_adapter.subprocess, "run", None)
    assert refused_params([]) == []


def test_a_process_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litellm_adapter.sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="leaves out failed: it printed nothing"):
        refused_params([("openai/another", {})])


@pytest.mark.parametrize(
    ("params", "said"), [({"temperature": 0}, "temperature=0"), ({"verbosity": "low"}, "verbosity")]
)
@pytest.mark.parametrize("model", ["openai/o3", "azure/o3"])
def test_what_is_refused_is_reported_in_our_words(
    model: str, params: dict[str, Any], said: str
) -> None:
    async def ask() -> str:
        # nobody listens there, and nobody is asked
        provider = Provider(api_base="http://127.0.0.1:9/v1")
        messages = [{"role": "user", "content": "Which?"}]
        try:
            reply = await Engine(call).ask(provider, _judge(model, params=params), messages, {})
        finally:
            await close_clients()
        return reply.error or ""

    error = asyncio.run(ask())
    assert error.startswith("desk/one stopped: UnsupportedParamsError: ")
    assert said in error
    assert error.endswith('(unsupported = "drop" leaves out what litellm can drop)')
    assert "drop_params" not in error
    assert "litellm_settings" not in error
