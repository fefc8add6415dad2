"""Lines of a batch: what is sent, and what is made of what comes back."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from tasks.engine import batches, litellm_adapter
from tasks.engine.batches import (
    KEY,
    BatchStatus,
    create,
    find,
    read_lines,
    replies,
    request_body,
    request_line,
    split,
    status_of,
)
from tasks.engine.client import current_slot
from tasks.engine.journal import CallError, Reply
from tasks.engine.litellm_adapter import load_litellm
from tasks.providers import BATCHED, Judge, Provider, UsdPerMillion

# litellm and what it builds on warn about each other, which is not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore")

PROVIDER = Provider(api_base="http://localhost:1/v1")
DONE = BatchStatus("batch_1", "completed", seconds=90.0)


def _judge(route: str = "hosted_vllm", **more: Any) -> Judge:
    return Judge(judge="shop/one", provider="shop", model=f"{route}/one", mode="batch", **more)


def _body(text: str = "[[A]]", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "one-2026",
        "system_fingerprint": "fp",
        "choices": [choice],
        "usage": usage,
        **more,
    }


def _line(ballot_id: str, body: Any = None, status: int = 200, **more: Any) -> bytes:
    response = {"status_code": status, "request_id": "r", "body": body}
    return json.dumps(
        {"custom_id": ballot_id, "response": response, "error": None, **more}
    ).encode()


def _of(judge: Judge, *lines: bytes, seen: BatchStatus = DONE) -> Reply:
    return replies(PROVIDER, judge, seen, [b"\n".join(lines)], ["b1"])["b1"]


@pytest.mark.parametrize(
    ("route", "params", "sent"),
    [
        ("hosted_vllm", {"max_tokens": 9, "seed": 2}, {"max_tokens": 9, "seed": 2}),
        ("openai", {"max_tokens": 9, "extra_body": {"top_k": 1}}, {"max_tokens": 9, "top_k": 1}),
        (
            "azure",
            {"api_version": "2025-01-01", "response_format": {"type": "json_object"}},
            {"response_format": {"type": "json_object"}},
        ),
    ],
)
def test_a_line_holds_what_a_single_call_sends(
    route: str, params: dict[str, Any], sent: dict[str, Any]
) -> None:
    judge, messages = _judge(route, params=params), [{"role": "user", "content": "Which?"}]
    provider = PROVIDER.model_copy(update={"key_variable": ""})
    body, dropped = asyncio.run(request_body(provider, judge, messages, {}))
    assert body == {"model": "one", "messages": messages, **sent}
    assert dropped == []
    line = request_line("b1", body)
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "custom_id": "b1",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
    }


def test_a_preview_is_no_failed_call_of_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log of a failure takes three times the CPU time of the request."""
    failed: list[object] = []

    async def on_failure(*words: object) -> None:
        failed.append(words)

    monkeypatch.setattr(load_litellm(), "_async_failure_callback", [on_failure])
    judge, messages = _judge(), [{"role": "user", "content": "Which?"}]
    asyncio.run(request_body(PROVIDER, judge, messages, {}))
    assert failed == []


def test_what_a_task_sends_after_a_preview_is_no_preview() -> None:
    async def slot_after() -> object:
        await request_body(PROVIDER, _judge(), [{"role": "user", "content": "Which?"}], {})
        return current_slot.get()

    assert asyncio.run(slot_after()) is None


def test_a_request_that_was_sent_is_no_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of litellm's own would not have our hooks."""

    async def sent(*_: object) -> None:
        return None

    monkeypatch.setattr(batches, "send", sent)
    with pytest.raises(CallError, match="litellm sent a request") as error:
        asyncio.run(request_body(PROVIDER, _judge(), [{"role": "user", "content": "Which?"}], {}))
    assert not error.value.transient
    assert not error.value.free


def test_parameters_that_a_model_does_not_take_are_dropped_or_refused() -> None:
    strange = {"verbosity": "low"}
    messages = [{"role": "user", "content": "Which?"}]
    dropping = _judge(params=strange, unsupported="drop")
    body, dropped = asyncio.run(request_body(PROVIDER, dropping, messages, {}))
    assert ("verbosity" in body, dropped) == (False, ["verbosity"])
    with pytest.raises(CallError, match="verbosity") as refused:
        asyncio.run(request_body(PROVIDER, _judge(params=strange), messages, {}))
    assert not refused.value.transient


