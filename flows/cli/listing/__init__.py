"""`voirdire list`: every name that an option accepts, and what a name means."""

import json
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from flows.cli.listing.documented import documented, without_markup, wrapped
from flows.cli.meanings import HEADINGS, TABLE_WORDS
from flows.cli.printing.live import Printer
from flows.cli.printing.tables import plain_table
from flows.studies import STUDIES, Study
from schemas.conclusions import RECOMMENDATIONS
from tasks.conclusions.derived_columns import DERIVED
from tasks.datasets import DATASETS
from tasks.gates.explanations import SUBJECTS, WITH_LABELS
from tasks.kit.catalogue import Catalogue
from tasks.kit.command_line import print_notice, say
from tasks.kit.defaults import DEFAULTS, CalibrationThresholds, Thresholds
from tasks.metrics import METRICS
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, PROVIDERS, provider_of
from tasks.readers.formats import FORMATS
from tasks.reporting import wording
from tasks.reporting.advice import rule
from tasks.reporting.wording import count, gate_definitions, glossary
from tasks.statistics import STATISTICS, RowMeaning, Statistic
from tasks.validation.unknown_names import UnknownNameError, unknown
from warehouse.descriptions import FRAMES, column_meanings, grains, marts, picked_columns
from warehouse.path_checks import near

NAMED_GATES = {**{name: gate for gate, name in SUBJECTS.items()}, WITH_LABELS: "agreement"}
"""Name of a gate in a recommendation -> the gate."""

ENDS = {"_low": "lower end", "_high": "upper end", "_p": "p-value", "_reason": "why there is none"}
"""Suffix of a column's name -> its relation to the column without the suffix."""

PLACES = 3
"""At most so many tables and marts are named for the meaning of a column."""

EXPLAINED_SETTINGS: dict[str, type[BaseModel]] = {
    "key of a study file, table [study]": Study,
    "key of a study file, table [study.thresholds]": Thresholds,
    "limit of a calibration, in the parameter thresholds of its flow": CalibrationThresholds,
}
"""What a setting is -> the model that has it."""

LONG = 72
"""Texts of more characters are printed below the name of their setting."""

MAIN_SETTINGS = ("dataset", "judges", "perturbations", "prompts", "sham", "votes_per_pair")
"""Fields of a study that are printed even if they have the default."""

FOLDERS = {"prompts": "judge prompts", "providers": "judges"}
"""Folder of the user's own -> the title of what it holds, where they differ."""


class NameListing(NamedTuple):
    """All names of one kind."""

    kind: str
    about: Mapping[str, str]
    text: Callable[[str], str] | None = None
    """Returns the full text about a name."""
    catalogue: Catalogue[Any] | None = None
    """The catalogue of the names, if the user's own folder can add to it."""

    def rows(self) -> list[tuple[str, str]]:
        """Return each name with what it is, and the file of one that is the user's own."""
        return [(name, self.with_origin(name, about)) for name, about in self.about.items()]

    def with_origin(self, name: str, text: str) -> str:
        """Add to a text about a name the file that it is from, if it is the user's own."""
        own = self.catalogue.own if self.catalogue else {}
        about = without_markup(text)
        return f"{about} (your file {near(own[name])})".strip() if name in own else about


def show_catalogues(only: str | None = None) -> None:
    """Print all names that options accept, or those of one kind."""
    console = Printer()
    for title, listing in _listings().items():
        if only in (None, title):
            console.print(plain_table(("name", "about"), listing.rows(), title))
            console.print()
            # The command itself names ignored files of other catalogues as it ends.
            if listing.catalogue is STUDIES:
                for problem in STUDIES.unusable.values():
                    print_notice(problem)


def known_names() -> set[str]:
    """Return every name that :func:`explain` knows."""
    listings = _listings()
    entries = {name for listing in listings.values() for name in listing.about}
    words = {word for meanings in TABLE_WORDS.values() for word in meanings}
    columns = column_meanings()
    explained = {*_rows(), *HEADINGS, *words, *columns, *glossary(DEFAULTS), *NAMED_GATES}
    explained |= {*RECOMMENDATIONS}
    picked = {column for mart in marts() for column in picked_columns(mart)}
    tables = {name for mart in marts() for name in (mart, f"mart.{mart}")} | _grains().keys()
    settings = {key for model in EXPLAINED_SETTINGS.values() for key in model.model_fields}
    return {*explained, *picked, *listings, *PROVIDERS, *entries, *tables, *settings}


