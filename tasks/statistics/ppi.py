"""Prediction-powered inference (PPI++): win rates from few human labels and many verdicts."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Contests
from schemas.results import Estimates
from tasks.counting.contests import differences, of_labelled_judges, sides
from tasks.inference.bootstrap import BOOT, by_chance, redrawn
from tasks.inference.cluster_sums import PART, join_cells, totals
from tasks.inference.intervals import ALIKE, LEVEL, ROUNDING, arrays, t_interval
from tasks.inference.linearised_errors import correction
from tasks.inference.quantiles import normal_quantile
from tasks.kit.defaults import TARGET_HALF_WIDTH
from tasks.statistics import Rows, statistic

WIDTH = f"half-width {TARGET_HALF_WIDTH}"
FEW = "fewer than two labelled questions"
TWO = "lambda is fitted to only two labelled questions: no interval"
CHOSEN = (
    "it is not known how the labelled items were chosen, and a mean over chosen ones is off: give "
    "label_chance, the same for all if they were drawn at random (`calibrate`: --random-labels)"
)
DESCRIPTIVE = "a description of the labels: no interval"
TOO_MANY = "labels for all pairs would not be enough: more pairs are needed"
LABELLED = pl.col("human").is_not_null()


@statistic(
    source="arXiv:2311.01453; methods.md, section 12",
    gives=("human_win_rate", "ppi_win_rate"),
    family="correction",
    null=0.5,
    rows={
        "ppi_difference": {"null": 0.0},
        "label_correlation": {"unit": "coefficient", "null": 0.0},
        "effective_labels": {"unit": "count", "null": None},
        "labels_needed": {"unit": "count", "null": None},
    },
    needs=("anchor_author", "target_author", "human_score"),
)
def ppi(contests: DataFrame[Contests]) -> Rows:
    """Estimate the win rate that people would give, from few human labels and many verdicts.

    n pairs with human Y and judge F, N pairs with the judge's G only:
    ``lambda = clip(cov(Y, F) / ((1 + n/N) var(F and G pooled)), 0, 1)``,
    ``theta = lambda mean(G) + mean(Y - lambda F)``,
    ``se^2 = lambda^2 var(G)/N + var(Y - lambda F)/n``, ``theta +- t_{.975, n-1} se``.

    Parameters
    ----------
    contests
        One row per judge and control pair of two models, ``human_score`` where people were asked.

    Returns
    -------
    Estimates
        By model and pair of models that have labels: ``ppi_win_rate``; ``human_win_rate``, the
        same with lambda 0; ``label_correlation``, r = corr(Y, F); ``effective_labels``, the number
        of labels alone that would be as precise at the lambda used: ``n / (1 - r^2 N/(n + N))``, n
        where lambda is clipped to 0, ``n var(Y) / (n var(G)/N + var(Y - F))`` where it is clipped
        to 1; ``labels_needed`` for an interval of +- .05, likewise.
        ``ppi_difference`` uses paired differences: two models, same opponent, same question.
        ``n`` counts labels, ``clusters`` their questions.

    Notes
    -----
    Variances are by clusters, even if a cluster has pairs of both kinds, with CR2 weights; df is by
    the labelled clusters, their number minus one if they have equal size. If lambda is fitted (not
    clipped to 0 or 1), ``Y - lambda F`` has one less, as in a regression: without this
    correction and with ten labelled questions ``ppi_difference`` rejected a true null hypothesis in
    .059 of studies (docs/reference/operating-characteristics.md). ``boot_low`` and
    ``boot_high`` refit lambda in each draw.
    Labels must be a random sample: ``label_chance`` is the probability that a pair was labelled. If
    it differs between pairs, labels are weighted by its inverse, G is the verdict on all pairs and
    lambda the weighted slope of Y on F; differences are then not given. If it is unknown, nothing
    is given, unless every pair is labelled. If all pairs are labelled, theta is their mean.

    References
    ----------
    Angelopoulos et al. (2023), arXiv:2301.09633 and 2311.01453; Boyeau et al. (2024),
    arXiv:2403.07008; for weights Zrnic and Candes (2024), arXiv:2403.03208.

    Examples
    --------
    Y = 1, 0, F = 1, 0, G = 1, 1, 0, 1: cov .5, var of the pool .26667, so lambda =
    .5 / (1.5 * .26667) = 1.25, clipped to 1; theta = .75 + 0; se^2 = .25/4 + 0, se = .25.
    """
    contests = of_labelled_judges(contests)
    if contests.is_empty():
        return []
    rows = sides(contests)
    rates = _prepared(rows)
    if rates.is_empty():
        return []
    found, alone = _rectified(rates), _rectified(rates, use_judge=False)
    frames = [
        _rows("ppi_win_rate", _with_boot(found, rates), low=0.0),
        _rows("human_win_rate", _with_boot(alone, rates, use_judge=False), low=0.0),
        *_about_labels(found),
    ]
    frames += [
        _rows("ppi_difference", _with_boot(_rectified(pairs), pairs), low=-1.0)
        for pairs in map(_prepared, differences(rows))
        if not pairs.is_empty()
    ]
    return frames


def corrected_by_labels(rows: pl.DataFrame) -> DataFrame[Estimates]:
    """Return the PPI++ mean of each cell of any scores in [0, 1]; see :func:`ppi`.

    ``rows`` has one row per item: the cell's columns, ``cluster``, ``score``, ``human`` (null if
    not labelled), ``label_chance``, ``votes``, ``kind``, ``simulated``.
    """
    prepared = _prepared(rows)
    found = _with_boot(_rectified(prepared), prepared)
    return Estimates.draft(_rows("ppi_mean", found, low=0.0))


def _with_boot(found: pl.DataFrame, rows: pl.DataFrame, *, use_judge: bool = True) -> pl.DataFrame:
    if not by_chance():
        return found.with_columns(pl.lit(None, pl.Float64).alias(end) for end in BOOT)
    drawn = redrawn(rows, use_judge=use_judge)
    texts = found.with_columns(pl.col(PART).cast(pl.String))
    return join_cells(texts, drawn)


def _prepared(rows: pl.DataFrame) -> pl.DataFrame:
    """Keep cells with labels and pairs with a verdict; add weights and the values of G."""
    scored = rows.with_columns(dropped=pl.col("score").null_count().over(PART)).filter(
        pl.col("score").is_not_null()
    )
    scored = scored.filter(LABELLED.any().over(PART))
    chance, some_without = pl.col("label_chance"), (~LABELLED).any().over(PART)
    return scored.with_columns(
        chosen=(chance.filter(LABELLED).null_count() > 0).over(PART) & some_without,
        alike=(chance.drop_nulls().n_unique() <= 1).over(PART) | ~some_without,
    ).with_columns(
        w=pl.when(LABELLED).then(pl.when("alike").then(1.0).otherwise(1 / pl.col("label_chance"))),
        aside=~LABELLED | ~pl.col("alike"),
    )


def _rectified(rows: pl.DataFrame, *, use_judge: bool = True) -> pl.DataFrame:
    """Return theta and its variance by cell."""
    y, f, w, aside = (pl.col(c) for c in ("human", "score", "w", "aside"))
    cov = (w * (y - (w * y).sum() / w.sum()) * (f - (w * f).sum() / w.sum())).sum() / w.sum()
    n, others = LABELLED.sum(), (~LABELLED).sum()
    df = n / (n - 1)  # cov above divides by n
    slope = cov * pl.when("alike").then(df / (1 + n / others)).otherwise(1.0) / f.var()
    usable = (others > 0) & (n > 1) & (f.var() > 0)
    factor = pl.when(usable).then(slope.clip(0, 1)).otherwise(0.0) if use_judge else pl.lit(0.0)
    lam = rows.with_columns(lam=factor.over(PART))
    rest = y - pl.col("lam") * f
    parts = lam.with_columns(
        judged=pl.col("lam")
        * pl.when(aside).then(f - f.filter(aside).mean().over(PART))
        / aside.sum().over(PART),
        rest=w * (rest - (w * rest).sum().over(PART) / w.sum().over(PART)) / w.sum().over(PART),
    )
    of_cluster = parts.group_by(*PART, "cluster", maintain_order=True).agg(
        pl.col("judged", "rest").sum(),
        aside=aside.sum().cast(pl.Float64),
        labelled=LABELLED.sum().cast(pl.Float64),
    )
    spread = _spread(of_cluster.sort(PART, maintain_order=True))
    means = lam.group_by(PART, maintain_order=True).agg(
        pl.col("kind", "simulated", "chosen", "alike", "dropped", "lam").first(),
        votes_per_pair=pl.col("votes").mode().max(),
        n=n,
        others=others,
        r=pl.corr(y.filter(LABELLED), f.filter(LABELLED)),
        label_variance=y.var(),
        verdict_variance=f.filter(~LABELLED).var(),
        rest_variance=(y - f).var(),
        pull=cov * df / f.var(),
        theta=(w * rest).sum() / w.sum()
        + pl.when(pl.col("lam").first() > 0)
        .then(pl.col("lam").first() * f.filter(aside).mean())
        .otherwise(0.0),
    )
    means = means.with_columns(fitted=pl.col("lam").is_between(0, 1, closed="none"))
    return join_cells(means, spread)


def _spread(clusters: pl.DataFrame) -> pl.DataFrame:
    """Return each cell's variances and covariance from its clusters, which are sorted by cell."""
    parts = clusters.select(pl.struct(PART).rle_id()).to_series().to_numpy()
    first = np.flatnonzero(np.diff(parts, prepend=-1))
    starts = np.append(first, clusters.height)
    labels, asides = (correction(clusters[c].to_numpy(), starts) for c in ("labelled", "aside"))
    judged, rest = clusters["judged"].to_numpy(), clusters["rest"].to_numpy()
    both = np.sqrt(asides.weight * labels.weight)
    counted = (clusters["labelled"].to_numpy() > 0).astype(np.float64)
    return clusters[first].select(
        *PART,
        clusters=pl.Series(totals(counted, starts).astype(np.int64)),
        df=pl.Series(labels.df),
        judged=pl.Series(asides.variance(judged)),
        rest=pl.Series(labels.variance(rest)),
        cross=pl.Series(totals(both * judged * rest, starts)),
    )


