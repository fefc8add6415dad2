"""The emulator as users start it; how it fails is tested with the engine."""

import asyncio
import gzip
import socket
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from click.testing import CliRunner
from emulated_provider import Behaviour, EmulatedProvider

from tasks.prompts import PROMPTS
from tasks.simulation import emulator
from tasks.simulation.emulator import main
from tasks.simulation.traits import Traits


@pytest.mark.parametrize("fault", ["bsy=.1", "busy", "busy=2", "busy=x", "=.1"])
def test_a_fault_that_there_is_not_is_refused(fault: str) -> None:
    done = CliRunner().invoke(main, ["--fault", fault])
    assert done.exit_code == 2
    assert "is not NAME=CHANCE" in done.output


def test_a_taken_port_is_one_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(main, ["--port", str(port)])
    assert done.exit_code == 1
    (line,) = done.output.splitlines()
    assert line.startswith(f"Error: cannot serve on port {port} of 127.0.0.1: ")
    assert "address already in use" in line
    assert "take another port" in line


def _ask(behaviour: Behaviour, *bodies: dict[str, Any]) -> list[tuple[int, Any, str | None]]:
    """Return status, body and Retry-After of the answers, one after the other."""

    async def ask() -> list[tuple[int, Any, str | None]]:
        async with TestClient(TestServer(EmulatedProvider(behaviour).app())) as client:
            answers = []
            for body in bodies:
                async with client.post("/v1/chat/completions", json=body) as answer:
                    reported = await answer.json()
                    answers.append((answer.status, reported, answer.headers.get("Retry-After")))
            return answers

    return asyncio.run(ask())


def _body(words: int, **params: object) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "word " * words}], **params}


def test_a_parameter_is_refused_as_openai_does() -> None:
    behaviour = Behaviour(refused=["seed", "temperature"])
    refused, taken = _ask(behaviour, _body(3, temperature=0), _body(3, max_tokens=9))
    message = "Unsupported parameter: 'temperature' is not supported with this model."
    error = {
        "message": message,
        "type": "invalid_request_error",
        "code": "unsupported_parameter",
        "param": "temperature",
    }
    assert refused == (400, {"error": error}, None)
    assert taken[0] == 200


def test_tokens_per_minute_are_kept_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(emulator.time, "monotonic", lambda: now[0])
    minute = emulator.Minute()
    minute.add(60)
    now[0] = 30.0
    minute.add(30)
    assert (minute.holds(10, 100), minute.holds(11, 100), minute.holds(11, 0)) == (
        True,
        False,
        True,
    )
    now[0] = 61.0
    assert (minute.holds(70, 100), minute.holds(71, 100)) == (True, False)


def test_more_tokens_than_a_minute_holds_get_429_with_retry_after() -> None:
    behaviour = Behaviour(tokens_per_minute=100, retry_after=7)
    answers = _ask(behaviour, _body(60), _body(50), _body(40), _body(1))
    assert [status for status, *_ in answers] == [200, 429, 200, 429]
    _, body, retry_after = answers[1]
    assert body["error"]["code"] == "rate_limit_exceeded"
    assert retry_after == "7"


def test_a_model_that_varies_answers_the_same_request_anew() -> None:
    messages = PROMPTS["pair_v2"].messages("Why?", "Because.", "Therefore.")
    body = {"model": "m", "messages": messages}
    traits = {"m": Traits(nu=1)}

    def choices(**behaviour: Any) -> list[str]:
        reported = _ask(Behaviour(traits=traits, **behaviour), *[body] * 30)
        return [answer["choices"][0]["message"]["content"][-5:] for _, answer, _ in reported]

    assert len(set(choices())) == 1
    varied = choices(vary=True)
    assert set(varied) == {"[[A]]", "[[B]]", "[[C]]"}
    assert choices(vary=True) == varied
    assert choices(vary=True, seed=1000) != varied


def test_replies_may_be_given() -> None:
    behaviour = Behaviour(replies=["[[pass]]", "[[fail]]"])
    reported = [answer[1] for answer in _ask(behaviour, *map(_body, range(1, 20)))]
    assert {each["choices"][0]["message"]["content"] for each in reported} == {
        "[[pass]]",
        "[[fail]]",
    }


def test_the_body_that_inflates_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "PARTS", 3)
    packed = emulator._compressed.__wrapped__()
    assert len(packed) < 5000
    # It checks length and checksum too.
    assert gzip.decompress(packed) == 3 * emulator.PART
