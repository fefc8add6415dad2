"""Panels: values of several judges on the same items, as arrays of items by judges."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts, Tallies
from schemas.keys import CONDITIONS, PANEL
from tasks.counting.positions import ORDERS, order_score
from tasks.counting.primary_endpoint import BASES, has_shift, over_sham
from tasks.inference.cluster_sums import (
    Floats,
    Numbers,
    all_numbered,
    combined,
    first_of,
    most_common,
)
from tasks.inference.linearised_errors import have_enough
from tasks.kit.defaults import limits


@dataclass(frozen=True)
class JudgePanel:
    """Values of items (rows, sorted by cluster) by judges (columns, sorted by name).

    A column is a judge with its prompt. In most panels all have the same prompt.
    """

    cell: dict[str, Any]
    """Key columns common to all rows; with the prompt if all judges have the same."""
    over_sham: bool
    """Whether shifts are over the sham."""
    shammed: bool
    """Whether any sample has a sham."""
    judges: list[str]
    prompts: list[str]
    """The prompt of each judge."""
    simulated: list[bool | None]
    votes: NDArray[np.int64]
    """Most common number of ballots per pair, by judge."""
    starts: NDArray[np.intp]
    """First row of each cluster."""
    values: dict[str, Floats]
    """Value name -> table; NaN where a judge has no value."""

    def votes_of(self, arm: str) -> NDArray[np.int64]:
        """Return each judge's most common number of votes per pair in ``arm``."""
        numbers = self.values[f"{arm}_votes"]
        found = self.votes.copy()
        some = ~np.isnan(numbers)
        many = some.any(axis=0)
        most = np.where(some, numbers, -1).max(axis=0, initial=-1)
        found[many] = most[many]
        # Usually all pairs of a judge have the same number.
        for judge in np.flatnonzero((some & (numbers != most)).any(axis=0)):
            values, counts = np.unique(numbers[some[:, judge], judge], return_counts=True)
            found[judge] = int(values[counts == counts.max()].max())
        return found

    def simulated_of(self, judges: Sequence[int]) -> bool | None:
        """Tell whether one of these judges is simulated; null if that is unknown."""
        marks = {self.simulated[j] for j in judges}
        return True if True in marks else None if None in marks else False

    @property
    def units(self) -> list[tuple[str, str]]:
        """Each judge with its prompt."""
        return list(zip(self.judges, self.prompts, strict=True))

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return self.starts.size

    def sums(self, values: NDArray[Any]) -> Floats:
        """Sum rows by cluster."""
        own: Floats = values.astype(np.float64)
        if self.clusters == len(own):
            return own
        total: Floats = np.add.reduceat(own, self.starts, axis=0)
        return total

    def among(self, samples: NDArray[np.bool_], judges: NDArray[np.intp]) -> "JudgePanel":
        """Return the panel restricted to some samples and judges."""
        cluster = np.repeat(np.arange(self.clusters), np.diff(self.starts, append=len(samples)))
        return replace(
            self,
            judges=[self.judges[j] for j in judges],
            prompts=[self.prompts[j] for j in judges],
            simulated=[self.simulated[j] for j in judges],
            votes=self.votes[judges],
            starts=np.flatnonzero(np.diff(cluster[samples], prepend=-1)),
            values={name: table[np.ix_(samples, judges)] for name, table in self.values.items()},
        )


def primary_shift() -> pl.Expr:
    """Return the shift of the primary endpoint, with the same base for all judges."""
    base = pl.when("over_sham").then("sham_score").otherwise("control_score")
    return pl.col("experimental_score") - base


def with_primary(shifts: pl.DataFrame) -> pl.DataFrame:
    """Add ``over_sham``, whether a group's shifts are over the sham, for :func:`primary_shift`."""
    return shifts.with_columns(over_sham=_over_sham(_plans(shifts), shifts.height))


def _over_sham(plans: Iterable["_Plan"], rows: int) -> pl.Series:
    over = np.zeros(rows, np.bool_)
    for plan in plans:
        if plan.panel.over_sham:
            over[plan.at] = True
    return pl.Series(over, dtype=pl.Boolean)


