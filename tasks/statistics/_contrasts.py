"""The rows of two judges on the same items: of many panels at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.statistics._bootstrap import BOOT, boot_ends
from tasks.statistics._duels import Duel, Floats
from tasks.statistics._even import UNEQUAL
from tasks.statistics._intervals import LEVEL
from tasks.statistics._panels import GROUP

BARE = "no interval"


class Part(NamedTuple):
    """What one statistic is of the pairs of one panel."""

    cell: dict[str, str | None]
    """What the pairs have in common, the statistic among it."""
    rows: pl.DataFrame
    """Whose it is, and of how much."""
    found: pl.DataFrame
    """The numbers, or the moments that they follow from."""
    test: tuple[Floats, pl.Series] | None = None
    """p-values, and of what test; none if they are those of the numbers."""
    ends: Floats | None = None
    """Of the bootstrap, shape (2, pairs)."""


def clusters_of(duel: Duel, used: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return of how many clusters each pair uses something."""
    many: NDArray[np.int64] = (duel.panel.sums(used) > 0).sum(axis=0)
    return many


def part_of(
    duel: Duel,
    name: str,
    used: NDArray[np.bool_],
    found: pl.DataFrame,
    *,
    test: tuple[Floats, pl.Series] | None = None,
    ends: Floats | None = None,
    lost: NDArray[np.int64] | None = None,
) -> Part:
    """Say of the numbers of a panel's pairs whose they are, and of how much.

    ``used`` are items by pairs, ``lost`` how many items are missing, if not all others; the rest is
    as in :class:`Part`.
    """
    panel, (first, second) = duel.panel, duel.pairs
    judges, votes = pl.Series(panel.judges), panel.votes
    simulated = pl.Series(panel.simulated, dtype=pl.Boolean)
    control = panel.votes_of("control")
    n = used.sum(axis=0)
    cell = {"statistic": name, **{key: panel.cell[key] for key in (*GROUP, "kind")}}
    rows = pl.DataFrame(
        {
            "judge": judges.gather(first),
            "subgroup": judges.gather(second),
            "n": n,
            "clusters": clusters_of(duel, used),
            "dropped": len(used) - n if lost is None else lost,
            "votes_per_pair": np.maximum(votes[first], votes[second]),
            "simulated": simulated.gather(first) | simulated.gather(second),
            "unequal": (votes[first] != votes[second]) | (control[first] != control[second]),
        }
    )
    return Part(cell, rows, found, test, ends)


def finished(parts: Sequence[Part], found: pl.DataFrame, *, alike: bool = False) -> pl.DataFrame:
    """Return the rows of one statistic; those that need equal votes per pair may be null."""
    own = [part.test for part in parts if part.test]
    test = _by_formula(found)
    if own:
        test = np.concatenate([p for p, _ in own]), pl.concat([names for _, names in own])
    drawn = [part.ends for part in parts if part.ends is not None]
    ends = np.concatenate(drawn, axis=1) if drawn else np.full((2, found.height), np.nan)
    cells = pl.DataFrame([part.cell for part in parts], dict.fromkeys(parts[0].cell, pl.String))
    each = np.repeat(np.arange(len(parts)), [part.rows.height for part in parts])
    rows = pl.concat(part.rows for part in parts).with_columns(
        *cells[each],
        *found.drop("p_value", "clusters", strict=False),
        *boot_ends(ends),
        p_value=pl.Series(test[0]),
        test=test[1],
    )
    estimated = pl.col("estimate").is_not_null()
    silent = ~estimated | (pl.col("clusters") < 2)
    unequal = pl.col("unequal") & alike
    numbers = ("estimate", "low", "high", *BOOT, "standard_error", "df", "p_value")
    return (
        rows.with_columns(
            # By formula there is no test where all clusters are alike.
            p_value=pl.when(~silent).then(pl.col("p_value").fill_nan(None))
        )
        .with_columns(
            method=pl.when(pl.col("p_value").is_null())
            .then("method")
            .otherwise(pl.format("{}; {}", pl.col("method").replace("none", BARE), "test")),
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
        .select(
            "statistic", *GROUP, "kind", "judge", "subgroup", *numbers,
            "n", "clusters", "dropped", "votes_per_pair", "method", "reason", "simulated",
            level=pl.when(pl.col("low").is_not_null()).then(LEVEL),
        )
    )  # fmt: skip


def _by_formula(found: pl.DataFrame) -> tuple[Floats, pl.Series]:
    test = pl.when(pl.col("method") == "Newcombe").then(pl.lit("all sign flips"))
    return numbers_of(found["p_value"]), found.select(test.otherwise(pl.lit("t test"))).to_series()


def numbers_of(values: pl.Series) -> Floats:
    """Return values as numbers, not a number where there is none."""
    return values.cast(pl.Float64).fill_null(np.nan).to_numpy()
