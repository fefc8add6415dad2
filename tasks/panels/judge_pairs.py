"""All pairs of judges on the items that both judged, with estimates of their differences."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.keys import BETWEEN, PANEL
from tasks.counting.cells import UNEQUAL
from tasks.inference.bootstrap import (
    BOOT,
    COLUMNS_AT_ONCE,
    boot_ends,
    is_resampled,
    resampled,
    seed_of_bounds,
    weights,
    widened_percentiles,
)
from tasks.inference.cluster_sums import Floats
from tasks.inference.intervals import LEVEL, arrays
from tasks.inference.linearised_errors import effective_clusters
from tasks.inference.permutation import SEED, DifferenceSums, JudgePairs, Tested
from tasks.panels.panels import JudgePanel, panels, panels_of_prompts, several_prompts

Sides = tuple[Floats, Floats]
"""Cluster sums of the first and of the second judge of each pair."""

Value = Callable[..., Floats]
"""Function from the sides of columns, shape (..., pairs) each, to the estimates."""


class Duel(NamedTuple):
    """A panel as pairs of judges, one per column; clusters without missing values come first."""

    panel: JudgePanel
    pairs: JudgePairs
    order: NDArray[np.intp]
    whole: int
    """Number of clusters without missing values."""

    @classmethod
    def of(cls, panel: JudgePanel) -> "Duel":
        """Pair all judges, ordered by name."""
        first, second = np.triu_indices(len(panel.judges), 1)
        lacking = sum(np.isnan(table) for table in panel.values.values())
        gaps = panel.sums(np.asarray(lacking)).sum(axis=1) > 0
        order = np.argsort(gaps, kind="stable")
        return cls(panel, JudgePairs(first, second), order, int((~gaps).sum()))

    def shared(self, name: str) -> NDArray[np.bool_]:
        """Tell which items have a value of both judges of each pair."""
        known = ~np.isnan(self.panel.values[name])
        both: NDArray[np.bool_] = known[:, self.pairs.first] & known[:, self.pairs.second]
        return both

    def of_pairs(self, name: str, both: NDArray[np.bool_]) -> Sides:
        """Return cluster sums over the items in ``both``, of the first and of the second judge."""
        values = np.nan_to_num(self.panel.values[name])
        if both.all():
            sums = self.panel.sums(values)
            return sums[:, self.pairs.first], sums[:, self.pairs.second]
        first, second = (
            self.panel.sums(np.where(both, values[:, side], 0.0)) for side in self.pairs
        )
        return first, second

    def sums(self, name: str, first: Floats, second: Floats) -> DifferenceSums:
        """Return the differences of cluster sums in the form that permutation takes."""
        whole, rest = self.order[: self.whole], self.order[self.whole :]
        return DifferenceSums(self._by_judge(name)[whole], (first - second)[rest])

    def bounds(self, columns: dict[str, Sides], used: NDArray[np.bool_], value: Value) -> Floats:
        """Return the cluster bootstrap percentile interval of each pair, shape (2, pairs).

        Widened for few clusters; NaN if bootstrapping is switched off.

        ``columns`` are names of values of the panel with their cluster sums of both judges,
        ``used`` tells which items count for each pair, and ``value`` is a function of the sides of
        all columns, in their order.
        """
        count = len(self.pairs.first)
        if not is_resampled(self.panel.clusters):
            return np.full((2, count), np.nan)
        judged, clusters = self._drawn([*columns]), effective_clusters(self.panel.sums(used))
        found = [np.empty((2, 0))]
        for at in range(0, count, COLUMNS_AT_ONCE):
            some = slice(at, at + COLUMNS_AT_ONCE)
            own = [(one[:, some], other[:, some]) for one, other in columns.values()]
            point = value(*((one.sum(axis=0), other.sum(axis=0)) for one, other in own))
            drawn = value(*self._sides(judged, own, some))
            found.append(np.array(widened_percentiles(point, drawn, clusters[some])))
        return np.concatenate(found, axis=1)

    def _by_judge(self, name: str) -> Floats:
        return self.panel.sums(np.nan_to_num(self.panel.values[name]))

    def _drawn(self, names: list[str]) -> list[Floats]:
        """Return, for each column, bootstrap sums of the complete clusters by judge."""
        own = np.hstack([self._by_judge(name) for name in names])
        own[self.order[self.whole :]] = 0.0
        return np.hsplit(resampled(own), len(names))

    def _sides(self, judged: list[Floats], own: list[Sides], some: slice) -> list[Sides]:
        """Return bootstrap sums by pair: complete clusters plus the others."""
        rest = self.order[self.whole :]
        first, second = (judge[some] for judge in self.pairs)
        sides = [(draws[:, first], draws[:, second]) for draws in judged]
        if not rest.size:
            return sides
        table = np.hstack([side[rest] for pair in own for side in pair])
        start = 0
        for drawn in weights(self.panel.clusters):
            more = np.hsplit(drawn[:, rest] @ table, 2 * len(own))
            rows = slice(start, start + len(drawn))
            for side, sums in zip(chain.from_iterable(sides), more, strict=True):
                side[rows] += sums
            start = rows.stop
        return sides


def duels(shifts: pl.DataFrame, values: Mapping[str, pl.Expr]) -> Iterator[Duel]:
    """Yield the pairs that are compared: judges with the same prompt, prompts of the same judge.

    For the parameters see :func:`tasks.panels.panels.panels`.
    """
    compared = [panels(shifts, values)]
    if several_prompts(shifts):
        compared.append(panels_of_prompts(shifts, values, by=["judge"]))
    for panel in chain.from_iterable(compared):
        if len(panel.judges) > 1:
            yield Duel.of(panel)


BARE = "no interval"


class PairTests(NamedTuple):
    """A test of some pairs."""

    p_value: Floats
    name: pl.Series
    seed: pl.Series
    """Seed of its random draws; null where it draws none."""


def swapped(tested: Tested) -> PairTests:
    """Describe a test that swapped the labels of the two judges of each pair."""
    swaps, exhaustive = pl.Series(tested.swaps), pl.Series(tested.exhaustive)
    every, drawn = pl.format("all {} swaps", swaps), pl.format("{} random swaps", swaps)
    found = pl.select(
        name=pl.when(exhaustive).then(every).otherwise(drawn),
        seed=pl.when(~exhaustive).then(pl.lit(SEED, pl.Int64)),
    )
    return PairTests(tested.p_value, found["name"], found["seed"])


class PairStatistic(NamedTuple):
    """One statistic of all pairs of one panel."""

    cell: dict[str, str | None]
    """Key columns that the pairs have in common, the statistic among them."""
    rows: pl.DataFrame
    """The judges of each pair, and the counts."""
    found: pl.DataFrame
    """The estimates, or the moments that they are computed from."""
    test: PairTests | None = None
    """None if ``found`` has the p-values."""
    ends: Floats | None = None
    """Bootstrap interval, shape (2, pairs)."""


def clusters_of(duel: Duel, used: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of clusters in which each pair uses some item."""
    many: NDArray[np.int64] = (duel.panel.sums(used) > 0).sum(axis=0)
    return many


