"""Providers, one per TOML file, with their judges as tables."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from schemas.keys import PEOPLE
from tasks.kit.catalogue import Catalogue, read_toml, tables
from tasks.kit.user_folder import own_folder
from tasks.simulation.traits import read_traits
from tasks.validation.invalid_values import MODULE_PATTERN
from tasks.validation.provider_checks import refuse_params, refuse_secrets
from tasks.validation.strict_models import Written
from tasks.validation.toml_tables import entry, require_tables
from tasks.validation.unknown_names import nearest

BATCHED = ("azure", "hosted_vllm", "litellm_proxy", "openai")
"""Providers (litellm's names) for which litellm can create, read and list batches of chats."""


KEY_NAME = re.compile(r"[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)(?:_?[0-9]+)?")
"""Names of variables whose content may be sent to a provider."""


class CallLimits(Written):
    """Limits of concurrency and rates; null means no limit."""

    # A misplaced value in a file may be a secret, so errors do not show it.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    concurrency: int | None = Field(default=None, ge=1)
    """Calls in flight at once."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Requests that start within a minute; null means no limit."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    """Tokens of requests and replies within a minute; null means no limit."""


class Provider(CallLimits):
    """The service that runs the models."""

    key_variable: str = ""
    """Environment variable of the API key, with a name such as X_KEY; empty if none is needed."""
    variables: list[str] = []
    """Other environment variables that calls require."""
    api_base: str = ""
    """Address of an OpenAI-compatible endpoint or a gateway; empty if litellm knows it."""
    api_base_variable: str = ""
    """Environment variable of that address, if it differs between machines."""
    serve: str = Field(default="", pattern=MODULE_PATTERN)
    """Module that is run with ``--port`` to serve the models if ``api_base`` does not answer."""
    concurrency: int | None = Field(default=8, ge=1)
    timeout_seconds: float = Field(default=120, gt=0)
    """A request that takes longer is cancelled and tried again."""
    max_reply_bytes: int = Field(default=2_000_000, ge=1000)
    """Limit of a reply's size, decompressed; typical replies have some thousand bytes."""
    attempts: int = Field(default=10, ge=1)
    """Maximum number of requests per ballot."""
    pause_seconds: float = Field(default=5, gt=0)
    """First pause after persistent failures; each further pause is twice as long."""
    repeat_as_seed: bool = False
    """Send the number of a ballot's repeat as the request's ``seed``."""
    simulated: bool = False
    """Whether its judges are simulated: formulas, not models."""

    @field_validator("key_variable")
    @classmethod
    def _is_of_a_key(cls, name: str) -> str:
        # The variable's content is sent to api_base, so it must not be PATH or HOME.
        if name and not KEY_NAME.fullmatch(name):
            raise ValueError(
                "a text (not shown, because it may hold a secret) is not the name of an API key's "
                "variable, which holds the key. Use capitals that end with _KEY, _TOKEN, _SECRET, "
                "_PASSWORD or _CREDENTIALS, as in OPENAI_API_KEY"
            )
        return name

    @field_validator("api_base")
    @classmethod
    def _without_secrets(cls, address: str) -> str:
        return refuse_secrets(address, "api_base")

    def required_variables(self) -> list[str]:
        """Return the environment variables that calls require."""
        names = [self.key_variable, *self.variables]
        if self.api_base_variable and not self.api_base:
            names.append(self.api_base_variable)
        return [name for name in names if name]

    def missing_variables(self) -> list[str]:
        """Return the required environment variables that are not set."""
        return [name for name in self.required_variables() if not os.environ.get(name, "").strip()]

    @property
    def secret_variables(self) -> list[str]:
        """Names of the environment variables whose values are redacted."""
        return [name for name in (self.key_variable, *self.variables) if name]


class UsdPerMillion(Written):
    """A price in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: float = Field(ge=0, allow_inf_nan=False)
    completion: float = Field(ge=0, allow_inf_nan=False)

    def cost(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Return the cost of a call in US dollars; null if its numbers of tokens are unknown."""
        if prompt_tokens is None or completion_tokens is None:
            return None
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


class Judge(CallLimits):
    """A model with fixed parameters; its limits apply in addition to its provider's."""

    judge: str
    provider: str
    model: str
    """Litellm's name of the model."""
    params: dict[str, Any] = {}
    """Parameters of every call, and part of every ballot's key."""
    unsupported: Literal["error", "drop"] = "error"
    """What to do with unsupported parameters; a vote records those that were dropped."""
    system: str = ""
    """Text before the system message of the judge prompt."""
    about: str = ""
    """Description that `voirdire list` shows, in one line."""
    usd_per_million: UsdPerMillion | None = None
    """The price, if litellm does not know it or another applies; for batches, the batch price."""
    mode: Literal["live", "batch"] = "live"
    """``batch`` uses the provider's batch endpoint, which is cheaper and takes up to a day.

    It is not part of a ballot's key, because the same model replies.
    """

    @field_validator("params")
    @classmethod
    def _of_a_request(cls, params: dict[str, Any]) -> dict[str, Any]:
        refuse_params(params)
        return params


class ProviderFile(BaseModel):
    """Content of one file in this folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Provider
    judges: dict[str, Judge]


TRAITS = "traits"
"""Parameter of a simulated judge that holds its formula's parameters."""
UNSIMULATED = (
    "params.traits is a parameter of simulated judges only. Remove it, or set simulated = true "
    "under [provider]."
)
FREE_OF_CHARGE = "a simulated judge is a formula and costs nothing. Remove this key."
HINT = " Parameters of the model belong in params."


def _parse(name: str, data: dict[str, Any]) -> ProviderFile:
    if name == PEOPLE:
        raise ValueError(f"the name {PEOPLE!r} is reserved for people who vote. Rename the file.")
    provider, judges, problems = Provider(), {}, []
    try:
        _require_tables(data)
    except ValueError as error:
        problems.append(str(error))
    try:
        provider = entry(Provider, "[provider]", data.get("provider", {}))
    except ValueError as error:
        problems.append(str(error))
    for judge, table in _judges(data).items():
        place, full = f"[judges.{judge}]", f"{name}/{judge}"
        try:
            judges[judge] = entry(Judge, place, table, HINT, judge=full, provider=name)
            _require_batches(judges[judge])
        except ValueError as error:
            problems.append(str(error))
    if not problems:
        problems = [text for judge in judges.values() if (text := _unfit(judge, provider))]
    if problems:
        raise ValueError("\n".join(problems))
    return ProviderFile(provider=provider, judges=judges)


def _unfit(judge: Judge, provider: Provider) -> str:
    """Say why a judge does not suit its provider, which simulates judges or calls models."""
    place = f"[judges.{judge.judge.split('/', 1)[1]}]"
    if not provider.simulated:
        return f"{place} {UNSIMULATED}" if TRAITS in judge.params else ""
    if judge.usd_per_million:
        return f"{place} usd_per_million: {FREE_OF_CHARGE}"
    try:
        read_traits(f"{place} params.{TRAITS}", judge.params.get(TRAITS))
    except ValueError as error:
        return str(error)
    return ""


def _require_tables(data: dict[str, Any]) -> None:
    """Refuse tables and keys other than the provider's and its judges'."""
    require_tables(data, ["provider", "judges"])


def _judges(data: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of the judges in a file."""
    tables_of_judges = data.get("judges", {})
    if not isinstance(tables_of_judges, dict):
        raise ValueError("[judges] must be a table, with one named [judges.NAME] for each judge.")  # noqa: TRY004 - handled like other errors of a file
    return tables_of_judges


def _names(file: Path) -> list[str]:
    try:
        return list(_judges(read_toml(file)))
    except ValueError as error:
        raise ValueError(f"{file.name} is not a provider: {error}") from error


def _require_batches(judge: Judge) -> None:
    """Check that batches of a batch judge can be created and resumed."""
    route = judge.model.split("/", maxsplit=1)[0]
    if judge.mode == "batch" and route not in BATCHED:
        raise ValueError(
            f"{judge.judge} has mode 'batch', but batches cannot be sent to {route!r}, only to "
            f"{', '.join(BATCHED)} (the first part of its model). Use mode 'live'."
        )


ADD = (
    "To add a judge or a provider, write a provider file: `voirdire init` writes an example to "
    "your own folder, and docs/how-to/own-model.md explains it."
)
VARIABLE = "VOIRDIRE_PROVIDERS"
"""a folder with provider files of your own, instead of `providers/` in your own folder"""


def _own_folder() -> Path | None:
    named = os.environ.get(VARIABLE)
    if not named:
        return own_folder("providers")
    if not Path(named).is_dir():
        raise FileNotFoundError(
            f"{VARIABLE} is {named}, which is not a folder. Correct or unset it."
        )
    return Path(named)


PROVIDERS: Catalogue[ProviderFile] = tables(
    "provider", Path(__file__).parent, _parse, own=_own_folder
)


def _judges_of(providers: Mapping[str, Path]) -> dict[str, Path]:
    """Return the file of each judge of these provider files."""
    return {
        f"{provider}/{judge}": file
        for provider, file in providers.items()
        for judge in _names(file)
    }


def _how_to_add(name: str) -> str:
    """Say how to add a judge; empty if the name is like that of a simulated one, so misspelt."""
    provider = (nearest(name, [*JUDGES.files]) or name).split("/")[0]
    if provider in PROVIDERS and PROVIDERS[provider].provider.simulated:
        return ""
    return ADD


JUDGES: Catalogue[Judge] = Catalogue(
    "judge",
    _judges_of({name: file for name, file in PROVIDERS.files.items() if name not in PROVIDERS.own}),
    lambda name, _: PROVIDERS[name.split("/")[0]].judges[name.split("/", 1)[1]],
    lambda: _judges_of(PROVIDERS.own),
    why_missing=lambda name: PROVIDERS.unusable.get(name.split("/")[0], ""),
    how_to_add=_how_to_add,
)


def provider_of(judge: str) -> Provider:
    """Return the provider that runs ``judge``."""
    return PROVIDERS[JUDGES[judge].provider].provider


def api_base(provider: Provider) -> str:
    """Return the address of a provider; empty if litellm knows it."""
    named = provider.api_base_variable
    address = os.environ.get(named, "").strip() if named else ""
    return refuse_secrets(address, named) or provider.api_base


def usable_api_base(provider: Provider) -> str:
    """Return the address; empty if its variable holds no valid one, so that no judge is asked."""
    try:
        return api_base(provider)
    except ValueError:
        return ""
