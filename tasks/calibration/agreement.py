"""Agreement among people, and between people and judges."""

import json
from collections.abc import Iterator
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.results import Annotations, Estimates
from tasks.agreement.kappa import kappa
from tasks.calibration.label_values import LabelKind
from tasks.counting.annotations import (
    FIRST,
    HUMANS,
    NO_SCALE,
    ONE_LABEL,
    PERSON,
    TIE,
    AnnotatorPairs,
    Block,
    CountColumns,
    blocks,
    estimates,
    over,
    pairs_of,
    some,
)
from tasks.inference.cluster_sums import Sums
from tasks.statistics import STATISTICS
from tasks.statistics.krippendorff_alpha import MOST_LABELS

GROUPS = ("fleiss_kappa", "krippendorff_alpha", "noise_ceiling")
PAIRS = ("agreement", "gwet_ac1")
MOST_SUMS, MOST_AT_ONCE = 5e8, 5e7
"""Most sums for all pairs, and for one pair: these take seconds and some hundred MB."""
MOST_NAMES = 100
"""Most names in sets for which mean kappas are computed."""
MOST_SETS = 2000
"""Most distinct sets for which Jaccard similarities are tabulated."""
TOO_MANY = "too many pairs of annotators, or labels, for a matrix of agreement"
MANY_NAMES = f"more than {MOST_NAMES} different names in sets"
NO_KAPPA = "every label is in all sets or in none"
MOST_LABELS_GIVEN = 1_000_000
"""With more labels, only statistics of all people, or of a judge and all people, are computed."""


def agree(annotations: DataFrame[Annotations], kind: LabelKind) -> DataFrame[Estimates]:
    """Measure the agreement of people with each other, and of each judge with them.

    For every pair: raw agreement, Cohen's kappa (also weighted, if labels are numbers) and AC1. For
    the people: Fleiss' kappa and Krippendorff's alpha, the latter also with each judge added
    (``subgroup`` ``humans``). For each judge: the noise ceiling. Sets are compared as wholes, and
    also by their mean Jaccard similarity and the mean of Cohen's kappas of the names in them.

    Notes
    -----
    If there are too many pairs or labels, statistics of pairs are null with a reason.
    """
    estimates = pl.concat(_measured(annotations, kind))
    # Alphas from moments replace those that had too many labels for a coincidence matrix.
    estimates = estimates.unique(Estimates.place().key, keep="last", maintain_order=True)
    return Estimates.of(estimates.filter(~_inapplicable(annotations)))


def _measured(annotations: DataFrame[Annotations], kind: LabelKind) -> Iterator[pl.DataFrame]:
    for name in GROUPS:
        yield STATISTICS[name].draft(annotations=annotations)
    small = annotations.height <= MOST_LABELS_GIVEN
    for block in blocks(annotations):
        found: list[pl.DataFrame] = []
        if kind == "number" and len(block.labels) > MOST_LABELS:
            for name, chosen in block.groups():
                found += interval_alpha(block, name, chosen)
        if small and _affordable(block):
            own = annotations.filter(pl.col("dataset") == block.dataset)
            found += [*_with_each_judge(block, own), *_pairs(block, own, kind)]
        else:
            found += _refused(block)
        yield from (Estimates.draft(each) for each in found)


def _inapplicable(annotations: pl.DataFrame) -> pl.Expr:
    """Tell which rows do not apply to these labels: without an order, or without ties."""
    pointless = (pl.col("reason") == NO_SCALE).fill_null(value=False)
    if TIE not in annotations["label"].unique():
        pointless |= pl.col("statistic") == "agreement_decided"
    return pointless


def _affordable(block: Block) -> bool:
    people, pairs = block.codes.shape[1], block.codes.shape[1] ** 2 / 2
    each = block.codes.shape[0] * (FIRST + 2.0 * len(block.labels))
    return people < 2 or bool(pairs * each <= MOST_SUMS and each <= MOST_AT_ONCE)


def _pairs(block: Block, own: pl.DataFrame, kind: LabelKind) -> Iterator[pl.DataFrame]:
    for name in PAIRS:
        yield STATISTICS[name].draft(annotations=own)
    if kind == "set":
        yield from _of_sets(block)


def _refused(block: Block) -> Iterator[pl.DataFrame]:
    """Return null rows, with a reason, for each judge's agreement with people."""
    judges = np.flatnonzero(~block.human)
    for name in ("cohen_kappa", "krippendorff_alpha_nominal"):
        yield block.cells(judges, HUMANS).select(
            "prompt",
            "wave",
            "subgroup",
            "simulated",
            judge="annotator",
            votes_per_pair="votes",
            statistic=pl.lit(name),
            dataset=pl.lit(block.dataset),
            mode=pl.lit("any"),
            n=pl.lit(0),
            clusters=pl.lit(0),
            dropped=pl.lit(0),
            method=pl.lit("none"),
            reason=pl.lit(TOO_MANY),
        )