def names_of(duel: Duel) -> dict[str, pl.Series]:
    """Return the judge and prompt of each pair, and the other (``subgroup``).

    The other is named with its prompt if that is not the same.
    """
    units, (first, second) = duel.panel.units, duel.pairs
    pairs = [(units[one], units[two]) for one, two in zip(first, second, strict=True)]
    columns: dict[str, Any] = {
        "judge": [judge for (judge, _), _ in pairs],
        "prompt": [prompt for (_, prompt), _ in pairs],
        "subgroup": [
            other if own == prompt else f"{other}{BETWEEN}{prompt}"
            for (_, own), (other, prompt) in pairs
        ],
    }
    return {name: pl.Series(name, texts, pl.String) for name, texts in columns.items()}


def part_of(
    duel: Duel,
    name: str,
    used: NDArray[np.bool_],
    found: pl.DataFrame,
    *,
    test: PairTests | None = None,
    ends: Floats | None = None,
    lost: NDArray[np.int64] | None = None,
) -> PairStatistic:
    """Combine the estimates of a panel's pairs with their judges and counts.

    ``used`` are items by pairs, ``lost`` the number of missing items, by default all others; for
    the rest see :class:`PairStatistic`.
    """
    panel, (first, second) = duel.panel, duel.pairs
    votes = panel.votes
    simulated = pl.Series(panel.simulated, dtype=pl.Boolean)
    control = panel.votes_of("control")
    n = used.sum(axis=0)
    keys = (*(key for key in PANEL if key != "prompt"), "kind")
    cell = {"statistic": name, **{key: panel.cell[key] for key in keys}}
    rows = pl.DataFrame(
        {
            **names_of(duel),
            "n": n,
            "clusters": clusters_of(duel, used),
            "dropped": len(used) - n if lost is None else lost,
            "votes_per_pair": np.maximum(votes[first], votes[second]),
            "simulated": simulated.gather(first) | simulated.gather(second),
            "unequal": (votes[first] != votes[second]) | (control[first] != control[second]),
        }
    )
    return PairStatistic(cell, rows, found, test, ends)