def _rows(name: str, found: pl.DataFrame, low: float) -> pl.DataFrame:
    fitted, df = found["fitted"].to_numpy(), np.nan_to_num(found["df"].to_numpy(), nan=1.0)
    clusters, rest, judged, cross, theta = arrays(
        found, "clusters", "rest", "judged", "cross", "theta"
    )
    spare = clusters - 1 - fitted
    more = np.where(fitted & (spare > 0), df / np.where(df > 1, df - 1, 1.0), 1.0)
    error = np.sqrt(np.maximum(more * rest + judged + 2 * np.sqrt(more) * cross, 0.0))
    ends = t_interval(theta, error, df)
    reason = (
        pl.when("chosen")
        .then(pl.lit(CHOSEN))
        .when(pl.col("clusters") < 2)
        .then(pl.lit(FEW))
        .when(pl.Series(spare < 1))
        .then(pl.lit(TWO))
        .when(pl.col("standard_error") < ROUNDING)
        .then(pl.lit(ALIKE))
    )
    known = pl.col("reason").is_null()
    frame = found.with_columns(
        pl.col("df").fill_nan(None),
        statistic=pl.lit(name),
        standard_error=pl.Series(error),
        low=pl.Series(np.maximum(ends[0], low)),
        high=pl.Series(np.minimum(ends[1], 1.0)),
        p_value=pl.Series(ends[2]) if low < 0 else None,
        level=LEVEL,
        estimate=pl.col("theta").clip(low, 1.0),
    ).with_columns(reason=reason)
    method = pl.concat_str(
        pl.when(pl.col("others") == 0)
        .then(pl.lit("human labels only, t"))
        .when("alike")
        .then(pl.lit("PPI++, t, lambda "))
        .otherwise(pl.lit("PPI++, weighted labels, t, lambda ")),
        pl.when(pl.col("others") > 0)
        .then(pl.col("lam").round(2).cast(pl.String))
        .otherwise(pl.lit("")),
    )
    return Estimates.draft(
        frame.with_columns(
            pl.when(known).then(pl.col("low", "high", *BOOT, "standard_error", "p_value", "level")),
            estimate=pl.when(known | pl.col("reason").is_in([ALIKE, TWO])).then(pl.col("estimate")),
            method=pl.when(known).then(method).otherwise(pl.lit("none")),
        )
    )


