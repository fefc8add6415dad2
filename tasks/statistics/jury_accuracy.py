"""Accuracy and position consistency of the jury's verdicts on control pairs."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from tasks.counting.cells import shares
from tasks.counting.missing_reasons import NO_SCORES_OF_MEMBERS
from tasks.counting.positions import ORDERS
from tasks.counting.verdicts import verdict_of_mean
from tasks.panels.panels import ALL, ITEM, jurors
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, sections 5, 9 and 11",
    gives=("jury_accuracy", "jury_position_consistency"),
    family="jury",
    missing={
        "jury_accuracy": NO_SCORES_OF_MEMBERS,
        "jury_position_consistency": "no item has every member's score in both orders",
    },
)
def jury_accuracy(tallies: DataFrame[Tallies]) -> Rows:
    """Evaluate the control verdicts of the jury of all judges like a single judge's.

    Per item the jury's score is the mean of its members' scores, each the mean of both orders, and
    its verdict the sign of ``score - 1/2``. ``jury_accuracy``: share of labelled items whose
    verdict equals the label. ``jury_position_consistency``: share of items with the same verdict in
    both orders; an order's verdict is the sign of the members' mean score in it.

    Parameters
    ----------
    tallies
        One row per pair and judge. Members are the judges with a score that are neither people nor
        simulated or, if all are simulated, those.

    Returns
    -------
    Estimates
        For judge ``jury/all``, by cluster-adjusted Wilson; accuracy only where there are labels.

    Notes
    -----
    An item needs every member's score in both orders, else it is dropped. A judge's accuracy and
    consistency count votes and matches of votes; these count items, as a jury has no votes. For the
    same reason it has no log-odds shift, kappa or share of first picks: votes pooled over judges
    belong to nobody, and can be balanced although each judge is decided.

    References
    ----------
    Verga et al. (2024), Replacing Judges with Juries, arXiv:2404.18796. methods.md, section 11.

    Examples
    --------
    Scores .5, 1 and 0 for the target with the anchor first, and 1 each with the target first: the
    mean of .75 says target, right if the label is; but the orders say tie and target: inconsistent.
    """
    items = _items(tallies)
    if items.is_empty():
        return []
    known = pl.col("verdict").is_not_null()
    counted = items.with_columns(counted=known, dropped=~known)
    right = counted.filter(pl.col("label").is_not_null()).with_columns(
        hit=pl.col("verdict") == pl.col("label")
    )
    same = counted.with_columns(hit=pl.col("verdict_12") == pl.col("verdict_21"))
    return [shares("jury_accuracy", right), shares("jury_position_consistency", same)]


def _items(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the control items of juries of two or more, with verdicts in total and by order."""
    scores = [f"score{end}" for end in ("", *(f"_{order}" for order in ORDERS))]
    whole = pl.col("score").is_not_null().sum() == pl.col("members").first()
    return (
        jurors(tallies)
        .group_by(ITEM, maintain_order=True)
        .agg(
            *(
                pl.when(whole)
                .then(verdict_of_mean(pl.col(score).mean()))
                .alias(score.replace("score", "verdict"))
                for score in scores
            ),
            pl.col("label").first(),
            simulated=pl.col("simulated").any(),
            votes=pl.col("planned").cast(pl.Int64).sum(),
        )
        .with_columns(
            pl.col("cluster").cast(pl.Categorical),
            judge=pl.lit(ALL),
            mode=pl.lit("any"),
            perturbation=pl.lit(None, pl.String),
            kind=pl.lit(None, pl.String),
        )
    )
