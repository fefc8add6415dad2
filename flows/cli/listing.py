"""`voirdire list`: every name that an option accepts, and what a name means."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rich.console import Console

from flows.cli.terminal import plain_table, say
from flows.studies import STUDIES
from tasks.conclusions.derived_columns import DERIVED
from tasks.datasets import DATASETS
from tasks.kit.catalogue import UnknownNameError, unknown
from tasks.metrics import METRICS
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, provider_of
from tasks.statistics import STATISTICS, Row, Statistic

HEADINGS = {
    "n": ("number of samples with a shift; without perturbations, number of ballots", "mps"),
    "shift": (
        "mean preference shift (MPS) toward the changed answer, over the sham where there is one",
        "mps_sham",
    ),
    "over control": ("mean preference shift over the control, the unchanged answer", "mps"),
    "sham": ("mean preference shift of the sham over the control", "sham_shift"),
    "ASR": ("attack success rate", "asr"),
    "floor": ("attack success rate of the sham, which noise alone causes", "sham_floor"),
    "PC": ("position consistency", "position_consistency"),
    "valid": ("share of ballots with a valid vote", "valid_rate"),
    "first slot": ("share of votes for the answer shown first", "first_pick_share"),
    "logits": (
        "effect of the first slot in logits, adjusted for the quality of the answers",
        "position_kappa",
    ),
    "ties": ("share of ties among valid votes", "tie_rate"),
    "with people": ("chance of agreeing with a person on a question (S1)", "s1_macro"),
    "MPS": ("mean preference shift, over the sham where there is one", "mps_sham"),
    "dASR": ("attack success rate above its floor", "dasr"),
    "LOS": ("log-odds shift", "los"),
}
"""Column of a table or of the report -> its meaning, and the statistic that it shows.

Columns named like their statistic, such as ``accuracy``, are not repeated here."""


class Listing(NamedTuple):
    """All names of one kind."""

    kind: str
    about: Mapping[str, str]
    documented: Callable[[str], object] | None = None
    """Returns the object whose docstring explains a name."""


def show_catalogues(only: str | None = None) -> None:
    """Print all names that options accept, or those of one kind."""
    console = Console()
    for title, listing in _listings().items():
        if only in (None, title):
            console.print(plain_table(("name", "about"), list(listing.about.items()), title))
            console.print()
    if only in (None, "studies"):
        for problem in STUDIES.unusable.values():
            say(problem, err=True)


def explain(name: str) -> None:
    """Print every meaning of a name; for statistics, with formula and sources.

    Raises
    ------
    UnknownNameError
        If the name is unknown.
    """
    listings = _listings()
    if name in listings:
        show_catalogues(name)
        return
    meanings = [*_statistics(name), *_catalogue_entries(name, listings)]
    if not meanings:
        known = [*_rows(), *HEADINGS, *listings, *(n for s in listings.values() for n in s.about)]
        near = str(unknown("name", name, sorted(set(known)))).partition(" Known: ")[0]
        raise UnknownNameError(f"{near} `voirdire list` shows all names.")
    say("\n\n".join(meanings))


def _statistics(name: str) -> Iterator[str]:
    """Explain a derived column, a column of a table, a statistic, or a row that one computes."""
    if derived := DERIVED.get(name):
        yield f"{name}: {derived.about}\n\n{inspect.getdoc(derived.made_by)}"
    about, row = HEADINGS.get(name, ("", name))
    if about:
        yield f"{name} (column of a table): {about}. It shows the statistic `{row}`:"
    if entry := {**_rows(), **STATISTICS}.get(row):
        yield (
            f"{entry.name}: computes {', '.join(entry.gives)}; source: {entry.source}\n"
            + "".join(f"  {name}: {_declared(each)}\n" for name, each in entry.rows.items())
            + "\n"
            + f"{inspect.getdoc(entry.measure)}"
        )


def _declared(row: Row) -> str:
    """Describe a row: its family, unit, null and floor."""
    null, floor = row.get("null"), row.get("floor")
    parts = [f"family {row['family']}", f"unit {row['unit']}"]
    parts += [] if null is None else [f"null {null:g}"]
    return ", ".join([*parts, f"floor: {floor}"] if floor else parts)


def _catalogue_entries(name: str, listings: Mapping[str, Listing]) -> Iterator[str]:
    for title, listing in listings.items():
        if name in listing.about and title not in ("statistics", "derived columns"):
            docs = inspect.getdoc(listing.documented(name)) if listing.documented else ""
            yield f"{name} ({listing.kind}): {docs or listing.about[name]}"


def _rows() -> dict[str, Statistic]:
    return {row: entry for entry in STATISTICS.values() for row in entry.gives}


def _listings() -> dict[str, Listing]:
    return {
        "datasets": Listing("dataset", {n: entry.summary for n, entry in DATASETS.items()}),
        "perturbations": Listing(
            "perturbation",
            {n: f"{e.kind}, {e.bias}: {e.summary}" for n, e in PERTURBATIONS.items()},
        ),
        "judges": Listing(
            "judge",
            {
                n: ("simulated: " if provider_of(n).simulated else "") + judge.about
                for n, judge in JUDGES.items()
            },
        ),
        "judge prompts": Listing("judge prompt", {n: p.source for n, p in PROMPTS.items()}),
        "statistics": Listing("statistic", {n: entry.summary for n, entry in STATISTICS.items()}),
        "derived columns": Listing(
            "derived column", {n: entry.about for n, entry in DERIVED.items()}
        ),
        "metrics": Listing(
            "metric of `calibrate`",
            {n: entry.summary for n, entry in METRICS.items()},
            lambda n: METRICS[n].prepare,
        ),
        "studies": Listing("study", {n: file.about for n, file in STUDIES.items()}),
    }
