"""Through litellm itself; importing it takes seconds, so few tests do."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from provider_clients import close_clients

from tasks.engine.batches import read_reply
from tasks.engine.client import call
from tasks.engine.journal import Reply
from tasks.engine.queue import Engine
from tasks.judge import vote_row
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, Judge, Provider, UsdPerMillion, provider_of
from tasks.simulation.judge import answer
from tasks.simulation.traits import Traits

# litellm and what it builds on warn about each other, which is not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore")

KEY = "sk-fake-0123456789-for-tests"
MESSAGES = [{"role": "user", "content": "Which one?"}]
REPLY: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "stub-model-2024-01-01",
    "system_fingerprint": "fp_7",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Both. [[C]]"},
        }
    ],
    "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
}
GARBAGE = b"<html>502 Bad Gateway</html>"


class Stub(ThreadingHTTPServer):
    """Speaks as much of the OpenAI protocol as one request takes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[tuple[int, Any]] = []
        self.requests: list[tuple[str, str | None, dict[str, Any]]] = []

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Stub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, self.headers["authorization"], json.loads(body)))
        status, reply = self.server.script.pop(0)
        data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Stub]:
    with Stub() as stub:
        thread = threading.Thread(target=stub.serve_forever, daemon=True)
        thread.start()
        yield stub
        stub.shutdown()
        thread.join()


@pytest.fixture
def stub(server: Stub, monkeypatch: pytest.MonkeyPatch) -> Stub:
    server.script, server.requests = [], []
    monkeypatch.setenv("VOIRDIRE_TEST_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return server


async def complete(
    provider: Provider, model: str, messages: list[dict[str, str]], params: dict[str, Any]
) -> Reply:
    judge = Judge(judge="stub/one", provider="stub", model=model)
    try:
        return await Engine(call).ask(provider, judge, messages, params)
    finally:
        await close_clients()


def _ask(stub: Stub, *script: tuple[int, Any], attempts: int = 3, **params: Any) -> Reply:
    stub.script = list(script)
    provider = Provider(key_variable="VOIRDIRE_TEST_KEY", attempts=attempts, timeout_seconds=30)
    params = {"api_base": stub.base, **params}
    return asyncio.run(complete(provider, "openai/stub", MESSAGES, params))


def _changed(**message: Any) -> dict[str, Any]:
    return {**REPLY, "choices": [{**REPLY["choices"][0], "message": message}]}


def test_a_reply_is_kept_as_reported(stub: Stub) -> None:
    outcome = _ask(stub, (200, REPLY), temperature=0, seed=3)
    assert outcome._replace(seconds=0.0) == Reply(
        text="Both. [[C]]",
        model="stub-model-2024-01-01",
        fingerprint="fp_7",
        finish_reason="stop",
        prompt_tokens=11,
        completion_tokens=3,
        cost_usd=None,
        attempts=1,
        error=None,
    )
    assert outcome.seconds > 0
    ((path, authorization, sent),) = stub.requests
    assert path == "/v1/chat/completions"
    assert authorization == f"Bearer {KEY}"
    wanted = {"model": "stub", "messages": MESSAGES, "temperature": 0, "seed": 3}
    assert {name: sent[name] for name in wanted} == wanted
    # litellm's own options are not sent on
    assert not {"fallbacks", "num_retries", "max_retries", "timeout"} & sent.keys()


def test_a_known_model_has_its_price(stub: Stub) -> None:
    stub.script = [(200, {**REPLY, "model": "gpt-4o"})]
    provider = Provider(key_variable="VOIRDIRE_TEST_KEY")
    asked = complete(provider, "openai/gpt-4o", MESSAGES, {"api_base": stub.base})
    # 2.50 and 10 US dollars per million tokens: 11 * 2.5e-6 + 3 * 1e-5
    assert asyncio.run(asked).cost_usd == pytest.approx(5.75e-5, rel=1e-9)


def test_transient_errors_are_tried_again(stub: Stub) -> None:
    outcome = _ask(stub, (500, {}), (500, {}), (200, REPLY))
    assert (outcome.text, outcome.attempts, outcome.error) == ("Both. [[C]]", 3, None)
    assert len(stub.requests) == 3


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504, 529])
def test_a_fault_that_stays_is_an_error(stub: Stub, status: int) -> None:
    outcome = _ask(stub, *[(status, {"error": {"message": "busy"}})] * 2, attempts=2)
    assert (outcome.text, outcome.attempts, len(stub.requests)) == ("", 2, 2)
    assert outcome.error
    assert "busy" in outcome.error


