"""The pull of the first slot in logits."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.results import Estimates
from tasks.statistics import statistic
from tasks.statistics._groups import grouped
from tasks.statistics._intervals import ALIKE, LEVEL, SINGLE
from tasks.statistics._position import first_matches, matches
from tasks.statistics._quantiles import normal_quantile, normal_tail, t_quantile, t_tail

NEITHER = "no match with two votes for the same slot"
ADDED = 0.5
SPLIT = "cluster linearisation, t"
SIMPLE = "1/2 sqrt(1/n_FF + 1/n_SS), normal"
MIDDLE = (1 + LEVEL) / 2
FLAG = "; .5 added to both counts, as one was 0"


@statistic(
    source="methods.md, section 5; Davidson (1970), JASA 65, 317-328",
    gives=("position_kappa", "position_kappa_once"),
)
def position_effect(tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Measure by how many logits the first slot is favoured, whatever the quality of the answers.

    ``kappa = 1/2 ln(n_FF / n_SS)``: of the matches (equal repeat, both orders) those with two votes
    for the first slot over those with two for the second. Not Cohen's kappa.

    Parameters
    ----------
    tallies
        One row per pair and judge.

    Returns
    -------
    Estimates
        Two rows per cell, above 0 where the first slot is favoured: ``position_kappa`` from all
        matches, ``position_kappa_once`` from repeat 0 only. n the matches that tell (FF and SS),
        ``hits`` those FF, clusters those with such a match. ``perturbation`` null is the control
        arm, else the experimental arm.

    Notes
    -----
    In Davidson's model of ties the odds of FF against SS are ``exp(2 kappa)`` in every item: the
    gap between the answers and the tie rate cancel. It is so the estimate of the model with item
    effects conditional on the items; a model that pools items without them finds too small a kappa,
    and so does noise that belongs to the prompt, which never turns its sign.
    All matches: ``SE = 1/2 sqrt(G / (G - 1) sum_g (a_g / A - b_g / B)^2)``, with the counts FF and
    SS of cluster g and their totals, and t with G - 1 degrees of freedom. Repeat 0:
    ``1/2 sqrt(1/A + 1/B)`` and the normal quantile if no cluster has two such matches, else as
    before. If A or B is 0, .5 is added to both, the method says so, and the empty count, which has
    no spread between clusters, brings the variance 1/.5; both 0: null. Where votes were asked one
    after another, both rows rest on repeat 0.

    References
    ----------
    methods.md, sections 5 and 13. Davidson, R. R. (1970), JASA 65, 317-328.

    Examples
    --------
    Eight matches FF and two SS, each of its own question: kappa = 1/2 ln 4 = .693, and
    SE = 1/2 sqrt(1/8 + 1/2) = .395.
    """
    every = _kappa("position_kappa", matches(tallies), simple=False)
    once = _kappa("position_kappa_once", first_matches(tallies), simple=True)
    return Estimates.draft(pl.concat([every, once]))


def _kappa(name: str, items: pl.DataFrame, *, simple: bool) -> DataFrame[Estimates]:
    groups = grouped(items)
    a, b = (groups.by_cluster(items[name]) for name in ("first_first", "second_second"))
    both, cell = a + b, groups.cell_of_sums()
    total_a, total_b, many = (groups.of_cells(sums) for sums in (a, b, (both > 0).astype(float)))
    more = np.where((total_a == 0) | (total_b == 0), ADDED, 0.0)
    apart = a / (total_a + more)[cell] - b / (total_b + more)[cell]
    most = np.zeros(len(more))
    np.maximum.at(most, cell, both)
    cells = groups.cells.with_columns(
        dropped=pl.Series(groups.by_cell(items["dropped"]).astype(np.int64)),
        hits=pl.Series(total_a.astype(np.int64)), n=pl.Series((total_a + total_b).astype(np.int64)),
        most=pl.Series(most), clusters=pl.Series(many.astype(np.int64)),
        more=pl.Series(more), squares=pl.Series(groups.of_cells(apart**2)),
    )  # fmt: skip
    return Estimates.draft(_solve(name, cells, simple=simple))


def _solve(name: str, cells: pl.DataFrame, *, simple: bool) -> pl.DataFrame:
    n, hits, clusters = pl.col("n"), pl.col("hits"), pl.col("clusters")
    a, b = hits + pl.col("more"), n - hits + pl.col("more")
    some, zero = n > 0, pl.col("more") > 0
    alone = (pl.col("most") == 1) if simple else pl.lit(value=False)
    # An empty count has no spread between clusters: its part of the variance is that of the .5.
    spread = pl.col("squares") * clusters / (clusters - 1)
    spread += pl.when(zero).then(1 / ADDED).otherwise(0.0)
    variance = pl.when(alone).then(1 / a + 1 / b).otherwise(spread)
    known = some & (clusters > 1) & (variance > 1e-20)
    error = pl.when(known).then(variance.sqrt() / 2)
    found = cells.with_columns(
        statistic=pl.lit(name),
        subgroup=pl.lit(""),
        estimate=pl.when(some).then((a / b).log() / 2),
        standard_error=error,
        method=pl.when(known)
        .then(pl.when(alone).then(pl.lit(SIMPLE)).otherwise(pl.lit(SPLIT)))
        .otherwise(pl.lit("none"))
        + pl.when(some & zero).then(pl.lit(FLAG)).otherwise(pl.lit("")),
        reason=pl.when(~some).then(pl.lit(NEITHER))
        .when(clusters == 1).then(pl.lit(SINGLE))
        .when(~known).then(pl.lit(ALIKE)),
        level=pl.when(known).then(LEVEL),
    )  # fmt: skip
    simply = (found["method"].str.starts_with(SIMPLE)).to_numpy()
    df = np.maximum(found["clusters"].to_numpy() - 1, 1).astype(np.float64)
    # Of 20 questions the normal quantile finds a position effect that is not there 7 times in 100.
    wide = np.where(simply, normal_quantile(MIDDLE), t_quantile(df, MIDDLE))
    half = pl.Series(wide) * pl.col("standard_error")
    score = (found["estimate"] / found["standard_error"]).to_numpy().astype(np.float64)
    return found.with_columns(
        low=pl.col("estimate") - half,
        high=pl.col("estimate") + half,
        p_value=pl.Series(np.where(simply, normal_tail(score), t_tail(df, score))).fill_nan(None),
    )
