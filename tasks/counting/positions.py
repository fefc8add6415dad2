"""Counts for statistics of position bias."""

import polars as pl

from schemas.keys import JUDGE
from tasks.counting.cells import stopped_early
from tasks.inference.cluster_sums import Groups, grouped

ORDERS = ("12", "21")
PLACES = {"anchor": -1, "tie": 0, "target": 1}
"""Verdict -> its code in counts of votes."""
BY_PLACE = {place: verdict for verdict, place in PLACES.items()}
VERDICTS = tuple(PLACES)
ONE_BY_ONE = "later votes depended on earlier votes: repeats are not a random sample"
ITEM = (*JUDGE, "perturbation", "kind", "cluster", "simulated", "planned", "stopped")
VOTES = tuple(f"{verdict}_{order}" for order in ORDERS for verdict in VERDICTS)
ONCE = ("matched_once", "once_12", "once_21")
MATCHES = (
    "matched",
    "alone",
    "consistent",
    "both_target",
    "both_tie",
    "primacy",
    "recency",
    "first_first",
    "second_second",
)


def lead_and_votes(order: str) -> tuple[pl.Expr, pl.Expr]:
    """Return the target's lead in an order (its votes minus the anchor's), and all valid votes."""
    anchor, tie, target = (pl.col(f"{side}_{order}").cast(pl.Int64) for side in VERDICTS)
    return target - anchor, anchor + tie + target


def order_score(order: str) -> pl.Expr:
    """Return the mean score of an order, from 0 (anchor) to 1 (target); null without a valid vote.

    If sequential stopping left out votes of a judge, it is the score of the first vote, as in all
    means of scores (methods, section 4).
    """
    lead, votes = lead_and_votes(order)
    mean = pl.when(votes > 0).then(lead / votes)
    return (pl.when(stopped_early()).then(pl.col(f"once_{order}")).otherwise(mean) + 1) / 2


def matches(tallies: pl.DataFrame) -> pl.DataFrame:
    """Count the matches of each pair, only the first if a judge's voting stopped early.

    Adds ``valid``, matches of two valid votes, and ``dropped``, the others. Shams are left out.
    """
    first = _first_matches() if (tallies["stopped"] > 0).any() else {}
    items = arms(tallies, *MATCHES, *(ONCE if first else ()))
    return items.with_columns(
        pl.when(stopped_early()).then(first[name]).otherwise(pl.col(name)).alias(name)
        for name in first
    ).with_columns(_VALID, dropped=pl.col("matched") - _VALID)


def first_matches(tallies: pl.DataFrame) -> pl.DataFrame:
    """Count matches like :func:`matches`, but of repeat 0 only: at most one per pair."""
    first = _first_matches()
    return (
        arms(tallies, *ONCE)
        .with_columns(value.alias(name) for name, value in first.items())
        .with_columns(_VALID, dropped=pl.col("matched") - _VALID)
    )


def votes_by_order(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs with their votes, only repeat 0 if a judge's voting stopped early."""
    once = {
        f"{verdict}_{order}": (pl.col(f"once_{order}") == value).fill_null(value=False)
        for order in ORDERS
        for verdict, value in PLACES.items()
    }
    stopped = (tallies["stopped"] > 0).any()
    items = arms(tallies, *VOTES, *(ONCE if stopped else ()))
    return items.with_columns(
        pl.when(stopped_early()).then(seen.cast(pl.Int64)).otherwise(pl.col(name)).alias(name)
        for name, seen in once.items()
        if stopped
    ).with_columns(
        valid=pl.sum_horizontal(f"{verdict}_{order}" for order in ORDERS for verdict in VERDICTS)
    )


def arms(tallies: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return ``columns`` of the control and experimental pairs as items; their mode is ``any``."""
    return _both_arms(tallies).select(*ITEM, *columns, "arm", "mode", "votes")


def arm_groups(tallies: pl.DataFrame) -> Groups:
    """Return the groups of :func:`arms`, also valid for frames that only add columns to it."""
    return grouped(_both_arms(tallies))


def _both_arms(tallies: pl.DataFrame) -> pl.DataFrame:
    return (
        tallies.select(*ITEM, *MATCHES, *VOTES, *ONCE, "planned_12", "arm")
        .filter(pl.col("arm").is_in(["control", "experimental"]))
        .with_columns(mode=pl.lit("any"), votes=pl.col("planned"))
    )


def reasoned(rows: pl.DataFrame, tallies: pl.DataFrame, otherwise: str) -> pl.DataFrame:
    """Give the reason of rows that need all repeats: early stopping, or ``otherwise``."""
    stopped = (
        arms(tallies)
        .group_by(JUDGE, maintain_order=True)
        .agg(one_by_one=(pl.col("stopped") > 0).any())
        .with_columns(pl.col(JUDGE).cast(pl.String))
    )
    why = pl.when("one_by_one").then(pl.lit(ONE_BY_ONE)).otherwise(pl.lit(otherwise))
    return rows.join(stopped, on=JUDGE, how="left", maintain_order="left").with_columns(
        reason=pl.when(pl.col("estimate").is_null()).then(why).otherwise(pl.col("reason"))
    )


_VALID = pl.sum_horizontal("consistent", "primacy", "recency").alias("valid")


def _first_matches() -> dict[str, pl.Expr]:
    """Return expressions that compute the columns of matches from repeat 0 alone."""
    ab, ba = pl.col("once_12"), pl.col("once_21")
    seen = {
        "matched": pl.col("matched_once"),
        "alone": pl.col("matched_once") & (ab.is_null() != ba.is_null()),
        "consistent": ab == ba,
        "both_target": (ab == 1) & (ba == 1),
        "both_tie": (ab == 0) & (ba == 0),
        "primacy": ab < ba,
        "recency": ab > ba,
        "first_first": (ab == -1) & (ba == 1),
        "second_second": (ab == 1) & (ba == -1),
    }
    return {name: value.fill_null(value=False).cast(pl.Int64) for name, value in seen.items()}
