"""Rogan-Gladen: win rates corrected for the judge's error rates."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Contests
from schemas.results import Estimates
from tasks.counting.contests import of_labelled_judges, sides
from tasks.inference.bootstrap import BOOT, boot_ends, bounds_of
from tasks.inference.cluster_sums import PART, Floats, grouped, join_cells
from tasks.inference.intervals import ALIKE, LEVEL, ROUNDING, arrays, moments
from tasks.inference.linearised_errors import effective_clusters, over
from tasks.inference.quantiles import t_quantile
from tasks.kit.defaults import limits
from tasks.kit.printable import decimal
from tasks.statistics import Rows, statistic

EMPTY = "no contest without a label: nothing to correct"
ONE_SIDED = "fewer than two questions labelled as wins, or as losses or ties: no error rates"
BEYOND = "the judge's rate is beyond what its errors allow for any true rate: no interval"
CUT_OFF = (
    "cut at the end of its range: error rates may differ between items with and without a label"
)
ROUNDED = 1e-9
"""How far from 0 or 1 an estimate is by rounding alone."""
BLIND = "sensitivity + specificity - 1 is below {}: the judge is hardly better than chance"
YES = pl.col("human") > 0.5
PARTS = {
    "p": (pl.col("human").is_null(), pl.col("won")),
    "se": (YES, pl.col("won")),
    "sp": (~YES, 1 - pl.col("won")),
}
"""Rate -> the contests that it uses, and what counts as a hit."""


@statistic(
    source="arXiv:2511.21140; methods.md, section 12",
    family="correction",
    null=0.5,
    needs=("anchor_author", "target_author", "human_score"),
)
def rogan_gladen(contests: DataFrame[Contests]) -> Rows:
    """Estimate how often people would prefer a model, from the judge's known error rates.

    ``theta = (p + sp - 1) / (se + sp - 1)``, p the share of unlabelled contests with a score above
    1/2, se and sp the shares of the m1 labelled wins and of the m0 others that the judge gets
    right; ``var = [p(1-p)/N + theta^2 se(1-se)/m1 + (1-theta)^2 sp(1-sp)/m0] / (se+sp-1)^2``.

    Parameters
    ----------
    contests
        One row per judge and control pair of two models, ``human_score`` where people were asked.

    Returns
    -------
    Estimates
        By model and pair of models that have labels: theta, clipped to [0, 1] (``reason`` says so),
        with the interval of
        all theta in [0, 1] for which ``(p + sp - 1) - theta (se + sp - 1)`` lies within t standard
        errors of 0 (Fieller 1954; degrees of freedom from the side with fewer), and a cluster
        bootstrap interval that resamples labelled and unlabelled contests; none where no theta in
        [0, 1] is left. ``n`` counts the
        unlabelled contests, ``clusters`` the clusters of the labels' side with fewer.

    Notes
    -----
    Binary only: a tie, by judge or people, is not a win, so compare it with other win rates only if
    ties are rare. Labels need not be random, but the judge's error rates must be the same on both
    kinds of contests; with random labels ``ppi`` is much narrower. Each binomial variance is
    multiplied by ``max(1, deff)``, deff by clusters as in ``win_rate``. Null where se + sp - 1 is
    below .2.

    The interval is Fieller's, which uses the variance at each theta. Theta +- t standard errors
    would use the variance at the estimate, which strays far where se + sp - 1 is small: that
    covered the truth in .99 of simulated studies (docs/reference/operating-characteristics.md).

    References
    ----------
    Rogan and Gladen (1978), Am. J. Epidemiol. 107, 71-76; Lee et al. (2025), arXiv:2511.21140;
    Fieller (1954), J. R. Stat. Soc. B 16, 175-185.

    Examples
    --------
    p = .6, se = .9, sp = .8: theta = .4 / .7 = .571.
    """
    contests = of_labelled_judges(contests)
    if contests.is_empty():
        return []
    return corrected_by_error_rates(sides(contests))


def corrected_by_error_rates(contests: pl.DataFrame) -> DataFrame[Estimates]:
    """Return the corrected share of scores above 1/2 in each cell; see :func:`rogan_gladen`.

    ``contests`` has one row per item: the cell's columns, ``cluster``, ``score``, ``human`` (null
    if not labelled), ``votes``, ``kind``, ``simulated``.
    """
    rows = contests.with_columns(dropped=pl.col("score").null_count().over(PART))
    labelled = rows.filter(
        pl.col("score").is_not_null(), pl.col("human").is_not_null().any().over(PART)
    ).with_columns(won=(pl.col("score") > 0.5).cast(pl.Float64))
    if labelled.is_empty():
        return Estimates.empty()
    cells = (
        labelled.group_by(PART, maintain_order=True)
        .agg(
            pl.col("kind", "simulated", "dropped").first(),
            votes_per_pair=pl.col("votes").mode().max(),
        )
        .with_columns(pl.col(PART).cast(pl.String))
    )
    parts = [
        _rate(name, labelled.filter(among).with_columns(num=right))
        for name, (among, right) in PARTS.items()
    ]
    for part in (*parts, _bounds(labelled)):
        # The warehouse returns names as enumerations.
        texts = part.with_columns(pl.col(PART).cast(pl.String))
        cells = join_cells(cells, texts)
    return Estimates.draft(_solved(cells).with_columns(statistic=pl.lit("rogan_gladen")))


def _rate(name: str, items: pl.DataFrame) -> pl.DataFrame:
    """Return a rate per cell with its variance and its numbers of items and clusters."""
    items = items.with_columns(one=pl.lit(1.0))
    groups = grouped(items)
    sums = {"num": groups.by_cluster(items["num"]), "den": groups.by_cluster(items["one"])}
    sums["counted"] = sums["den"]
    cells = groups.cells.with_columns(*moments(sums, groups.starts))
    rate, n, g = pl.col("num") / pl.col("den"), pl.col("den"), pl.col("clusters")
    by_cluster = pl.when(g > 1).then(pl.col("squares") / n**2)
    return cells.select(
        *PART,
        rate.alias(name),
        pl.max_horizontal(rate * (1 - rate) / n, by_cluster).alias(f"var_{name}"),
        n.cast(pl.Int64).alias(f"n_{name}"),
        g.alias(f"clusters_{name}"),
        pl.when(g > 1).then("freedom").alias(f"df_{name}"),
    )


def _bounds(contests: pl.DataFrame) -> pl.DataFrame:
    """Return each cell's bootstrap interval, widened for the side with fewer clusters."""
    groups = grouped(contests)
    each = contests.select(
        **{
            f"n_{name}": among.fill_null(value=False).cast(pl.Float64)
            for name, (among, _) in PARTS.items()
        },
        **{
            name: pl.when(among).then(right).otherwise(0.0)
            for name, (among, right) in PARTS.items()
        },
    )
    sums = {column.name: groups.by_cluster(column) for column in each}
    there = {name: effective_clusters(sums[name], groups.starts) for name in ("n_se", "n_sp")}
    fewer = (there["n_se"] < there["n_sp"])[groups.cell_of_sums()]
    counted = np.where(fewer, sums["n_se"], sums["n_sp"])
    ends = bounds_of(groups, sums, counted, _theta)
    return groups.cells.select(PART).with_columns(boot_ends(ends))


