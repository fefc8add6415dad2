"""Accuracy: how often votes name the right answer, in each order and in both."""

from collections.abc import Callable

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Tallies
from schemas.keys import SAMPLE
from tasks.counting.cells import portions, rescaled, stopped_early, weighted_shares
from tasks.counting.positions import ORDERS, PLACES
from tasks.inference.cluster_sums import Groups, grouped
from tasks.statistics import Rows, statistic

SHARES = {
    "accuracy_12": ("right_12", "voted_12", "none"),
    "accuracy_21": ("right_21", "voted_21", "none"),
    "accuracy": ("right", "voted", "none"),
    "accuracy_valid": ("right", "valid", "unsure"),
    "both_right": ("matched_right", "matched_voted", "none"),
    "order_agreement": ("consistent", "matched_valid", "unmatched"),
    "order_agreement_llmbar": ("consistent_or_void", "matched_voted", "none"),
}
"""Statistic -> numerator, denominator, and what is dropped."""
BEYOND_CHANCE = "accuracy_beyond_chance"
KEPT = (*SAMPLE, "arm", "perturbation", "cluster", "kind", "simulated")


@statistic(
    source="arXiv:2310.07641, section 4; methods.md, section 0",
    gives=(*SHARES, BEYOND_CHANCE),
    family="accuracy",
    needs=("label",),
    rows={
        "accuracy": {"order": "irrelevant"},
        "accuracy_valid": {"order": "irrelevant"},
        BEYOND_CHANCE: {"unit": "coefficient", "null": 0.0, "order": "irrelevant"},
    },
    missing="no pair with a label has a valid vote",
)
def accuracy(tallies: DataFrame[Tallies]) -> Rows:
    """Measure the accuracy of a judge's votes where the right verdict is known.

    ``accuracy_12`` (anchor shown first), ``accuracy_21``, ``accuracy``: votes that name the label /
    votes cast. ``accuracy_valid``: the same / valid votes. ``both_right``: matches of equal repeat
    with two right votes / matches of two votes. ``order_agreement``: matches with two equal votes /
    matches of two valid votes. ``accuracy_beyond_chance = 2 s - 1``, s the share of right votes
    among valid ones with a tie as half a right vote: Bennett's S for two answers, 0 for a judge
    that draws lots.

    Parameters
    ----------
    tallies
        One row per pair and judge; pairs without a label are left out.

    Returns
    -------
    Estimates
        1 is perfect in each row. A judge that draws lots has an ``accuracy`` of .5 and an
        ``accuracy_beyond_chance`` of 0. Eight rows per cell, by cluster-adjusted Wilson; n
        counts votes or matches, of ``accuracy_beyond_chance`` pairs. ``perturbation`` null is
        the control arm, else the experimental arm.

    Notes
    -----
    A vote without a verdict is wrong, so it lowers all rates except ``accuracy_valid``; cells
    without any valid vote are null. Zeng et al. count two votes without a verdict as agreement
    between orders: ``order_agreement_llmbar`` counts as they do, ``order_agreement`` leaves such
    matches out. ``accuracy`` pools the votes of both orders, which is the mean of the two if both
    have equally many. With sequential stopping only the first vote in each order counts. Zeng et
    al. also report kappas against the labels, but code votes as 1, 0 and labels as 1, 2, so no vote
    for the second answer ever agrees; these kappas are not offered. Where the label always names
    the same side, as the target, Cohen's kappa is 0 for every judge; ``accuracy_beyond_chance``
    assumes that either answer is as likely, and leaves out pairs whose label is a tie.

    References
    ----------
    Zeng et al. (2024), Evaluating LLMs at Evaluating Instruction Following, arXiv:2310.07641.
    Bennett, Alpert & Goldstein (1954), Public Opinion Quarterly 18, 303-308.

    Examples
    --------
    Label target; votes second (anchor first) and invalid (target first): accuracy_12 1,
    accuracy_21 0, accuracy .5, accuracy_valid 1, both_right 0 of 1, order_agreement 0 of 0. Of
    three right votes, one wrong and two ties, s is 4/6 and accuracy_beyond_chance 1/3.
    """
    pairs = right_votes(tallies)
    groups = grouped(pairs)
    counted = _null_without_votes(groups, pairs["valid"])
    rows = []
    for name, (hits, asked, lost) in SHARES.items():
        dropped = pl.col(lost) + pl.col(asked) - counted(asked)
        items = pairs.with_columns(num=counted(hits), den=counted(asked), dropped=dropped)
        rows.append(portions(name, items, groups))
    return [*rows, _beyond_chance(pairs, groups)]