def explain(name: str) -> None:
    """Print every meaning of a name, wrapped to the terminal.

    Raise UnknownNameError if the name is unknown.
    """
    listings = _listings()
    title = FOLDERS.get(name, name)
    if title in listings:
        show_catalogues(title)
        return
    entries = (*_statistics(name), *_catalogue_entries(name, listings), *_provider(name))
    entries = (*entries, *_tables(name), *_setting(name))
    if not (meanings := [*entries, *_words(name)]):
        # Tables and messages write position_gap as "position gap".
        if (underscored := name.replace(" ", "_")) != name and underscored in known_names():
            explain(underscored)
            return
        for listing in listings.values():
            if listing.catalogue and (problem := listing.catalogue.unusable.get(name)):
                raise UnknownNameError(problem)
        everything = "`voirdire list` shows all names, docs/reference/marts.md the marts"
        raise unknown("name", name, sorted(known_names()), everything)
    say(wrapped("\n\n".join(meanings), Printer().width))


def _statistics(name: str) -> Iterator[str]:
    """Explain a derived column, a column of a table, a statistic, or a row that one computes."""
    if derived := DERIVED.get(name):
        yield f"{name} (derived column): {derived.about}.\n\n{documented(derived.made_by)}"
    about, row = HEADINGS.get(name, ("", name))
    if row != name:
        # Worst cases and parts of a cell have a subgroup.
        of = f"statistic = '{row}' and subgroup is null"
        rows = f"select * from mart.numbers where {of}"  # noqa: S608 - to read
        yield (
            f"{name} (column of a table): {about}. It shows the statistic `{row}`, which `{rows}` "
            "selects:"
        )
    if entry := {**_rows(), **STATISTICS}.get(row):
        kind = "statistic" if row == entry.name else f"row of the statistic `{entry.name}`"
        alike: dict[str, list[str]] = {}
        for each, described in entry.rows.items():
            alike.setdefault(_declared(described), []).append(each)
        declared = "\n".join(f"- {', '.join(names)}: {text}" for text, names in alike.items())
        own = STATISTICS.own.get(entry.name)
        place = near(own) if own else f"docs/reference/statistics.md#{entry.name}"
        yield (
            f"{row} ({kind}): {documented(entry.measure, declared)}\n\n"
            f"Source: {entry.source}.\nFor callers in Python: {place}"
        )


def _words(name: str) -> Iterator[str]:
    """Explain a word of a table, a finding, or a column of tables and marts."""
    for command, words in TABLE_WORDS.items():
        if meaning := words.get(name.removeprefix("corrected, ")):
            yield f"{name} (in the tables of `voirdire {command}`): {meaning}."
    if name in RECOMMENDATIONS:
        yield f"{name} (recommendation, by the gates of a judge): {rule(DEFAULTS)} Use: otherwise."
    if meaning := glossary(DEFAULTS).get(name):
        yield f"{name} (finding): {meaning}"
    if (gate := NAMED_GATES.get(name, name)) != name:
        yield f"{name} (gate {gate} of the scorecard): {gate_definitions(DEFAULTS)[gate]}"
    columns = column_meanings()
    for meaning, places in columns.get(name, {}).items():
        more = [count(len(places) - PLACES, "other")] if len(places) > PLACES else []
        yield f"{name} (column of {wording.listing([*places[:PLACES], *more])}): {meaning}."
    described = {place for places in columns.get(name, {}).values() for place in places}
    picked = {mart: known[name] for mart in marts() if name in (known := picked_columns(mart))}
    for mart, (number, row) in picked.items():
        if f"mart.{mart}" in described:
            continue
        see = "" if row == name else f"; see `voirdire list {row}`"
        yield f"{name} (column of mart.{mart}): `{number}` of `{row}`{see}."
    for end, about in ENDS.items():
        base = name.removesuffix(end)
        if base != name and not picked and name not in columns and base in known_names():
            yield f"{name} (column): {about} of `{base}`; see `voirdire list {base}`."


def _tables(name: str) -> Iterator[str]:
    mart = name.removeprefix("mart.")
    if row := dict(grains()).get(mart):
        yield f"mart.{mart} (mart): {row} Its columns: docs/reference/marts.md."
    if row := _grains().get(name):
        yield f"{name} (table): {row} Its columns: docs/reference/tables.md."


def _setting(name: str) -> Iterator[str]:
    """Explain a key of a study file, or of the limits of a calibration."""
    page = " Default and limits: docs/reference/study-file.md."
    for what, model in EXPLAINED_SETTINGS.items():
        if field := model.model_fields.get(name):
            about = " ".join((field.description or "").split())
            end = f" Default: {field.default}." if model is CalibrationThresholds else page
            yield f"{name} ({what}): {about}{end}"


def _grains() -> dict[str, str]:
    return {frame.place().table: frame.grain() for frame in FRAMES}


