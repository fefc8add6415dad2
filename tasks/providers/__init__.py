"""Providers, one per TOML file, with their judges as tables."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tasks._catalogue import Catalogue, read_toml, tables


class Provider(BaseModel):
    """Who runs the models."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key_variable: str = ""
    """Environment variable of the API key; empty if none is needed."""
    concurrency: int = Field(default=8, ge=1)
    """Calls in flight at once."""
    timeout_seconds: float = Field(default=120, gt=0)
    attempts: int = Field(default=4, ge=1)
    """Requests per ballot at most."""
    repeat_as_seed: bool = False
    """Send each ballot's repeat as the request's ``seed``."""
    simulated: bool = False
    """Its judges are formulas, not models."""


class UsdPerMillion(BaseModel):
    """A price of one's own, in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Return the price of a call in US dollars; null if its tokens are not known."""
        if prompt_tokens is None or completion_tokens is None:
            return None
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


class Judge(BaseModel):
    """A model with fixed parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    provider: str
    model: str
    """As litellm names it."""
    params: dict[str, Any] = {}
    """Sent with every call, and part of every ballot's key."""
    about: str = ""
    usd_per_million: UsdPerMillion | None = None
    """Where litellm knows no price, or another one is paid."""

    @property
    def params_json(self) -> str:
        """The parameters as canonical JSON."""
        return json.dumps(self.params, sort_keys=True)


class ProviderFile(BaseModel):
    """One file of this folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Provider
    judges: dict[str, Judge]


def _parse(name: str, data: dict[str, Any]) -> ProviderFile:
    judges = {
        judge: Judge(judge=f"{name}/{judge}", provider=name, **table)
        for judge, table in data.get("judges", {}).items()
    }
    return ProviderFile(provider=Provider(**data.get("provider", {})), judges=judges)


FOLDER = Path(__file__).parent
PROVIDERS: Catalogue[ProviderFile] = tables("provider", FOLDER, _parse)

JUDGES: Catalogue[Judge] = Catalogue(
    "judge",
    {
        f"{file.stem}/{judge}": file
        for file in FOLDER.glob("*.toml")
        if file.stem in PROVIDERS
        for judge in read_toml(file).get("judges", {})
    },
    lambda name: PROVIDERS[name.split("/")[0]].judges[name.split("/", 1)[1]],
)


def provider_of(judge: str) -> Provider:
    """Return the provider that runs ``judge``."""
    return PROVIDERS[JUDGES[judge].provider].provider
