"""Logs with one order per pair: means over both orders, and the position effect.

Position bias moves the two halves (anchor first, target first) in opposite directions, so the mean
of their estimates is free of it, whatever their sizes, if each pair's order was drawn at random.

If a pair was seen in both orders, it is compared with itself (``position_effect.py``). Here,
pairs of the same models are compared between orders, which needs random orders.
"""

from collections.abc import Callable

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.keys import JUDGE
from schemas.results import Estimates
from tasks.counting.cells import suppressed
from tasks.inference.bootstrap import BOOT, boot_ends, bounds_of
from tasks.inference.cluster_sums import PART, Groups, Sums, grouped, join_cells
from tasks.inference.delta_method import Linear, linearised, summed
from tasks.inference.intervals import EMPTY, FOUND, LEVEL
from tasks.inference.linearised_errors import correction, over
from tasks.inference.quantiles import chi_square_tail, t_tail
from tasks.kit.defaults import limits

Measure = Callable[[pl.DataFrame, Groups | None], DataFrame[Estimates]]
NOTE = "mean of the estimates from the two orders, assuming random orders"
ONE_HALF = "all pairs were seen in one order: the effects of order and answers cannot be separated"
HALVES = (True, False)


def by_order(
    items: pl.DataFrame, measure: Measure, groups: Groups | None = None
) -> DataFrame[Estimates]:
    """Measure items; by halves for judges that saw every pair in one order.

    ``half`` is null in the items of other judges; ``groups`` are the groups of the items.
    """
    alone = items["half"].is_not_null()
    if not alone.any():
        return measure(items, groups)
    if alone.all():
        return mean_of_halves(items, measure)
    both = [measure(items.filter(~alone), None), mean_of_halves(items.filter(alone), measure)]
    return Estimates.draft(pl.concat(both))


def mean_of_halves(items: pl.DataFrame, measure: Measure) -> DataFrame[Estimates]:
    """Return, per cell, the mean of the results of ``measure`` in the two halves.

    With the estimates m_1 and m_2 and the distances d_1 and d_2 to the same ends of their
    intervals: the mean is ``(m_1 + m_2) / 2``, its end is ``1/2 sqrt(d_1^2 + d_2^2 + 2 r d_1
    d_2)`` away, its variance is ``(v_1 + v_2 + 2 r sqrt(v_1 v_2)) / 4``, and it has Welch's degrees
    of freedom, but at most as many as the clusters with their shares of the mean, as Welch assumes
    independent halves. r is the correlation of the two means due to clusters with items in both
    halves, else 0.

    ``items`` have ``counted`` and ``num``, and ``half``, true or false; ``measure`` makes ratios or
    shares of them and their groups.

    References
    ----------
    methods.md, section 16 (one order only). Zou and Donner (2008), Stat. Med. 27, 1693-1702 (MOVER
    limits of sums). Welch (1947), Biometrika 34, 28-35.

    Examples
    --------
    Shares .6 +- .08 and .2 +- .06: .4 +- 1/2 sqrt(.0064 + .0036) = .4 +- .05.
    """
    groups = grouped(items)
    counted = items["counted"].fill_null(value=False)
    rows = []
    deviations, sizes = [], []
    for half in HALVES:
        own = (counted & (items["half"] == half)).fill_null(value=False)
        rows.append(measure(items.with_columns(counted=own, dropped=pl.lit(0)), groups).sort(PART))
        size = groups.by_cluster(own)
        total = groups.by_cluster(items["num"].zip_with(own, pl.Series([0.0])))
        mean = over(groups.of_cells(total), groups.of_cells(size))
        deviations.append(total - np.nan_to_num(mean)[groups.cell_of_sums()] * size)
        sizes.append((size, total))
    lost = groups.by_cell(items.select((~pl.col("counted")).fill_null(value=True)).to_series())
    shares = (np.nan_to_num(over(n, groups.of_cells(n)[groups.cell_of_sums()])) for n, _ in sizes)
    both = groups.of_cells(deviations[0] * deviations[1])
    squares = [groups.of_cells(each**2) for each in deviations]
    shared = groups.cells.select(*PART).with_columns(
        r=pl.Series(np.clip(np.nan_to_num(over(both, np.sqrt(squares[0] * squares[1]))), -1, 1)),
        freedom=pl.Series(correction(np.add(*shares), groups.starts).df).fill_nan(None),
        lost=pl.Series(lost.astype(np.int64)),
        seen=pl.Series(
            groups.of_cells(((sizes[0][0] + sizes[1][0]) > 0).astype(np.float64)).astype(np.int64)
        ),
        **_boot(groups, sizes),
    )
    return _combined(rows[0], rows[1], shared)


