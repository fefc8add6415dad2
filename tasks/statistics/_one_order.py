"""Logs in which a judge saw every pair in one order only: which they are, and the slot's effect.

Where both orders of a pair were seen, its answers cancel (``position_effect.py``). Here pairs of
the same models that were shown in either order are compared, which rests on random orders.
"""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.statistics._delta import Linear, Sums, linearised, over, summed
from tasks.statistics._even import NUMBERS
from tasks.statistics._intervals import EMPTY
from tasks.statistics._quantiles import chi_square_tail

JUDGE = ("dataset", "judge", "prompt", "wave")
MODELS = ("anchor_author", "target_author")
NOT_BY_CHANCE = 0.001
"""Below it an order that was drawn at random is not believed to have been."""

BY_MODEL = "the order depends on the models (chi-square test, p below .001)"
BY_LABEL = "the order depends on the right verdict (chi-square test, p below .001)"
VOTES = {"t21": "target_21", "a12": "anchor_12", "a21": "anchor_21", "t12": "target_12"}
PRODUCTS = {"r": ("t21", "a12"), "s": ("a21", "t12")}
HALF = 0.5
NEVER = "no two pairs of the same models have votes for the same slot and other orders"
FLAG = "; .5 added to all counts, as one was 0"
ONE_ORDER_NOTE = "; each pair in one order, orders taken as drawn at random"


def only_order() -> pl.Expr:
    """Tell which answer stood first in each pair of a judge that saw every pair in one order.

    Null for other judges, and for people, who are taken at their word.
    """
    first, asked = pl.col("planned_12"), pl.col("planned")
    one = ((first == 0) | (first == asked)).all().over(JUDGE)
    person = pl.col("human").fill_null(value=False)
    side = pl.when(first > 0).then(pl.lit("anchor")).otherwise(pl.lit("target"))
    return pl.when(one & ~person).then(side)


def orders_not_random(pairs: pl.DataFrame) -> pl.DataFrame:
    """Name the judges whose orders depend on what is known of the pairs, and on what.

    Pearson's chi-square test of the order against the two models of a pair (which of them is the
    anchor counts), and against the label.

    Parameters
    ----------
    pairs
        With ``shown_first``, and models and ``label`` where they are known.

    Returns
    -------
    DataFrame
        ``dataset, judge, prompt, wave`` and ``biased_order``, the reason.
    """
    tests = [(MODELS, BY_MODEL), (("label",), BY_LABEL)]
    known = [(names, why) for names, why in tests if {*names} <= {*pairs.columns}]
    empty = pairs.select(JUDGE).clear().with_columns(biased_order=pl.lit(None, pl.String))
    found = [
        _depending(pairs, names).with_columns(biased_order=pl.lit(why)) for names, why in known
    ]
    return pl.concat([empty, *found]).unique(JUDGE, keep="first", maintain_order=True)


