"""Ranks of judges with intervals, and tiers of judges that do not differ significantly."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.judging import Shifts, Tallies
from schemas.keys import CELL
from schemas.results import Estimates
from tasks.counting.missing_reasons import NO_SHIFT
from tasks.inference.bootstrap import DRAWS, FORMULAS, SEED, by_chance, resampled
from tasks.inference.cluster_sums import Floats
from tasks.inference.intervals import EMPTY, LEVEL
from tasks.inference.linearised_errors import correction, over, too_few
from tasks.inference.multiplicity import holm
from tasks.kit.defaults import ALPHA
from tasks.panels.letter_display import letter, letters
from tasks.panels.panels import (
    ALONE,
    PERSON,
    JudgePanel,
    KnownMask,
    enough,
    few_shared,
    panels,
    panels_of_prompts,
    people_of,
    primary_shift,
    prompts_together,
    seen,
    several_prompts,
    sharing,
)
from tasks.pointwise.shifts import passes, rating_shifts
from tasks.statistics import Rows, statistic
from tasks.statistics.contrast import compare_shifts
from tasks.statistics.rating_shift import linearised_shift

PromptedJudge = tuple[str, str]
UNMOVED = "no valid ratings in the arms that are compared, or all alike: nothing could move them"
ALWAYS_EQUAL = "equal to another judge in every draw: no interval"


@statistic(
    source="methods.md, section 11",
    gives=("rank", "tier"),
    family="comparison",
    unit="rank",
    floor="as the primary endpoint",
    rows={"tier": {"unit": "letter"}},
    missing=NO_SHIFT,
    no_interval={"tier": "a letter, not an estimate: no interval"},
)
def ranking(
    shifts: DataFrame[Shifts], tallies: DataFrame[Tallies], ratings: DataFrame[Ratings]
) -> Rows:
    """Rank judges by how little a perturbation shifts them, with the uncertainty of ranks.

    Rank 1 is the best: the smallest ``|MPS|`` for a promote perturbation, the lowest MPS for a
    detract one, over the sham where there are shams. Judges of single answers are ranked by the
    shift of their grades in their own standard deviations (``rating_shift_sd``), or of their pass
    rates, among those whose ratings are of the same kind, unit and scale. Ties share the mean of
    their ranks. If there are several prompts, a judge has a rank with each of them, among all
    judges with all prompts of that kind.

    Parameters
    ----------
    shifts
        One row per sample and perturbation.
    tallies
        Used to know who is a person.
    ratings
        One row per rating of single answers; only whole ratings of targets count.

    Returns
    -------
    Estimates
        Per perturbation a row ``rank`` per judge, with the 2.5 and 97.5 percentiles of its rank in
        2000 cluster bootstraps of all judges jointly (the same resampled questions); and a row
        ``tier`` per judge and letter (``subgroup``; a is 1): judges that share a letter do not
        differ at .05 by the test of ``mps_contrast`` or ``rating_contrast``, after Holm over pairs
        of ranked judges.

    Notes
    -----
    The interval is extended to contain the rank itself, and null for judges that tie in every draw.
    Ranks, intervals and letters use the samples with scores of all ranked judges (``n``;
    ``dropped`` counts the others), and draws use the clusters of these. A judge with scores of too
    few questions has no rank, and the others are ranked as if it were absent. If the others share
    too few questions, judges are dropped one by one, each time the one whose absence leaves the
    most shared questions (ties: the one that shares the fewest samples with each other judge, then
    the first by name). Letters begin with the best judge. Ranks for a promote perturbation are by
    size, the tests by direction too, so that a judge may have a later letter than judges ranked
    after it. Prompts that do not share enough questions are ranked apart. People, who may have
    judged few samples, do not change other ranks: each is ranked against all ranked models, on the
    samples that the person shares with all of them; without two models, all are ranked together.
    A judge that gives all answers the same grade, or passes or fails all, has no rank: nothing
    could move it. Ranks of judges that do not differ are noise: the mart ``ranking`` never shows
    them without interval and tier.

    References
    ----------
    methods.md, section 11. Goldstein & Spiegelhalter (1996), J. R. Stat. Soc. A 159, 385-443.

    Examples
    --------
    MPS -.02, .10 and -.30: promote ranks 1, 2, 3; detract ranks 2, 3, 1.
    """
    people = {*people_of(tallies).rows(), *ratings.filter("human").select(PERSON).rows()}
    rows = [row for panel in _panels(shifts, primary_shift()) for row in _rows(panel, people)]
    for rated, shift in _rated(ratings):
        rows += [row for panel in _panels(rated, shift) for row in _rows(panel, people, UNMOVED)]
    return pl.DataFrame(rows, schema=Estimates.dtypes())


def _panels(shifts: pl.DataFrame, shift: pl.Expr) -> Iterator[JudgePanel]:
    values = {"shift": shift}
    if several_prompts(shifts):
        return panels_of_prompts(prompts_together(shifts), values, by=["together"])
    return panels(shifts, values)


def _rated(ratings: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.Expr]]:
    """Yield the shifts of each quantity, with the expression for panels of grades or of passes."""
    shifts = rating_shifts(ratings)
    if shifts.is_empty():
        return
    whole = shifts.filter(pl.col("subgroup") == "")
    for same in whole.partition_by("quantity", maintain_order=True):
        yield same.filter("graded"), standardised()
        yield passes(same.filter(~pl.col("graded"))), _movable()


def standardised() -> pl.Expr:
    """Return a judge's linearised shifts in standard deviations of control, for panels."""
    base = pl.when("over_sham").then("sham_points").otherwise("control_points")
    shift = pl.col("experimental_points") - base
    known = shift.is_not_null() & pl.col("control_points").is_not_null()
    d, y, q = (
        pl.when(known).then(each)
        for each in (shift, pl.col("control_points"), pl.col("control_square"))
    )
    return linearised_shift(d, y, q, CELL)