def _boot(groups: Groups, sizes: list[tuple[Sums, Sums]]) -> dict[str, pl.Series]:
    (n_one, one), (n_other, other) = sizes
    sums = {"n_one": n_one, "one": one, "n_other": n_other, "other": other}

    def value(totals: dict[str, Sums]) -> Sums:
        halves = (over(totals[half], totals[f"n_{half}"]) for half in ("one", "other"))
        return np.add(*halves) / 2

    ends = bounds_of(groups, sums, n_one + n_other, value)
    return {f"of_{series.name}": series for series in boot_ends(ends)}


def _combined(one: pl.DataFrame, other: pl.DataFrame, shared: pl.DataFrame) -> DataFrame[Estimates]:
    found = one.join(
        other.select(*PART, pl.col(*FOUND, "clusters", "n").name.prefix("other_")),
        on=PART,
        nulls_equal=True,
        maintain_order="left",
    ).join(shared, on=PART, nulls_equal=True, maintain_order="left")
    estimate = (pl.col("estimate") + pl.col("other_estimate")) / 2

    def joined(first: pl.Expr, second: pl.Expr) -> pl.Expr:
        return (first**2 + second**2 + 2 * pl.col("r") * first * second).sqrt() / 2

    def end(name: str) -> pl.Expr:
        widths = (pl.col(f"{side}{name}") - pl.col(f"{side}estimate") for side in ("", "other_"))
        sign = -1 if name == "low" else 1
        return estimate + sign * joined(*widths)

    bounded = pl.col("low").is_not_null() & pl.col("other_low").is_not_null()
    several = pl.when(pl.col("n") > 0).then("reason").otherwise(None)
    empty = (pl.col("n") == 0) != (pl.col("other_n") == 0)
    found = found.with_columns(
        estimate=estimate,
        low=end("low"),
        high=end("high"),
        level=pl.when(bounded).then(LEVEL),
        standard_error=joined(pl.col("standard_error"), pl.col("other_standard_error")),
        df=pl.when(bounded).then(pl.min_horizontal(_welch(), "freedom")),
        n=pl.col("n") + pl.col("other_n"),
        clusters=pl.when(estimate.is_not_null()).then("seen").otherwise(0),
        dropped=pl.col("lost"),
        hits=None,
        method=pl.when(bounded)
        .then(pl.format("{}; {}", "method", pl.lit(NOTE)))
        .otherwise(pl.lit("none")),
        reason=pl.when(empty)
        .then(pl.lit(ONE_HALF))
        .when(pl.col("n") == 0)
        .then(pl.lit(EMPTY))
        .otherwise(pl.coalesce(several, "other_reason")),
        **{name: pl.when(bounded).then(f"of_{name}") for name in BOOT},
    )
    score = (found["estimate"] / found["standard_error"]).to_numpy().astype(np.float64)
    df = found["df"].fill_null(1.0).to_numpy().astype(np.float64)
    tested = pl.Series(t_tail(df, score)).fill_nan(None)
    return Estimates.draft(found.with_columns(p_value=tested))


def _welch() -> pl.Expr:
    """Return Welch's degrees of freedom for the mean of two estimates, from their intervals."""
    one, other = (
        ((pl.col(f"{half}high") - pl.col(f"{half}low")) ** 2, pl.col(f"{half}df"))
        for half in ("", "other_")
    )
    return (one[0] + other[0]) ** 2 / (one[0] ** 2 / one[1] + other[0] ** 2 / other[1])


