"""The options of an audit: what a study file and the form in the Prefect UI set."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, Field, field_validator, model_validator

from schemas.keys import LARGEST_INTEGER, Checks, Mode, Sham, Stop, content_key, file_digest
from tasks.judging.turns import TURN_PLACES
from tasks.kit.code_digest import code_digest
from tasks.kit.defaults import DEFAULTS, DETECTS_AT, TOO_FAST_SECONDS, Thresholds
from tasks.perturbations import PERTURBATIONS, asked_under
from tasks.prompts import PROMPTS, is_known, label_of, prompt_of, variants_of
from tasks.providers import JUDGES, PROVIDERS, UsdPerMillion, provider_of, usable_api_base
from tasks.validation.documented_fields import documented
from tasks.validation.invalid_values import NAME_PATTERN
from tasks.validation.strict_models import Written

CLASSIC = ["factual_error", "gender_bias", "fake_reference", "rich_content"]
FREE = UsdPerMillion(prompt=0, completion=0)
OFFLINE = [f"offline/{name}" for name in ("careless", "gullible", "honest", "positional", "random")]
"""Simulated judges with much noise, the presets of methods.md, section 13."""

PATIENCE_SECONDS = 600.0
"""How long a writer waits: another program may hold the warehouse open."""

WAVE_PLACES = ("{date}", "{minute}")
"""Placeholders of a wave; see :meth:`Study.at`."""
SUFFIX = "-people"
"""Suffix of a calibration from a study's own votes, so that it does not replace the study."""


class Parameters(Written):
    """Parameters of a run, which ``runs.parameters`` keeps as JSON."""

    model_config = documented()

    @classmethod
    def stored(cls, text: str) -> Self:
        """Read what a run of this or an earlier version kept.

        A field that this version does not know is left out, and one that it added has its default.

        Raise ValueError if a field has a value that this version does not take.
        """
        return cls.model_validate(_known_fields(cls, with_prompts(json.loads(text))))


def with_prompts(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a study with its one ``prompt`` as the list ``prompts``.

    Files may name one prompt, and parameters that were stored before a study took several do.

    Raise ValueError if both are given.
    """
    if "prompt" not in given:
        return given
    if "prompts" in given:
        raise ValueError("prompt and prompts are both given. Give the list prompts only.")
    rest = {name: value for name, value in given.items() if name != "prompt"}
    one = given["prompt"]
    return {**rest, "prompts": one if isinstance(one, list) else [one]}


def _known_fields(model: type[BaseModel], given: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the fields that a model has, also in its sub-models."""
    fields = {name: field.annotation for name, field in model.model_fields.items()}
    return {
        name: _known_fields(kind, value)
        if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, BaseModel)
        else value
        for name, value in given.items()
        for kind in [fields.get(name)]
        if name in fields
    }