def _with_each_judge(block: Block, own: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield Krippendorff's alpha of the people together with each judge."""
    who = block.who.with_row_index("at").filter(~pl.col("human")).to_dicts()
    for judge in who if block.human.any() else []:
        chosen = block.human.copy()
        chosen[judge["at"]] = True
        if block.scale is not None and len(block.labels) > MOST_LABELS:
            found = pl.concat(interval_alpha(block, HUMANS, chosen))
        else:
            asked = pl.col("annotator") == judge["annotator"]
            for column in ("prompt", "wave"):
                asked &= pl.col(column).fill_null(PERSON) == judge[column]
            together = own.filter(pl.col("human") | asked).with_columns(human=pl.lit(value=True))
            found = STATISTICS["krippendorff_alpha"].draft(annotations=together)
        yield found.with_columns(
            judge=pl.lit(judge["annotator"]),
            subgroup=pl.lit(HUMANS),
            prompt=pl.lit(judge["prompt"]),
            wave=pl.lit(judge["wave"]),
            simulated=pl.lit(judge["simulated"], dtype=pl.Boolean),
        )


def _of_sets(block: Block) -> list[pl.DataFrame]:
    """Return the mean Jaccard similarity and the mean kappa of names, for each pair."""
    sets = [frozenset(json.loads(label)) for label in block.labels]
    names = sorted({name for each in sets for name in each})
    pairs = pairs_of(block)
    held = np.array([[name in each for name in names] for each in sets], dtype=bool)
    rows = {"mean_jaccard": CountColumns(0)}
    if len(sets) <= MOST_SETS:
        common = held.astype(np.float64) @ held.T
        sizes = held.sum(axis=1)
        either = sizes[:, None] + sizes - common
        alike = np.where(either == 0, 1.0, common / np.maximum(either, 1))
        found = estimates(block, pairs.cells, partial(_jaccards, block, pairs, alike), _mean, rows)
    else:
        found = []
    if len(names) > MOST_NAMES:
        held = held[:, :0]
    why = MANY_NAMES if len(names) > MOST_NAMES else NO_KAPPA
    kappas = {"label_kappa": CountColumns(0, undefined=why)}
    return found + estimates(
        block, pairs.cells, partial(_marginals, block, pairs, held), _mean_kappa, kappas
    )


def _jaccards(block: Block, pairs: AnnotatorPairs, alike: Sums, part: slice) -> Sums:
    one, other = block.codes[:, pairs.one[part]], block.codes[:, pairs.other[part]]
    both = (one >= 0) & (other >= 0)
    return np.stack([both, np.where(both, alike[one, other], 0.0)], axis=-1)


def _mean(sums: Sums) -> dict[str, Sums]:
    return {"mean_jaccard": over(sums[..., 1], sums[..., 0])}


def _marginals(block: Block, pairs: AnnotatorPairs, held: NDArray[np.bool_], part: slice) -> Sums:
    """Return, per item and pair, whether both labelled it, and per name which of them named it."""
    one, other = block.codes[:, pairs.one[part]], block.codes[:, pairs.other[part]]
    both = ((one >= 0) & (other >= 0))[..., None]
    mine, theirs = held[one] & both, held[other] & both
    return np.concatenate([both, mine, theirs, mine & theirs], axis=-1).astype(np.float64)


def _mean_kappa(sums: Sums) -> dict[str, Sums]:
    """Return the mean over the names whose kappa is defined."""
    n = sums[..., :1]
    one, other, both = np.split(sums[..., 1:], 3, axis=-1)
    named = (np.stack([each, n - each], axis=-1) for each in (one, other))
    kappas = kappa(n, one + other - 2 * both, *named)
    finite = np.isfinite(kappas)
    return {"label_kappa": over(np.where(finite, kappas, 0.0).sum(axis=-1), finite.sum(axis=-1))}


NAME = "krippendorff_alpha_interval"


def interval_alpha(block: Block, name: str, chosen: NDArray[np.bool_]) -> list[pl.DataFrame]:
    """Return the alpha of the chosen annotators from moments, for any number of distinct values.

    For an item with m >= 2 numbers v, the squared distances of all pairs sum to
    ``2 (m sum v^2 - (sum v)^2)``; divided by m - 1 that is its part of the observed disagreement.
    For all N numbers in such items, ``2 (N sum v^2 - (sum v)^2)`` is the expected disagreement.
    """
    if block.scale is None:
        return []
    codes = block.codes[:, chosen]
    values = np.where(codes >= 0, (block.scale - block.scale.mean())[codes], 0.0)
    count = (codes >= 0).sum(axis=1)
    paired = (count > 1).astype(np.float64)
    total, squares = values.sum(axis=1), (values**2).sum(axis=1)
    observed = 2 * (count * squares - total**2) / np.maximum(count - 1, 1)
    sums = np.stack([paired, count, total, squares, observed], axis=1) * paired[:, None]
    cell = block.group(name, chosen, dropped=int((count == 1).sum()))
    rows = {NAME: CountColumns(0, undefined=ONE_LABEL)}
    return estimates(block, cell, partial(some, sums[:, None, :]), _solve, rows)


def _solve(sums: Sums) -> dict[str, Sums]:
    _, many, total, squares, observed = (sums[..., at] for at in range(5))
    chance = 2 * (many * squares - total**2)
    return {NAME: 1 - over((many - 1) * observed, chance)}


def kappa_for_labels(agreement: pl.DataFrame) -> str:
    """Return the kappa that suits the labels of one dataset: weighted for numbers only."""
    known = _known(agreement)
    if "label_kappa" in known:
        return "label_kappa"
    numbers = "cohen_kappa_quadratic" in known and "agreement_decided" not in known
    return "cohen_kappa_quadratic" if numbers else "cohen_kappa"


def alpha_for_labels(agreement: pl.DataFrame) -> str:
    """Return Krippendorff's alpha that suits the labels of one dataset."""
    known = _known(agreement)
    ordered = "krippendorff_alpha_interval" in known and "agreement_decided" not in known
    return "krippendorff_alpha_interval" if ordered else "krippendorff_alpha_nominal"


def _known(agreement: pl.DataFrame) -> set[str]:
    return {*agreement.drop_nulls("estimate")["statistic"]}