def _movable() -> pl.Expr:
    """Return shifts of passes; null for a judge that passes all answers or fails all."""
    arms = ["experimental_score", "control_score"]
    alike = pl.max_horizontal(arms).max().over(CELL) == pl.min_horizontal(arms).min().over(CELL)
    return pl.when(~alike).then(primary_shift())


def bootstrapped_shifts(panel: JudgePanel) -> Floats:
    """Return MPS by draw and judge, for judges with a score on every sample."""
    shift = panel.values["shift"]
    return over(resampled(panel.sums(shift)), resampled(panel.sums(np.ones_like(shift))))


def badness(shifts: Floats, kind: str) -> Floats:
    """Return the ranking criterion, rounded, as equal votes may differ in the last digits."""
    return np.round(np.abs(shifts) if kind == "promote" else shifts, 10)


def ranks(values: Floats) -> Floats:
    """Return ranks within rows; ties share the mean of their ranks; NaN stays NaN.

    Examples
    --------
    >>> ranks(np.array([[0.3, 0.1, 0.1, np.nan]]))
    array([[3. , 1.5, 1.5, nan]])
    """
    below = (values[:, :, None] > values[:, None, :]).sum(axis=2)
    equal = (values[:, :, None] == values[:, None, :]).sum(axis=2)
    return np.where(np.isnan(values), np.nan, below + (equal + 1) / 2)


class _Compared(NamedTuple):
    """Judges compared on the samples that all of them share."""

    own: JudgePanel
    """The panel of these judges, sorted by name, and these samples."""
    rank: Floats
    df: float | None
    """Degrees of freedom from the questions that all of them share."""
    dropped: int
    """Number of the panel's other samples."""
    ends: Floats | None
    """Interval ends, shape (2, judges); None without bootstrap."""
    twins: NDArray[np.bool_] | None
    """Whether a judge ties with another one in every draw."""


def _compared(panel: JudgePanel, measured: KnownMask, judges: NDArray[np.intp]) -> _Compared:
    own = panel.among(np.all(measured[:, judges], axis=1), judges)
    kind, n = panel.cell["kind"], max(len(own.values["shift"]), 1)
    rank = ranks(badness(own.values["shift"].sum(axis=0)[None] / n, kind))[0]
    shared = correction(own.sums(np.ones(len(own.values["shift"]))))
    df = None if np.isnan(shared.df) else float(shared.df)
    dropped = len(measured) - len(own.values["shift"])
    if not by_chance():
        return _Compared(own, rank, df, dropped, None, None)
    bad = badness(bootstrapped_shifts(own), kind)
    drawn = ranks(bad)
    # Round outward to possible ranks: there is no rank 2.01.
    low = np.quantile(drawn, (1 - LEVEL) / 2, axis=0, method="lower")
    high = np.quantile(drawn, (1 + LEVEL) / 2, axis=0, method="higher")
    # Adding 0 makes -0 and 0 alike.
    columns = [column.tobytes() for column in bad.T + 0.0]
    twins = np.array([columns.count(column) > 1 for column in columns])
    return _Compared(own, rank, df, dropped, np.stack([low, high]), twins)


