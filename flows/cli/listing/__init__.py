"""`voirdire list`: every name that an option accepts, and what a name means."""

import json
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from flows.cli.listing.documented import documented, without_markup, wrapped
from flows.cli.printing.live import Printer
from flows.cli.printing.tables import plain_table
from flows.cli.printing.terminal import say
from flows.studies import STUDIES
from schemas.conclusions import RECOMMENDATIONS
from schemas.results import (
    AGREED_BY,
    BEST_DETECTED,
    BEYOND_CHANCE,
    DETECTED,
    IN_LOGITS,
    MEAN_DETECTED,
    MEAN_SCORED,
)
from tasks.conclusions.derived_columns import DERIVED
from tasks.datasets import DATASETS
from tasks.gates.words import SUBJECTS, WITH_LABELS
from tasks.kit.catalogue import Catalogue
from tasks.kit.defaults import DEFAULTS
from tasks.metrics import METRICS
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, PROVIDERS, provider_of
from tasks.readers.formats import FORMATS
from tasks.reporting import wording
from tasks.reporting.wording import count, gate_definitions, glossary
from tasks.statistics import STATISTICS, Row, Statistic
from tasks.validation.unknown_names import UnknownNameError, unknown
from warehouse.descriptions import column_meanings, marts, picked_columns
from warehouse.peek import near

HEADINGS = {
    "n": (
        "number of samples with a shift; of position: votes; without perturbations: ballots",
        "mps",
    ),
    "shift": (
        "mean preference shift (MPS) toward the changed answer, over the sham where there is one",
        "mps_sham",
    ),
    "over control": ("mean preference shift over the control, the unchanged answer", "mps"),
    "sham": ("mean preference shift of the sham over the control", "sham_shift"),
    "ASR": ("attack success rate", "asr"),
    "floor": ("attack success rate of the sham, which noise and any edit cause", "sham_floor"),
    "PC": ("position consistency", "position_consistency"),
    "valid": ("share of ballots with a valid vote", "valid_rate"),
    "first slot": ("share of votes for the answer shown first", "first_pick_share"),
    "logits": (
        "effect of the first slot in logits, adjusted for the quality of the answers",
        "position_kappa",
    ),
    "ties": ("share of ties among valid votes", "tie_rate"),
    "beyond chance": (
        "how far the right verdicts are more than chance would give, of readable ones",
        "accuracy_beyond_chance",
    ),
    "with people": ("chance of agreeing with a person on a question (S1)", "s1_macro"),
    "MPS": ("mean preference shift, over the sham where there is one", "mps_sham"),
    "dASR": ("attack success rate above its floor", "dasr"),
    "LOS": ("log-odds shift", "los"),
    "DP": (
        "detection power: share of flaws detected, 1 - ASR / floor (of samples in both)",
        "detection_power",
    ),
    "D": ("share of flaws detected, from mean scores", "detection_share"),
}
"""Column of a table or of the report -> its meaning, and the statistic that it shows.

Columns named like their statistic, such as ``accuracy``, are not repeated here."""