@pytest.mark.parametrize("model", ["openai/stub", "hosted_vllm/stub"])
@pytest.mark.parametrize(
    ("status", "free"),
    [
        (429, True),
        (500, True),
        (502, True),
        (503, True),
        (529, True),
        (408, False),
        (504, False),
        (524, False),
    ],
)
def test_what_a_gateway_gave_up_may_be_charged(
    stub: Stub, model: str, status: int, free: bool
) -> None:
    stub.script = [(status, {"error": {"message": "busy"}}), (200, REPLY)]
    price = UsdPerMillion(prompt=1e6, completion=1e6)
    judge = Judge(
        judge="stub/one",
        provider="stub",
        model=model,
        usd_per_million=price,
        params={"max_tokens": 8},
    )
    provider = Provider(key_variable="VOIRDIRE_TEST_KEY", api_base=stub.base, attempts=2)
    # 10 bytes, a frame of 16 and 8 tokens are 34 USD; two of them are not covered
    reply = asyncio.run(_within(60.0, provider, judge))
    assert (reply.text == "Both. [[C]]", reply.attempts) == (free, 2)
    assert ("budget of 60 USD is used up" in str(reply.error)) == (not free)
    assert len(stub.requests) == 1 + free


async def _within(budget_usd: float, provider: Provider, judge: Judge) -> Reply:
    try:
        return await Engine(call, budget_usd).ask(provider, judge, MESSAGES, {})
    finally:
        await close_clients()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_other_faults_are_not_tried_again_and_tell_no_key(stub: Stub, status: int) -> None:
    outcome = _ask(stub, (status, {"error": {"message": f"Incorrect key {KEY}."}}))
    assert (outcome.text, outcome.attempts, len(stub.requests)) == ("", 1, 1)
    assert outcome.error
    assert "Incorrect key [key]." in outcome.error
    assert KEY not in str(outcome)