def _rows(
    panel: JudgePanel, people: set[PromptedJudge], nothing: str = EMPTY
) -> list[dict[str, Any]]:
    measured = ~np.isnan(panel.values["shift"])
    counts = seen(measured, panel.starts)[0]
    df = correction(panel.sums(measured)).df
    # A judge with few questions has a noisy rank, which would also shift the others' ranks.
    few = ~enough(measured, panel.starts)[0]
    human = np.array([(panel.cell["dataset"], judge) in people for judge in panel.judges])
    if (~human & ~few).sum() < 2:
        human[:] = False  # without models to compare people with, all are ranked together
    ranked = np.zeros(len(human), np.bool_)
    ranked[~human] = sharing(measured[:, ~human], panel.starts)
    group = np.flatnonzero(ranked)
    models = _compared(panel, measured, group) if group.size else None
    rows, tiers = [], []
    for j in range(len(panel.judges)):
        found, why = (models, None) if ranked[j] else (None, few_shared())
        if human[j] and group.size:
            among = np.sort(np.append(group, j))
            shared = np.all(measured[:, among], axis=1)[:, None]
            if enough(shared, panel.starts)[0, 0]:
                found, why = _compared(panel, measured, among), None
        if few[j]:
            why = too_few(int(counts[j]), df[j]) if counts[j] else nothing
        elif (~few).sum() < 2:
            why = ALONE
        rows.append(_row(panel, j, found, why))
        if found and human[j]:
            own_unit = panel.units[j]
            tiers += [row for row in _tiers(found) if (row["judge"], row["prompt"]) == own_unit]
    own = rows if models is None else [*rows, *_tiers(models)]
    return _described(panel, [*own, *tiers])


def _row(panel: JudgePanel, j: int, found: _Compared | None, why: str | None) -> dict[str, Any]:
    """Return the rank of a judge, or the reason why it has none."""
    row: dict[str, Any] = {
        "statistic": "rank",
        "judge": panel.judges[j],
        "prompt": panel.prompts[j],
        "subgroup": "",
        "n": 0,
        "clusters": 0,
        "dropped": len(panel.values["shift"]),
        "method": "none",
        "reason": why,
    }
    if found is None:
        return row
    own, place = found.own, found.own.units.index(panel.units[j])
    n, mine = len(own.values["shift"]), found.rank[place]
    row |= {
        "estimate": mine,
        "n": n,
        "clusters": own.clusters,
        "df": found.df,
        "dropped": found.dropped,
        "reason": FORMULAS,
    }
    if found.ends is None or found.twins is None:
        return row
    if found.twins[place]:
        return row | {"reason": ALWAYS_EQUAL}
    low, high = found.ends[:, place]
    return row | {
        "low": min(low, mine),
        "high": max(high, mine),
        "level": LEVEL,
        "reason": None,
        "method": f"cluster bootstrap, {DRAWS} draws",
        "seed": SEED,
    }


def _described(panel: JudgePanel, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    known = {
        unit: {"simulated": panel.simulated[j], "votes_per_pair": panel.votes[j]}
        for j, unit in enumerate(panel.units)
    }
    floor = {"floor": "sham"} if panel.over_sham else {}
    return [{**panel.cell, **floor, **known[row["judge"], row["prompt"]], **row} for row in rows]


def _tiers(found: _Compared) -> list[dict[str, Any]]:
    """Return one row per judge and letter."""
    own = found.own
    order = sorted(range(len(own.judges)), key=lambda j: (found.rank[j], own.units[j]))
    pairs, p_value = compare_shifts(own)
    adjusted = holm(pl.Series(p_value).fill_nan(None))
    place = {j: position for position, j in enumerate(order)}
    apart = [
        (place[i], place[j])
        for i, j, p in zip(pairs.first.tolist(), pairs.second.tolist(), adjusted, strict=True)
        if p is not None and p < ALPHA
    ]
    return [
        {
            "statistic": "tier",
            "judge": own.judges[order[position]],
            "prompt": own.prompts[order[position]],
            "subgroup": letter(number),
            "estimate": number + 1.0,
            "n": len(own.values["shift"]),
            "clusters": own.clusters,
            "df": found.df,
            "dropped": found.dropped,
            "method": "pairs not separated after Holm",
        }
        for number, group in enumerate(letters(len(order), apart))
        for position in sorted(group)
    ]
