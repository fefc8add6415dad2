"""Agreement of judges and people as defined by MT-Bench (setups S1 and S2)."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.results import Annotations, Estimates
from tasks.counting.annotations import HUMANS, TIE, Asked, Block, CountColumns, measured, over
from tasks.counting.missing_reasons import ALL_TIED, NO_LABELS_OF_BOTH
from tasks.inference.cluster_sums import Sums
from tasks.statistics import statistic
from tasks.statistics.noise_ceiling import among, between

SETUPS = ("s1", "s2")
NAMES = tuple(f"{setup}_{pool}" for setup in SETUPS for pool in ("macro", "micro"))
ROWS = {
    f"{setup}_{pool}": CountColumns(at + shift, at + 1 if pool == "micro" else None, several=True)
    for at, setup in zip((0, 4), SETUPS, strict=True)
    for pool, shift in (("micro", 0), ("macro", 2))
}


@statistic(
    source="arXiv:2306.05685, section 4.1; methods.md, section 9",
    gives=NAMES,
    family="agreement",
    needs=("human",),
    missing={
        **dict.fromkeys(("s1_macro", "s1_micro"), NO_LABELS_OF_BOTH),
        **dict.fromkeys(("s2_macro", "s2_micro"), ALL_TIED),
    },
)
def mt_bench_agreement(annotations: DataFrame[Annotations]) -> DataFrame[Estimates]:
    """Measure how often each judge agrees with the people, and the people with each other.

    S1 uses all labels and treats an inconsistent verdict as a tie; S2 leaves out pairs of labels in
    which one is a tie. ``macro`` is the definition of Zheng et al., a random question and then two
    random distinct individuals: the mean over questions of the share of pairs of labels that agree,
    where a question's pairs have equal weight whichever of its items they are about. ``micro``
    pools the pairs of all questions, as their code does.

    Parameters
    ----------
    annotations
        One row per item and annotator.

    Returns
    -------
    Estimates
        Four rows per judge, and four for the people themselves (``judge`` is ``humans``);
        ``subgroup`` is ``humans``. ``n`` is questions for macro, pairs of labels for micro.
        Intervals of macro by cluster bootstrap, of micro by cluster-adjusted Wilson, with bootstrap
        percentiles as a cross-check.

    Notes
    -----
    A question is a cluster: in MT-Bench its items are the pairs of models that answered it, some
    with more votes than others. A random guess agrees in 1/3 (S1) and 1/2 (S2).

    References
    ----------
    Zheng et al. (2023), Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena, arXiv:2306.05685.

    Examples
    --------
    The judge says target, target; people say target, tie, anchor on the first question and
    target on the second. S1: macro (1/3 + 1) / 2 = 2/3, micro 2/4. S2: macro (1/2 + 1) / 2 = 3/4,
    micro 2/3.
    """
    return measured(annotations, _asked, in_pairs=True)


def _asked(block: Block) -> Iterator[Asked]:
    if not block.human.any():
        return
    models = np.flatnonzero(~block.human)
    yield block.cells(models, HUMANS), partial(_with_people, block, models), _solve, ROWS
    if block.human.sum() > 1:
        cell = block.group(HUMANS, block.human, part=HUMANS)
        yield cell, partial(_of_people, block), _solve, ROWS


def _with_people(block: Block, models: NDArray[np.intp], part: slice) -> Sums:
    counts = block.counts(block.human)
    given = block.codes[:, models[part]]
    return np.concatenate(
        [_shares(block, *between(given, some)) for some in (counts, _decided(block, counts))],
        axis=-1,
    )


def _of_people(block: Block, _: slice) -> Sums:
    counts = block.counts(block.human)
    return np.concatenate(
        [_shares(block, *among(some)) for some in (counts, _decided(block, counts))], axis=-1
    )


def _shares(block: Block, pairs: Sums, alike: Sums) -> Sums:
    """Return pairs and agreeing pairs per item; per question, whether it has pairs, and the share.

    The values per question are stored at its first item, so that sums over items count questions.
    """
    asked, agreed = (np.add.reduceat(some, block.starts, axis=0) for some in (pairs, alike))
    there, share = np.zeros_like(pairs), np.zeros_like(pairs)
    there[block.starts] = asked > 0
    share[block.starts] = agreed / np.maximum(asked, 1)
    return np.stack([pairs, alike, there, share], axis=-1)


def _solve(sums: Sums) -> dict[str, Sums]:
    return {name: over(sums[..., row.n + 1], sums[..., row.n]) for name, row in ROWS.items()}


def _decided(block: Block, counts: Sums) -> Sums:
    """Return how many people gave each label, with NaN for ties."""
    if TIE not in block.labels:
        return counts
    kept = counts.copy()
    # NaN rather than 0: a judge's tie then counts in no pair, see `between`.
    kept[:, block.labels.index(TIE)] = np.nan
    return kept
