"""Two judges on the same items."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from schemas.results import Estimates
from tasks.defaults import FEWEST_CLUSTERS
from tasks.statistics import _intervals as intervals
from tasks.statistics import statistic
from tasks.statistics._bootstrap import BOOT, boot_ends, by_chance
from tasks.statistics._delta import over
from tasks.statistics._duels import Duel, Floats, Sides
from tasks.statistics._even import UNEQUAL, planned
from tasks.statistics._intervals import EMPTY, LEVEL, SINGLE
from tasks.statistics._panels import Panel, panels, primary_shift
from tasks.statistics._quantiles import t_quantile, t_tail
from tasks.statistics._success import may_win, wins
from tasks.statistics._swaps import Pairs, Tested, swap_rates, swap_sums

SHIFT = {False: "mps_contrast", True: "mps_sham_contrast"}


@statistic(
    source="methods.md, section 3 (two judges, same items)",
    gives=("mps_contrast", "mps_sham_contrast", "asr_contrast", "mcnemar"),
)
def contrast(shifts: DataFrame[Shifts]) -> DataFrame[Estimates]:
    """Measure how much more one judge is moved than another, on the items that both judged.

    ``mps_contrast = mean_i (shift_i(judge) - shift_i(other))``, over the control, or, named
    ``mps_sham_contrast``, over the sham where there are shams; ``asr_contrast = ASR(judge) -
    ASR(other)``, each on its own V; ``mcnemar = (b - c) / n`` on the intersection of both V, b
    where only the judge is won over, c where only the other is.

    Parameters
    ----------
    shifts
        One row per sample and perturbation.

    Returns
    -------
    Estimates
        Three rows per perturbation and pair of judges, ``judge`` before ``subgroup``, the other,
        by name. MPS: paired t on cluster sums, or, where the judges differ alike in every
        cluster, Newcombe's of how far one is above the other and how far below. ASR:
        ``u_g = (k_g - R v_g) / v`` of the judge minus that of the other,
        ``SE = sqrt(G / (G - 1) sum u_g^2)``. Their p-values are of swapping the two judges' labels
        within clusters, all swaps up to 12 clusters, else 9999 drawn ones,
        ``p = (1 + #) / (1 + B)``. McNemar: cluster linearisation, exact binomial p-value. Beside
        the intervals of MPS and ASR stand those of the cluster bootstrap.

    Notes
    -----
    p-values are raw; the mart ``contrasts`` adjusts them over all pairs of a perturbation (Holm).
    At 9999 draws none is below .0001, so beyond 31 judges no pair can be told apart after Holm. A
    pair with p above .1 after 1000 draws is drawn for no further. A swap that empties a V counts
    against rejection. Rates of judges with unequal votes per pair are not compared. McNemar's test
    takes items as independent, and answers a narrower question.

    References
    ----------
    methods.md, section 3. McNemar (1947), Psychometrika 12, 153-157.

    Examples
    --------
    Shifts .5, .5, 0 of one judge and 0, .5, 0 of another differ by .5, 0, 0: contrast 1/6. Of 8
    swaps all give a sum of +-.5, so p = 1.
    """
    shift = primary_shift()
    values = {
        "shift": shift,
        "told": pl.when(shift.is_not_null()).then(1.0),
        "counted": _told(may_win("control")),
        "hit": _told(may_win("control") & wins("experimental")),
        "control_votes": planned("control"),
    }
    found = [
        rows for panel in panels(shifts, values) if len(panel.judges) > 1 for rows in _rows(panel)
    ]
    return Estimates.draft(pl.concat(found)) if found else Estimates.empty()


def compare_shifts(panel: Panel) -> tuple[Pairs, Floats]:
    """Return the pairs of a panel with a ``shift``, and p-values of those with enough clusters."""
    duel = Duel.of(panel)
    both = duel.shared("shift")
    first, second = duel.of_pairs("shift", both)
    if by_chance():
        p_value = swap_sums(duel.pairs, duel.sums("shift", first, second)).p_value
    else:
        table = intervals.table_moments(first - second, panel.sums(both))
        p_value = _numbers(intervals.ratios(table)["p_value"])
    enough = (panel.sums(both) > 0).sum(axis=0) >= FEWEST_CLUSTERS
    return duel.pairs, np.where(enough, p_value, np.nan)


def _told(fact: pl.Expr) -> pl.Expr:
    told = pl.col("control").is_not_null() & pl.col("experimental").is_not_null()
    return pl.when(told).then(fact)


def _rows(panel: Panel) -> list[pl.DataFrame]:
    duel = Duel.of(panel)
    return [_shifts(duel), *_rates(duel)]


def _shifts(duel: Duel) -> pl.DataFrame:
    panel, pairs = duel.panel, duel.pairs
    both = duel.shared("shift")
    first, second = duel.of_pairs("shift", both)
    # Shares of the widest difference there is: 2, of shifts in [-1, 1].
    parts = np.maximum(first - second, 0.0) / 2, np.maximum(second - first, 0.0) / 2
    moments = intervals.table_moments(parts[0] - parts[1], panel.sums(both), parts)
    found = intervals.ratios(moments).with_columns(
        pl.col("estimate", "low", "high", "standard_error") * 2
    )
    found = found.with_columns(pl.col("low", "high").clip(-2.0, 2.0))
    name = SHIFT[panel.cell["has_sham"]]
    test = _by_formula(found)
    if by_chance():
        test = _swapped(swap_sums(pairs, duel.sums("shift", first, second)))
    n = duel.of_pairs("told", both)
    ends = duel.bounds({"shift": (first, second), "told": n}, _clusters(panel, both), _mean_gap)
    return _frame(duel, name, both, found.with_columns(boot_ends(ends)), test)


def _mean_gap(shift: Sides, told: Sides) -> Floats:
    return over(shift[0] - shift[1], told[0])


def _rate_gap(hits: Sides, counted: Sides) -> Floats:
    gap: Floats = over(hits[0], counted[0]) - over(hits[1], counted[1])
    return gap


def _clusters(panel: Panel, used: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return of how many clusters each pair uses something."""
    many: NDArray[np.int64] = (panel.sums(used) > 0).sum(axis=0)
    return many


def _rates(duel: Duel) -> tuple[pl.DataFrame, pl.DataFrame]:
    panel, pairs = duel.panel, duel.pairs
    both = duel.shared("counted")
    k, v = duel.of_pairs("hit", both), duel.of_pairs("counted", both)
    found = _difference(k, v)
    test = _by_formula(found)
    if by_chance():
        totals = (k[0] + k[1]).sum(axis=0), (v[0] + v[1]).sum(axis=0)
        sums = duel.sums("hit", *k), duel.sums("counted", *v)
        test = _swapped(swap_rates(pairs, *sums, totals))
    ends = duel.bounds({"hit": k, "counted": v}, _clusters(panel, both), _rate_gap)
    found = found.with_columns(boot_ends(ends))
    rates = _frame(duel, "asr_contrast", both, found, test, alike=True)
    counted, hit = (np.nan_to_num(panel.values[name]) > 0 for name in ("counted", "hit"))
    shared = both & counted[:, pairs.first] & counted[:, pairs.second]
    one, other = hit[:, pairs.first] & shared, hit[:, pairs.second] & shared
    a, b = panel.sums(one), panel.sums(other)
    narrow = intervals.ratios(intervals.table_moments(a - b, panel.sums(shared), (a, b)))
    unknown = {end: pl.lit(None, dtype=pl.Float64) for end in BOOT}
    narrow = narrow.with_columns(pl.col("low", "high").clip(-1.0, 1.0), **unknown)
    exact = _mcnemar((one & ~other).sum(axis=0), (other & ~one).sum(axis=0))
    test = exact, pl.repeat("exact McNemar", len(exact), eager=True)
    return rates, _frame(duel, "mcnemar", shared, narrow, test, alike=True)


def _difference(k: tuple[Floats, Floats], v: tuple[Floats, Floats]) -> pl.DataFrame:
    """Return the difference of two rates by cluster linearisation of both together."""
    total = [counted.sum(axis=0) for counted in v]
    known = (total[0] > 0) & (total[1] > 0)
    rate = [
        hits.sum(axis=0) / np.where(known, many, 1) for hits, many in zip(k, total, strict=True)
    ]
    u = [
        (hits - r * counted) / np.where(known, many, 1)
        for hits, counted, r, many in zip(k, v, rate, total, strict=True)
    ]
    clusters = (v[0] + v[1] > 0).sum(axis=0)
    df = np.maximum(clusters - 1, 1)
    estimate = rate[0] - rate[1]
    error = np.sqrt(((u[0] - u[1]) ** 2).sum(axis=0) * clusters / df)
    several = known & (clusters > 1)
    alike = several & (error < 1e-12)
    half = t_quantile(df, (1 + LEVEL) / 2) * error
    low, high = (np.where(several, end, np.nan) for end in (estimate - half, estimate + half))
    if alike.any():
        low[alike], high[alike] = _newcombe(
            [hits[:, alike] for hits in k], [counted[:, alike] for counted in v]
        )
    # Alike in all their clusters, of which one of the two has but one
    several &= ~np.isnan(low)
    method = np.where(alike, "Newcombe", np.where(several, "cluster linearisation, t", "none"))
    return pl.DataFrame(
        {
            "estimate": np.where(known, estimate, np.nan),
            "low": np.clip(low, -1, 1),
            "high": np.clip(high, -1, 1),
            "standard_error": np.where(several & ~alike, error, np.nan),
            "p_value": np.where(several & ~alike, t_tail(df, over(estimate, error)), np.nan),
            "method": method,
            "reason": np.where(known, np.where(several, "", SINGLE), EMPTY),
            "clusters": clusters,
        }
    ).with_columns(
        pl.col("estimate", "low", "high", "standard_error", "p_value").fill_nan(None),
        reason=pl.when(pl.col("reason") != "").then("reason"),
    )


def _newcombe(k: Sequence[Floats], v: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the interval of the difference of two rates from those of both."""
    (a, low_a, high_a), (b, low_b, high_b) = (
        intervals.proportions(intervals.table_moments(hits, counted))
        .select("estimate", "low", "high")
        .to_numpy()
        .T
        for hits, counted in zip(k, v, strict=True)
    )
    return a - b - np.hypot(a - low_a, high_b - b), a - b + np.hypot(high_a - a, b - low_b)


def _mcnemar(b: NDArray[np.int64], c: NDArray[np.int64]) -> Floats:
    """Return the exact two-sided p-value of ``b`` against ``c`` discordant items."""
    from scipy.special import bdtr

    p: Floats = np.minimum(1.0, 2 * bdtr(np.minimum(b, c).astype(float), b + c, 0.5))
    return p


def _swapped(tested: Tested) -> tuple[Floats, pl.Series]:
    form = "all {} swaps" if tested.exhaustive else "{} random swaps"
    return tested.p_value, pl.select(pl.format(form, pl.Series(tested.swaps))).to_series()


def _by_formula(found: pl.DataFrame) -> tuple[Floats, pl.Series]:
    test = pl.when(pl.col("method") == "Newcombe").then(pl.lit("all sign flips"))
    return _numbers(found["p_value"]), found.select(test.otherwise(pl.lit("t test"))).to_series()


def _numbers(values: pl.Series) -> Floats:
    return values.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _frame(
    duel: Duel,
    name: str,
    used: NDArray[np.bool_],
    found: pl.DataFrame,
    test: tuple[Floats, pl.Series],
    *,
    alike: bool = False,
) -> pl.DataFrame:
    """Return the rows of one statistic; those that need equal votes per pair may be null."""
    panel, (first, second) = duel.panel, duel.pairs
    judges, votes = pl.Series(panel.judges), panel.votes
    simulated = pl.Series(panel.simulated, dtype=pl.Boolean)
    clusters = _clusters(panel, used)
    rows = found.with_columns(
        statistic=pl.lit(name),
        **{key: pl.lit(panel.cell[key]) for key in (*panel.cell,) if key != "has_sham"},
        judge=judges.gather(first),
        subgroup=judges.gather(second),
        n=pl.Series(used.sum(axis=0)),
        clusters=pl.Series(clusters),
        dropped=pl.Series(len(used) - used.sum(axis=0)),
        votes_per_pair=pl.Series(np.maximum(votes[first], votes[second])),
        simulated=simulated.gather(first) | simulated.gather(second),
        p_value=pl.Series(test[0]),
        test=test[1],
    )
    control = panel.votes_of("control") if alike else votes
    apart = (votes[first] != votes[second]) | (control[first] != control[second])
    unequal = pl.Series(apart) & alike
    estimated = pl.col("estimate").is_not_null()
    silent = ~estimated | (pl.col("clusters") < 2)
    numbers = ("estimate", "low", "high", *BOOT, "standard_error", "p_value")
    return (
        rows.with_columns(
            # By formula there is no test where all clusters are alike.
            p_value=pl.when(~silent).then(pl.col("p_value").fill_nan(None))
        )
        .with_columns(
            method=pl.when(pl.col("p_value").is_null())
            .then("method")
            .otherwise(pl.format("{}; {}", "method", "test")),
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
            "statistic", *(key for key in panel.cell if key != "has_sham"), "judge", "subgroup",
            *numbers, "n", "clusters", "dropped", "votes_per_pair", "method", "reason", "simulated",
            level=pl.when(pl.col("low").is_not_null()).then(LEVEL),
        )
    )  # fmt: skip