MODELS = ("anchor_author", "target_author")
BY_MODEL = "the order depends on the models (chi-square test, p below {})"
BY_LABEL = "the order depends on the correct verdict (chi-square test, p below {})"
VOTES = {"t21": "target_21", "a12": "anchor_12", "a21": "anchor_21", "t12": "target_12"}
PRODUCTS = {"r": ("t21", "a12"), "s": ("a21", "t12")}
HALF = 0.5
NO_MATCHES = "no two pairs of the same models have votes for the same slot in different orders"
FLAG = "; .5 added to all counts because one was 0"
ONE_ORDER_NOTE = "; each pair in one order, assuming random orders"


def only_order() -> pl.Expr:
    """Return which answer stood first in each pair, for judges that saw every pair in one order.

    Null for other judges, and for people, whose single order is accepted.
    """
    first, asked = pl.col("planned_12"), pl.col("planned")
    one = ((first == 0) | (first == asked)).all().over(JUDGE)
    person = pl.col("human").fill_null(value=False)
    side = pl.when(first > 0).then(pl.lit("anchor")).otherwise(pl.lit("target"))
    return pl.when(one & ~person).then(side)


def orders_not_random(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the judges whose order depends on the models or the label of a pair, and the reason.

    Pearson's chi-square test of the order against the pair's models (anchor's and target's), and
    against the label. The pairs have ``shown_first``, and models and ``label`` where known.

    Returns ``dataset, judge, prompt, wave`` and ``biased_order``, the reason.
    """
    limit = f"{limits().order_alpha:g}".lstrip("0")
    tests = [(MODELS, BY_MODEL.format(limit)), (("label",), BY_LABEL.format(limit))]
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
    deviation = (pl.col("first") - pl.col("n") * pl.col("share")) ** 2
    expected = pl.col("n") * pl.col("share") * (1 - pl.col("share"))
    cells = (
        counts.group_by(JUDGE, maintain_order=True)
        .agg(square=(deviation / expected).sum(), df=pl.len() - 1)
        .filter(pl.col("df") > 0)
    )
    tail = chi_square_tail(cells["df"].to_numpy(), cells["square"].to_numpy())
    return cells.filter(pl.Series(tail) < limits().order_alpha).select(JUDGE)


def without_biased_orders(rows: DataFrame[Estimates], pairs: pl.DataFrame) -> DataFrame[Estimates]:
    """Suppress estimates of judges whose order depends on the models or the label of a pair."""
    judges = orders_not_random(pairs).with_columns(pl.col(JUDGE).cast(pl.String))
    if judges.is_empty() or rows.is_empty():
        return rows
    return suppressed(join_cells(rows, judges, on=JUDGE), pl.col("biased_order"))


def one_order_effect(name: str, items: pl.DataFrame) -> DataFrame[Estimates]:
    """Estimate the preference for the first slot, in logits, from pairs seen in one order each.

    Stratum s holds the pairs with the same anchor's and target's model (all pairs of the cell if
    these are not known). Of its N_s votes, t_21 are for the target when it stands first, t_12 when
    it stands second, a_21 and a_12 for the anchor: ``kappa = 1/2 ln(R / S)`` with
    ``R = sum_s t_21 a_12 / N_s`` and ``S = sum_s a_21 t_12 / N_s``, half the log of the
    Mantel-Haenszel odds ratio, which a logistic regression of the choice on order and models
    approximates; ties are ignored. Above 0 the first slot is favoured, as in ``position_kappa`` of
    pairs seen in both orders. Differences between pairs of the same models shrink kappa toward 0.

    ``items`` are pairs with votes by order (``votes_by_order``), ``shown_first``, and models where
    known.

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
        # The pair's contribution to the derivative of the product over the total.
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
    marked = pl.when(pl.col("method") != "none").then(pl.col("method") + ONE_ORDER_NOTE)
    return Estimates.draft(found.with_columns(method=marked.otherwise("method")))


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
        reason=np.where(sums["n"] > 0, NO_MATCHES, EMPTY),
        added=np.where(added, sum(1 / count for count in counts.values()) / 4, 0.0),
        flag=np.where(added, FLAG, ""),
    )