class _Plan(NamedTuple):
    """A panel without its values, and where they go."""

    panel: JudgePanel
    samples: int
    at: Numbers
    """Row numbers of the panel in the frame."""
    place: Numbers
    """Index of each row in the flattened (row-major) table of samples by judges."""

    def filled(self, values: Floats) -> Floats:
        """Arrange the values of the frame's rows in a table of shape (samples, judges)."""
        table = np.full(self.samples * len(self.panel.judges), np.nan)
        table[self.place] = values[self.at]
        return table.reshape(self.samples, len(self.panel.judges))


def panels(shifts: pl.DataFrame, values: Mapping[str, pl.Expr]) -> Iterator[JudgePanel]:
    """Yield a panel per dataset, prompt, wave, mode and perturbation, in sorted order.

    ``values`` are expressions for each row's numbers, null where the judge has none.
    """
    if shifts.is_empty():
        return
    plans = _plans(shifts)
    known = shifts.with_columns(over_sham=_over_sham(plans, shifts.height))
    yield from _filled(plans, known, values)


def panels_of_prompts(
    shifts: pl.DataFrame, values: Mapping[str, pl.Expr], *, by: Sequence[str]
) -> Iterator[JudgePanel]:
    """Yield panels of all judges with all prompts, per dataset, wave, mode and perturbation.

    Prompts under which the primary endpoint has another base are in panels of their own. Further
    columns of ``shifts`` may part them (``by``); a ``judge`` among them makes a panel per judge,
    whose columns are its prompts. For the rest see :func:`panels`.
    """
    if shifts.is_empty():
        return
    known = with_primary(shifts)
    cell = [name for name in PANEL if name != "prompt"]
    plans = _plans(known, (*cell, "over_sham", *by), cell)
    yield from _filled(plans, known, values)


def several_prompts(frame: pl.DataFrame) -> bool:
    """Tell whether there is more than one judge prompt."""
    return frame["prompt"].n_unique() > 1


def prompts_together(shifts: pl.DataFrame) -> pl.DataFrame:
    """Add ``together``: the same number for prompts whose judges can be ranked together.

    These share enough questions with a score, directly or by other prompts.
    """
    cell = [name for name in PANEL if name != "prompt"]
    known = with_primary(shifts)
    known = known.filter(primary_shift().is_not_null()).select(
        pl.col(*PANEL, "sample", "cluster").cast(pl.String), "over_sham"
    )
    key = [*cell, "over_sham"]
    asked = known.unique()
    both = asked.join(asked.drop("cluster"), on=[*key, "sample"], suffix="_other").filter(
        pl.col("prompt") < pl.col("prompt_other")
    )
    sizes = both.group_by(*key, "prompt", "prompt_other", "cluster").len()
    groups: dict[tuple[object, ...], dict[str, str]] = {}
    for place in asked.select(*key, "prompt").unique(maintain_order=True).sort("prompt").rows():
        groups.setdefault(place[:-1], {})[place[-1]] = place[-1]
    pairs = sizes.partition_by(*key, "prompt", "prompt_other", as_dict=True)
    for place, shared in sorted(pairs.items(), key=lambda pair: str(pair[0])):
        if have_enough(shared["len"].cast(pl.Float64).to_numpy()):
            first = groups[place[:-2]]
            one, other = first[place[-2]], first[place[-1]]
            for prompt, own in first.items():
                first[prompt] = min(one, other) if own in {one, other} else own
    rows = [
        (*place, prompt, own) for place, first in groups.items() for prompt, own in first.items()
    ]
    schema = {**dict.fromkeys(cell, pl.String), "over_sham": pl.Boolean}
    named = pl.DataFrame(rows, {**schema, "prompt": pl.String, "together": pl.String}, orient="row")
    strings = [pl.col(name).cast(pl.String) for name in PANEL]
    return shifts.with_columns(
        together=with_primary(shifts)
        .select(*strings, "over_sham")
        .join(named, on=[*PANEL, "over_sham"], how="left", maintain_order="left", nulls_equal=True)
        .select(pl.coalesce("together", "prompt"))
        .to_series()
    )


def _filled(
    plans: Iterable[_Plan], known: pl.DataFrame, values: Mapping[str, pl.Expr]
) -> Iterator[JudgePanel]:
    columns = known.select(**{name: value.cast(pl.Float64) for name, value in values.items()})
    numbers = {column.name: column.to_numpy() for column in columns}
    for plan in plans:
        table = {name: plan.filled(column) for name, column in numbers.items()}
        yield replace(plan.panel, values=table)