def finished(
    parts: Sequence[PairStatistic], found: pl.DataFrame, *, alike: bool = False
) -> pl.DataFrame:
    """Return the rows of one statistic; if ``alike``, pairs with unequal votes get no estimate."""
    own = [part.test for part in parts if part.test]
    test = _by_formula(found)
    if own:
        p_values, *about = zip(*own, strict=True)
        test = PairTests(np.concatenate(p_values), *(pl.concat(series) for series in about))
    drawn = [part.ends for part in parts if part.ends is not None]
    ends = np.concatenate(drawn, axis=1) if drawn else np.full((2, found.height), np.nan)
    cells = pl.DataFrame([part.cell for part in parts], dict.fromkeys(parts[0].cell, pl.String))
    each = np.repeat(np.arange(len(parts)), [part.rows.height for part in parts])
    rows = pl.concat(part.rows for part in parts).with_columns(
        *cells[each],
        *found.drop("p_value", "clusters", strict=False),
        *boot_ends(ends),
        p_value=pl.Series(test.p_value),
        test=test.name,
        seed=test.seed,
    )
    estimated = pl.col("estimate").is_not_null()
    silent = ~estimated | (pl.col("clusters") < 2)
    unequal = pl.col("unequal") & alike
    numbers = ("estimate", "low", "high", *BOOT, "standard_error", "df", "p_value")
    return (
        rows.with_columns(
            # The formula gives no test where all clusters are equal.
            p_value=pl.when(~silent).then(pl.col("p_value").fill_nan(None))
        )
        .with_columns(
            method=pl.when(pl.col("p_value").is_null())
            .then("method")
            .otherwise(pl.format("{}; {}", pl.col("method").replace("none", BARE), "test"))
        )
        .with_columns(
            pl.when(~unequal).then(pl.col(*numbers)),
            method=pl.when(~unequal).then("method").otherwise(pl.lit("none")),
            reason=pl.when(~unequal).then("reason").otherwise(pl.lit(UNEQUAL)),
        )
        .with_columns(
            pl.when(estimated).then(pl.col("n", "clusters")).otherwise(0),
            pl.when(pl.col("low").is_not_null()).then(pl.col(*BOOT)),
        )
        .with_columns(
            seed=pl.coalesce(
                seed_of_bounds(), pl.when(pl.col("p_value").is_not_null()).then("seed")
            ),
            level=pl.when(pl.col("low").is_not_null()).then(LEVEL),
        )
    )


def _by_formula(found: pl.DataFrame) -> PairTests:
    test = pl.when(pl.col("method") == "Newcombe").then(pl.lit("all sign flips"))
    names = found.select(test.otherwise(pl.lit("t test"))).to_series()
    (p_value,) = arrays(found, "p_value")
    return PairTests(p_value, names, none_drawn(found.height))


def none_drawn(pairs: int) -> pl.Series:
    """Return the seeds of a test that draws nothing."""
    return pl.repeat(None, pairs, dtype=pl.Int64, eager=True)
