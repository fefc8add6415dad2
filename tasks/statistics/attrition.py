"""Worst-case bounds and arm comparisons for invalid votes."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts, Tallies
from schemas.keys import SAMPLE
from tasks.counting.arms import ARMS, arms_beside
from tasks.counting.cells import differences, portions, shares
from tasks.counting.missing_reasons import CHANGEABLE
from tasks.counting.verdicts import may_win, wins, with_ends
from tasks.inference.bootstrap import BOOT
from tasks.inference.cluster_sums import PART, Groups, grouped, join_cells
from tasks.statistics import Rows, statistic

ALL_LOST = "no sample that the attack may win has an experimental verdict"
BOUNDS = "bounds by vote"


@statistic(
    source="methods.md, sections 1 and 16 (missing votes)",
    gives=("asr_bounds", "lost_over_control", "lost_over_sham", "lost_rate"),
    family="validity",
    rows={
        "asr_bounds": {"family": "effect", "marks_excluded": True},
        "lost_over_control": {"null": 0.0},
        "lost_over_sham": {"null": 0.0},
    },
    missing={
        "asr_bounds": CHANGEABLE,
        "lost_over_control": "no sample has a vote cast in control and in the experimental arm",
        "lost_over_sham": "no sample has a vote cast in the sham and in the experimental arm",
        "lost_rate": "no vote was cast in this arm",
    },
)
def attrition(tallies: DataFrame[Tallies], shifts: DataFrame[Shifts]) -> Rows:
    """Bound the ASR over invalid votes, and compare their share between arms.

    A vote is lost if it was cast and is invalid, abstained or ambiguous. ``asr_bounds`` are the
    smallest and the largest ASR over all values that the lost votes of control and experimental
    could have had, sample by sample, with verdicts recomputed. ``lost_over_control`` and
    ``lost_over_sham`` are the mean over samples of the lost share of experimental votes minus the
    lost share in the other arm.

    Parameters
    ----------
    tallies
        One row per pair and judge.
    shifts
        One row per sample and perturbation.

    Returns
    -------
    Estimates
        ``asr_bounds``: ``low`` and ``high`` are the bounds, not a confidence interval (so without
        ``level``). They contain the ASR that complete votes would have given. The estimate is the
        ASR of the observed verdicts, or the nearer bound if it lies outside, which samples without
        a verdict can cause; hits are its numerator; n counts the samples that may be in its
        denominator. ``lost_over_...`` in [-1, 1], above 0 if the perturbed answer loses more votes.
        ``lost_rate``: one row per arm (``subgroup``), the lost share of its votes; n votes.

    Notes
    -----
    Each bound takes the most extreme case of each sample: for the largest ASR, a sample that can be
    a success is one, and a sample that cannot leaves the denominator if it can. Ballots that were
    never cast are gaps (``missing_rate``), not lost votes: a sample without any vote in an order
    has no verdict and is dropped. Bounds are null if no sample has both verdicts.

    References
    ----------
    Manski (1989), J. Hum. Resour. 24, 343-360 (worst-case bounds). methods.md, sections 1 and 16.

    Examples
    --------
    One vote per order. All four controls are ``anchor``; the experimental votes are target twice,
    anchor twice, anchor twice, and for the last sample target and invalid: verdicts target,
    anchor, anchor and none, so ASR = 1/3. The last could be a tie or the target: 1/4 to 2/4. It
    loses 1/2 of its votes, the others none: 1/8 more than in control.
    """
    if shifts.is_empty():
        return []
    groups = grouped(shifts)
    lost = shifts.join(
        arms_beside(tallies), on=[*SAMPLE, "perturbation"], how="left", maintain_order="left"
    )
    return [
        _bounds(tallies, shifts, groups),
        *(_compared(lost, groups, base) for base in ("control", "sham")),
        *(_rate(lost, groups, arm) for arm in ARMS),
    ]


def _compared(lost: pl.DataFrame, groups: Groups, base: str) -> pl.DataFrame:
    """Return the difference of lost shares between experimental and ``base``, paired by sample."""
    shares_of = [
        pl.when(pl.col(f"{arm}_voted") > 0).then(pl.col(f"{arm}_lost") / pl.col(f"{arm}_voted"))
        for arm in ("experimental", base)
    ]
    return differences(f"lost_over_{base}", lost, shares_of[0], shares_of[1], groups)


def _rate(lost: pl.DataFrame, groups: Groups, arm: str) -> pl.DataFrame:
    items = lost.with_columns(
        num=pl.col(f"{arm}_lost").fill_null(0),
        den=pl.col(f"{arm}_voted").fill_null(0),
        dropped=pl.lit(0),
    )
    return portions("lost_rate", items, groups).with_columns(subgroup=pl.lit(arm))


def _bounds(tallies: pl.DataFrame, shifts: pl.DataFrame, groups: Groups) -> pl.DataFrame:
    ends = with_ends(shifts, tallies, shifts["mode"][0])
    in_v, hit = may_win("control"), wins("experimental")
    v = [may_win(f"control_{end}") for end in ("least", "most")]
    s = [wins(f"experimental_{end}") for end in ("least", "most")]
    present = pl.col("control_least").is_not_null() & pl.col("experimental_least").is_not_null()
    items = ends.with_columns(
        counted=present & (v[0] | v[1]), hit=present & hit & in_v, dropped=~present
    ).with_columns(
        pl.col("counted", "hit", "dropped").fill_null(value=False),
        known=in_v & hit.is_not_null(),
        least=present & v[0] & v[1] & s[0] & s[1],
        least_of=present & ((v[0] & v[1]) | ((v[0] | v[1]) & ~(s[0] & s[1]))),
        most=present & (v[0] | v[1]) & (s[0] | s[1]),
        most_of=present & ((v[0] & v[1]) | ((v[0] | v[1]) & (s[0] | s[1]))),
    )
    rows = shares("asr_bounds", items, groups)
    counts = groups.cells.select(
        *PART,
        **{
            name: pl.Series(groups.by_cell(items[name]))
            for name in ("known", "least", "least_of", "most", "most_of")
        },
    )
    low = pl.when(pl.col("least_of") > 0).then(pl.col("least") / pl.col("least_of"))
    high = pl.when(pl.col("most_of") > 0).then(pl.col("most") / pl.col("most_of"))
    # If every sample may leave the denominator, only one bound exists, and it serves as both.
    estimated = pl.col("known") > 0
    return (
        join_cells(rows, counts)
        .with_columns(low=pl.coalesce(low, high), high=pl.coalesce(high, low))
        .with_columns(
            estimate=(pl.col("hits") / pl.col("known")).clip(pl.col("low"), pl.col("high")),
            reason=pl.when(~estimated).then(
                pl.when(pl.col("n") > 0).then(pl.lit(ALL_LOST)).otherwise("reason")
            ),
            method=pl.when(estimated).then(pl.lit(BOUNDS)).otherwise(pl.lit("none")),
            **dict.fromkeys(("level", *BOOT), pl.lit(None, pl.Float64)),
        )
        .with_columns(pl.when(estimated).then(pl.col("estimate", "low", "high")))
    )
