"""Pass rates and mean grades of all judged items, corrected by the labels of people on some."""

from collections.abc import Iterator

import polars as pl

from schemas.frame import Row
from tasks.agreement.label_kinds import ScaleKind
from tasks.agreement.measures import without_interval
from tasks.statistics.ppi import corrected_by_labels
from tasks.statistics.rogan_gladen import corrected_by_error_rates

WHOLE = "all"
UNEQUAL = {
    "method": "none",
    "reason": "label_chance differs between items, so the error rates where people gave labels may "
    "not be those elsewhere: PPI++ takes the chances into account",
}
NUMBERS = ("estimate", "low", "high", "df", "n", "clusters", "method", "reason")


def corrected_means(
    rows: pl.DataFrame, kind: ScaleKind, scale: tuple[float, float], *, random: bool
) -> Iterator[Row]:
    """Yield the mean that people would give to all judged items; nothing if all are labelled.

    Values are moved to [0, 1] by the ends of the scale, and the results back. ``all_judged_mean``
    is the judge's own mean; ``corrected_ppi`` (PPI++) needs a random sample of labels or their
    ``label_chance``; ``corrected_rogan_gladen``, of verdicts only, is about the items without a
    label, and needs the same error rates on them as on the others.
    """
    low, high = scale
    judged = rows.filter(pl.col("status").is_in(["used", "unlabelled"]))
    if high <= low or not (judged["status"] == "unlabelled").any():
        return
    chances = judged["label_chance"].drop_nulls().unique().sort().to_list()
    if random and len(chances) > 1:
        raise ValueError(
            "--random-labels says that each item was labelled with the same probability, and "
            f"label_chance is from {chances[0]:g} to {chances[-1]:g}. Leave --random-labels "
            "out, or the column."
        )
    scored = judged.with_columns(
        (pl.col("judge_value", "human_value") - low) / (high - low),
        label_chance=pl.lit(1.0) if random else pl.col("label_chance"),
    ).select(
        "cluster",
        "label_chance",
        "simulated",
        "judge",
        "prompt",
        "wave",
        dataset=pl.lit(WHOLE),
        mode=pl.lit("any"),
        perturbation=pl.lit(None, pl.String),
        kind=pl.lit(None, pl.String),
        subgroup=pl.lit(""),
        votes=pl.lit(1),
        score="judge_value",
        human="human_value",
    )
    mean = float(scored["score"].mean()) * (high - low) + low  # type: ignore[arg-type]
    items = {"n": scored.height, "clusters": scored["cluster"].n_unique()}
    yield without_interval("all_judged_mean", mean, items)
    found = {"corrected_ppi": corrected_by_labels(scored)}
    if kind == "pass_fail":
        found["corrected_rogan_gladen"] = corrected_by_error_rates(scored)
    # Labels that were drawn by what the judge said have other error rates than the rest.
    unequal = scored["label_chance"].drop_nulls().n_unique() > 1
    for name, estimates in found.items():
        row = estimates.select(NUMBERS).row(0, named=True)
        if unequal and name == "corrected_rogan_gladen" and row["estimate"] is not None:
            row |= dict.fromkeys(("estimate", "low", "high", "df")) | UNEQUAL
        ends = {
            end: None if row[end] is None else row[end] * (high - low) + low
            for end in ("estimate", "low", "high")
        }
        yield {"statistic": name, **row, **ends}