def test_what_is_no_body_cannot_go_with_a_batch() -> None:
    judge = _judge("openai", params={"extra_headers": {"x": "y"}})
    with pytest.raises(CallError, match="a batch cannot send extra_headers") as refused:
        asyncio.run(request_body(PROVIDER, judge, [{"role": "user", "content": "Which?"}], {}))
    assert not refused.value.transient


def test_files_keep_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = {f"b{n}": b"x" * 10 for n in range(7)}
    assert list(split({})) == []
    assert list(split(lines)) == [list(lines)]
    monkeypatch.setattr(batches, "MAX_REQUESTS", 3)
    assert [len(part) for part in split(lines)] == [3, 3, 1]
    monkeypatch.setattr(batches, "MAX_BYTES", 25)
    assert [len(part) for part in split(lines)] == [2, 2, 2, 1]
    # a line longer than a file stands alone: the provider says what is wrong with it
    assert list(split({"a": b"x" * 30, "b": b"x"})) == [["a"], ["b"]]
    assert [b for part in split(lines) for b in part] == list(lines)


def test_a_line_of_the_output_is_a_reply() -> None:
    reply = _of(_judge(usd_per_million=UsdPerMillion(prompt=1, completion=2)), _line("b1", _body()))
    assert reply == Reply(
        "[[A]]",
        model="one-2026",
        fingerprint="fp",
        finish_reason="stop",
        seconds=90.0,
        prompt_tokens=1000,
        completion_tokens=10,
        cost_usd=pytest.approx(0.00102),
    )


@pytest.mark.parametrize(
    ("entry", "cost"),
    [
        ({"input_cost_per_token_batches": 1e-6, "output_cost_per_token_batches": 2e-6}, 0.00102),
        ({"input_cost_per_token_batches": 1e-6, "output_cost_per_token": 2e-6}, None),
        ({"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}, None),
        (None, None),
    ],
)
def test_a_reply_costs_the_batch_price_or_nobody_knows(
    entry: dict[str, float] | None, cost: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        litellm_adapter, "_table", lambda: {"hosted_vllm/one": entry} if entry else {}
    )
    reply = _of(_judge(), _line("b1", _body()))
    assert reply.cost_usd == (cost if cost is None else pytest.approx(cost))
    assert _of(_judge(), _line("b1", _body(usage=None))).cost_usd is None


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "its batch came back without a line for it"),
        ([_line("b2", _body())], "without a line for it"),
        ([b'{"custom_id": "b1", "response": {"stat'], "without a line for it"),
        ([b"\xff\xfe", b"[" * 100_000, b"null", b"[]", b'{"custom_id": ["b1"]}'], "without a line"),
        ([_line("b1")], "the provider's reply holds no body"),
        ([_line("b1", [1])], "the provider's reply holds no body"),
        ([_line("b1", {})], "its reply cannot be read"),
        ([_line("b1", {"choices": []})], "its reply cannot be read"),
        ([_line("b1", {"choices": "none"})], "its reply cannot be read"),
        ([_line("b1", {"error": {"message": "Too long."}}, 400)], "answered 400: Too long."),
        ([_line("b1", "gone", 502)], "the provider answered 502: gone"),
        ([_line("b1", None, 500)], "the provider answered 500: no reason given"),
        (
            [_line("b1", response=None, error={"code": "batch_expired", "message": "Too late."})],
            "the provider gave no reply: Too late.",
        ),
        ([_line("b1", response="?", error={"code": "odd"})], "gave no reply: odd"),
        ([_line("b1", response=7, error=None)], "gave no reply: no reason given"),
    ],
)
def test_a_ballot_without_a_reply_says_why(lines: list[bytes], said: str) -> None:
    reply = _of(_judge(), *lines)
    assert reply.text == ""
    assert reply.error
    assert said in reply.error


def test_of_two_lines_a_reply_counts_and_the_first() -> None:
    failed = _line("b1", {"error": {"message": "No."}}, 500)
    first, second = _line("b1", _body("first")), _line("b1", _body("second"))
    for lines in ([failed, first, second], [first, failed, second], [first, second, failed]):
        assert _of(_judge(), *lines).text == "first"
    assert set(read_lines(b"\n".join([first, _line("b9", _body())]), {"b1"})) == {"b1"}


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (BatchStatus("b", "expired"), "its batch expired"),
        (BatchStatus("b", "cancelled"), "its batch was cancelled"),
        (
            BatchStatus("b", "failed", error="line 3 is no JSON"),
            "its batch failed: line 3 is no JSON",
        ),
    ],
)
def test_a_batch_that_ended_early_keeps_the_replies_that_came(seen: BatchStatus, said: str) -> None:
    came = replies(PROVIDER, _judge(), seen, [_line("b1", _body())], ["b1", "b2"])
    assert came["b1"].text == "[[A]]"
    assert came["b2"].error == said


