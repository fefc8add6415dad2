"""Estimates of changes between two waves of the same questions (methods, section 10)."""

import numpy as np
import polars as pl

from schemas.keys import CELL, JUDGE, SERIES
from tasks.counting.cells import UNEQUAL, planned
from tasks.counting.missing_reasons import explained
from tasks.counting.positions import ORDERS, PLACES, VOTES, lead_and_votes
from tasks.counting.primary_endpoint import over_shams
from tasks.counting.question_order import LARGEST, evidence, places
from tasks.counting.verdicts import symmetric
from tasks.drift.canary import canary
from tasks.inference.bootstrap import boot_ends, bounds_of
from tasks.inference.cluster_sums import Floats, Groups, grouped
from tasks.inference.intervals import (
    EMPTY,
    LEVEL,
    ROUNDING,
    SINGLE,
    arrays,
    moments,
    ratios,
    t_interval,
)
from tasks.inference.linearised_errors import over, ratio_difference
from tasks.inference.permutation import sign_test
from tasks.kit.defaults import PERMUTATIONS

TWICE = (
    "no prompt has two replies in each of the two waves (--votes 4, or --votes 2 for single "
    "answers)"
)
CACHED = "not measured: every vote is from a cache"
MISSING = {
    **dict.fromkeys(
        ("mps_drift", "dasr_drift", "agreement_drift", "verdict_drift"),
        "no item has votes in both waves",
    ),
    "position_drift": "one of the waves has no vote for a slot",
}
NO_INTERVAL = {"verdict_drift": "a distance tested by permutation: no interval"}
SUMS = ("num_base", "den_base", "num_new", "den_new")


def changes(
    tallies: pl.DataFrame,
    shifts: pl.DataFrame,
    bases: pl.DataFrame,
    *,
    pool: pl.DataFrame | None = None,
    seed: int = 0,
    draws: int = PERMUTATIONS,
) -> pl.DataFrame:
    """Return the changes since the base, one row per cell, wave and measure.

    ``bases`` maps each dataset, judge, prompt and ``wave`` to the wave ``base`` that it is compared
    with; ``pool`` lists the waves ``old`` per dataset, judge and prompt that form the canary's
    baseline, if more than the base. The rows have columns of ``Estimates``, with the base as
    ``subgroup``, and an ``e_value`` where there is one.
    """
    if pool is None:
        pool = bases.select(*SERIES, old="base").unique()
    marks = tallies.group_by(JUDGE).agg(
        # A wave may have more cached than voted, as `fresh_votes` drops the cached votes.
        cached=(pl.col("cached").sum() > 0) & (pl.col("cached").sum() >= pl.col("voted").sum())
    )
    rows = pl.concat(
        [*_audits(tallies, shifts, bases), _verdicts(tallies, bases, pool, seed=seed, draws=draws)],
        how="diagonal_relaxed",
    )
    marked = rows.with_columns(pl.col(pl.Categorical).cast(pl.String)).join(
        marks.with_columns(pl.col(*SERIES, "wave").cast(pl.String)), on=JUDGE, how="left"
    )
    fresh = pl.when(~pl.col("cached").fill_null(value=False))
    return (
        explained(marked, MISSING, NO_INTERVAL)
        .with_columns(
            p_value=fresh.then("p_value"),
            e_value=fresh.then("e_value"),
            reason=fresh.then("reason").otherwise(pl.lit(CACHED)),
            level=pl.when(pl.any_horizontal(pl.col("low", "boot_low").is_not_null())).then(LEVEL),
        )
        .drop("cached")
    )