def _plans(
    shifts: pl.DataFrame, by: Sequence[str] = PANEL, cell: Sequence[str] = PANEL
) -> list[_Plan]:
    names = {*by, "judge", "prompt", "sample", "cluster"}
    numbers = all_numbered(shifts, names)
    group, present = combined([numbers[name] for name in by])
    # The base of the endpoint is known if panels are parted by it.
    base = [name for name in by if name == "over_sham"]
    rows = shifts.select(
        *dict.fromkeys((*cell, "judge", "prompt", "kind", "has_sham", "simulated", "votes", *base))
    )
    if rows["has_sham"].any():
        rows = rows.hstack(shifts.select(has_shift(base).alias(base) for base in BASES))
    # Smaller integer types sort faster.
    order = np.argsort(group.astype(np.min_scalar_type(len(present))), kind="stable")
    ends = np.searchsorted(group[order], np.arange(len(present) + 1))
    unit, _ = combined([numbers["judge"], numbers["prompt"]])
    codes = {"unit": unit, **{name: numbers[name][0] for name in ("sample", "cluster")}}
    parts = (order[first:last] for first, last in pairwise(ends.tolist()))
    return [
        _plan(rows[at], cell, at, **{name: code[at] for name, code in codes.items()})
        for at in parts
    ]


def _plan(
    rows: pl.DataFrame,
    names: Sequence[str],
    at: Numbers,
    *,
    unit: Numbers,
    sample: Numbers,
    cluster: Numbers,
) -> _Plan:
    """Plan the panel of some rows; ``unit`` is a number for each row's judge with its prompt."""
    _, column = np.unique(unit, return_inverse=True)
    seen = first_of(column)
    row, starts = _places(sample, cluster)
    cell = rows[0].select(pl.col(*names, "kind").cast(pl.String)).to_dicts()[0]
    shammed = bool(rows["has_sham"].any())
    panel = JudgePanel(
        cell,
        bool(rows["over_sham"][0])
        if "over_sham" in rows.columns
        else shammed and _over_shams(rows, sample, cluster),
        shammed,
        rows["judge"][seen].cast(pl.String).to_list(),
        rows["prompt"][seen].cast(pl.String).to_list(),
        rows["simulated"][seen].to_list(),
        most_common(column, rows["votes"], len(seen)),
        starts,
        {},
    )
    return _Plan(panel, int(row.max()) + 1, at, row * len(seen) + column)


def _over_shams(rows: pl.DataFrame, sample: Numbers, cluster: Numbers) -> bool:
    """Tell whether the endpoint of a panel with shams is the shift over them."""
    enough = []
    for base in BASES:
        some = rows[base].to_numpy()
        # A sample counts once, however many judges have it.
        _, first = np.unique(sample[some], return_index=True)
        sizes = np.bincount(cluster[some][first], minlength=1).astype(np.float64)
        enough.append(have_enough(sizes))
    return bool(over_sham(*enough))