class Page:
    """A page of batches as OpenAI's client gives it."""

    def __init__(self, *pages: list[Any]) -> None:
        self.data, self._rest = pages[0], pages[1:]

    def has_next_page(self) -> bool:
        return bool(self._rest)

    async def get_next_page(self) -> "Page":
        return Page(*self._rest)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What litellm was asked; it answers with ``answer``."""
    words: list[dict[str, Any]] = []

    async def answer(verb: str, _: Provider, **named: Any) -> Any:
        words.append({"verb": verb, **named})
        return words[0].get("answer")

    monkeypatch.setattr(batches, "litellm_call", answer)
    return words


def test_a_batch_is_found_by_our_key_on_any_page(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [
        [SimpleNamespace(id="x", metadata=None), SimpleNamespace(id="y", metadata={KEY: "other"})],
        [SimpleNamespace(id="z", metadata={KEY: "mine"})],
    ]

    async def answer(verb: str, *_: Any, **__: Any) -> Page:
        assert verb == "alist_batches"
        return Page(*pages)

    monkeypatch.setattr(batches, "litellm_call", answer)
    assert asyncio.run(find(PROVIDER, _judge(), "mine")) == "z"
    assert asyncio.run(find(PROVIDER, _judge(), "nobody's")) is None


def test_our_key_goes_with_a_batch(asked: list[dict[str, Any]]) -> None:
    asked.append({"answer": SimpleNamespace(id="batch_7")})
    judge = _judge("azure", params={"api_version": "v1", "max_tokens": 5})
    assert asyncio.run(create(PROVIDER, judge, "mine", "file-1")) == "batch_7"
    words = asked[1]
    assert words["metadata"] == {KEY: "mine"}
    assert (words["input_file_id"], words["endpoint"]) == ("file-1", "/v1/chat/completions")
    assert (words["custom_llm_provider"], words["api_version"]) == ("azure", "v1")
    assert "max_tokens" not in words


def test_how_far_a_batch_has_come(asked: list[dict[str, Any]]) -> None:
    reported = {
        "status": "in_progress",
        "created_at": 100,
        "completed_at": None,
        "expired_at": None,
        "cancelled_at": None,
        "failed_at": None,
        "output_file_id": None,
        "error_file_id": None,
        "errors": None,
    }
    asked.append({"answer": SimpleNamespace(**reported)})
    assert asyncio.run(status_of(PROVIDER, _judge(), "b")) == BatchStatus("b", "waiting")
    errors = SimpleNamespace(
        data=[SimpleNamespace(message="Bad line."), SimpleNamespace(message="2")]
    )
    ended = {"status": "failed", "failed_at": 160, "error_file_id": "f2", "errors": errors}
    asked[0]["answer"] = SimpleNamespace(**{**reported, **ended})
    assert asyncio.run(status_of(PROVIDER, _judge(), "b")) == BatchStatus(
        "b", "failed", "Bad line.; 2", ("f2",), 60.0
    )


def test_what_a_provider_says_of_a_batch_tells_no_key(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASSPORT_KEY", "sk-mine")
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    provider = PROVIDER.model_copy(update={"key_variable": "PASSPORT_KEY"})
    text = "Neither sk-mine nor sk-other."
    reported = {
        "status": "failed",
        "created_at": 1,
        "completed_at": None,
        "expired_at": None,
        "cancelled_at": None,
        "failed_at": 2,
        "output_file_id": None,
        "error_file_id": None,
        "errors": SimpleNamespace(data=[SimpleNamespace(message=text)]),
    }
    asked.append({"answer": SimpleNamespace(**reported)})
    seen = asyncio.run(status_of(provider, _judge(), "b"))
    assert seen.error == "Neither [key] nor [key]."
    line = _line("b1", {"error": {"message": text}}, status=400)
    reply = replies(provider, _judge(), DONE, [line], ["b1"])["b1"]
    assert reply.error == "the provider answered 400: Neither [key] nor [key]."


def test_litellm_can_do_all_that_a_batch_needs_at_these_providers() -> None:
    types = load_litellm().types.utils
    listed = types.LIST_BATCHES_SUPPORTED_PROVIDERS
    like_openai = types.OPENAI_COMPATIBLE_BATCH_AND_FILES_PROVIDERS
    assert set(BATCHED) == ({*like_openai} | {"azure"}) & {*listed}
