"""`voirdire list`: every name that an option accepts, and what a name means."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rich.console import Console

from flows.cli.terminal import plain_table, say
from flows.studies import STUDIES
from tasks.conclusions.derived_columns import BESIDE
from tasks.datasets import DATASETS
from tasks.kit.catalogue import UnknownNameError, unknown
from tasks.metrics import METRICS
from tasks.perturbations import PERTURBATIONS
from tasks.prompts import PROMPTS
from tasks.providers import JUDGES, provider_of
from tasks.statistics import STATISTICS, Row, Statistic

HEADINGS = {
    "n": ("samples with a shift; ballots where the votes have no attack", "mps"),
    "shift": (
        "mean preference shift (MPS) toward the changed answer, over the sham where there is one",
        "mps_sham",
    ),
    "over control": ("mean preference shift over the control, the unchanged answer", "mps"),
    "sham": ("mean preference shift of the sham over the control", "sham_shift"),
    "ASR": ("attack success rate", "asr"),
    "floor": ("the attack success rate of the sham: what noise alone does", "sham_floor"),
    "PC": ("position consistency", "position_consistency"),
    "valid": ("share of the ballots whose vote is valid", "valid_rate"),
    "first slot": ("share of votes for what is shown first", "first_pick_share"),
    "logits": ("pull of the first slot in logits, whatever the answers' quality", "position_kappa"),
    "ties": ("ties among valid votes", "tie_rate"),
    "with people": ("agreement with a person on a question (S1)", "s1_macro"),
    "MPS": ("mean preference shift, over the sham where there is one", "mps_sham"),
    "dASR": ("attack success rate above its floor", "dasr"),
    "LOS": ("log-odds shift", "los"),
}
"""Column of a closing table or of the report -> what it is, and the row of estimates it shows.

A column that is named like its row, as ``accuracy``, is explained by that."""


class Shelf(NamedTuple):
    """Names of a kind."""

    one: str
    about: Mapping[str, str]
    doc: Callable[[str], object] | None = None
    """What has a docstring for a name."""


def show_catalogues(only: str | None = None) -> None:
    """Print every name that an option takes, or those of one kind."""
    console = Console()
    for title, shelf in _shelves().items():
        if only in (None, title):
            console.print(plain_table(("name", "about"), list(shelf.about.items()), title))
            console.print()
    if only in (None, "studies"):
        for problem in STUDIES.unusable.values():
            say(problem, err=True)


def explain(name: str) -> None:
    """Print all that a name stands for; of what is computed, how.

    Raises
    ------
    UnknownNameError
        If it stands for nothing.
    """
    shelves = _shelves()
    if name in shelves:
        show_catalogues(name)
        return
    told = [*_of_numbers(name), *_on_shelves(name, shelves)]
    if not told:
        known = [*_rows(), *HEADINGS, *shelves, *(n for s in shelves.values() for n in s.about)]
        near = str(unknown("name", name, sorted(set(known)))).partition(" Known: ")[0]
        raise UnknownNameError(f"{near} `voirdire list` shows all there are.")
    say("\n\n".join(told))


def _of_numbers(name: str) -> Iterator[str]:
    """Tell of a statistic, of a row that one makes, and of what stands beside rows."""
    if beside := BESIDE.get(name):
        yield f"{name}: {beside.about}\n\n{inspect.getdoc(beside.made_by)}"
    about, row = HEADINGS.get(name, ("", name))
    if about:
        yield f"{name}, in the table: {about}. Row `{row}`:"
    if entry := {**_rows(), **STATISTICS}.get(row):
        yield (
            f"{entry.name}: gives {', '.join(entry.gives)}; source {entry.source}\n"
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


def _on_shelves(name: str, shelves: Mapping[str, Shelf]) -> Iterator[str]:
    for title, shelf in shelves.items():
        if name in shelf.about and title not in ("statistics", "beside estimates"):
            how = inspect.getdoc(shelf.doc(name)) if shelf.doc else ""
            yield f"{name}, a {shelf.one}: {how or shelf.about[name]}"


def _rows() -> dict[str, Statistic]:
    return {row: entry for entry in STATISTICS.values() for row in entry.gives}


def _shelves() -> dict[str, Shelf]:
    return {
        "datasets": Shelf("dataset", {n: entry.summary for n, entry in DATASETS.items()}),
        "perturbations": Shelf(
            "perturbation",
            {n: f"{e.kind}, {e.bias}: {e.summary}" for n, e in PERTURBATIONS.items()},
        ),
        "judges": Shelf(
            "judge",
            {
                n: ("simulated: " if provider_of(n).simulated else "") + judge.about
                for n, judge in JUDGES.items()
            },
        ),
        "judge prompts": Shelf("judge prompt", {n: p.source for n, p in PROMPTS.items()}),
        "statistics": Shelf("statistic", {n: entry.summary for n, entry in STATISTICS.items()}),
        "beside estimates": Shelf("column", {n: entry.about for n, entry in BESIDE.items()}),
        "metrics": Shelf(
            "metric of calibration",
            {n: entry.summary for n, entry in METRICS.items()},
            lambda n: METRICS[n].prepare,
        ),
        "studies": Shelf("study", {n: file.about for n, file in STUDIES.items()}),
    }
