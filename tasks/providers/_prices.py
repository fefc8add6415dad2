"""Prices per token, without importing litellm: its price table is a file in its package."""

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tasks.providers import Judge

TABLE = "model_prices_and_context_window_backup.json"


class Price(NamedTuple):
    """US dollars per token."""

    prompt: float
    completion: float


def route_of(model: str) -> str:
    """Return the provider that litellm asks for a model: its first part, or as its table says."""
    route, *rest = model.split("/", maxsplit=1)
    return route if rest else str(_table().get(model, {}).get("litellm_provider", "openai"))


def price_of(judge: Judge, *, simulated: bool) -> Price | None:
    """Return the judge's price in its mode: its own, litellm's, or null if nobody knows it."""
    if simulated:
        return Price(0.0, 0.0)
    if judge.usd_per_million:
        own = judge.usd_per_million
        return Price(own.prompt / 1e6, own.completion / 1e6)
    entry = _table().get(judge.model) or _table().get(judge.model.split("/", 1)[-1])
    prompt, completion = "input_cost_per_token", "output_cost_per_token"
    if judge.mode == "live":
        if entry is None or prompt not in entry:
            return None
        return Price(entry[prompt], entry.get(completion, 0.0))
    in_batch = f"{prompt}_batches", f"{completion}_batches"
    if entry is None or any(name not in entry for name in in_batch):
        return None
    return Price(entry[in_batch[0]], entry[in_batch[1]])


def highest_price(judge: Judge) -> Price | None:
    """Return what a token costs at most: a batch whose price is unknown costs no more than live."""
    live = judge.model_copy(update={"mode": "live"})
    return price_of(judge, simulated=False) or price_of(live, simulated=False)


@cache
def _table() -> dict[str, dict[str, Any]]:
    package = find_spec("litellm")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError("litellm is not installed, so no prices are known.")
    path = Path(package.submodule_search_locations[0]) / TABLE
    table: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return table
