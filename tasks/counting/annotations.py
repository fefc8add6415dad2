"""Annotations as arrays, pairs of annotators, and statistics that are functions of sums.

Each statistic is a function of sums over items, so a draw of the cluster bootstrap is a weighted
sum of cluster sums, and all draws of all cells are one matrix product.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.inference import linearised_errors
from tasks.inference.bootstrap import DRAWS, FORMULAS, SEED, bca, by_chance, percentiles, resampled
from tasks.inference.cluster_sums import Sums, combined, first_of, numbered
from tasks.inference.intervals import EMPTY, LEVEL, SINGLE, arrays, proportions, table_moments
from tasks.inference.linearised_errors import correction

Codes = NDArray[np.int32]
HUMANS, JUDGES = "humans", "judges"
PERSON = "none"
"""The prompt in estimates about people."""
ONE_LABEL = "one label only: chance agreement is certain"
NO_SCALE = "the labels have no order"
ALIKE_OR_FEW = "all bootstrap draws are equal, or too few have the statistic: no interval"
TOO_MUCH = "too many pairs of annotators for a bootstrap: no interval"
MOST_PRODUCTS, AT_ONCE = 5e10, 4e6
WHO = ("annotator", "prompt", "wave")


@dataclass(frozen=True)
class Block:
    """The annotations of one dataset and aspect; items are sorted by cluster."""

    dataset: str
    aspect: str | None
    who: pl.DataFrame
    """One row per annotator, prompt and wave, with ``human``, ``simulated``, ``votes``."""
    labels: list[str]
    scale: Sums | None
    """Numeric value of each label, in ascending order; None unless every label has one."""
    codes: Codes
    """Index of the label, -1 if missing; shape (items, annotators)."""
    starts: NDArray[np.int64]
    """The first item of each cluster."""
    alone: Sums | float = 0.0
    """How many items of each annotator are left out because nobody else labelled them."""

    def shared(self) -> "Block":
        """Return the items that several annotators labelled, all that agreement depends on."""
        given = self.codes >= 0
        several = given.sum(axis=1) > 1
        if several.all() or not several.any():
            return self
        cluster = np.searchsorted(self.starts, np.flatnonzero(several), side="right")
        return replace(
            self,
            codes=self.codes[several],
            starts=np.flatnonzero(np.diff(cluster, prepend=-1)).astype(np.int64),
            alone=given[~several].sum(axis=0).astype(np.float64),
        )

    @property
    def human(self) -> NDArray[np.bool_]:
        """Tell which annotators are people."""
        return self.who["human"].to_numpy()

    def part(self, name: str) -> str:
        """Return the subgroup ``name``, prefixed with this block's aspect."""
        return ": ".join(filter(None, (self.aspect, name)))

    def groups(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield groups of two or more comparable annotators: people; judges with the same prompt.

        Simulated judges are included only if no judge of the prompt and wave is a real model.
        """
        if self.human.sum() > 1:
            yield HUMANS, self.human
        models = self.who.with_row_index("at").filter(~pl.col("human"))
        for _, asked in models.group_by("prompt", "wave", maintain_order=True):
            real = asked.filter(pl.col("simulated").ne_missing(other=True))
            rows = asked if real.is_empty() else real
            if rows.height > 1:
                chosen = np.zeros(self.who.height, dtype=bool)
                chosen[rows["at"].to_numpy()] = True
                yield JUDGES, chosen

    def counts(self, chosen: NDArray[np.bool_]) -> Sums:
        """Return how many chosen annotators gave each label, shape (items, labels)."""
        codes = self.codes[:, chosen]
        return np.stack([(codes == k).sum(axis=1) for k in range(len(self.labels))], axis=1).astype(
            np.float64
        )

    def cells(self, at: NDArray[np.intp], part: str) -> pl.DataFrame:
        """Return the key columns for estimates of these annotators, one row each."""
        return self.who[at].with_columns(
            judge=pl.col("annotator"), dropped=pl.lit(0), subgroup=pl.lit(self.part(part))
        )

    def group(
        self, name: str, chosen: NDArray[np.bool_], dropped: int = 0, part: str = ""
    ) -> pl.DataFrame:
        """Return the key columns for estimates of these annotators as a group: one row."""
        return self.cells(np.flatnonzero(chosen)[:1], part).with_columns(
            judge=pl.lit(name),
            dropped=pl.lit(dropped),
            simulated=pl.lit(self.who.filter(pl.Series(chosen))["simulated"].max(), pl.Boolean),
        )


class CountColumns(NamedTuple):
    """Where a statistic's counts stand among the sums, and its reason when undefined."""

    n: int
    hits: int | None = None
    """Index of the hits of a proportion hits / n; its interval is Wilson's."""
    undefined: str = EMPTY
    several: bool = False
    """Whether an item may have several hits, which vary less than as many separate items."""


Features = Callable[[slice], Sums]
Solve = Callable[[Sums], dict[str, Sums]]


Asked = tuple[pl.DataFrame, Features, Solve, dict[str, CountColumns]]
"""Arguments of :func:`estimates` after the block."""


def measured(
    annotations: pl.DataFrame, asked: Callable[[Block], Iterable[Asked]], *, in_pairs: bool = False
) -> DataFrame[Estimates]:
    """Return the estimates that ``asked`` names, of each dataset and aspect with two annotators.

    ``in_pairs``: they depend on the items that several annotators labelled. Without bootstrap,
    whose draws are of all items, the others are left out: there may be many, and few shared ones.
    """
    found = blocks(_by_several(annotations))
    if in_pairs and not by_chance():
        found = [block.shared() for block in found]
    return collected(
        [
            rows
            for block in found
            for of_cells in asked(block)
            for rows in estimates(block, *of_cells)
        ]
    )


def _by_several(annotations: pl.DataFrame) -> pl.DataFrame:
    """Leave out datasets and aspects with one annotator, who agrees with nobody."""
    key = ("dataset", "aspect")
    several = (
        annotations.lazy()
        .group_by(key)
        .agg(pl.any_horizontal(pl.col(WHO).n_unique() > 1).alias("several"))
        .filter("several")
        .collect()
    )
    if several.height == annotations.select(key).n_unique():
        return annotations
    return annotations.join(several.select(key), on=key, how="semi", nulls_equal=True)


def blocks(annotations: pl.DataFrame) -> list[Block]:
    """Return the annotations of each dataset and aspect as arrays."""
    if annotations.is_empty():
        return []
    about = annotations.select(pl.col("dataset", "aspect").cast(pl.String))
    parts = about.unique().sort(pl.all(), nulls_last=True).rows()
    return [
        block_of(
            dataset,
            aspect,
            annotations
            if len(parts) == 1
            else annotations.filter(
                about["dataset"] == dataset, about["aspect"].eq_missing(pl.lit(aspect))
            ),
        )
        for dataset, aspect in parts
    ]


def block_of(dataset: str, aspect: str | None, rows: pl.DataFrame) -> Block:
    """Return the annotations of one dataset and aspect as arrays.

    Rows are matched by integer codes: comparing the strings of millions of rows takes seconds.
    """
    column, _ = combined([numbered(rows[name]) for name in WHO])
    cluster = numbered(rows["cluster"])[0]
    row, _ = combined([numbered(rows[name]) for name in ("cluster", "item")])
    label, _ = combined([numbered(rows["label"])])
    who = (
        rows.lazy()
        .select("human", "simulated", "votes", column=pl.Series(column))
        .group_by("column")
        .agg(pl.col("human").any(), pl.col("simulated").max(), votes=pl.col("votes").mode().max())
        .sort("column")
        .collect()
    )
    names = rows.select(pl.col(WHO).cast(pl.String))[first_of(column)]
    lowest = rows.lazy().group_by(label=pl.Series(label)).agg(pl.col("value").min()).collect()
    texts = rows["label"].gather(first_of(label)).cast(pl.String)
    labels = lowest.with_columns(text=texts.gather(lowest["label"])).sort("value", "text")
    place = np.empty(labels.height, np.int32)
    place[labels["label"].to_numpy()] = np.arange(labels.height)
    first = first_of(row)
    codes = np.full((len(first), who.height), -1, dtype=np.int32)
    codes[row, column] = place[label]
    values = labels["value"]
    return Block(
        dataset,
        aspect,
        names.with_columns(pl.col("prompt").fill_null(PERSON), *who.drop("column")),
        labels["text"].to_list(),
        None if values.null_count() else values.to_numpy(),
        codes,
        np.flatnonzero(np.diff(cluster[first], prepend=-1)).astype(np.int64),
    )


def estimates(
    block: Block,
    cells: pl.DataFrame,
    features: Features,
    solve: Solve,
    rows: dict[str, CountColumns],
) -> list[pl.DataFrame]:
    """Return the estimates of all cells with BCa intervals of a cluster bootstrap.

    Proportions get Wilson intervals instead, and bootstrap percentiles as a cross-check.

    ``cells`` has one row per cell, as :meth:`Block.cells` makes them; ``features`` makes of a slice
    of them what is summed over items, shape (items, cells, features); ``solve`` makes of sums,
    shape (..., cells, features), each statistic of ``rows``, shape (..., cells), NaN where
    undefined.
    """
    if cells.is_empty():
        return []
    wide = features(slice(0, 0)).shape[2]
    groups = len(block.starts)
    affordable = cells.height * wide * groups * DRAWS <= MOST_PRODUCTS
    step = max(1, int(AT_ONCE // (wide * max(len(block.codes), DRAWS))))
    found = []
    for start in range(0, cells.height, step):
        part = slice(start, start + step)
        own = features(part)
        # Usually each item is a cluster of its own.
        sums = own if groups == len(own) else np.add.reduceat(own, block.starts, axis=0)
        point = solve(sums.sum(axis=0))
        drawn = without = None
        if by_chance() and affordable and groups > 1:
            flat = resampled(sums.reshape(groups, -1))
            drawn = solve(flat.reshape(DRAWS, -1, wide))
            without = solve(sums.sum(axis=0) - sums)
        found += [
            _rows(
                cells[part],
                sums,
                row,
                point[name],
                drawn=drawn[name] if drawn else None,
                without=without[name] if without else None,
            ).with_columns(statistic=pl.lit(name), dataset=pl.lit(block.dataset))
            for name, row in rows.items()
        ]
    return found


def _rows(
    cells: pl.DataFrame,
    sums: Sums,
    row: CountColumns,
    point: Sums,
    *,
    drawn: Sums | None,
    without: Sums | None,
) -> pl.DataFrame:
    """Return the rows of one statistic; ``without`` are its values without each cluster."""
    n = sums[:, :, row.n].sum(axis=0)
    clusters = (sums[:, :, row.n] > 0).sum(axis=0)
    df = correction(sums[:, :, row.n]).df
    boot = np.full((2, *point.shape), np.nan)
    if drawn is not None and without is not None:
        if row.hits is None:
            boot[:] = bca(point, drawn, without, 1 + np.nan_to_num(df))
        else:
            boot[:] = percentiles(np.where(clusters > 1, point, np.nan), drawn)
        # If all draws are equal, the bootstrap says nothing about the variance.
        boot[:, boot[0] == boot[1]] = np.nan
    known = np.isfinite(point)
    bounded = np.isfinite(boot[0])
    method = np.where(bounded, "cluster bootstrap, expanded BCa", "none")
    unsure = ALIKE_OR_FEW if drawn is not None else TOO_MUCH if by_chance() else FORMULAS
    columns = {
        "estimate": point,
        "n": np.rint(n).astype(np.int64),
        "clusters": clusters,
        "df": df,
        "low": boot[0],
        "high": boot[1],
        "method": method,
        "boot_low": np.full(point.shape, np.nan),
        "boot_high": np.full(point.shape, np.nan),
        "hits": np.full(point.shape, np.nan),
        "seed": np.where(bounded, SEED, np.nan),
    }
    if row.hits is not None:
        hits = sums[:, :, row.hits]
        table = table_moments(hits, sums[:, :, row.n])
        wilson = proportions(table, whole=not row.several)
        low, high = arrays(wilson, "low", "high")
        columns |= {
            "low": low,
            "high": high,
            "method": wilson["method"].to_numpy(),
            "boot_low": boot[0],
            "boot_high": boot[1],
            "hits": np.where(known, np.rint(hits.sum(axis=0)), np.nan),
        }
    held = np.isfinite(columns["low"])
    why = np.where(clusters > 1, unsure, SINGLE)
    columns["reason"] = np.where(known, why, np.where(n > 0, row.undefined, EMPTY))
    columns["reason"] = np.where(held, "", columns["reason"])
    columns["level"] = np.where(held, LEVEL, np.nan)
    return pl.concat([cells, pl.DataFrame(columns)], how="horizontal").select(
        pl.col("estimate", "low", "high", "level", "boot_low", "boot_high", "df").fill_nan(None),
        pl.when(pl.col("reason") != "").then("reason").alias("reason"),
        *("n", "clusters", "method", "judge", "prompt", "wave", "subgroup", "dropped", "simulated"),
        pl.col("hits", "seed").fill_nan(None).cast(pl.Int64),
        pl.col("votes").alias("votes_per_pair"),
        mode=pl.lit("any"),
        perturbation=pl.lit(None, dtype=pl.String),
        kind=pl.lit(None, dtype=pl.String),
    )


def some(sums: Sums, part: slice) -> Sums:
    """Return the features of a slice of cells."""
    return sums[:, part]


def collected(found: list[pl.DataFrame]) -> DataFrame[Estimates]:
    """Concatenate rows into one frame of estimates."""
    return Estimates.draft(pl.concat(found)) if found else Estimates.empty()


def over(numerator: Sums, denominator: Sums) -> Sums:
    """Divide; NaN where the denominator is (nearly) 0."""
    return linearised_errors.over(numerator, denominator, 1e-12)


N, AGREE, N_DECIDED, AGREE_DECIDED, LINEAR, QUADRATIC, FIRST = range(7)
"""Indices of the sums; from FIRST on the marginals of one annotator, then of the other."""
TIE = "tie"


class AnnotatorPairs(NamedTuple):
    """Pairs of annotators with a common item, as rows of estimates and columns of the codes."""

    cells: pl.DataFrame
    one: NDArray[np.intp]
    other: NDArray[np.intp]


def pairs_of(block: Block) -> AnnotatorPairs:
    """Pair everybody with every person, and judges that share prompt and wave with each other.

    The row is about the judge if the other is a person, else about the first by name.
    """
    human = block.human
    alike = block.who.select(pl.struct("prompt", "wave").rank("dense")).to_series().to_numpy()
    may = human[:, None] | human[None, :] | (alike[:, None] == alike[None, :])
    given = (block.codes >= 0).astype(np.float64)
    common = given.T @ given
    one, other = np.nonzero(np.triu(may & (common > 0), k=1))
    turned = human[one] & ~human[other]
    one, other = np.where(turned, other, one), np.where(turned, one, other)
    names = block.who["annotator"].gather(other.tolist())
    single = given.sum(axis=0) + block.alone
    either = block.who["simulated"].gather(other.tolist())
    cells = block.cells(one, "").with_columns(
        subgroup=pl.Series([block.part(name) for name in names], dtype=pl.String),
        dropped=pl.Series((single[one] + single[other] - 2 * common[one, other]).astype(np.int64)),
        simulated=pl.col("simulated") | either,
    )
    return AnnotatorPairs(cells, one, other)


def sums_of(block: Block, pairs: AnnotatorPairs, part: slice) -> Sums:
    """Return the sums of some pairs, shape (items, pairs, FIRST + 2 x labels)."""
    one, other = block.codes[:, pairs.one[part]], block.codes[:, pairs.other[part]]
    both = (one >= 0) & (other >= 0)
    alike = both & (one == other)
    tie = block.labels.index(TIE) if TIE in block.labels else -2
    decided = both & (one != tie) & (other != tie)
    # Without a scale the distances are not used.
    scale = np.zeros(len(block.labels)) if block.scale is None else block.scale
    found = np.zeros((*both.shape, FIRST + 2 * len(block.labels)))
    found[:, :, N], found[:, :, AGREE] = both, alike
    found[:, :, N_DECIDED], found[:, :, AGREE_DECIDED] = decided, decided & alike
    found[:, :, LINEAR] = np.where(both, np.abs(scale[one] - scale[other]), 0)
    found[:, :, QUADRATIC] = np.where(both, (scale[one] - scale[other]) ** 2, 0)
    for k in range(len(block.labels)):
        found[:, :, FIRST + k] = both & (one == k)
        found[:, :, FIRST + len(block.labels) + k] = both & (other == k)
    return found