def test_an_error_tells_no_key_of_others_not_even_its_beginning(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_TOKEN", "hf-of-somebody-else")
    for before in ("", "x" * 440):
        text = f"{before} hf-of-somebody-else"
        outcome = _ask(stub, (400, {"error": {"message": text}}))
        assert outcome.error
        assert "hf-" not in outcome.error


@pytest.mark.parametrize("body", [GARBAGE, b"", b"[]", b"{", {**REPLY, "choices": None}])
def test_a_body_that_makes_no_sense_is_an_error(stub: Stub, body: Any) -> None:
    outcome = _ask(stub, *[(200, body)] * 2, attempts=2)
    assert outcome.text == ""
    assert outcome.error
    assert outcome.attempts == 2


@pytest.mark.parametrize("body", [{**REPLY, "choices": []}, {"detail": f"hello {KEY}"}, b"[]"])
def test_an_answer_that_is_no_completion_is_shown_and_asked_for_three_times(
    stub: Stub, body: Any
) -> None:
    outcome = _ask(stub, *[(200, body)] * 10, attempts=10)
    shown = (body if isinstance(body, bytes) else json.dumps(body).encode()).decode()
    reported = "no completion came (check api_base and model), but "
    assert outcome.error == reported + shown.replace(KEY, "[key]")
    assert outcome.attempts == len(stub.requests) == 3


@pytest.mark.parametrize("model", ["openai/stub", "hosted_vllm/stub"])
@pytest.mark.parametrize("code", ["insufficient_quota", "billing_hard_limit_reached"])
def test_money_that_is_used_up_is_not_waited_for(stub: Stub, model: str, code: str) -> None:
    stub.script = [(429, {"error": {"message": "Check your plan.", "code": code}})] * 2
    asked = complete(Provider(), model, MESSAGES, {"api_base": stub.base, "api_key": KEY})
    outcome = asyncio.run(asked)
    assert "Check your plan." in str(outcome.error)
    assert "waiting does not help" in str(outcome.error)
    assert len(stub.requests) == 1


@pytest.mark.parametrize("content", [None, ""])
def test_a_reply_without_text_is_an_empty_reply(stub: Stub, content: str | None) -> None:
    outcome = _ask(stub, (200, _changed(role="assistant", content=content)))
    assert (outcome.text, outcome.error) == ("", None)


def test_lone_surrogates_are_made_storable(stub: Stub) -> None:
    hostile = _changed(role="assistant", content="a\ud800b \U0001f600 [[A]]")
    hostile |= {"model": "m\udfff", "system_fingerprint": "\ud800"}
    outcome = _ask(stub, (200, hostile))
    assert outcome.text == "a\\ud800b \U0001f600 [[A]]"
    assert (outcome.model, outcome.fingerprint) == ("m\\udfff", "\\ud800")
    assert str(outcome).encode()


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, (None, None)),
        ({"prompt_tokens": -5, "completion_tokens": 3, "total_tokens": 1}, (None, None)),
        ({"prompt_tokens": 5, "completion_tokens": 2**64, "total_tokens": 1}, (5, None)),
        ({"prompt_tokens": 5, "completion_tokens": 0, "total_tokens": 5}, (5, 0)),
        (None, (None, None)),
    ],
)
def test_tokens_that_cannot_be_are_unknown(
    stub: Stub, usage: dict[str, int] | None, expected: tuple[int | None, int | None]
) -> None:
    outcome = _ask(stub, (200, {**REPLY, "usage": usage}))
    assert (outcome.prompt_tokens, outcome.completion_tokens) == expected
    assert outcome.error is None


@pytest.mark.parametrize("content", [None, ""])
def test_a_refusal_to_fill_a_schema_is_kept_and_abstains(stub: Stub, content: str | None) -> None:
    words = "I'm sorry, I can't assist with that request."
    body = _changed(role="assistant", content=content, refusal=words)
    outcome = _ask(stub, (200, body))
    assert (outcome.text, outcome.finish_reason, outcome.error) == (words, "refusal", None)
    assert outcome.completion_tokens == 3
    judge = Judge(judge="stub/one", provider="stub", model="openai/stub")
    in_batch = read_reply(body, Provider(), judge, 1.0)
    assert (in_batch.text, in_batch.finish_reason) == (words, "refusal")
    for prompt in ("pair_json_v1", "pair_v1"):
        vote = vote_row("b1", prompt, outcome, None)
        assert (vote["choice"], vote["raw"]) == ("abstain", words)


def test_no_refusal_is_made_of_a_reply(stub: Stub) -> None:
    body = _changed(role="assistant", content="Both. [[C]]", refusal=None)
    outcome = _ask(stub, (200, body))
    assert (outcome.text, outcome.finish_reason) == ("Both. [[C]]", "stop")


def test_a_server_that_is_not_there_is_an_error(stub: Stub) -> None:
    outcome = _ask(stub, attempts=2, api_base="http://127.0.0.1:9/v1")
    assert outcome.attempts == 2
    assert outcome.error == "no connection to 127.0.0.1:9: connection refused"


def test_an_unknown_model_is_an_error(stub: Stub) -> None:
    provider = Provider(key_variable="VOIRDIRE_TEST_KEY")
    outcome = asyncio.run(complete(provider, "nobody/nothing", MESSAGES, {}))
    assert outcome.error
    assert "nobody/nothing" in outcome.error
    assert (outcome.text, outcome.attempts, stub.requests) == ("", 1, [])


