"""Self-enhancement: a judge's scores of its own model's answers, relative to other judges'."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Contests
from tasks.counting.cells import ratios
from tasks.counting.contests import sides
from tasks.statistics import OWN_AUTHOR, Rows, statistic

ITEM = ("dataset", "prompt", "wave", "sample", "own")


@statistic(
    source="arXiv:2410.02736; methods.md, section 2",
    family="correction",
    unit="ratio",
    null=0.0,
    needs=("anchor_author", "target_author", OWN_AUTHOR),
    missing="no other judge that is not simulated scored a contest of this judge",
)
def self_score_error(contests: DataFrame[Contests]) -> Rows:
    """Measure by what share a judge scores its own answers higher than other judges do.

    ``sum_i y_self(i) / sum_i y_other(i) - 1`` over the contests of the judge's own model, y its
    mean score over both orders, y_other the mean of the other judges' (without simulated ones).

    Parameters
    ----------
    contests
        One row per judge and control pair of two models; an author is the judge's own model if it
        has the judge's name.

    Returns
    -------
    Estimates
        One row per judge whose name is an author's, ``subgroup`` that name; by cluster
        linearisation, with the interval clipped at -1, and with a cluster bootstrap interval.

    Notes
    -----
    The error of self-enhancement in Ye et al. (CALM) is ``|1 - y_self / y_other|``, the absolute
    value of this; the sign is kept, as noise alone makes an absolute value positive. They score
    answers one by one; here the score is the share of contests won, which votes provide. The
    definition follows our specification and has not been compared with the paper's text, so it
    claims no parity with it. Contests that nobody else judged are dropped. A judge may be right
    that its own answers are better: this is no bias if the others are wrong.

    References
    ----------
    Ye et al. (2024), Justice or Prejudice?, arXiv:2410.02736.

    Examples
    --------
    A judge gives its own answers 1 and .5; two others give them .5 and .5, and 0 and .5: the
    others' means sum to .75, so the error is 1.5 / .75 - 1 = 1.
    """
    judge = pl.col("judge").cast(pl.String)
    author = pl.col("own").cast(pl.String)
    authors = pl.col("anchor_author", "target_author").cast(pl.String)
    if contests.filter(pl.any_horizontal(authors == judge)).is_empty():
        return []
    rows = sides(contests).filter(pl.col("subgroup") == pl.col("own"))
    others = (
        rows.filter(judge != author, ~pl.col("simulated").fill_null(value=False))
        .group_by(ITEM, maintain_order=True)
        .agg(others=pl.col("score").mean())
    )
    own = rows.filter(judge == author).join(others, on=ITEM, how="left")
    if own.is_empty():
        return []
    known = pl.col("score").is_not_null() & pl.col("others").is_not_null()
    items = own.with_columns(
        counted=known, dropped=~known, num=pl.col("score") - pl.col("others"), den="others"
    )
    rows = ratios("self_score_error", items, bounded=False)
    return rows.with_columns(pl.col("low").clip(lower_bound=-1.0))