def _depending(pairs: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    counts = (
        pairs.drop_nulls(("shown_first", *names))
        .group_by(*JUDGE, *names)
        .agg(n=pl.len(), first=(pl.col("shown_first") == "anchor").sum())
        .with_columns(share=(pl.col("first").sum() / pl.col("n").sum()).over(JUDGE))
        .filter(pl.col("share").is_between(0, 1, closed="none"))
    )
    apart = (pl.col("first") - pl.col("n") * pl.col("share")) ** 2
    expected = pl.col("n") * pl.col("share") * (1 - pl.col("share"))
    cells = (
        counts.group_by(JUDGE, maintain_order=True)
        .agg(square=(apart / expected).sum(), df=pl.len() - 1)
        .filter(pl.col("df") > 0)
    )
    tail = chi_square_tail(cells["df"].to_numpy(), cells["square"].to_numpy())
    return cells.filter(pl.Series(tail) < NOT_BY_CHANCE).select(JUDGE)


def without_biased_orders(rows: DataFrame[Estimates], pairs: pl.DataFrame) -> DataFrame[Estimates]:
    """Take back estimates of judges whose orders depend on what is known of the pairs."""
    judges = orders_not_random(pairs).with_columns(pl.col(JUDGE).cast(pl.String))
    if judges.is_empty() or rows.is_empty():
        return rows
    marked = rows.join(judges, on=JUDGE, how="left", nulls_equal=True, maintain_order="left")
    kept = pl.col("biased_order").is_null()
    return Estimates.draft(
        marked.with_columns(
            pl.when(kept).then(pl.col(NUMBERS)),
            pl.when(kept).then(pl.col("n", "clusters")).otherwise(0),
            dropped=pl.col("dropped") + pl.when(kept).then(0).otherwise("n"),
            method=pl.when(kept).then("method").otherwise(pl.lit("none")),
            reason=pl.coalesce("biased_order", "reason"),
        )
    )


def one_order_effect(name: str, items: pl.DataFrame) -> DataFrame[Estimates]:
    """Estimate the pull of the first slot in logits from pairs that were seen in one order each.

    In stratum s, the pairs with the same anchor's and target's model (all pairs of the cell where
    these are not known), of N_s votes t_21 are for the target when it stands first, t_12 when it
    stands second, a_21 and a_12 for the anchor: ``kappa = 1/2 ln(R / S)`` with
    ``R = sum_s t_21 a_12 / N_s`` and ``S = sum_s a_21 t_12 / N_s``, half the log of the odds ratio
    of Mantel and Haenszel, to which a logistic regression of the choice on order and models comes
    close; ties are ignored. Above 0 the first slot is favoured, as by ``position_kappa`` of pairs
    seen in both orders. What differs between pairs of the same models draws kappa toward 0.

    Parameters
    ----------
    items
        Pairs with votes by order (``votes_by_order``), ``shown_first``, and models where known.

    References
    ----------
    Mantel and Haenszel (1959), JNCI 22, 719-748. methods.md, sections 5 and 16.

    Examples
    --------
    Target first: 30 votes for the target, 10 for the anchor; anchor first: 20 and 20. The odds
    ratio is (30 * 20) / (10 * 20) = 3, kappa = .549.
    """
    cell = (*JUDGE, "perturbation")
    strata = (*cell, *(model for model in MODELS if model in items.columns))
    items = items.with_columns(
        pl.col(column).cast(pl.Float64).alias(short) for short, column in VOTES.items()
    ).with_columns(own=pl.sum_horizontal(*VOTES))
    total = {short: pl.col(short).sum().over(strata) for short in (*VOTES, "own")}
    share = {short: (pl.col(short) / total[short]).fill_nan(0.0) for short in total}
    parts = {}
    for product, (one, other) in PRODUCTS.items():
        whole = (total[one] * total[other] / total["own"]).fill_nan(0.0)
        parts[product] = whole * share[one]
        # A pair's part in the derivative of the product over the total.
        parts[f"{product}_change"] = whole * (share[one] + share[other] - share["own"])
    items = items.with_columns(**parts)
    changes = [
        pl.when(pl.col(product).sum().over(cell) > 0)
        .then(pl.col(f"{product}_change") / pl.col(product).sum().over(cell))
        .otherwise(0.0)
        for product in PRODUCTS
    ]
    items = items.with_columns(
        counted=pl.col("own") > 0, dropped=pl.col("own") == 0, change=changes[0] - changes[1]
    )
    found = linearised(name, summed(items, (*PRODUCTS, *VOTES, "change")), _half_log_odds)
    told = pl.when(pl.col("method") != "none").then(pl.col("method") + ONE_ORDER_NOTE)
    return Estimates.draft(found.with_columns(method=told.otherwise("method")))


def _half_log_odds(sums: dict[str, Sums]) -> Linear:
    r, s = sums["r"], sums["s"]
    added = (r == 0) != (s == 0)
    counts = {short: sums[short] + HALF for short in VOTES}
    pooled = over(counts["t21"] * counts["a12"], counts["a21"] * counts["t12"])
    odds = np.where(added, pooled, over(r, s))
    logs = np.log(odds, out=np.full(odds.shape, np.nan), where=odds > 0)
    return Linear(
        logs / 2,
        {"change": np.where(added, 0.0, 0.5)},
        reason=np.where(sums["n"] > 0, NEVER, EMPTY),
        added=np.where(added, sum(1 / count for count in counts.values()) / 4, 0.0),
        flag=np.where(added, FLAG, ""),
    )
