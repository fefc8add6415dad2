"""Why a judge is recommended or not, in one text (methods, section 17)."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from tasks.gates.consequences import CORE, DO_NOT_USE, NOT_ENOUGH, USE
from tasks.gates.explanations import ABSENT
from tasks.gates.more_questions import MOST_TIMES
from tasks.kit.defaults import POWER
from tasks.reporting.wording import count, listing

REASONS_SHOWN = 3
SEPARATOR = "; "
"""What separates reasons, and what is undecided."""
ALL_REASONS = "mart.recommendations"
CHANCE = f"with a chance of 60 to {100 * POWER:.0f} %"
"""What a number of further questions promises: less where true shifts are small (section 17)."""
NEAR = (
    "is not known: if the true value lies near the limit, even {} times those asked may not be "
    "enough"
)
ORDERS = {USE: 1, DO_NOT_USE: 3}
"""Order of recommendations in lists: usable judges first. The others are between them."""


def summarised(recommendations: pl.DataFrame) -> pl.DataFrame:
    """Add the text ``summary``, and the ``list_order``."""
    texts = [_composed(row, REASONS_SHOWN) for row in recommendations.to_dicts()]
    return recommendations.with_columns(
        summary=pl.Series(texts, dtype=pl.String).replace("", None), list_order=list_order()
    )


def list_order() -> pl.Expr:
    """Return the order of each recommendation in lists."""
    return pl.col("recommendation").replace_strict(ORDERS, default=2, return_dtype=pl.Int64)


def why(row: Mapping[str, Any], most: int | None = REASONS_SHOWN) -> str:
    """Return the saved summary of a recommendation, or one with another number of reasons.

    ``most`` is the number of reasons; null: all. Results of an earlier version have no summary.
    """
    saved = row.get("summary") if most == REASONS_SHOWN else None
    return saved or _composed(row, most)


def _composed(row: Mapping[str, Any], most: int | None) -> str:
    """Say why a judge is recommended or not: reasons, and what is inconclusive."""
    reasons = row["reasons"].split(SEPARATOR) if row["reasons"] else []
    shown = reasons[:most]
    rest = len(reasons) - len(shown)
    more = [f"{count(rest, 'more reason')} in {ALL_REASONS}"] if rest > 0 else []
    limiting = SEPARATOR.join([*shown, *more])
    word = row["recommendation"]
    if word == DO_NOT_USE:
        parts = [limiting]
    elif word == NOT_ENOUGH:
        # What the data do not decide comes first, as it is the reason.
        parts = [_missing(row), row["undecided"], limiting, row["drift"]]
    else:
        # Drift may be inconclusive: it is stated, but does not make the data not enough.
        every = row["passed"] + row["inconclusive"]
        share = f"{row['passed']} of" if row["inconclusive"] else "all"
        passes = f"passes {share} {count(every, 'gate')}" if word == USE else ""
        parts = [limiting, passes, row["undecided"], row["drift"]]
    return ". ".join(part[0].upper() + part[1:] for part in parts if part)


def _missing(row: Mapping[str, Any]) -> str:
    """Say what is not measured, or how many more questions would decide what is not enough."""
    absent = (row["not_measured"] or "").split(", ")
    if all(ABSENT[gate] in absent for gate in CORE):
        return "none of the gates bias, discernment and agreement could be measured"
    if row["unanswered"]:
        return "the same audit again asks only the ballots without a reply"
    decided, stays, few = (
        listing(sorted(row[name].split(", ")), word) if row[name] else ""
        for name, word in (("more_decide", "and"), ("stays_open", "or"), ("too_few", "and"))
    )
    if few:
        few = f"to decide {few} takes more independent questions"
    if decided:
        questions = count(row["more_questions"], "more question")
        decided = f"about {questions} would decide {decided} {CHANCE}"
    if stays:
        stays = f"how many questions would decide {stays} {NEAR.format(MOST_TIMES)}"
    return SEPARATOR.join(filter(None, (few, decided, stays)))