def _places(sample: Numbers, cluster: Numbers) -> tuple[Numbers, Numbers]:
    """Return the row of each sample, sorted by cluster, and the first row of each cluster."""
    own = np.full(int(sample.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(own, sample, cluster)
    present = np.flatnonzero(np.bincount(sample))
    present = present[np.argsort(own[present], kind="stable")]
    place = np.empty(len(own), np.int64)
    place[present] = np.arange(len(present))
    changes = np.diff(own[present], prepend=-1)
    return place[sample], np.flatnonzero(changes)


ALL = "jury/all"
JURY = CONDITIONS
ITEM = [*JURY, "sample", "cluster"]
NAMES = (*ITEM, "judge", "label")


def jurors(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return each jury member's score on each control pair, in total and by order.

    A jury has two or more members: judges with a score that are neither people nor simulated or, if
    all are simulated, those. Adds ``members``, their number; ``label`` is the pair's, whichever
    judges were asked about it, and null in ``simulated`` becomes false.
    """
    scored = _scores(tallies).with_columns(pl.col("simulated").fill_null(value=False))
    voted = pl.col("score").is_not_null()
    speaking = scored.group_by(*JURY, "judge").agg(
        formula=pl.col("simulated").any(), speaks=voted.any()
    )
    members = (
        speaking.filter("speaks")
        .filter(~pl.col("formula") | pl.col("formula").all().over(JURY))
        .with_columns(members=pl.len().over(JURY))
        .filter(pl.col("members") > 1)
        .select(*JURY, "judge", "members")
    )
    found = scored.join(members, on=[*JURY, "judge"], maintain_order="left")
    return found.with_columns(pl.col(NAMES).cast(pl.String)).with_columns(
        pl.col("label").drop_nulls().first().over(ITEM)
    )


def _scores(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the scores of judges other than people on control pairs, in total and by order."""
    return (
        tallies.filter(pl.col("arm") == "control", ~pl.col("human").fill_null(value=False))
        .with_columns(order_score(order).alias(f"score_{order}") for order in ORDERS)
        .with_columns(score=(pl.col("score_12") + pl.col("score_21")) / 2)
    )


PERSON = ("dataset", "judge")


def people_of(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return ``dataset`` and ``judge`` of the people among the judges."""
    person = tallies.filter(pl.col("human").fill_null(value=False))
    return person.select(pl.col(PERSON).cast(pl.String)).unique()


def of_models(shifts: DataFrame[Shifts], tallies: DataFrame[Tallies]) -> DataFrame[Shifts]:
    """Return the shifts of judges that are not people, as known from ``tallies``."""
    people = people_of(tallies)
    judges = shifts.select(PERSON).unique().select(pl.col(PERSON).cast(pl.String))
    if judges.join(people, on=PERSON, how="semi").is_empty():
        return shifts
    names = [pl.col(name).cast(pl.String) for name in PERSON]
    models = shifts.join(people, left_on=names, right_on=PERSON, how="anti")
    return cast("DataFrame[Shifts]", models)


ALONE = "a single judge: nothing to rank"
WHOLE = np.zeros(1, np.intp)
KnownMask = NDArray[np.bool_]
Places = NDArray[np.intp]


def few_shared() -> str:
    """Give the reason why a judge is not compared that shares too few questions with others."""
    fewest = limits().fewest_questions
    return f"shares too few questions with the other judges: fewer than {fewest}"


def seen(measured: KnownMask, starts: Places, parts: Places = WHOLE) -> NDArray[np.int64]:
    """Count the clusters of each part that have a sample with a value, shape (parts, columns).

    Parameters
    ----------
    measured
        Which samples have a value, shape (samples, columns), sorted by part and cluster.
    starts
        First sample of each cluster.
    parts
        First cluster of each part, such as a perturbation.
    """
    some = np.logical_or.reduceat(measured, starts, axis=0)
    counts: NDArray[np.int64] = np.add.reduceat(some.astype(np.int64), parts, axis=0)
    return counts


def enough(measured: KnownMask, starts: Places, parts: Places = WHOLE) -> KnownMask:
    """Tell where each part has enough clusters with a value, shape (parts, columns).

    For the parameters see :func:`seen`; :mod:`tasks.inference.linearised_errors` defines how many
    are enough.
    """
    sizes = np.add.reduceat(measured.astype(np.float64), starts, axis=0)
    return np.array([have_enough(each) for each in np.split(sizes, parts[1:])])


def sharing(measured: KnownMask, starts: Places, parts: Places = WHOLE) -> KnownMask:
    """Tell which judges share enough clusters of every part, shape (judges,).

    A judge without enough clusters of its own never does. While the others share too few, drop the
    judge without whom the rest share most clusters (in the part where they share fewest). Ties are
    broken by the fewest samples shared with each other judge, then by position. If fewer than two
    are left, none shares.

    For the parameters see :func:`seen`; a column is a judge.

    Examples
    --------
    Of 30 questions, a and b saw all, c ten, d ten others. Dropping c or d leaves ten shared
    questions; both share as many samples with the others, so c, the first, is dropped.
    """
    kept: KnownMask = np.all(enough(measured, starts, parts), axis=0)
    lacking = (~measured[:, kept]).sum(axis=1)
    together = measured.T.astype(np.float64) @ measured
    while kept.sum() > 1 and not enough(lacking[:, None] == 0, starts, parts).all():
        without = seen(lacking[:, None] == ~measured, starts, parts).min(axis=0)
        common = together[:, kept].sum(axis=1) - together.diagonal()
        worst = np.lexsort((common, -without, ~kept))[0]
        kept[worst] = False
        lacking = lacking - ~measured[:, worst]
    several: KnownMask = kept & (kept.sum() > 1)
    return several