class Study(Parameters):
    """Design of an audit: questions, perturbations, judges and votes."""

    judges: list[str] = Field(
        title="Cost: judges",
        default=OFFLINE,
        min_length=1,
        json_schema_extra={"items": {"type": "string", "enum": list(JUDGES)}},
    )
    """Judges to audit, as in openai/gpt-5.4-mini; each gets all ballots. The judges
    offline/... are simulated, not language models, and free."""
    limit: int | None = Field(title="Cost: questions", default=None, ge=1, le=LARGEST_INTEGER)
    """Maximum number of questions, balanced over categories, as in 20. Empty: all. A finding needs
    at least 10."""
    votes_per_pair: int = Field(title="Cost: votes per pair", default=2, ge=1, le=100)
    """Votes per judge and pair, or per answer if the prompt shows one, as in 2: one in each order.
    Must be even in mode balanced if a prompt compares two."""
    budget_usd: float | None = Field(
        title="Cost: budget in US dollars", default=None, gt=0, allow_inf_nan=False
    )
    """Maximum cost of a run, in US dollars, as in 2.5. Empty: no limit. Calls that could exceed it
    are not made."""
    perturbations: list[str] = Field(
        title="Cost: perturbations",
        default=CLASSIC,
        min_length=1,
        json_schema_extra={"items": {"type": "string", "enum": list(PERTURBATIONS)}},
    )
    """Changes made to the target answer, each tested by itself; each adds calls for its
    experimental pairs and for its shams."""
    prompts: list[str] = Field(
        title="Cost: judge prompts",
        default=["pair_v2"],
        min_length=1,
        json_schema_extra={"items": {"type": "string", "enum": list(PROMPTS)}},
    )
    """Judge prompts. Each judge is asked under each of them, and judges under different prompts are
    compared with one another."""
    sham: Sham = Field(title="Cost: sham", default="first")
    """Recipe of the sham (meaning-free edit) that shifts are measured against: the perturbation's
    first or second recipe, or both (their difference is reported). With none, as in the papers,
    shifts are measured against the control, which saves a third of the calls."""
    replicates: bool = Field(title="Cost: replicates", default=False)
    """Also ask about each unperturbed pair a second time, to separate noise from the effect of any
    edit."""
    reworded: bool = Field(title="Cost: reworded prompts", default=False)
    """Also ask about each unperturbed pair in other words (with each variant of the judge prompts)
    and once more in the same words (replicates), to see how many verdicts depend on the wording."""
    stop: Stop = Field(title="Cost: early stopping", default="none")
    """Ask for votes one after another and stop early: when the verdict can no longer change
    (lossless), or when one answer leads by two votes (pair)."""
    probe: bool = Field(title="Cost: probe for repetition", default=False)
    """Ask for one vote per order if a judge repeats itself in at least 99 of 100 probes."""
    dataset: str = Field(title="Data: dataset", default="bloom", min_length=1)
    """Name of a dataset, such as bloom, or path of a .jsonl, .csv or .parquet file of your own."""
    folder: str | None = Field(title="Data: folder", default=None)
    """Folder with the files of a dataset that is not bundled, such as bias_study."""
    category_column: str | None = Field(title="Data: category column", default=None)
    """Column of your own file that splits results, such as difficulty. Empty: category."""
    pass_label: str | None = Field(title="Data: label of a pass", default=None, min_length=1)
    """Label of people in your own file that counts as a pass, as in ja; their other labels are
    fails. Empty: the usual words, such as pass, yes, true, 1."""
    columns: dict[str, str] = Field(title="Data: columns", default={})
    """Column of voirdire and its name in your own file, as in {"question": "prompt", "anchor":
    "answer_a"}. Then columns that voirdire does not know are left out."""
    name: str = Field(title="Saved as: name", default="quick", pattern=NAME_PATTERN)
    """Name under which results are saved, as in mini. A later run of the same name replaces
    them."""
    wave: str = Field(title="Saved as: wave", default="", max_length=64)
    """Label of this measurement, as in {date}. A new label casts all votes again, which costs as
    much as the first. {date} stands for the scheduled date of the run, {minute} for its scheduled
    date and time."""
    timezone: str = Field(title="Saved as: time zone", default="UTC")
    """Time zone of {date}, {minute} and the schedule, such as Europe/Berlin."""
    mode: Mode = Field(title="Design: mode", default="balanced")
    """balanced: each pair is shown equally often in both orders. paper: positions are drawn at
    random, as in arXiv 2402.10669."""
    seed: int = Field(title="Design: random seed", default=0, ge=0, le=LARGEST_INTEGER)
    """Random seed of templates, shams and positions."""
    checks: Checks = Field(title="Design: validity checks", default="drop")
    """drop: exclude texts that fail a validity check. flag: use them and flag them."""
    gaps_allowed: float = Field(title="Limits: share of gaps allowed", default=0.05, ge=0, le=1)
    """Maximum share of a judge's ballots without a reply, from 0 to 1. A run with more gaps does
    not replace complete results of the same wave. If there are none, its results are saved and
    marked as partial."""
    detects_at: float = Field(title="Limits: detects at", default=DETECTS_AT, gt=0, lt=1)
    """Share of flaws, between 0 and 1, that a judge must detect, by the lower bound of its
    interval, for the finding `detects`."""
    too_fast_seconds: float = Field(
        title="Limits: too fast, in seconds", default=TOO_FAST_SECONDS, ge=0, allow_inf_nan=False
    )
    """Votes of people that took less than this many seconds are excluded, and their number is
    reported."""
    patience_seconds: float = Field(
        title="Limits: patience, in seconds", default=PATIENCE_SECONDS, ge=0, allow_inf_nan=False
    )
    """How many seconds a run tries to save while another program holds the warehouse open. Judges
    are still asked meanwhile."""
    thresholds: Thresholds = Field(title="Limits: thresholds", default=DEFAULTS)
    """Limits that decide findings, exclusions and gates. The defaults follow the methods; with
    other values results are hard to compare with other studies."""

    @model_validator(mode="before")
    @classmethod
    def _one_prompt(cls, given: Any) -> Any:
        return with_prompts(given) if isinstance(given, dict) else given

    @field_validator("perturbations", "judges", "prompts")
    @classmethod
    def _each_once(cls, names: list[str]) -> list[str]:
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} given more than once. Give each name once.")
        return names

    @field_validator("timezone")
    @classmethod
    def _of_iana(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, OSError, ValueError) as error:
            raise ValueError(
                "not a time zone. Use a name of the IANA database, such as UTC or Europe/Berlin"
            ) from error
        return name

    @property
    def asks_again(self) -> bool:
        """Whether unperturbed pairs are asked about a second time in the same words."""
        return self.replicates or self.reworded

    def variants(self) -> list[str]:
        """Return the names of the variants of the judge prompts that are asked."""
        if not self.reworded:
            return []
        return sorted({name for prompt in self.prompts for name in variants_of(prompt)})

    def not_reworded(self) -> list[str]:
        """Return the names of the judge prompts that ``reworded`` leaves out, without variants."""
        return [name for name in self.prompts if self.reworded and not variants_of(name)]

    def turn(self) -> int:
        """Return the turn of conversations that is judged: 2 if each prompt shows the one before.

        A folder in FastChat's format has both turns, a table only the judged one.
        """
        return 2 if all(prompt_of(name).places & TURN_PLACES for name in self.prompts) else 1

    def asked(self) -> list[str]:
        """Return the names of the perturbations with the chosen sham recipes."""
        return asked_under(self.perturbations, self.sham)

    def check(self, called: Mapping[str, str] | None = None) -> None:
        """Reject unknown names and unbalanced designs before any call is made.

        Errors name fields by the options that they come from, ``called``, and have a line for
        each problem. Raise LookupError for names that are in no catalogue, with suggestions;
        ValueError for a design that cannot be balanced.
        """
        if unknown := [*self._unknown_names()]:
            raise LookupError("\n".join(unknown))
        if problems := [*self._problems_of_design(called or {})]:
            raise ValueError("\n".join(problems))

    def _unknown_names(self) -> Iterator[str]:
        named = (
            (self.perturbations, PERTURBATIONS.require),
            (self.judges, JUDGES.require),
            (self.prompts, label_of),
        )
        for names, require in named:
            for name in names:
                try:
                    require(name)
                except LookupError as error:
                    yield str(error)

    def wave_problems(self) -> Iterator[str]:
        """Name the placeholders in the wave that have no meaning."""
        for name in dict.fromkeys(re.findall(r"\{[^{}]*\}", self.wave)):
            if name not in WAVE_PLACES:
                known = " and ".join(WAVE_PLACES)
                yield f"wave ({self.wave!r}): {name} stands for nothing. Use {known}, or no braces."

    def _problems_of_design(self, called: Mapping[str, str]) -> Iterator[str]:
        said = {
            field: f"{called.get(field, field)} ({getattr(self, field)})"
            for field in ("votes_per_pair", "stop", "detects_at")
        }
        yield from self.wave_problems()
        yield from self._problems_of_models()
        labels = [label_of(name) for name in self.prompts]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            yield f"{', '.join(twice)} given more than once. Give each prompt once."
        alone = [label for label in labels if prompt_of(label).pointwise]
        early = [said["stop"]] if self.stop != "none" else []
        early += [called.get("probe", "probe")] if self.probe else []
        asking = f"{' and '.join(early)} {'needs' if len(early) == 1 else 'need'}"
        if alone and early:
            yield (
                f"{asking} pairs in both orders, but the judge prompt {alone[0]!r} shows one "
                f"answer. Leave {'it' if len(early) == 1 else 'both'} out."
            )
        if self.reworded and not self.variants():
            known = sorted(name for name in PROMPTS if PROMPTS[name].variants)
            yield (
                f"reworded needs variants of a prompt; without any: {', '.join(self.prompts)}. Add "
                f"a table [variants.NAME] to a prompt of your own, or use {' or '.join(known)}."
            )
        if self.mode == "paper" and early:
            yield (
                f"{asking} each pair in both orders, but mode 'paper' draws positions at random. "
                "Use mode 'balanced'."
            )
        if self.detects_at <= self.thresholds.overlooks_below:
            yield (
                f"{said['detects_at']} must be greater than thresholds.overlooks_below "
                f"({self.thresholds.overlooks_below}), or a judge could both detect and overlook."
            )
        if self.mode == "balanced" and self.votes_per_pair % 2 and len(alone) < len(labels):
            yield (
                f"{said['votes_per_pair']} must be even in mode 'balanced'. Use an "
                "even number, or mode 'paper'."
            )

    def _problems_of_models(self) -> Iterator[str]:
        """Name judges whose model name does not tell the provider, and say what to write."""
        # Imported here, as the commands that ask no judge do without.
        from tasks.engine.model_names import without_provider

        asked = [JUDGES[name] for name in self.judges if not provider_of(name).simulated]
        unknown = without_provider([judge.model for judge in asked])
        for judge in asked:
            if (model := judge.model) in unknown:
                yield (
                    f"{judge.judge} has the model {model!r}, which does not begin with a provider "
                    f"that litellm knows. For an OpenAI-compatible endpoint (api_base) write "
                    f"'hosted_vllm/{model}' or 'openai/{model}' as its model in "
                    f"{PROVIDERS.files[judge.provider].name}; "
                    "https://docs.litellm.ai/docs/providers lists all providers."
                )

    def at(self, moment: datetime) -> "Study":
        """Return the study with the wave's date and time, and digests of the user's own prompts.

        A name that is in no catalogue is kept: ``check`` rejects it.
        """
        local = moment.astimezone(ZoneInfo(self.timezone))
        wave = self.wave.replace("{date}", f"{local:%Y-%m-%d}")
        # With its offset: where clocks are set back, an hour of the day comes twice.
        wave = wave.replace("{minute}", local.isoformat(timespec="minutes"))
        prompts = [label_of(name) if is_known(name) else name for name in self.prompts]
        return self.model_copy(update={"wave": wave, "prompts": prompts})

    def can_spend(self) -> bool:
        """Tell whether a run may cost money: a judge is neither simulated, local nor free."""
        asked = ((JUDGES[judge], provider_of(judge)) for judge in self.judges if judge in JUDGES)
        return any(
            not (provider.simulated or provider.serve or judge.usd_per_million == FREE)
            for judge, provider in asked
        )

    def fingerprint(self) -> str:
        """Return a digest of everything that determines the ballots and the results."""
        # Imports Polars, which the start of a command does without.
        from tasks.datasets import DATASETS

        own = DATASETS.own.get(self.dataset, Path(self.dataset))
        inside = own.rglob("*") if own.is_dir() else ()
        files = [own, *sorted(inside), *sorted(Path(self.folder or os.devnull).glob("*"))]
        data = [file_digest(file) for file in files if file.is_file()]
        asked = [
            [
                JUDGES[name].model_dump(),
                provider_of(name).model_dump(),
                usable_api_base(provider_of(name)),
            ]
            for name in self.judges
        ]
        # How long a file is waited for changes no result.
        decides = self.model_dump(exclude={"patience_seconds"})
        return content_key(decides, data, asked, code_digest())
