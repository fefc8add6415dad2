"""Contrasts between two judges on the same items: MPS, ASR and McNemar."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from tasks.counting.cells import planned
from tasks.counting.missing_reasons import CHANGEABLE, NO_SHIFT, NO_SHIFT_OVER_SHAM
from tasks.counting.verdicts import may_win, wins
from tasks.inference import intervals
from tasks.inference.bootstrap import by_chance
from tasks.inference.cluster_sums import Floats
from tasks.inference.intervals import EMPTY, ROUNDING, SINGLE, common_difference, t_interval
from tasks.inference.linearised_errors import have_enough, over, ratio_difference
from tasks.inference.permutation import JudgePairs, sign_test, swap_rates, swap_sums
from tasks.panels.judge_pairs import (
    Duel,
    PairStatistic,
    PairTests,
    Sides,
    clusters_of,
    duels,
    finished,
    none_drawn,
    part_of,
    swapped,
)
from tasks.panels.panels import JudgePanel, primary_shift
from tasks.statistics import Rows, statistic

SHIFT = {False: "mps_contrast", True: "mps_sham_contrast"}
ONE_SIDED = "the counted samples of one judge lie in a single cluster: no interval"


@statistic(
    source="methods.md, section 3 (two judges, same items)",
    gives=("mps_contrast", "mps_sham_contrast", "asr_contrast", "mcnemar"),
    family="comparison",
    null=0.0,
    rows={
        "mps_contrast": {"unit": "score"},
        "mps_sham_contrast": {"unit": "score", "floor": "sham"},
    },
    missing={
        "mps_contrast": NO_SHIFT,
        "mps_sham_contrast": NO_SHIFT_OVER_SHAM,
        "asr_contrast": CHANGEABLE,
        "mcnemar": CHANGEABLE,
    },
)
def contrast(shifts: DataFrame[Shifts]) -> Rows:
    """Measure how much more one judge shifts than another, on items that both judged.

    Compared are judges with the same prompt and, if there are several prompts, each judge with one
    prompt and the same judge with another.

    ``mps_contrast = mean_i (shift_i(judge) - shift_i(other))``, over the control or, named
    ``mps_sham_contrast``, over the sham where there are shams; ``asr_contrast = ASR(judge) -
    ASR(other)``, each on its own V; ``mcnemar = (b - c) / n`` on the intersection of both V, where
    b counts successes against the judge only, c against the other only.

    Parameters
    ----------
    shifts
        One row per sample and perturbation.

    Returns
    -------
    Estimates
        Three rows per perturbation and pair of judges, sorted by name: ``judge``, and the other in
        ``subgroup``, with its prompt (``judge / prompt``) if that is another one. MPS: paired t on
        cluster sums or, if the judges differ by the same amount in every cluster, Newcombe's
        interval of the positive and negative differences. ASR:
        ``u_g = (k_g - R v_g) / v`` of the judge minus the same of the other,
        ``SE = sqrt(sum a_g^2 u_g^2)`` with the CR2 weights of the clusters' samples in V of either.
        Their p-values come from swapping the two judges' labels within clusters: all swaps if the
        pair differs in 12 clusters or fewer, else 9999 random ones, ``p = (1 + #) / (1 + B)``.
        McNemar: cluster linearisation, exact binomial p-value. MPS and ASR also have intervals of
        the cluster bootstrap.

    Notes
    -----
    p-values are raw; the mart ``contrasts`` adjusts them over all pairs of a perturbation (Holm).
    With 9999 draws none is below .0001, so beyond 31 judges no pair can differ significantly after
    Holm. A pair with p above .1 after 1000 draws is not drawn further. A swap that empties a V
    counts as extreme. Rates of judges with unequal votes per pair are not compared. McNemar's test
    assumes independent items, and answers a narrower question. ``n`` and ``clusters`` of
    ``asr_contrast`` count the samples in V of either judge.

    References
    ----------
    methods.md, section 3. McNemar (1947), Psychometrika 12, 153-157.

    Examples
    --------
    Shifts .5, .5, 0 of one judge and 0, .5, 0 of another differ by .5, 0, 0: contrast 1/6. All 8
    swaps give a sum of +-.5, so p = 1.
    """
    shift = primary_shift()
    values = {
        "shift": shift,
        "measured": pl.when(shift.is_not_null()).then(1.0),
        "counted": _if_measured(may_win("control")),
        "hit": _if_measured(may_win("control") & wins("experimental")),
        "control_votes": planned("control"),
    }
    compared = duels(shifts, values)
    parts = [(_shifts(duel), _rates(duel), _discordant(duel)) for duel in compared]
    solve = (_solved_shifts, _solved_rates, _solved_discordant)
    # Without parts there is nothing to solve.
    return [solved(own) for solved, own in zip(solve, zip(*parts, strict=True), strict=bool(parts))]


def compare_shifts(panel: JudgePanel) -> tuple[JudgePairs, Floats]:
    """Return a panel's pairs by ``shift``, and p-values of the pairs with enough clusters."""
    duel = Duel.of(panel)
    both = duel.shared("shift")
    first, second = duel.of_pairs("shift", both)
    if by_chance():
        p_value = swap_sums(duel.pairs, duel.sums("shift", first, second)).p_value
    else:
        table = intervals.table_moments(first - second, panel.sums(both))
        (p_value,) = intervals.arrays(intervals.ratios(table), "p_value")
    return duel.pairs, np.where(have_enough(panel.sums(both)), p_value, np.nan)


def _if_measured(fact: pl.Expr) -> pl.Expr:
    measured = pl.col("control").is_not_null() & pl.col("experimental").is_not_null()
    return pl.when(measured).then(fact)


def _shifts(duel: Duel) -> PairStatistic:
    panel, pairs = duel.panel, duel.pairs
    both = duel.shared("shift")
    first, second = duel.of_pairs("shift", both)
    # As shares of the largest possible difference, 2, for shifts in [-1, 1].
    moments = intervals.table_moments((first - second) / 2, panel.sums(both))
    name = SHIFT[panel.over_sham]
    if not by_chance():
        return part_of(duel, name, both, moments)
    test = swapped(swap_sums(pairs, duel.sums("shift", first, second)))
    columns = {"shift": (first, second), "measured": duel.of_pairs("measured", both)}
    ends = duel.bounds(columns, both, lambda shift, n: over(shift[0] - shift[1], n[0]))
    return part_of(duel, name, both, moments, test=test, ends=ends)


def _solved_shifts(parts: Sequence[PairStatistic]) -> pl.DataFrame:
    found = intervals.ratios(pl.concat(one.found for one in parts)).with_columns(
        pl.col("estimate", "low", "high", "standard_error") * 2
    )
    return finished(parts, found.with_columns(pl.col("low", "high").clip(-2.0, 2.0)))


def _rate_gap(hits: Sides, counted: Sides) -> Floats:
    gap: Floats = over(hits[0], counted[0]) - over(hits[1], counted[1])
    return gap


def _rates(duel: Duel) -> PairStatistic:
    panel = duel.panel
    both = duel.shared("counted")
    k, v = duel.of_pairs("hit", both), duel.of_pairs("counted", both)
    first, second = (duel.panel.values["counted"][:, judge] > 0 for judge in duel.pairs)
    in_v, lost = both & (first | second), (~both).sum(axis=0)
    found = _difference(k, v, panel.sums(in_v), clusters_of(duel, both))
    if not by_chance():
        return part_of(duel, "asr_contrast", in_v, found, lost=lost)
    totals = (k[0] + k[1]).sum(axis=0), (v[0] + v[1]).sum(axis=0)
    sums = duel.sums("hit", *k), duel.sums("counted", *v)
    test = swapped(swap_rates(duel.pairs, *sums, totals))
    columns = {"hit": k, "counted": v}
    ends = duel.bounds(columns, in_v, _rate_gap)
    return part_of(duel, "asr_contrast", in_v, found, test=test, ends=ends, lost=lost)


def _discordant(duel: Duel) -> PairStatistic:
    panel, pairs = duel.panel, duel.pairs
    counted, hit = (np.nan_to_num(panel.values[name]) > 0 for name in ("counted", "hit"))
    shared = duel.shared("counted") & counted[:, pairs.first] & counted[:, pairs.second]
    one, other = hit[:, pairs.first] & shared, hit[:, pairs.second] & shared
    moments = intervals.table_moments(panel.sums(one) - panel.sums(other), panel.sums(shared))
    discordant = ((one & ~other).sum(axis=0), (other & ~one).sum(axis=0))
    exact = sign_test(*(counts.astype(np.float64) for counts in discordant))
    names = pl.repeat("exact McNemar", len(exact), eager=True)
    test = PairTests(exact, names, none_drawn(len(exact)))
    return part_of(duel, "mcnemar", shared, moments, test=test)


def _solved_rates(parts: Sequence[PairStatistic]) -> pl.DataFrame:
    return finished(parts, pl.concat(one.found for one in parts), alike=True)


def _solved_discordant(parts: Sequence[PairStatistic]) -> pl.DataFrame:
    found = intervals.ratios(pl.concat(one.found for one in parts))
    return finished(parts, found, alike=True)


def _difference(
    k: tuple[Floats, Floats], v: tuple[Floats, Floats], sizes: Floats, shared: NDArray[np.int64]
) -> pl.DataFrame:
    """Return the difference of two rates by cluster linearisation of both together.

    ``sizes`` are the samples of each cluster in V of either judge, ``shared`` the clusters that
    both judged, whether or not anything in them counts.
    """
    clusters = (sizes > 0).sum(axis=0)
    estimate, error, df = ratio_difference((k[0], v[0]), (k[1], v[1]), sizes)
    known = np.isfinite(estimate)
    several = known & (clusters > 1)
    alike = several & (error < ROUNDING)
    low, high, p_value = t_interval(estimate, np.where(several & ~alike, error, 0.0), df)
    # Equal in all clusters, and one of the two judges has only one cluster.
    alone = alike & np.any([(own > 0).sum(axis=0) < 2 for own in v], axis=0)
    alike &= ~alone
    several &= ~alone
    if alike.any():
        size = over(sizes.sum(axis=0) ** 2, (sizes**2).sum(axis=0))[alike]
        low[alike], high[alike] = common_difference(estimate[alike], size)
    method = np.where(alike, "Newcombe", "cluster linearisation, t")
    single = np.where(shared > 1, ONE_SIDED, SINGLE)
    return pl.DataFrame(
        {
            "estimate": estimate,
            "low": np.clip(low, -1, 1),
            "high": np.clip(high, -1, 1),
            "standard_error": np.where(several & ~alike, error, np.nan),
            "df": np.where(known, df, np.nan),
            "p_value": p_value,
            "method": np.where(several, method, "none"),
            "reason": np.where(known, np.where(several, "", single), EMPTY),
            "clusters": clusters,
        }
    ).with_columns(
        pl.col("estimate", "low", "high", "standard_error", "df", "p_value").fill_nan(None),
        reason=pl.when(pl.col("reason") != "").then("reason"),
    )