def _audits(tallies: pl.DataFrame, shifts: pl.DataFrame, bases: pl.DataFrame) -> list[pl.DataFrame]:
    # The same base in all waves: losing shams in one wave must not look like a change.
    cells = [name for name in CELL if name != "wave"]
    base = pl.when(pl.col("over").all().over(cells)).then("sham_score").otherwise("control_score")
    groups = grouped(shifts, CELL)
    over = pl.Series(over_shams(shifts, groups)[groups.cell], dtype=pl.Boolean)
    shift = shifts.with_columns(over=over).with_columns(
        num=pl.col("experimental_score") - base, den=pl.lit(1.0)
    )
    above = symmetric(shifts.filter("has_sham"), "sham").with_columns(
        num=pl.col("attacked") - pl.col("unattacked"),
        uneven=pl.any_horizontal(planned(arm) != pl.col("votes") for arm in ("control", "sham")),
    )
    first, second = (
        pl.sum_horizontal(*columns)
        for columns in (("anchor_12", "target_21"), ("target_12", "anchor_21"))
    )
    slots = tallies.filter(pl.col("arm") == "control").with_columns(
        mode=pl.lit("any"),
        num=((first - second) / 2).cast(pl.Float64),
        den=(first + second).cast(pl.Float64),
        votes="planned",
    )
    moved = contrast("mps_drift", shift, bases)
    bets = paired_evidence(shift, bases)
    shammed = pl.when(pl.col("over").all()).then(pl.lit("sham"))
    floors = shift.group_by(cells).agg(floor=shammed)
    for more, keys in ((bets, [*CELL]), (floors, cells)):
        named = more.with_columns(pl.col(keys).cast(pl.String))
        moved = moved.join(named, on=keys, how="left", nulls_equal=True)
    return [
        moved,
        contrast("dasr_drift", above, bases, alike=True).with_columns(floor=pl.lit("sham")),
        contrast("position_drift", slots, bases, widest=1.0),
        by_mcnemar(
            contrast("agreement_drift", _correct_verdicts(tallies), bases, alike=True, widest=1.0)
        ),
    ]


def _correct_verdicts(tallies: pl.DataFrame) -> pl.DataFrame:
    """Return the labelled control pairs; ``num`` is 1 if the balanced verdict equals the label."""
    (lead, votes), (other_lead, other_votes) = (lead_and_votes(order) for order in ORDERS)
    verdict = pl.when((votes > 0) & (other_votes > 0)).then(
        (lead * other_votes + other_lead * votes).sign()
    )
    labelled = tallies.filter(pl.col("arm") == "control", pl.col("label").is_not_null())
    label = pl.col("label").cast(pl.String).replace_strict(PLACES, return_dtype=pl.Int64)
    return labelled.with_columns(
        mode=pl.lit("any"),
        num=(verdict == label).cast(pl.Float64),
        den=pl.lit(1.0),
        votes="planned",
    )


def by_mcnemar(cells: pl.DataFrame) -> pl.DataFrame:
    """Use the exact McNemar test where each question is one item, as it takes items as units."""
    exact = sign_test(*arrays(cells, "rose", "fell"))
    single = pl.col("p_value").is_not_null() & (pl.col("clusters") == pl.col("n"))
    return cells.with_columns(
        p_value=pl.when(single).then(pl.Series(exact)).otherwise("p_value"),
        method=pl.when(single).then(pl.format("{}, p by McNemar", "method")).otherwise("method"),
    )


def paired_evidence(items: pl.DataFrame, bases: pl.DataFrame) -> pl.DataFrame:
    """Return each cell's e-value from bets on the change of each question since the base.

    ``x`` is half the mean of ``effect_new - effect_base`` over a question's samples. Both are
    measured with noise, so for an unchanged judge its mean is 0 whatever the noise of the baseline
    (methods, section 10). ``e_process`` makes the bets, in the same order of questions.
    """
    asked = _paired(items, bases).filter("in_both")
    if asked.is_empty():
        return pl.DataFrame(schema={c: asked.schema[c] for c in CELL} | {"e_value": pl.Float64})
    clusters = (
        asked.with_columns(pl.col("cluster").cast(pl.String))
        .group_by(*CELL, "cluster", maintain_order=True)
        .agg(up=(pl.col("num_new") - pl.col("num_base")).sum() / 2, counted=pl.len())
    )
    cells = clusters.select(CELL).unique(maintain_order=True).with_row_index("cell")
    turns = (
        clusters.join(cells, on=CELL, nulls_equal=True)
        .join(places(clusters["cluster"]), on="cluster")
        .sort("cell", "place")
    )
    return (
        evidence(turns.with_columns(down=pl.lit(0.0)))
        .group_by(CELL, maintain_order=True)
        .agg(e_value=pl.col("log_e").last().clip(upper_bound=LARGEST).exp())
    )


