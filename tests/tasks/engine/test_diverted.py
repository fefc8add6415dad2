import subprocess
import sys
from pathlib import Path

import pytest

from flows.running.readiness import not_ready
from flows.studies import Study
from tasks.engine.litellm_adapter import diverting, worker_environment
from tasks.providers import Judge, Provider

ELSEWHERE = "http://127.0.0.1:9/v1"


def _diverting(model: str, **words: object) -> list[str]:
    judge = Judge(judge="desk/one", provider="desk", model=model)
    return diverting(Provider.model_validate(words), judge)


# By reading litellm 1.106.2: what it looks up where it gets no address.
@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/one", "OPENAI_BASE_URL"),
        ("openai/one", "OPENAI_API_BASE"),
        ("gpt-4o", "OPENAI_BASE_URL"),
        ("anthropic/one", "ANTHROPIC_API_BASE"),
        ("anthropic/one", "ANTHROPIC_BASE_URL"),
        ("gemini/one", "GEMINI_API_BASE"),
        ("mistral/one", "MISTRAL_API_BASE"),
        ("mistral/one", "MISTRAL_AZURE_API_BASE"),
        ("deepseek/one", "DEEPSEEK_API_BASE"),
        ("cohere_chat/one", "COHERE_API_BASE"),
        ("bedrock/one", "AWS_BEDROCK_RUNTIME_ENDPOINT"),
        ("openrouter/maker/one", "OPENROUTER_API_BASE"),
        ("together_ai/maker/one", "TOGETHER_AI_API_BASE"),
        ("ollama_chat/one", "OLLAMA_API_BASE"),
        ("hosted_vllm/one", "HOSTED_VLLM_API_BASE"),
        ("azure/one", "AZURE_API_BASE"),
    ],
)
def test_an_address_that_the_file_does_not_name_is_reported(
    model: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _diverting(model) == []
    monkeypatch.setenv(variable, ELSEWHERE)
    assert _diverting(model) == [variable]
    assert _diverting("groq/one") == []
    assert _diverting(model, simulated=True) == []
    # What the file says goes first, and is part of a ballot's key.
    assert _diverting(model, api_base=ELSEWHERE) == []
    assert _diverting(model, api_base_variable=variable) == []


def test_a_gateway_for_everything_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_LITELLM_PROXY", "False")
    assert _diverting("openai/one") == []
    monkeypatch.setenv("USE_LITELLM_PROXY", "true")
    assert _diverting("openai/one", api_base=ELSEWHERE) == ["USE_LITELLM_PROXY"]


def test_nothing_is_asked_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-fake")
    study = Study(judges=["offline/honest", "openai/gpt-5.5"])
    assert not_ready(study) == {}
    monkeypatch.setenv("OPENAI_BASE_URL", ELSEWHERE)
    (reason,) = not_ready(study).values()
    assert reason.startswith("OPENAI_BASE_URL would send its calls to another address")
    assert list(not_ready(study)) == ["openai/gpt-5.5"]


SEEN = """
import os
from tasks.engine.litellm_adapter import load_litellm
litellm = load_litellm()
print(litellm.drop_params, litellm.modify_params, litellm.route_all_chat_openai_to_responses)
# in another mode litellm reads a file .env
print(os.environ["LITELLM_MODE"], os.environ["LITELLM_PROXY_API_KEY"])
print(litellm.constants.DEFAULT_MAX_TOKENS)
try:
    litellm.utils.get_optional_params(
        model="mistral-large-4-0", custom_llm_provider="mistral", logit_bias={"1": 1}
    )
except litellm.UnsupportedParamsError as error:
    print(error)
"""


@pytest.mark.slow
def test_the_environment_changes_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "seen.py").write_text(SEEN)
    for name, value in {
        "DEFAULT_MAX_TOKENS": "7",
        "LITELLM_DROP_PARAMS": "true",
        "LITELLM_MODIFY_PARAMS": "true",
        "LITELLM_MODE": "DEV",
        "LITELLM_ROUTE_ALL_CHAT_OPENAI_TO_RESPONSES": "true",
        "LITELLM_PROXY_API_KEY": "mine",
    }.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(
        [sys.executable, "seen.py"],
        cwd=tmp_path,
        env=worker_environment(),
        check=False,
        capture_output=True,
        text=True,
    )
    flags, mode, longest, error, *_ = done.stdout.splitlines()
    assert (flags, mode, longest) == ("False False False", "PRODUCTION mine", "4096"), done.stderr
    assert "mistral does not support parameters" in error
    assert "logit_bias" in error
