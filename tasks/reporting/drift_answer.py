"""Whether a judge changed between waves, in one sentence."""

import polars as pl

from tasks.gates.words import after_change
from tasks.reporting.wording import clean, interval, listing, number, with_who

FIRST = "nothing to compare, as these are the results of the first"
BASELINE = "the baseline (the first wave, or that of the last alert)"
WIDE = "no alert, but intervals reach beyond the limits"


def did_change(drifts: pl.DataFrame, gates: pl.DataFrame) -> str:
    """Say between which waves judges were compared, and whether one changed."""
    found = gates.filter(pl.col("gate") == "drift")
    last = drifts.join(found, on=["dataset", "judge", "prompt", "wave"], how="semi")
    pairs = last.select("base", "wave").unique().rows()
    since = (
        f"from wave {pairs[0][0]} to wave {pairs[0][1]}" if len(pairs) == 1 else f"since {BASELINE}"
    )
    if found.is_empty():
        return f"Did a judge change {since}? Unknown: {FIRST}."
    verdicts = set(found["verdict"])
    suspected = "Perhaps" if last.filter(state="suspect").height else "Not shown"
    decided = "No" if verdicts == {"pass"} else suspected
    answer = "Yes" if "fail" in verdicts else decided
    return f"Did a judge change {since}? {answer}: {_drift_words(gates)}."


def _drift_words(gates: pl.DataFrame) -> str:
    """Say which judges fail the gate drift, leave it open, or pass it, in this order, and why."""
    order = pl.col("verdict").replace_strict({"fail": 0, "inconclusive": 1, "pass": 2})
    rows = with_who(gates.filter(pl.col("gate") == "drift"))
    rows = rows.sort(order, pl.col("earlier_change").is_null(), "who")
    numbers = [
        None if low is None else f"{number(value)} {interval(low, high)}"
        for value, low, high in rows.select("value", "low", "high").rows()
    ]
    change = pl.Series(numbers, dtype=pl.String)
    what = pl.concat_str("changed", change, separator=": ", ignore_nulls=True)
    after = pl.format(" after {}", "earlier_change").fill_null("")
    # The change that the baseline follows is said already.
    said = after_change().fill_null("")
    why = pl.col("reason").str.strip_prefix(said).str.strip_prefix("; ").replace("", None)
    text = (
        pl.when(pl.col("verdict") == "fail")
        .then(pl.format("{} changed{} ({})", pl.lit("{}"), after, what))
        .when(pl.col("verdict") == "pass")
        .then(pl.format("no relevant change of {}{}", pl.lit("{}"), after))
        .otherwise(
            pl.format("inconclusive for {}{} ({})", pl.lit("{}"), after, why.fill_null(WIDE))
        )
    )
    by_text = rows.group_by(text=text, maintain_order=True).agg("who")
    return "; ".join(
        text.replace("{}", listing([clean(each) for each in who]), 1)
        for text, who in by_text.iter_rows()
    )
