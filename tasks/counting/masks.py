"""Counts from the bit masks of ballots that ``schemas/masks.sql`` makes."""

import polars as pl

from schemas.masks import WIDTH
from tasks.counting.positions import ORDERS

PAIR = ("dataset", "sample", "arm")


MASKS = tuple(f"{place}{order}" for order in ORDERS for place in "ijk")


def count_masks(masks: pl.DataFrame) -> pl.DataFrame:
    """Return the counts of ``Tallies`` in place of the masks, without validation (for speed).

    Parameters
    ----------
    masks
        What ``schemas.masks.masks_sql`` returns: three masks per order with one bit per repeat. A
        ballot's code is the sum of i (1), j (2) and k (4): 1 not voted, 2 invalid, 3 abstain,
        4 ambiguous, 5 a vote for the anchor, 6 a tie, 7 the target.
    """
    asked, cast, a, t, b, lost = {}, {}, {}, {}, {}, {}
    for order in ORDERS:
        i, j, k = (pl.col(f"{place}{order}") for place in "ijk")
        asked[order], cast[order] = i | j | k, j | k
        a[order], t[order], b[order] = i & k & ~j, j & k & ~i, i & j & k
        lost[order] = {"invalid": j & ~i & ~k, "abstain": i & j & ~k, "ambiguous": k & ~i & ~j}
    both, voted = asked["12"] & asked["21"], cast["12"] & cast["21"]
    valid = {order: a[order] | t[order] | b[order] for order in ORDERS}
    alike = {side: x["12"] & x["21"] for side, x in {"anchor": a, "tie": t, "target": b}.items()}
    counts = {
        "planned": _ones(asked["12"]) + _ones(asked["21"]),
        "voted": _ones(cast["12"]) + _ones(cast["21"]),
        **{name: _ones(lost["12"][name]) + _ones(lost["21"][name]) for name in lost["12"]},
        **{f"anchor_{order}": _ones(a[order]) for order in ORDERS},
        **{f"tie_{order}": _ones(t[order]) for order in ORDERS},
        **{f"target_{order}": _ones(b[order]) for order in ORDERS},
        "planned_12": _ones(asked["12"]),
        "matched": _ones(both),
        "alone": _ones(both & (valid["12"] ^ valid["21"])),
        "consistent": _ones(alike["anchor"] | alike["tie"] | alike["target"]),
        "both_target": _ones(alike["target"]),
        "both_tie": _ones(alike["tie"]),
        "primacy": _ones((a["12"] & (t["21"] | b["21"])) | (t["12"] & b["21"])),
        "recency": _ones((b["12"] & (t["21"] | a["21"])) | (t["12"] & a["21"])),
        "first_first": _ones(a["12"] & b["21"]),
        "second_second": _ones(b["12"] & a["21"]),
        **{f"voted_{order}": _ones(cast[order]) for order in ORDERS},
        "matched_voted": _ones(voted),
        "matched_invalid": _ones(voted & ~(valid["12"] | valid["21"])),
        "matched_right": pl.coalesce(
            pl.when(pl.col("label") == side).then(_ones(mask)) for side, mask in alike.items()
        ),
        "matched_once": both & 1 == 1,
        **{f"once_{order}": _first(a[order], t[order], b[order]) for order in ORDERS},
    }
    words = [name for name in masks.columns if name.startswith("word_")]
    apart = masks.with_columns(_mask(words, n).alias(mask) for n, mask in enumerate(MASKS))
    return apart.select(pl.exclude(*words, *MASKS), **counts)


def with_compared(tallies: pl.DataFrame, compared: pl.DataFrame) -> pl.DataFrame:
    """Add the answers' properties to control pairs, as ``schemas.masks.COMPARED`` returns them."""
    return tallies.join(compared, on=PAIR, how="left", maintain_order="left")


def _mask(words: list[str], number: int) -> pl.Expr:
    """Return the mask of all repeats, assembled from one field of each word."""
    kind = pl.Int16 if len(words) == 1 else pl.Int64
    bits = [
        (pl.col(word) // 2 ** (WIDTH * number) & (2**WIDTH - 1)).cast(kind) * 2 ** (WIDTH * place)
        for place, word in enumerate(words)
    ]
    return pl.sum_horizontal(bits) if len(bits) > 1 else bits[0]


def _ones(mask: pl.Expr) -> pl.Expr:
    return mask.bitwise_count_ones().cast(pl.Int16)


def _first(anchor: pl.Expr, tie: pl.Expr, target: pl.Expr) -> pl.Expr:
    """Return the vote of repeat 0 as -1, 0 or 1; null without a valid vote."""
    drawn = pl.when(tie & 1 == 1).then(0).when(target & 1 == 1).then(1)
    return pl.when(anchor & 1 == 1).then(-1).otherwise(drawn).cast(pl.Int16)
