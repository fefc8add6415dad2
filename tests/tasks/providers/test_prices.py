import json
import sys
from pathlib import Path

import pytest

from tasks.providers import JUDGES, Judge, UsdPerMillion, _prices, provider_of
from tasks.providers._prices import TABLE, Price, highest_price, price_of

ENTRIES: dict[str, dict[str, float]] = {
    "shop/known": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
    "cheaper": {
        "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
        "input_cost_per_token_batches": 5e-7, "output_cost_per_token_batches": 1e-6,
    },
    "half-known": {
        "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
        "input_cost_per_token_batches": 5e-7,
    },
    "bare": {"input_cost_per_token": 3e-6},
    "images": {"input_cost_per_pixel": 1e-6},
    "free": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
}  # fmt: skip


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_prices, "_table", lambda: ENTRIES)


def _judge(model: str, price: UsdPerMillion | None = None) -> Judge:
    return Judge(judge="shop/judge", provider="shop", model=model, usd_per_million=price)


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("shop/known", Price(1e-6, 2e-6)),
        ("shop/bare", Price(3e-6, 0.0)),
        ("shop/free", Price(0.0, 0.0)),
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
    entry = _prices._table()["gpt-4o"]
    assert (entry["input_cost_per_token"], entry["output_cost_per_token"]) == (2.5e-6, 1e-5)
    assert ("litellm" in sys.modules) == before


def test_without_litellm_there_is_no_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_prices, "find_spec", lambda _: None)
    with pytest.raises(FileNotFoundError, match="litellm is not installed"):
        _prices._table.__wrapped__()
    (tmp_path / TABLE).write_text(json.dumps({"m": {}}))
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    monkeypatch.setattr(_prices, "find_spec", lambda _: spec)
    assert _prices._table.__wrapped__() == {"m": {}}