def contrast(
    name: str, items: pl.DataFrame, bases: pl.DataFrame, *, alike: bool = False, widest: float = 2.0
) -> pl.DataFrame:
    """Return ``sum num / sum den`` of each cell and wave minus its base's.

    On the same samples, by cluster linearisation of both
    (:func:`tasks.inference.linearised_errors.ratio_difference`), t with Satterthwaite degrees of
    freedom. For shifts in clusters of equal size, where every ``den`` is 1, that is the paired
    t-test of cluster sums. If ``alike``, only items with as many votes as in the base are compared.
    Where all clusters change by the same amount, the interval is the one for a common difference,
    as a share of ``widest``, the largest possible change. Each estimate also has a cluster
    bootstrap interval.
    """
    uneven = pl.lit(value=alike) & (pl.col("votes") != pl.col("votes_base")).fill_null(value=False)
    if "uneven" in items.columns:
        uneven |= pl.col("uneven")
    pairs = (
        _paired(items, bases)
        .with_columns(in_both=pl.col("in_both") & ~uneven, uneven=uneven)
        .with_columns(
            pl.when("in_both").then(pl.col(SUMS)).otherwise(0.0),
            in_both=pl.col("in_both").cast(pl.Int64),
        )
        .with_columns(
            # A sample in which nothing counts has no shift.
            counted=(pl.col("in_both") * (pl.col("den_new") + pl.col("den_base") > 0)).cast(
                pl.Int64
            ),
            rose=(pl.col("num_new") > pl.col("num_base")).cast(pl.Int64),
            fell=(pl.col("num_new") < pl.col("num_base")).cast(pl.Int64),
        )
    )
    pairs = pairs.rename({"base": "subgroup"})
    groups = grouped(pairs)
    sums = {name: groups.by_cluster(pairs[name]) for name in (*SUMS, "counted")}
    counts = ("in_both", "rose", "fell", "uneven")
    totals = {name: groups.by_cell(pairs[name]).astype(np.int64) for name in counts}
    found = groups.cells.with_columns(
        *_t(groups, sums, widest),
        *boot_ends(_bounds(groups, sums)),
        statistic=pl.lit(name),
        n=pl.Series(totals["in_both"]),
        dropped=pl.Series(groups.by_cell(1 - pairs["in_both"]).astype(np.int64)),
        rose=pl.Series(totals["rose"]),
        fell=pl.Series(totals["fell"]),
    )
    unequal = pl.Series((totals["in_both"] == 0) & (totals["uneven"] > 0))
    return found.with_columns(reason=pl.when(unequal).then(pl.lit(UNEQUAL)).otherwise("reason"))


def _bounds(groups: Groups, sums: dict[str, Floats]) -> Floats:
    """Return the cluster bootstrap interval of each cell's change, shape (2, cells)."""
    several = groups.of_cells((sums["counted"] > 0).astype(np.float64)) > 1
    return np.where(several, bounds_of(groups, sums, sums["counted"], _change), np.nan)


def _change(sums: dict[str, Floats]) -> Floats:
    new, base = (over(sums[f"num_{side}"], sums[f"den_{side}"]) for side in ("new", "base"))
    change: Floats = new - base
    return change


def _t(groups: Groups, sums: dict[str, Floats], widest: float) -> pl.DataFrame:
    """Return the change of each cell with its interval and test."""
    new, base = (sums["num_new"], sums["den_new"]), (sums["num_base"], sums["den_base"])
    change, error, df = ratio_difference(new, base, sums["counted"], groups.starts)
    clusters = groups.of_cells((sums["counted"] > 0).astype(np.float64))
    there = np.isfinite(change)
    several = there & (clusters > 1)
    alike = several & (error < ROUNDING)
    known = several & ~alike
    low, high, p_value = t_interval(change, np.where(known, error, 0.0), df)
    if alike.any():
        equal = _equal_changes(groups, sums, widest)
        low, high, p_value = (
            np.where(alike, own, each)
            for own, each in zip(equal, (low, high, p_value), strict=True)
        )
    silent = np.where(there, SINGLE, EMPTY)
    method = np.where(known, "paired cluster t", np.where(alike, "Newcombe", "none"))
    return pl.DataFrame(
        {
            "estimate": change,
            "low": low,
            "high": high,
            "standard_error": np.where(known, error, np.nan),
            "df": np.where(several, df, np.nan),
            "p_value": p_value,
        }
    ).with_columns(
        pl.all().fill_nan(None),
        method=pl.Series(method.tolist(), dtype=pl.String),
        reason=pl.when(pl.Series(~several)).then(pl.Series(silent.tolist(), dtype=pl.String)),
        clusters=pl.Series(clusters.astype(np.int64)),
    )