CALIBRATE_ROWS = {
    "agreement": "share of items on which judge and people give the same label",
    "by chance": "agreement that the frequencies of the labels alone would give",
    "most frequent label": "agreement of a judge that always gives people's most frequent label",
    "kappa": "Cohen's kappa: agreement beyond chance, 0 by chance and 1 at best",
    "kappa, linear": "Cohen's kappa of grades, weighted by their distance",
    "kappa, quadratic": "Cohen's kappa of grades, weighted by their squared distance",
    "TPR": "true positive rate: share of the items that people pass which the judge passes",
    "TNR": "true negative rate: share of the items that people fail which the judge fails",
    "Spearman": "rank correlation of grades",
    "Kendall": "rank correlation of grades: Kendall's tau-b, which allows for ties",
    "mean error": "mean distance of the judge's grade from people's",
    "bias": "pass rate or mean grade of the judge minus that of people",
    "people, mean error": "mean distance of each person's grade from the mean of the others",
    "PPI++": "prediction-powered inference: the judge's mean over all items, corrected by its "
    "errors on the items that people labelled, which must be a random sample",
    "Rogan-Gladen": "the judge's pass rate over all items, corrected by its TPR and TNR, which "
    "must be the same on labelled and other items",
    "alt_test": "alternative annotator test: whether the judge may replace human annotators, by "
    "its winning rate, which must be at least .5",
    "people": "agreement of each person with the other people, each left out in turn",
    "p vs rest": "adjusted p-value of the difference between a slice and all other items",
    "winning rate": "share of people whom the judge may replace, being worse by less than epsilon",
    "AP": "advantage probability: chance that the judge aligns with the other people at least as "
    "well as the person left out",
    "human AP": "chance that a person aligns with the others at least as well as the judge",
    "tied": "chance that judge and person align equally well with the others",
    "ceiling": "agreement of people with each other, on the items that the judge labelled too",
    "ratio": "the judge's agreement with single people, divided by the ceiling",
    "alpha": "Krippendorff's alpha of the people and the judge",
}
CHANGED = (
    "how far the {} differ between two waves on the same prompts: 0 if no more than within a wave, "
    "2 if each wave always repeats itself and the two never agree"
)
ADVISED = (
    "what the gates of a judge say together, in the first lines of an audit; the policy below them "
    "says when"
)
TABLE_WORDS = {
    "audit": {
        **dict.fromkeys(RECOMMENDATIONS, ADVISED),
        "limit": "threshold of a gate (`tolerance` in mart.scorecard), set by the study",
        "suspect": "a change since the baseline that one wave shows and the next must confirm",
        "alert": "a change since the baseline that the judge's next wave confirmed",
        "quiet": "a comparison of two waves that raised no suspicion; only the gate drift says "
        "whether a change is excluded",
    },
    "calibrate": CALIBRATE_ROWS,
    "plan": {
        "cast": "votes that are already in the warehouse",
        "calls": "votes still to be asked for",
        "at most": "US dollars that a budget reserves",
        "with sham": "samples whose sham has the size of the perturbed text",
        "dropped": "texts that failed a validity check, or that no template could change",
        "smallest": "the smallest shift that the samples detect with 80 % power (raw p below .05)",
        "spread": "standard deviation of the shifts of a judge, measured or assumed (`source`)",
    },
    "sql --ask cost_per_judge_per_night": {
        "night": "day (UTC) of the first vote of a wave or, where votes have no wave, of the votes",
    },
    "sql --ask what_drifted": {
        "since": "the wave that made a change suspect",
        "rating_drift": "change of the mean rating, pass rate or share of labels chosen, of "
        "unperturbed answers",
        "rating_shift_drift": "change of the shift of ratings under a perturbation",
        "text_drift": CHANGED.format("texts of replies, white space and case aside,"),
        "token_drift": CHANGED.format("probabilities of first tokens"),
    },
    "gate": {
        "invalid replies": "share of the ballots whose reply has no verdict, with its limit",
        "gap": "share of votes for the answer shown first, minus one half",
        IN_LOGITS: "size of a bias in logits, which decides where pairs are too easy",
        DETECTED: "share of flaws detected: DP or, where it has too few questions, D",
        BEST_DETECTED: "the same of the kind of flaw that the judge detects best",
        MEAN_DETECTED: "the same, as the mean over all kinds of flaws",
        MEAN_SCORED: "the mean of D over all kinds of flaws, where that of DP does not decide",
        "agreement lost": "agreement of judge and people, compared with people among themselves: "
        "the share that is lost",
        "Bennett's S": "agreement beyond chance of two answers: 2 s - 1, s being the share of "
        "right verdicts, with a tie as half a right one",
        BEYOND_CHANCE: "kappa, or the rank correlation of grades, where each item has one label; "
        "of pairs with a right verdict, Bennett's S",
        AGREED_BY["rating_kappa"]: "Cohen's kappa of verdicts or labels with people's",
        AGREED_BY["rating_correlation"]: "Spearman's rank correlation of grades with people's, "
        "which no difference of level changes; `calibrate` also shows the kappa of grades",
        AGREED_BY["accuracy_beyond_chance"]: "2 s - 1 of pairs, s being the share of right "
        "verdicts, with a tie as half a right one",
    },
    "report --number": {
        "least margin": "the smallest share of a tolerance left, over the gates of a judge, at the "
        "worse end of the interval; below 0: exceeded",
    },
    "measure": {
        "estimate": "the number that a statistic gives, with its 95 % interval beside it",
        "p adj.": "the p-value, adjusted over the family of tests",
        "value": "what the gate compares with its limit (`tolerance`), with its interval",
        "why": "number of the footnote that gives the reason",
        "rated by": "a judge, or a person",
    },
}
"""Command -> word of its tables -> its meaning."""

NAMED_GATES = {**{name: gate for gate, name in SUBJECTS.items()}, WITH_LABELS: "agreement"}
"""Name of a gate in a recommendation -> the gate."""

ENDS = {"_low": "lower end", "_high": "upper end", "_p": "p-value", "_reason": "why there is none"}
"""End of the name of a column -> what it is of the column without this end."""

PLACES = 3
"""At most so many tables and marts are named for the meaning of a column."""

LONG = 72
"""Texts of more characters are printed below the name of their setting."""

MAIN_SETTINGS = ("dataset", "judges", "perturbations", "prompts", "sham", "votes_per_pair")
"""What is printed of a study even if it is the default."""

FOLDERS = {"prompts": "judge prompts", "providers": "judges"}
"""Folder of the user's own -> the title of what it holds, where they differ."""