def test_a_missing_key_is_an_error(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOIRDIRE_TEST_KEY")
    outcome = _ask(stub, attempts=1)
    assert outcome.error
    assert "OPENAI_API_KEY" in outcome.error
    assert stub.requests == []


def test_space_around_a_key_is_no_part_of_it(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOIRDIRE_TEST_KEY", f" {KEY}\n")
    outcome = _ask(stub, (401, {"error": {"message": f"no {KEY} here"}}))
    assert stub.requests[0][1] == f"Bearer {KEY}"
    assert KEY not in str(outcome)


@pytest.mark.parametrize("name", [name for name in JUDGES if name.startswith("offline/")])
def test_a_simulated_judge_answers_by_its_formula(name: str) -> None:
    judge = JUDGES[name]
    messages = PROMPTS["pair_v1"].messages("What is 2 + 2?", "Four.", "It is **4**.")
    for repeat in range(3):
        asked = complete(provider_of(name), judge.model, messages, {**judge.params, "seed": repeat})
        outcome = asyncio.run(asked)
        assert outcome.text == answer(messages, Traits(**judge.params["traits"]), repeat)
        words = sum(len(message["content"].split()) for message in messages)
        assert outcome._replace(text="", seconds=0.0) == Reply(
            text="",
            model=name,
            finish_reason="stop",
            prompt_tokens=words,
            completion_tokens=len(outcome.text.split()),
            cost_usd=0.0,
        )


def test_a_prompt_that_a_simulated_judge_cannot_read_is_one_error() -> None:
    judge = JUDGES["offline/honest"]
    asked = complete(
        provider_of("offline/honest"), judge.model, MESSAGES, {**judge.params, "seed": 0}
    )
    outcome = asyncio.run(asked)
    assert outcome.error
    assert "a judge prompt without the markers [Question]" in outcome.error
    assert "Traceback" not in outcome.error
    assert outcome.attempts == 1


def test_each_judge_of_a_model_sends_its_own_effort(stub: Stub) -> None:
    efforts = ("low", "medium", "high")
    provider = Provider(key_variable="VOIRDIRE_TEST_KEY", api_base=stub.base, timeout_seconds=30)
    stub.script = [(200, REPLY)] * 3

    async def ask() -> None:
        engine = Engine(call)
        for effort in efforts:
            judge = Judge(
                judge=f"stub/{effort}",
                provider="stub",
                model="hosted_vllm/gpt-oss-20b",
                params={"reasoning_effort": effort},
            )
            assert (await engine.ask(provider, judge, MESSAGES, {})).error is None
        await close_clients()

    asyncio.run(ask())
    sent = [(body["model"], body["reasoning_effort"]) for *_, body in stub.requests]
    assert sent == [("gpt-oss-20b", effort) for effort in efforts]


# e^-.25 = .7788; what OpenAI sends for a token beyond its count; a rounding above 0
@pytest.mark.parametrize(
    ("logprobs", "reported"),
    [
        (
            {
                "content": [
                    {"token": "Both", "logprob": -0.25, "top_logprobs": []},
                    {"token": ".", "logprob": -3, "top_logprobs": []},
                ]
            },
            ("Both", pytest.approx(0.7788, abs=1e-4)),
        ),
        (
            {"content": [{"token": "\ud800", "logprob": -9999.0, "top_logprobs": []}]},
            ("\\ud800", 0.0),
        ),
        ({"content": [{"token": "A", "logprob": 1e-9, "top_logprobs": []}]}, ("A", 1.0)),
        ({"content": []}, (None, None)),
        ({"content": None}, (None, None)),
        (None, (None, None)),
    ],
)
def test_the_chance_of_the_first_token_is_kept(stub: Stub, logprobs: Any, reported: Any) -> None:
    choice = {**REPLY["choices"][0], "logprobs": logprobs}
    live = _ask(stub, (200, {**REPLY, "choices": [choice]}), logprobs=True)
    assert stub.requests[0][2]["logprobs"] is True
    judge = Judge(judge="stub/one", provider="stub", model="openai/stub")
    in_batch = read_reply({**REPLY, "choices": [choice]}, Provider(), judge, 1.0)
    for reply in (live, in_batch):
        assert (reply.error, reply.text) == (None, "Both. [[C]]")
        assert (reply.first_token, reply.first_probability) == reported
    row = vote_row("b1", "pair_v1", live, None)
    assert (row["first_token"], row["first_probability"]) == reported
