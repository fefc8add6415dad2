"""Every provider through litellm, against an emulator of them all (npm @copilotkit/aimock)."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import pytest

from flows.running.readiness import not_ready
from flows.studies import Study
from tasks.engine import queue
from tasks.engine.journal import Reply
from tasks.engine.litellm_adapter import price_of
from tasks.engine.queue import Engine, worst_case
from tasks.judging.verdict_parser import parse
from tasks.prompts import PROMPTS
from tasks.providers import PROVIDERS, Judge, Provider

# litellm and what it builds on warn about each other, which is not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore")

PLACE = "VOIRDIRE_AIMOCK"
REQUIRED = "VOIRDIRE_REQUIRE_MATRIX"
"""If it is set, as CI does, the proof may not be skipped."""
LOCK = "AIMOCK_API_KEYS"
REPO = Path(__file__).parents[3]
KEY = "sk-fake-0123456789-for-tests"
# what is sent to an endpoint that wants no key
NO_KEY = "none"
VERDICTS = {"[[A]]": "first", "[[B]]": "second", "[[C]]": "tie"}
REPLIES = [f"Ballot {n}: so it is. {list(VERDICTS)[n % 3]}" for n in range(10)]
TOKENS = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


class Route(NamedTuple):
    """How a provider is to be asked."""

    base: str
    """What follows the emulator's address where litellm gets the provider's."""
    path: str
    secret: str
    """The header that proves who asks."""
    needed: tuple[str, ...]
    """The variables without which nothing is asked."""


BEARER = "authorization"
CHAT = "/v1/chat/completions"
ROUTES = {
    "openai": Route("/v1", CHAT, BEARER, ("OPENAI_API_KEY",)),
    "anthropic": Route("", "/v1/messages", "x-api-key", ("ANTHROPIC_API_KEY",)),
    "gemini": Route(
        "/v1beta", "/v1beta/models/{model}:generateContent", "x-goog-api-key", ("GEMINI_API_KEY",)
    ),
    "mistral": Route("/v1", CHAT, BEARER, ("MISTRAL_API_KEY",)),
    "deepseek": Route("", "/chat/completions", BEARER, ("DEEPSEEK_API_KEY",)),
    "cohere": Route("/v2/chat", "/v2/chat", BEARER, ("COHERE_API_KEY",)),
    "azure": Route("", f"/openai{CHAT}", BEARER, ("AZURE_API_BASE", "AZURE_API_KEY")),
    "bedrock": Route(
        "", "/model/{model}/converse", "x-amz-date", ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    ),
    "openrouter": Route("/api/v1", f"/api{CHAT}", BEARER, ("OPENROUTER_API_KEY",)),
    "together": Route("/v1", CHAT, BEARER, ("TOGETHER_API_KEY",)),
    "ollama": Route("", "/api/chat", BEARER, ()),
    "vllm": Route("/v1", CHAT, BEARER, ("VLLM_API_BASE",)),
    "local": Route("/v1", CHAT, BEARER, ()),
}
SIGNED = "bedrock"
MISSING = {name: f"no API key in {', '.join(route.needed)}" for name, route in ROUTES.items()} | {
    "azure": "no API key in AZURE_API_KEY and no address in AZURE_API_BASE",
    "bedrock": "no value in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "vllm": "no address in VLLM_API_BASE",
}
"""Provider -> why its judges cannot be asked without its variables."""


class Emulator(NamedTuple):
    """A running aimock."""

    address: str

    def control(self, path: str, method: str = "GET") -> Any:
        headers = {"Authorization": f"Bearer {KEY}"}
        request = Request(f"{self.address}/__aimock/{path}", headers=headers, method=method)
        with urlopen(request) as reply:
            return json.load(reply)

    def journal(self) -> list[dict[str, Any]]:
        """Return what was asked since the last time."""
        asked: list[dict[str, Any]] = self.control("journal")
        self.control("reset/journal", "POST")
        return asked


class Emulators(NamedTuple):
    locked: Emulator
    """Lets those in who show a key."""
    signed: Emulator
    """For requests that are signed, which it cannot check."""


def _fixtures() -> dict[str, Any]:
    fault = {"error": {"message": f"no room for {KEY}", "type": "overloaded"}, "status": 503}
    reported = [
        {"match": {"userMessage": f"Ballot {n}?"}, "response": {"content": text, "usage": TOKENS}}
        for n, text in enumerate(REPLIES)
    ]
    return {"fixtures": [*reported, {"match": {"userMessage": "Busy?"}, "response": fault}]}


def _program() -> list[str]:
    folder = Path(os.environ.get(PLACE) or REPO / ".venv" / "aimock")
    script = folder / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    node = shutil.which("node")
    if node is None or not script.is_file():
        give_up = pytest.fail if os.environ.get(REQUIRED) else pytest.skip
        give_up(
            f"no aimock in {folder}, or no node: install Node.js 20.15 or newer with npm, then "
            f"run `make .venv/.aimock`, or name a folder that has it in {PLACE}"
        )
    return [node, str(script)]


@contextmanager
def _serve(folder: Path, keys: str) -> Iterator[Emulator]:
    options = ["--port", "0", "--host", "127.0.0.1", "--strict", "--fixtures", str(folder)]
    environment = {name: value for name, value in os.environ.items() if name != LOCK}
    with subprocess.Popen(
        [*_program(), *options],
        env={**environment, LOCK: keys} if keys else environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            said = list(_until_it_listens(process))
            assert "listening on " in said[-1], f"aimock did not start: {''.join(said)}"
            yield Emulator(said[-1].split("listening on ")[1].strip())
        finally:
            process.terminate()


def _until_it_listens(process: subprocess.Popen[str]) -> Iterator[str]:
    for line in process.stdout or ():
        yield line
        if "listening on " in line:
            return
    yield ""


@pytest.fixture(scope="module")
def emulators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulators]:
    folder = tmp_path_factory.mktemp("aimock")
    (folder / "ballots.json").write_text(json.dumps(_fixtures()))
    with _serve(folder, f"{KEY},{NO_KEY}") as locked, _serve(folder, "") as signed:
        yield Emulators(locked, signed)


@pytest.fixture
def emulator(name: str, emulators: Emulators, monkeypatch: pytest.MonkeyPatch) -> Emulator:
    """Return the emulator of a provider that finds its variables set."""
    chosen = emulators.signed if name == SIGNED else emulators.locked
    provider = PROVIDERS[name].provider
    for variable in ROUTES[name].needed:
        monkeypatch.setenv(variable, KEY)
    if provider.api_base_variable:
        monkeypatch.setenv(provider.api_base_variable, chosen.address + ROUTES[name].base)
    chosen.journal()
    return chosen


def _first(name: str) -> Judge:
    return next(iter(PROVIDERS[name].judges.values()))


def _messages(question: str) -> list[dict[str, str]]:
    return PROMPTS["pair_v1"].messages(question, "Four.", "It is five.")


def _ask(name: str, emulator: Emulator, questions: list[str], **changes: Any) -> list[Reply]:
    from provider_clients import close_clients

    from tasks.engine.client import call

    provider = PROVIDERS[name].provider.model_copy(update=changes)
    if not provider.api_base_variable:
        address = emulator.address + ROUTES[name].base
        provider = provider.model_copy(update={"api_base": address})

    async def ask() -> list[Reply]:
        engine = Engine(call)
        asked = [engine.ask(provider, _first(name), _messages(q), {}) for q in questions]
        try:
            return await asyncio.gather(*asked)
        finally:
            await close_clients()

    return asyncio.run(ask())


@pytest.mark.parametrize("name", ROUTES)
def test_ten_ballots_reach_the_provider_and_come_back(name: str, emulator: Emulator) -> None:
    replies = _ask(name, emulator, [f"Ballot {n}?" for n in range(10)])
    assert [reply.error for reply in replies] == [None] * 10
    assert [reply.text for reply in replies] == REPLIES
    assert [parse(reply.text) for reply in replies] == [*VERDICTS.values()] * 3 + ["first"]
    assert [reply.attempts for reply in replies] == [1] * 10
    assert KEY not in str(replies)
    _, model = _first(name).model.split("/", 1)
    asked, route = emulator.journal(), ROUTES[name]
    path = route.path.format(model=model.replace(":", "%3A"))
    seen = [(each["method"], each["path"], each["response"]["status"]) for each in asked]
    assert seen == [("POST", path, 200)] * 10
    assert {each["body"]["model"] for each in asked} == {model}
    assert all(route.secret in each["headers"] for each in asked)


@pytest.mark.parametrize("name", [name for name in ROUTES if name != "ollama"])  # aimock counts 0
def test_tokens_and_their_price_are_reported(name: str, emulator: Emulator) -> None:
    (reply,) = _ask(name, emulator, ["Ballot 0?"])
    assert (reply.prompt_tokens, reply.completion_tokens) == (1000, 100)
    price = price_of(_first(name), simulated=False)
    assert price
    assert reply.cost_usd is not None
    full = 1000 * price.prompt + 100 * price.completion
    # DeepSeek asks half of it off its peak hours
    assert reply.cost_usd == pytest.approx(full) or reply.cost_usd == pytest.approx(full / 2)


@pytest.mark.parametrize("name", ROUTES)
def test_only_the_engine_tries_again(
    name: str, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "FIRST_WAIT_SECONDS", 0.001)
    (reply,) = _ask(name, emulator, ["Busy?"], attempts=2)
    assert (reply.text, reply.attempts, len(emulator.journal())) == ("", 2, 2)
    assert reply.error
    assert "no room for " in reply.error
    keyless = not PROVIDERS[name].provider.key_variable and name != SIGNED
    assert keyless or KEY not in reply.error


@pytest.mark.parametrize("name", ROUTES)
def test_what_is_missing_is_named_before_anything_is_asked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    route = ROUTES[name]
    study = Study(judges=[judge.judge for judge in PROVIDERS[name].judges.values()])
    for variable in route.needed:
        monkeypatch.delenv(variable, raising=False)
    missing = not_ready(study)
    assert set(missing) == ({*study.judges} if route.needed else set())
    assert {*missing.values()} == ({MISSING[name]} if route.needed else set())
    addresses = [variable for variable in route.needed if variable.endswith("_API_BASE")]
    for variable in route.needed:
        monkeypatch.setenv(variable, "http://127.0.0.1:9" if variable in addresses else KEY)
    assert not_ready(study) == {}
    for variable in addresses:
        monkeypatch.setenv(variable, "no address")
        assert all(f"{variable} must be an address" in why for why in not_ready(study).values())
        assert set(not_ready(study)) == {*study.judges}
        monkeypatch.setenv(variable, "http://127.0.0.1:9")


def _models() -> list[tuple[Provider, Judge]]:
    files = [file for file in PROVIDERS.values() if not file.provider.simulated]
    return [(file.provider, judge) for file in files for judge in file.judges.values()]


def test_every_provider_is_in_the_matrix() -> None:
    assert {judge.provider for _, judge in _models()} == set(ROUTES)


@pytest.mark.parametrize(
    ("provider", "judge"), _models(), ids=[judge.judge for _, judge in _models()]
)
def test_a_budget_can_hold_for_every_judge(provider: Provider, judge: Judge) -> None:
    assert worst_case(provider, judge, _messages("Which?")) >= 0


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_reference_names_judges_and_variables(name: str) -> None:
    page = (REPO / "docs" / "reference" / "providers.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` | ")]
    needed = ROUTES[name].needed if name in ROUTES else ()
    assert all(f"`{word}`" in line for word in (*PROVIDERS[name].judges, *needed))


@pytest.mark.parametrize(
    ("required", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_where_the_proof_is_required_it_is_not_skipped(
    required: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(PLACE, str(tmp_path))
    monkeypatch.setenv(REQUIRED, required)
    with pytest.raises(outcome, match="no aimock in "):
        _program()