class Listing(NamedTuple):
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
    console = Printer(highlight=False)
    for title, listing in _listings().items():
        if only in (None, title):
            console.print(plain_table(("name", "about"), listing.rows(), title))
            console.print()
            # The command itself names ignored files of other catalogues as it ends.
            if listing.catalogue is STUDIES:
                for problem in STUDIES.unusable.values():
                    say(problem, err=True)


def known_names() -> set[str]:
    """Return every name that :func:`explain` knows."""
    listings = _listings()
    entries = {name for listing in listings.values() for name in listing.about}
    words = {word for meanings in TABLE_WORDS.values() for word in meanings}
    columns = column_meanings()
    explained = {*_rows(), *HEADINGS, *words, *columns, *glossary(DEFAULTS), *NAMED_GATES}
    picked = {column for mart in marts() for column in picked_columns(mart)}
    return {*explained, *picked, *listings, *PROVIDERS, *entries}


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
    if not (meanings := [*entries, *_words(name)]):
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
    if about:
        yield f"{name} (column of a table): {about}. It shows the statistic `{row}`:"
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


def _declared(row: Row) -> str:
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


def _catalogue_entries(name: str, listings: Mapping[str, Listing]) -> Iterator[str]:
    for title, listing in listings.items():
        if name in listing.about and title not in ("statistics", "derived columns"):
            text = listing.text(name) if listing.text else ""
            about, rest = text.partition("\n")[::2]
            about = listing.with_origin(name, about or listing.about[name])
            yield f"{name} ({listing.kind}): {about}\n{rest}".rstrip()


def _provider(name: str) -> Iterator[str]:
    """Explain a provider by its judges."""
    if name in PROVIDERS:
        judges = (f"  {name}/{judge}" for judge in PROVIDERS[name].judges)
        origin = Listing("provider", {}, None, PROVIDERS).with_origin(name, "its judges are")
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
    """Return what a study is about, and its main settings."""
    text = _settings(STUDIES[name].about, STUDIES[name].study, "name", shown=MAIN_SETTINGS)
    return f"{text}\n\nOther settings have their defaults: docs/reference/study-file.md."


def _prompt(name: str) -> str:
    """Return where a prompt is from, how it is read, and its wording."""
    prompt = PROMPTS[name]
    text = _settings(prompt.source, prompt, "prompt", "source", "variants")
    return f"{text}\nvariants = {json.dumps([*prompt.variants])}" if prompt.variants else text


def _perturbation(name: str) -> str:
    """Return what a perturbation does, where it is from and what its sham does."""
    entry = PERTURBATIONS[name]
    sham = f"\nSham: {documented(entry.sham)}" if entry.sham else ""
    return f"{entry.kind}, {entry.bias}: {documented(entry.make)}\n\nSource: {entry.source}.{sham}"


def _dataset(name: str) -> str:
    """Return what a dataset holds, where it is from and its licence."""
    entry = DATASETS[name]
    text = documented(entry.load) or entry.summary
    return f"{text}\n\nSource: {entry.source}.\nLicence: {entry.license}."


def _rows() -> dict[str, Statistic]:
    return {row: entry for entry in STATISTICS.values() for row in entry.gives}


def _listings() -> dict[str, Listing]:
    """Return every list by its title."""
    return {
        "datasets": Listing(
            "dataset", {n: entry.summary for n, entry in DATASETS.items()}, _dataset, DATASETS
        ),
        "perturbations": Listing(
            "perturbation",
            {n: f"{e.kind}, {e.bias}: {e.summary}" for n, e in PERTURBATIONS.items()},
            _perturbation,
            PERTURBATIONS,
        ),
        "judges": Listing(
            "judge",
            {n: _about_judge(n) for n in JUDGES},
            lambda n: _settings(_about_judge(n), JUDGES[n], "judge", "provider", "about"),
            JUDGES,
        ),
        "judge prompts": Listing(
            "judge prompt", {n: p.source for n, p in PROMPTS.items()}, _prompt, PROMPTS
        ),
        "statistics": Listing(
            "statistic", {n: entry.summary for n, entry in STATISTICS.items()}, None, STATISTICS
        ),
        "derived columns": Listing(
            "derived column", {n: entry.about for n, entry in DERIVED.items()}
        ),
        "gates": Listing("gate of the scorecard", gate_definitions(DEFAULTS)),
        "metrics": Listing(
            "metric of `calibrate`",
            {n: entry.summary for n, entry in METRICS.items()},
            lambda n: documented(METRICS[n].prepare),
            METRICS,
        ),
        "formats": Listing(
            "log of another tool",
            {n: f"{entry.title}: {entry.summary}" for n, entry in FORMATS.items()},
            lambda n: documented(FORMATS[n].read),
            FORMATS,
        ),
        "studies": Listing(
            "study", {n: file.about for n, file in STUDIES.items()}, _study, STUDIES
        ),
    }