def _beyond_chance(pairs: pl.DataFrame, groups: Groups) -> pl.DataFrame:
    """Return how far votes are right beyond chance, with a tie as half a right vote."""
    counted = (pl.col("label") != "tie") & (pl.col("valid") > 0)
    right = pl.col("right") + pl.col("tied") / 2
    items = pairs.with_columns(counted=counted, num=right, den="valid", dropped=~counted)
    return rescaled(weighted_shares(BEYOND_CHANCE, items, groups), 2, -1)


def _null_without_votes(groups: Groups, valid: pl.Series) -> Callable[[str], pl.Expr]:
    """Return null instead of 0 in cells without any valid vote: no answer is not a wrong one."""
    silent = groups.by_cell(valid) == 0
    if not silent.any():
        return pl.col
    mute = pl.lit(pl.Series(silent[groups.cell]))
    return lambda name: pl.when(~mute).then(name).otherwise(0)


def right_votes(tallies: pl.DataFrame) -> pl.DataFrame:
    """Count right votes of each labelled pair; only the first votes with sequential stopping."""
    labelled = tallies.filter(
        pl.col("label").is_not_null(), pl.col("arm").is_in(["control", "experimental"])
    )
    label = pl.col("label")
    place = label.cast(pl.String).replace_strict(PLACES, return_dtype=pl.Int64)
    once = (labelled["stopped"] > 0).any()
    if once:
        labelled = labelled.with_columns(once=stopped_early())
    columns = {}
    for order in ORDERS:
        first, sides = pl.col(f"once_{order}"), [f"{side}_{order}" for side in PLACES]
        right = pl.coalesce(pl.when(label == side).then(f"{side}_{order}") for side in PLACES)
        columns[f"right_{order}"] = first == place, right
        columns[f"tied_{order}"] = first == PLACES["tie"], pl.col(f"tie_{order}")
        columns[f"valid_{order}"] = first.is_not_null(), pl.sum_horizontal(sides)
        columns[f"voted_{order}"] = first.is_not_null(), pl.col(f"voted_{order}")
    ab, ba = pl.col("once_12"), pl.col("once_21")
    known = ab.is_not_null() & ba.is_not_null()
    ways = pl.sum_horizontal("consistent", "primacy", "recency")
    columns |= {
        "matched_right": ((ab == place) & (ba == place), pl.col("matched_right")),
        "matched_valid": (known, ways),
        "matched_voted": (known, pl.col("matched_voted")),
        "consistent": (ab == ba, pl.col("consistent")),
        "void": (pl.lit(value=False), pl.col("matched_invalid")),
    }
    counted = labelled.select(
        *KEPT,
        "label",
        mode=pl.lit("any"),
        votes=pl.col("planned"),
        **{name: _first_if_stopped(*both) if once else both[1] for name, both in columns.items()},
    )
    return counted.with_columns(
        right=pl.col("right_12") + pl.col("right_21"),
        tied=pl.col("tied_12") + pl.col("tied_21"),
        valid=pl.col("valid_12") + pl.col("valid_21"),
        voted=pl.col("voted_12") + pl.col("voted_21"),
        consistent_or_void=pl.col("consistent") + pl.col("void"),
        none=pl.lit(0),
    ).with_columns(
        unsure=pl.col("voted") - pl.col("valid"),
        unmatched=pl.col("matched_voted") - pl.col("matched_valid"),
    )


def _first_if_stopped(first: pl.Expr, counted: pl.Expr) -> pl.Expr:
    """Return the first vote in each order for judges with sequential stopping, else all votes."""
    return (
        pl.when("once")
        .then(first.fill_null(value=False).cast(pl.Int64))
        .otherwise(counted.cast(pl.Int64))
    )