def _about_labels(found: pl.DataFrame) -> list[pl.DataFrame]:
    known = ~pl.col("chosen") & pl.col("r").is_finite().fill_null(value=False)
    values = {
        "label_correlation": pl.col("r"),
        "effective_labels": _effective(),
        "labels_needed": _needed(),
    }
    why = (
        pl.when("chosen")
        .then(pl.lit(CHOSEN))
        .when(~known)
        .then(pl.lit("labels or verdicts do not vary: no correlation"))
    )
    return [
        Estimates.draft(
            found.with_columns(
                pl.col("df").fill_nan(None),
                statistic=pl.lit(name),
                estimate=pl.when(known).then(value),
                method=pl.lit(WIDTH if name == "labels_needed" else "none"),
            ).with_columns(
                reason=why.when(pl.col("estimate").is_null())
                .then(pl.lit(TOO_MANY))
                .otherwise(pl.lit(DESCRIPTIVE))
            )
        )
        for name, value in values.items()
    ]


def _effective() -> pl.Expr:
    """Return the effective number of labels: n var(mean label) / var(theta), at the lambda used."""
    n, others, lam, y = (pl.col(c) for c in ("n", "others", "lam", "label_variance"))
    whole = n * pl.col("verdict_variance") / others + pl.col("rest_variance")
    fitted = 1 - pl.col("r") ** 2 * others / (n + others)
    return (
        pl.when(lam <= 0)
        .then(n.cast(pl.Float64))
        .when(lam < 1)
        .then(n / fitted)
        .otherwise(n * y / whole)
    )


