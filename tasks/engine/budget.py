"""The budget of a run, a hard cap, and prices per token (without importing litellm)."""

import asyncio
import json
import re
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tasks.providers import Judge

STEP = 0.01
"""Share of the cap by which what may be spent is told in advance, so that it is told rarely."""


class BudgetError(Exception):
    """The call could cross the cap."""


class Budget:
    """Lets a call start only if even the dearest outcome stays below the cap."""

    def __init__(self, usd: float | None) -> None:
        self._cap = usd
        self.spent = self._reserved = 0.0
        self._news = asyncio.Event()
        self._told = 0.0
        self.tell: Callable[[float], None] | None = None
        """Is told the most that the calls begun so far can cost, before the next one begins."""

    async def reserve(self, worst: float) -> None:
        """Set the worst case of a call aside; wait while calls in flight may still free enough.

        Raises
        ------
        BudgetError
            If what was spent leaves too little for this call.
        """
        while self._cap is not None and self.spent + self._reserved + worst > self._cap:
            if self.spent + worst > self._cap:
                raise self._used_up()
            await self._news.wait()
        self._commit(worst)

    def take(self, worst: float) -> None:
        """Set a worst case aside at once: what else is set aside may be for hours.

        Raises
        ------
        BudgetError
            If what was spent and set aside leaves too little.
        """
        if self._cap is not None and self.spent + self._reserved + worst > self._cap:
            raise self._used_up()
        self._commit(worst)

    def _commit(self, worst: float) -> None:
        self._reserved += worst
        committed = self.spent + self._reserved
        if self._cap is not None and self.tell and committed > self._told:
            self._told = min(committed + STEP * self._cap, self._cap)
            self.tell(self._told)

    def _used_up(self) -> BudgetError:
        # The same words for all calls, so that a summary tells it once.
        return BudgetError(
            f"the budget of {self._cap:g} USD is used up: one more call could cross it. "
            "Raise it (--budget) and run again"
        )

    def settle(self, worst: float, cost: float) -> None:
        """Replace what was set aside by what the call cost."""
        self._reserved -= worst
        self.spent += cost
        self._news.set()
        self._news = asyncio.Event()


TABLE = "model_prices_and_context_window_backup.json"
PROMPT, COMPLETION = "input_cost_per_token", "output_cost_per_token"
CACHING = "cache_creation_input_token_cost"

TIERED = re.compile(
    rf"(?P<what>{PROMPT}|{CACHING}|{COMPLETION}|output_cost_per_reasoning_token)(?P<hour>_above_1hr)?"
    r"(_above_(?P<above>\d+)k_tokens)?(_(?P<tier>[a-z]+))?"
)
"""Prices of text in litellm's table: by length of the prompt, and by tier."""

LOCAL = {"lemonade", "ollama", "ollama_chat"}
"""Routes by which 0 is what a token costs; by others it stands where litellm knows no price."""


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
    entry = _entry(judge.model)
    if judge.mode == "live":
        if PROMPT not in entry:
            return None
        return _unless_free(judge, Price(entry[PROMPT], entry.get(COMPLETION, 0.0)))
    in_batch = f"{PROMPT}_batches", f"{COMPLETION}_batches"
    if any(name not in entry for name in in_batch):
        return None
    return _unless_free(judge, Price(entry[in_batch[0]], entry[in_batch[1]]))


def highest_price(judge: Judge, prompt_tokens: int | None = None) -> Price | None:
    """Return what a token costs at most, with a prompt of at most so many tokens.

    A batch whose price is unknown costs no more than live; a live call that names no tier may get
    the priority that its key is set to; tokens that are thought or cached may cost more.
    """
    live = judge.model_copy(update={"mode": "live"})
    price = price_of(judge, simulated=False)
    tiers = {"batches"} if price and judge.mode == "batch" else _tiers(judge.params)
    price = price or price_of(live, simulated=False)
    if price is None or judge.usd_per_million:
        return price
    entry, hour = _entry(judge.model), "'1h'" in str(judge.params)
    prompt, completion = price
    for name, usd in entry.items():
        found = TIERED.fullmatch(name)
        if not found or (tiers and (found["tier"] or "") not in tiers):
            continue
        if found["hour"] and not hour:
            continue
        if prompt_tokens is not None and prompt_tokens <= 1000 * int(found["above"] or 0):
            continue
        if found["what"] in {PROMPT, CACHING}:
            prompt = max(prompt, usd)
        else:
            completion = max(completion, usd)
    factor = _factor(judge.params, entry)
    return Price(prompt * factor, completion * factor)


def _tiers(params: dict[str, Any]) -> set[str]:
    """Return which of litellm's tiers may be charged; none: any."""
    named = params.get("service_tier", "auto")
    return {"auto": {"", "priority"}, "default": {""}, "flex": {"", "flex"}}.get(str(named), set())


def _factor(params: dict[str, Any], entry: dict[str, Any]) -> float:
    """Return by how much all that is chosen beside a tier may multiply a price."""
    factor = 1.0
    if {"inference_geo", "speed"} & {*params}:
        for value in (entry.get("provider_specific_entry") or {}).values():
            factor *= max(1.0, value) if isinstance(value, int | float) else 1.0
    return factor


def _unless_free(judge: Judge, price: Price) -> Price | None:
    """Take a price of nothing for one that is missing, unless the model runs on one's own."""
    return price if any(price) or route_of(judge.model) in LOCAL else None


def _entry(model: str) -> dict[str, Any]:
    """Return litellm's entry of a model, by its full name, or by its own if its route is meant."""
    table = _table()
    entry = table.get(model)
    if entry is None:
        entry = table.get(model.split("/", 1)[-1])
        if entry is None:
            return {}
        theirs, ours = str(entry.get("litellm_provider", "openai")), route_of(model)
        # The table tells parts of a route apart: bedrock_converse, vertex_ai-language-models.
        if not theirs.startswith(ours.removesuffix("_chat")):
            return {}
    return entry


@cache
def _table() -> dict[str, dict[str, Any]]:
    package = find_spec("litellm")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError("litellm is not installed, so no prices are known.")
    path = Path(package.submodule_search_locations[0]) / TABLE
    table: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return table
