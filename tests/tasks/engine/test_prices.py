import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tasks.engine import litellm_adapter
from tasks.engine.litellm_adapter import TABLE, Price, highest_price, price_of
from tasks.providers import JUDGES, Judge, UsdPerMillion, provider_of

ENTRIES: dict[str, dict[str, Any]] = {
    "shop/known": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
    "cheaper": {
        "litellm_provider": "shop",
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 2e-6,
        "input_cost_per_token_batches": 5e-7,
        "output_cost_per_token_batches": 1e-6,
    },
    "half-known": {
        "litellm_provider": "shop",
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 2e-6,
        "input_cost_per_token_batches": 5e-7,
    },
    "bare": {"litellm_provider": "shop_converse", "input_cost_per_token": 3e-6},
    "images": {"input_cost_per_pixel": 1e-6},
    "shop/free": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
    "ollama/free": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
    "shop/tiers": {
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 2e-6,
        "input_cost_per_token_flex": 5e-7,
        "output_cost_per_token_flex": 1e-6,
        "input_cost_per_token_priority": 2e-6,
        "output_cost_per_token_priority": 4e-6,
        "input_cost_per_token_ultrafast": 6e-6,
        "output_cost_per_token_ultrafast": 12e-6,
        "input_cost_per_token_above_272k_tokens": 3e-6,
        "output_cost_per_token_above_272k_tokens": 9e-6,
        "cache_read_input_token_cost": 1e-3,
        "input_cost_per_audio_token": 1e-3,
        "provider_specific_entry": {"us": 1.1, "fast": 2},
    },
    "shop/thinks": {
        "input_cost_per_token": 1e-6,
        "output_cost_per_token": 2e-6,
        "output_cost_per_reasoning_token": 5e-6,
        "cache_creation_input_token_cost": 2e-6,
        "cache_creation_input_token_cost_above_1hr": 4e-6,
    },
}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litellm_adapter, "_table", lambda: ENTRIES)


def _judge(model: str, price: UsdPerMillion | None = None) -> Judge:
    return Judge(judge="shop/judge", provider="shop", model=model, usd_per_million=price)


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("shop/known", Price(1e-6, 2e-6)),
        ("shop/bare", Price(3e-6, 0.0)),
        ("shop/free", None),
        ("ollama/free", Price(0.0, 0.0)),
        ("other/cheaper", None),
        ("shop_two/cheaper", None),
        ("shop/images", None),
        ("shop/unheard-of", None),
    ],
)
@pytest.mark.usefixtures("table")
def test_the_price_of_a_model_is_litellms(model: str, price: Price | None) -> None:
    assert price_of(_judge(model), simulated=False) == price


@pytest.mark.parametrize(
    ("model", "price", "highest"),
    [
        ("shop/cheaper", Price(5e-7, 1e-6), Price(5e-7, 1e-6)),
        ("shop/half-known", None, Price(1e-6, 2e-6)),
        ("shop/known", None, Price(1e-6, 2e-6)),
        ("shop/unheard-of", None, None),
    ],
)
@pytest.mark.usefixtures("table")
def test_a_batch_has_a_price_of_its_own(
    model: str, price: Price | None, highest: Price | None
) -> None:
    judge = _judge(model).model_copy(update={"mode": "batch"})
    assert price_of(judge, simulated=False) == price
    assert highest_price(judge) == highest
    own = judge.model_copy(update={"usd_per_million": UsdPerMillion(prompt=5, completion=10)})
    assert price_of(own, simulated=False) == highest_price(own) == Price(5e-6, 1e-5)


# Each pair: US dollars per million tokens of a prompt and a reply.
@pytest.mark.parametrize(
    ("model", "params", "prompt_tokens", "highest"),
    [
        ("shop/tiers", {}, 1000, (2, 4)),
        ("shop/tiers", {}, 272_001, (3, 9)),
        ("shop/tiers", {}, None, (3, 9)),
        ("shop/tiers", {"service_tier": "auto"}, 1000, (2, 4)),
        ("shop/tiers", {"service_tier": "default"}, 1000, (1, 2)),
        ("shop/tiers", {"service_tier": "flex"}, 1000, (1, 2)),
        ("shop/tiers", {"service_tier": "priority"}, 1000, (6, 12)),
        ("shop/tiers", {"speed": "fast"}, 1000, (4.4, 8.8)),
        ("shop/thinks", {}, 1000, (2, 5)),
        ("shop/thinks", {"cache_control": {"ttl": "1h"}}, 1000, (4, 5)),
    ],
)
@pytest.mark.usefixtures("table")
def test_the_highest_price_is_that_of_the_dearest_tier(
    model: str, params: dict[str, Any], prompt_tokens: int | None, highest: tuple[float, float]
) -> None:
    judge = Judge(judge="shop/judge", provider="shop", model=model, params=params)
    price = highest_price(judge, prompt_tokens)
    assert price is not None
    assert [usd * 1e6 for usd in price] == pytest.approx(highest)


@pytest.mark.usefixtures("table")
def test_a_price_of_nothing_holds_where_it_is_ones_own() -> None:
    own = UsdPerMillion(prompt=0, completion=0)
    assert price_of(_judge("shop/free", own), simulated=False) == Price(0.0, 0.0)
    assert highest_price(_judge("shop/free")) is None


@pytest.mark.parametrize("model", ["hosted_vllm/gpt-4o", "together_ai/gpt-4o"])
def test_a_model_has_no_price_of_another_route(model: str) -> None:
    assert price_of(_judge("openai/gpt-4o"), simulated=False) == Price(2.5e-6, 1e-5)
    assert price_of(_judge(model), simulated=False) is None


@pytest.mark.usefixtures("table")
def test_a_price_of_ones_own_comes_first() -> None:
    own = UsdPerMillion(prompt=5, completion=10)
    assert price_of(_judge("shop/known", own), simulated=False) == Price(5e-6, 1e-5)
    assert price_of(_judge("shop/unheard-of", own), simulated=False) == Price(5e-6, 1e-5)


def test_a_call_costs_its_tokens() -> None:
    own = UsdPerMillion(prompt=2.5, completion=10)
    assert own.cost(11, 3) == pytest.approx(5.75e-5, rel=1e-12)
    assert own.cost(0, 0) == 0
    assert own.cost(None, 3) is None
    assert own.cost(11, None) is None


def test_simulated_judges_are_free() -> None:
    simulated = [name for name in JUDGES if provider_of(name).simulated]
    assert simulated
    assert all(price_of(JUDGES[name], simulated=True) == Price(0.0, 0.0) for name in simulated)


def test_the_table_is_read_without_importing_litellm() -> None:
    before = "litellm" in sys.modules
    entry = litellm_adapter._table()["gpt-4o"]
    assert (entry["input_cost_per_token"], entry["output_cost_per_token"]) == (2.5e-6, 1e-5)
    assert ("litellm" in sys.modules) == before


def test_without_litellm_there_is_no_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(litellm_adapter, "find_spec", lambda _: None)
    with pytest.raises(FileNotFoundError, match="is not installed: `make setup`"):
        litellm_adapter._table.__wrapped__()
    (tmp_path / TABLE).write_text(json.dumps({"m": {}}))
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    monkeypatch.setattr(litellm_adapter, "find_spec", lambda _: spec)
    assert litellm_adapter._table.__wrapped__() == {"m": {}}