def _equal_changes(
    groups: Groups, sums: dict[str, Floats], widest: float
) -> tuple[Floats, Floats, Floats]:
    """Return low, high and p-value of changes that are equal in all clusters."""
    cell = groups.cell_of_sums()
    total = {side: groups.of_cells(sums[f"den_{side}"])[cell] for side in ("new", "base")}
    size = (total["new"] + total["base"]) / 2
    new, base = (over(sums[f"den_{side}"], whole) for side, whole in total.items())
    risen, fallen = (over(sums[f"num_{side}"], whole) for side, whole in total.items())
    moved = risen - fallen
    num, den = (np.nan_to_num(each * size) for each in (moved / widest, (new + base) / 2))
    cells = moments({"num": num, "den": den, "counted": sums["counted"]}, groups.starts)
    found = ratios(cells.with_columns(squares=pl.lit(0.0)))
    low, high, p_value = arrays(found, "low", "high", "p_value")
    return low * widest, high * widest, p_value


def _paired(items: pl.DataFrame, bases: pl.DataFrame) -> pl.DataFrame:
    """Join each item of a wave with the same item in the base; ``in_both`` if both have values."""
    keys = [*(c for c in CELL if c != "wave"), "sample"]
    new = items.join(bases, on=JUDGE)
    old = items.select(*keys, base="wave", num_base="num", den_base="den", votes_base="votes")
    pairs = new.join(old, on=[*keys, "base"], nulls_equal=True, how="left").rename(
        {"num": "num_new", "den": "den_new"}
    )
    return pairs.with_columns(in_both=pl.all_horizontal(pl.col(c).is_not_null() for c in SUMS))


def _verdicts(
    tallies: pl.DataFrame, bases: pl.DataFrame, pool: pl.DataFrame, *, seed: int, draws: int
) -> pl.DataFrame:
    """Return the canary test of verdicts: each pair in each order is a fixed prompt."""
    keys = [*SERIES, "sample", "arm", "perturbation"]
    new = tallies.select(*keys, "wave", "cluster", "simulated", "planned", *VOTES).join(
        bases, on=JUDGE
    )
    old = (
        tallies.select(*keys, *VOTES, old="wave")
        .join(pool, on=[*SERIES, "old"])
        .group_by(keys)
        .agg(pl.col(column).sum().alias(f"{column}_base") for column in VOTES)
    )
    both = new.join(old, on=keys, nulls_equal=True)
    item = pl.concat_str(
        pl.col("sample", "arm", "perturbation"), separator="\x1f", ignore_nulls=True
    )
    counts = pl.concat(
        both.select(
            *JUDGE,
            item=pl.concat_str(item, pl.lit(f"\x1f{column[-2:]}")),
            outcome=pl.lit(column[:-3]),
            base=pl.col(f"{column}_base").cast(pl.Int64),
            new=pl.col(column).cast(pl.Int64),
        )
        for column in VOTES
    )
    about = both.group_by(JUDGE, maintain_order=True).agg(
        pl.col("simulated").first(),
        clusters=pl.col("cluster").n_unique(),
        votes_per_pair=pl.col("planned").mode().max(),
        subgroup=pl.col("base").first(),
    )
    found = canary(counts, seed, draws).join(about, on=JUDGE)
    return found.with_columns(
        statistic=pl.lit("verdict_drift"),
        mode=pl.lit("any"),
        method=pl.col("method").fill_null("none"),
        seed=pl.lit(seed, pl.Int64),
        reason=pl.when(pl.col("p_value").is_null()).then(pl.lit(TWICE)),
    )
