"""Contrast of the log-odds shifts of two judges on the same items."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from tasks.inference.bootstrap import boot_ends
from tasks.inference.cluster_sums import Floats
from tasks.inference.delta_method import METHOD
from tasks.inference.intervals import ALIKE, LEVEL, SINGLE, t_interval
from tasks.inference.linearised_errors import ROUNDING, correction, over
from tasks.panels.judge_pairs import Duel, Sides, duels, names_of
from tasks.statistics import Rows, statistic
from tasks.statistics.los import FLAG, linear_log_odds, log_odds, products


@statistic(
    source="methods.md, sections 2 and 3 (two judges, same items)",
    family="comparison",
    unit="logit",
    null=0.0,
    missing="no sample has valid votes of both judges in one order in both arms",
)
def los_contrast(tallies: DataFrame[Tallies]) -> Rows:
    """Measure by how many logits one judge shifts more than another, on items that both judged.

    It compares the same pairs as ``contrast``.

    ``LOS(judge) - LOS(other)``, each ``ln(A / B)`` of the samples that count for both. With a_g and
    b_g the sums of a cluster, ``u_g = (a_g / A - b_g / B)`` of the judge minus the same of the
    other, ``SE^2 = sum_g a_g^2 u_g^2`` with the CR2 weights of the clusters
    (``linearised_errors.py``).

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        One row per perturbation and pair of judges, sorted by name: ``judge``, and the other in
        ``subgroup``; interval and p-value by t with Satterthwaite degrees of freedom. n counts the
        samples with a valid vote in both arms in the same order from both judges, clusters theirs.

    Notes
    -----
    It does not depend on equal votes per pair, nor on how a shift in logits translates to scores.
    Interval and p-value come from linearising both judges together, as for LOS. The bootstrap
    interval is in ``boot_low`` and
    ``boot_high``. If A or B of a judge is 0, .5 is added to both, and counts as one more cluster,
    as for LOS; if both are 0: null. The mart ``contrasts`` adjusts p-values over all pairs of a
    perturbation (Holm); the primary contrast is MPS.

    References
    ----------
    methods.md, sections 2 and 3. Mantel and Haenszel (1959), JNCI 22, 719-748.

    Examples
    --------
    Two samples. One judge has a = 2, 1 and b = 1, 0: A = 3, B = 1, LOS ln 3; the other a = 1, 0 and
    b = 1, 1: LOS -ln 2. Contrast ln 6 = 1.792; u = (2/3 - 1) - (1 - 1/2) = -.833 and
    (1/3 - 0) - (0 - 1/2) = .833, so SE = sqrt(2 * 2 * .694) = 1.667.
    """
    items = products(tallies).with_columns(has_sham=pl.lit(value=False))
    valid = pl.when("counted")
    values = {"a": valid.then("a"), "b": valid.then("b")}
    return [_rows(duel) for duel in duels(items, values)]


def _difference(a: Sides, b: Sides) -> Floats:
    one, other = (log_odds({"a": x, "b": y}) for x, y in zip(a, b, strict=True))
    difference: Floats = one - other
    return difference


def _rows(duel: Duel) -> pl.DataFrame:
    panel, (first, second) = duel.panel, duel.pairs
    both = duel.shared("a")
    a, b = duel.of_pairs("a", both), duel.of_pairs("b", both)
    counted = panel.sums(both)
    simulated = pl.Series(panel.simulated, dtype=pl.Boolean)
    n, clusters = both.sum(axis=0), (counted > 0).sum(axis=0)
    found = _solved(list(zip(a, b, strict=True)), counted)
    boot = boot_ends(duel.bounds({"a": a, "b": b}, both, _difference))
    known = pl.col("low").is_not_null()
    return found.with_columns(boot).with_columns(
        pl.when(known).then(pl.col("boot_low", "boot_high")),
        statistic=pl.lit("los_contrast"),
        **{key: pl.lit(value) for key, value in panel.cell.items() if key != "prompt"},
        **names_of(duel),
        n=pl.Series(n),
        clusters=pl.Series(clusters),
        dropped=pl.Series(len(both) - n),
        votes_per_pair=pl.Series(np.maximum(panel.votes[first], panel.votes[second])),
        simulated=simulated.gather(first) | simulated.gather(second),
        level=pl.when(known).then(LEVEL),
    )


def _solved(sides: list[tuple[Floats, Floats]], counted: Floats) -> pl.DataFrame:
    """Return the numbers of each pair from its sides' terms of A and B, and ``counted`` samples.

    All have the shape (clusters, pairs).
    """
    n, clusters = counted.sum(axis=0), (counted > 0).sum(axis=0)
    one, other = (
        linear_log_odds({"a": a.sum(axis=0), "b": b.sum(axis=0), "n": n}) for a, b in sides
    )
    estimate = one.estimate - other.estimate
    size = correction(counted)
    u, v = (
        np.nan_to_num(a * linear.slopes["a"]) + np.nan_to_num(b * linear.slopes["b"])
        for (a, b), linear in zip(sides, (one, other), strict=True)
    )
    apart = u - v
    # Where .5 was added, not all are 0.
    apart -= np.nan_to_num(over(counted, n)) * apart.sum(axis=0)
    apart[np.abs(apart) <= ROUNDING * (np.abs(u) + np.abs(v))] = 0.0
    added = np.add(one.added, other.added)  # type: ignore[arg-type]
    error = np.sqrt(size.variance(apart) + added * size.inflation)
    finite = np.isfinite(estimate)
    known = finite & (clusters > 1) & (error > 0)
    low, high, p_value = t_interval(estimate, np.where(known, error, 0.0), size.df)
    numbers = {
        "estimate": np.where(finite, estimate, np.nan),
        "low": low,
        "high": high,
        "standard_error": np.where(known, error, np.nan),
        "df": np.where(finite, size.df, np.nan),
        "p_value": p_value,
    }
    flag = np.where(finite & (added > 0), FLAG, "")
    why = np.where(finite, np.where(clusters > 1, ALIKE, SINGLE), one.reason)
    return pl.DataFrame(numbers).with_columns(
        pl.all().fill_nan(None),
        method=pl.Series(np.where(known, METHOD, "none").tolist(), dtype=pl.String)
        + pl.Series(flag.tolist(), dtype=pl.String),
        reason=pl.Series(np.where(known, "", why).tolist(), dtype=pl.String).replace("", None),
    )