def _needed() -> pl.Expr:
    """Return how many of the pairs must be labelled; null if even all would not suffice.

    With n of P pairs labelled, lambda is ``cov/var (P - n)/P``, clipped to 0 and 1; the variance of
    theta must be ``(half-width / z)^2 = 1/k``. If lambda is clipped to 1, that variance is
    ``var(G)/(P - n) + var(Y - F)/n``.
    """
    pairs, r2, y = pl.col("n") + pl.col("others"), pl.col("r") ** 2, pl.col("label_variance")
    k = (float(normal_quantile((1 + LEVEL) / 2)) / TARGET_HALF_WIDTH) ** 2
    fitted = pl.when(k * y * r2 < pairs).then(k * y * (1 - r2) / (1 - k * y * r2 / pairs))
    g, rest = pl.col("verdict_variance"), pl.col("rest_variance")
    middle = (pairs + k * (rest - g)) / 2
    root = middle**2 - k * rest * pairs
    whole = pl.when(root >= 0, middle > 0).then(middle - root.clip(0).sqrt())
    over_one = pl.col("pull") * (pairs - fitted) / pairs > 1
    needed = (
        pl.when(pl.col("pull") <= 0).then(k * y).when(over_one).then(whole).otherwise(fitted).ceil()
    )
    return pl.when(needed <= pairs).then(needed)
