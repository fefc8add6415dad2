"""Models whose name tells litellm no provider."""

import pytest

from tasks.engine import model_names
from tasks.engine.model_names import without_provider


@pytest.mark.slow
def test_a_name_without_a_provider_is_found() -> None:
    # litellm knows the bare name of a model in its table, and routes beside those of its prices.
    models = ["prod-judge", "Qwen/Qwen3", "gpt-5.4-mini", "lm_studio/x", "hosted_vllm/prod-judge"]
    assert without_provider(models) == ["Qwen/Qwen3", "prod-judge"]


def test_usual_names_need_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(model_names, "from_process")
    routes = ("openai", "anthropic", "azure", "bedrock", "openrouter", "ollama_chat", "together_ai")
    assert without_provider([f"{route}/any" for route in routes]) == []