def _declared(row: RowMeaning) -> str:
    """Describe a row: its unit, the value without an effect, its floor and its family."""
    null, floor = row.get("null"), row.get("floor")
    return ", ".join(
        [
            f"unit {row['unit']}",
            *([] if null is None else [f"{null:g} if there is no effect (null)"]),
            *([f"compared with (floor): {floor}"] if floor else []),
            f"family {row['family']}",
        ]
    )


def _catalogue_entries(name: str, listings: Mapping[str, NameListing]) -> Iterator[str]:
    for title, listing in listings.items():
        if name in listing.about and title not in ("statistics", "derived columns"):
            text = listing.text(name) if listing.text else ""
            about, rest = text.partition("\n")[::2]
            about = listing.with_origin(name, about or listing.about[name])
            yield f"{name} ({listing.kind}): {about}\n{rest}".rstrip()


def _provider(name: str) -> Iterator[str]:
    if name in PROVIDERS:
        judges = (f"  {name}/{judge}" for judge in PROVIDERS[name].judges)
        origin = NameListing("provider", {}, None, PROVIDERS).with_origin(name, "its judges are")
        mark = "simulated, " if PROVIDERS[name].provider.simulated else ""
        yield "\n".join([f"{name} (provider): {mark}{origin}", *judges])


def _settings(about: str, given: BaseModel, *left_out: str, shown: Collection[str] = ()) -> str:
    """Return a text, and the settings that are ``shown`` or differ from their defaults."""
    values, set_ = given.model_dump(mode="json"), given.model_dump(exclude_defaults=True)
    lines = [about, ""]
    for name, value in values.items():
        if name in left_out or name not in {*set_, *shown}:
            continue
        if isinstance(value, str) and len(value) > LONG:
            lines.append(f"{name}:\n{textwrap.indent(value.strip(), '  ')}")
        else:
            lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines)


def _about_judge(name: str) -> str:
    parts = ("simulated" if provider_of(name).simulated else "", JUDGES[name].about)
    return ": ".join(filter(None, parts))


def _study(name: str) -> str:
    text = _settings(STUDIES[name].about, STUDIES[name].study, "name", shown=MAIN_SETTINGS)
    return f"{text}\n\nOther settings have their defaults: docs/reference/study-file.md."


def _prompt(name: str) -> str:
    prompt = PROMPTS[name]
    text = _settings(prompt.source, prompt, "prompt", "source", "variants")
    return f"{text}\nvariants = {json.dumps([*prompt.variants])}" if prompt.variants else text


def _perturbation(name: str) -> str:
    entry = PERTURBATIONS[name]
    sham = f"\nSham: {documented(entry.sham)}" if entry.sham else ""
    return f"{entry.kind}, {entry.bias}: {documented(entry.make)}\n\nSource: {entry.source}.{sham}"


def _dataset(name: str) -> str:
    entry = DATASETS[name]
    text = documented(entry.load) or entry.summary
    return f"{text}\n\nSource: {entry.source}.\nLicence: {entry.license}."


def _rows() -> dict[str, Statistic]:
    return {row: entry for entry in STATISTICS.values() for row in entry.gives}


def _listings() -> dict[str, NameListing]:
    return {
        "datasets": NameListing(
            "dataset", {n: entry.summary for n, entry in DATASETS.items()}, _dataset, DATASETS
        ),
        "perturbations": NameListing(
            "perturbation",
            {n: f"{e.kind}, {e.bias}: {e.summary}" for n, e in PERTURBATIONS.items()},
            _perturbation,
            PERTURBATIONS,
        ),
        "judges": NameListing(
            "judge",
            {n: _about_judge(n) for n in JUDGES},
            lambda n: _settings(_about_judge(n), JUDGES[n], "judge", "provider", "about"),
            JUDGES,
        ),
        "judge prompts": NameListing(
            "judge prompt", {n: p.source for n, p in PROMPTS.items()}, _prompt, PROMPTS
        ),
        "statistics": NameListing(
            "statistic", {n: entry.summary for n, entry in STATISTICS.items()}, None, STATISTICS
        ),
        "derived columns": NameListing(
            "derived column", {n: entry.about for n, entry in DERIVED.items()}
        ),
        "gates": NameListing("gate of the scorecard", gate_definitions(DEFAULTS)),
        "metrics": NameListing(
            "metric of `calibrate`",
            {n: entry.summary for n, entry in METRICS.items()},
            lambda n: documented(METRICS[n].prepare),
            METRICS,
        ),
        "formats": NameListing(
            "log of another tool",
            {n: f"{entry.title}: {entry.summary}" for n, entry in FORMATS.items()},
            lambda n: documented(FORMATS[n].read),
            FORMATS,
        ),
        "studies": NameListing(
            "study", {n: file.about for n, file in STUDIES.items()}, _study, STUDIES
        ),
    }
