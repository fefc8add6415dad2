"""Position effect: the preference for the first slot in logits."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.keys import CELL
from schemas.results import Estimates
from tasks.counting.missing_reasons import NO_SLOT_PREFERRED
from tasks.counting.order_halves import one_order_effect, only_order, without_biased_orders
from tasks.counting.positions import arm_groups, first_matches, matches
from tasks.inference.bootstrap import BOOT, boot_ends, bounds_of
from tasks.inference.cluster_sums import Groups, Sums
from tasks.inference.delta_method import METHOD
from tasks.inference.intervals import ALIKE, LEVEL, SINGLE, arrays
from tasks.inference.linearised_errors import ROUNDING, correction, over
from tasks.inference.quantiles import normal_quantile, normal_tail, t_quantile, t_tail
from tasks.statistics import Rows, statistic

NEITHER = "on no pair are two votes, one in each order, for the same slot"
ADDED = 0.5
SIMPLE = "1/2 sqrt(1/n_FF + 1/n_SS), normal"
MIDDLE = (1 + LEVEL) / 2
FLAG = "; .5 added to both counts because one was 0"


@statistic(
    source="methods.md, section 5; Davidson (1970), JASA 65, 317-328",
    gives=("position_kappa", "position_kappa_once"),
    family="position",
    unit="logit",
    null=0.0,
    missing=NO_SLOT_PREFERRED,
)
def position_effect(tallies: DataFrame[Tallies]) -> Rows:
    """Measure by how many logits the first slot is favoured, independent of answer quality.

    ``kappa = 1/2 ln(n_FF / n_SS)``: among the matches (equal repeat, both orders), FF have two
    votes for the first slot and SS two votes for the second. This is not Cohen's kappa.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        Two rows per cell, above 0 if the first slot is favoured: ``position_kappa`` from all
        matches, ``position_kappa_once`` from repeat 0 only. n counts the informative matches (FF
        and SS), ``hits`` the FF ones, clusters those with such a match. ``perturbation`` null is
        the control arm, else the experimental arm.

    Notes
    -----
    In Davidson's model of ties the odds of FF against SS are ``exp(2 kappa)`` in every item: the
    quality gap and the tie rate cancel. So this is the conditional estimate in the model with item
    effects; a model that pools items without them underestimates kappa, and so does noise that
    depends on the prompt, which never changes the sign. All matches: ``SE =
    1/2 sqrt(sum_g c_g^2 (a_g / A - b_g / B)^2)``, with the counts FF and SS of cluster g and their
    totals, CR2 weights c_g^2 by matches of two valid votes, and t with Satterthwaite degrees of
    freedom; as for LOS, clusters whose matches add 0 count too. kappa is 0 where FF equals SS, so
    the p-value tests their difference, by a paired t of the clusters' a_g - b_g: the t of the log
    ratio rejects a true null hypothesis in only .042 to .046 of studies of 142 questions.
    Repeat 0: ``1/2 sqrt(1/A + 1/B)`` and the normal quantile if no cluster has two such matches,
    else as before. If A or B is 0, .5 is added to both, the method says so, and the empty count,
    which does not vary between clusters, contributes the variance 1/.5, also to the test; both 0:
    null. With sequential stopping, both rows use repeat 0.
    If a judge saw every pair in one order, ``position_kappa`` compares pairs of the same models
    between orders (``tasks/counting/order_halves.py``, and ``method`` says so); ``hits`` is then
    null, and n counts the pairs with a vote for a slot. It is null if the order depends on the
    models or labels.

    References
    ----------
    methods.md, sections 5, 13 and 16. Davidson, R. R. (1970), JASA 65, 317-328.

    Examples
    --------
    Eight matches FF and two SS, each of its own question: kappa = 1/2 ln 4 = .693; for repeat 0
    SE = 1/2 sqrt(1/8 + 1/2) = .395. For all matches of ten questions SE = .395 sqrt(10/9) = .417,
    and the differences are 1 eight times, -1 twice: mean .6, SE sqrt((1 - .36) / 9) = .267, so
    t = 2.25 and p = .051.
    """
    groups = arm_groups(tallies)
    every = _kappa("position_kappa", matches(tallies), groups, simple=False)
    once = _kappa("position_kappa_once", first_matches(tallies), groups, simple=True)
    return [_with_one_order(every, tallies), once]


def _with_one_order(every: DataFrame[Estimates], tallies: pl.DataFrame) -> DataFrame[Estimates]:
    """Replace effects within pairs by effects between pairs where no pair was seen twice."""
    pairs = tallies.with_columns(shown_first=only_order()).filter(
        pl.col("arm").is_in(["control", "experimental"]), pl.col("shown_first").is_not_null()
    )
    if pairs.is_empty():
        return every
    items = pairs.with_columns(mode=pl.lit("any"), votes=pl.col("planned"))
    control = pairs.filter(pl.col("arm") == "control")
    own = without_biased_orders(one_order_effect("position_kappa", items), control)
    others = every.join(own, on=CELL, how="anti", nulls_equal=True)
    return Estimates.draft(pl.concat([others, own]))


def _kappa(name: str, items: pl.DataFrame, groups: Groups, *, simple: bool) -> DataFrame[Estimates]:
    a, b, valid = (
        groups.by_cluster(items[name]) for name in ("first_first", "second_second", "valid")
    )
    both, cell = a + b, groups.cell_of_sums()
    total_a, total_b = groups.of_cells(a), groups.of_cells(b)
    more = np.where((total_a == 0) | (total_b == 0), ADDED, 0.0)
    apart = a / (total_a + more)[cell] - b / (total_b + more)[cell]
    sizes = correction(valid, groups.starts)
    gap = a - b - over(total_a - total_b, groups.of_cells(valid))[cell] * valid
    most = np.zeros(len(more))
    np.maximum.at(most, cell, both)
    ends = bounds_of(groups, {"a": a, "b": b}, valid, _half_log_ratio)
    cells = groups.cells.with_columns(
        *boot_ends(ends),
        dropped=pl.Series(groups.by_cell(items["dropped"]).astype(np.int64)),
        hits=pl.Series(total_a.astype(np.int64)),
        n=pl.Series((total_a + total_b).astype(np.int64)),
        most=pl.Series(most),
        clusters=pl.Series(groups.of_cells((both > 0).astype(np.float64)).astype(np.int64)),
        more=pl.Series(more),
        df=pl.Series(sizes.df),
        squares=pl.Series(sizes.variance(apart)),
        gaps=pl.Series(sizes.variance(gap)),
    )
    return Estimates.draft(_solve(name, cells, simple=simple))


def _half_log_ratio(sums: dict[str, Sums]) -> Sums:
    a, b = sums["a"], sums["b"]
    more = np.where((a == 0) | (b == 0), ADDED, 0.0)
    return np.where(a + b > 0, np.log((a + more) / (b + more)) / 2, np.nan)


def _solve(name: str, cells: pl.DataFrame, *, simple: bool) -> pl.DataFrame:
    n, hits = pl.col("n"), pl.col("hits")
    a, b = hits + pl.col("more"), n - hits + pl.col("more")
    some, zero, several = n > 0, pl.col("more") > 0, pl.col("clusters") > 1
    alone = (pl.col("most") == 1) if simple else pl.lit(value=False)
    # An empty count does not vary between clusters: its variance comes from the added .5.
    spread = pl.col("squares") + pl.when(zero).then(1 / ADDED).otherwise(0.0)
    variance = pl.when(alone).then(1 / a + 1 / b).otherwise(spread)
    known = some & several & (variance > 1e-20)
    error = pl.when(known).then(variance.sqrt() / 2)
    found = cells.with_columns(
        statistic=pl.lit(name),
        subgroup=pl.lit(""),
        estimate=pl.when(some).then((a / b).log() / 2),
        standard_error=error,
        method=pl.when(known)
        .then(pl.when(alone).then(pl.lit(SIMPLE)).otherwise(pl.lit(METHOD)))
        .otherwise(pl.lit("none"))
        + pl.when(some & zero).then(pl.lit(FLAG)).otherwise(pl.lit("")),
        reason=pl.when(~some)
        .then(pl.lit(NEITHER))
        .when(~several)
        .then(pl.lit(SINGLE))
        .when(~known)
        .then(pl.lit(ALIKE)),
        simply=known & alone,
        level=pl.when(known).then(LEVEL),
        **{end: pl.when(known).then(end) for end in BOOT},
    )
    simply = found["simply"].to_numpy()
    df = np.nan_to_num(found["df"].to_numpy(), nan=1.0)
    # With 20 questions the normal quantile rejects a true null hypothesis in 7 % of studies.
    wide = np.where(simply, normal_quantile(MIDDLE), t_quantile(df, MIDDLE))
    half = pl.Series(wide) * pl.col("standard_error")
    score = (found["estimate"] / found["standard_error"]).to_numpy().astype(np.float64)
    of_gap = _difference(found)
    tested = np.where((found["more"].to_numpy() > 0) | np.isnan(of_gap), score, of_gap)
    p_value = np.where(simply, normal_tail(score), t_tail(df, tested))
    return found.with_columns(
        low=pl.col("estimate") - half,
        high=pl.col("estimate") + half,
        p_value=pl.when(pl.col("standard_error").is_not_null()).then(pl.Series(p_value)),
    ).with_columns(pl.col("p_value", "df").fill_nan(None))


def _difference(found: pl.DataFrame) -> Sums:
    """Return the t of FF - SS over clusters; NaN where all clusters have the same difference."""
    hits, n, squares = arrays(found, "hits", "n", "gaps")
    gap = 2 * hits - n
    return over(gap, np.sqrt(np.where(squares > ROUNDING * gap**2, squares, 0.0)))