def _theta(sums: dict[str, Floats]) -> Floats:
    p, se, sp = (over(sums[name], sums[f"n_{name}"]) for name in PARTS)
    informedness = se + sp - 1
    theta = over(p + sp - 1, informedness).clip(0.0, 1.0)
    return np.where(informedness >= limits().least_informedness, theta, np.nan)


def _solved(cells: pl.DataFrame) -> pl.DataFrame:
    p, se, sp = map(pl.col, ("p", "se", "sp"))
    informedness = se + sp - 1
    theta = (p + sp - 1) / informedness
    variance = (
        pl.col("var_p") + theta**2 * pl.col("var_se") + (1 - theta) ** 2 * pl.col("var_sp")
    ) / informedness**2
    fewest = pl.min_horizontal(pl.col("clusters_se", "clusters_sp").fill_null(0))
    found = cells.with_columns(
        theta=theta,
        error=variance.sqrt(),
        clusters=fewest,
        n=pl.col("n_p").fill_null(0),
        df=pl.min_horizontal("df_se", "df_sp"),
    ).with_columns(
        reason=pl.when(pl.col("n") == 0)
        .then(pl.lit(EMPTY))
        .when(pl.col("clusters") < 2)
        .then(pl.lit(ONE_SIDED))
        .when(informedness < limits().least_informedness)
        .then(pl.lit(BLIND.format(decimal(limits().least_informedness))))
        .when(pl.col("error") < ROUNDING)
        .then(pl.lit(ALIKE))
    )
    df = found["df"].fill_null(1.0).to_numpy()
    low, high = _fieller_interval(found, t_quantile(df, (1 + LEVEL) / 2))
    # A point means that no rate from 0 to 1 agrees with the judge's rates; it is no interval.
    is_point = pl.Series(low == high) & pl.col("reason").is_null()
    found = found.with_columns(reason=pl.when(is_point).then(pl.lit(BEYOND)).otherwise("reason"))
    known = pl.col("reason").is_null()
    estimated = known | pl.col("reason").is_in([ALIKE, BEYOND])
    return found.with_columns(
        estimate=pl.when(estimated).then(pl.col("theta").clip(0, 1)),
        standard_error=pl.when(known).then(pl.col("error")),
        low=pl.when(known).then(pl.Series(low)),
        high=pl.when(known).then(pl.Series(high)),
        level=pl.when(known).then(LEVEL),
        **{end: pl.when(known).then(end) for end in BOOT},
        method=pl.when(known).then(pl.lit("Rogan-Gladen, Fieller t")).otherwise(pl.lit("none")),
        reason=pl.when(known & ~pl.col("theta").is_between(-ROUNDED, 1 + ROUNDED))
        .then(pl.lit(CUT_OFF))
        .otherwise("reason"),
    )


def _fieller_interval(cells: pl.DataFrame, quantile: Floats) -> tuple[Floats, Floats]:
    """Return the ends, within [0, 1], of all theta that the rates do not reject (Fieller)."""
    names = ("p", "se", "sp", "var_p", "var_se", "var_sp", "theta")
    p, se, sp, var_p, var_se, var_sp, theta = arrays(cells, *names)
    above, informedness, square = p + sp - 1, se + sp - 1, quantile**2
    # (above - theta informedness)^2 <= t^2 var(theta): a theta^2 - 2 b theta + c <= 0.
    a = informedness**2 - square * (var_se + var_sp)
    b = above * informedness - square * var_sp
    c = above**2 - square * (var_p + var_sp)
    root = np.sqrt(np.maximum(b**2 - a * c, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        first, last = np.sort([(b - root) / a, (b + root) / a], axis=0).clip(0, 1)
    # If rates are too uncertain to divide by, values between distinct roots are rejected.
    outside = (a <= 0) & (root > 0)
    low = np.where(a > 0, first, np.where(outside & (first == 0), last, 0.0))
    high = np.where(a > 0, last, np.where(outside & (last == 1), first, 1.0))
    # If no value within [0, 1] is left, use the end nearest to theta.
    nearest = theta.clip(0, 1)
    return np.minimum(low, nearest), np.maximum(high, nearest)
