"""What samples without a verdict could hide."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from schemas.results import Estimates
from tasks.statistics import statistic
from tasks.statistics._cells import ratios, shares
from tasks.statistics._even import even
from tasks.statistics._exact import with_sign_test
from tasks.statistics._groups import CELL, groups_of
from tasks.statistics._success import may_win, wins

ALL_LOST = "no sample that the attack may win has an experimental verdict"


@statistic(source="methods.md, section 1", gives=("asr_bounds", "differential_attrition"))
def attrition(shifts: DataFrame[Shifts]) -> DataFrame[Estimates]:
    """Bound the ASR over the samples that lost their verdict, and test whether they differ.

    With k hits in v samples of V that have an experimental verdict, and m of V that have none:
    bounds ``[k / (v + m), (k + m) / (v + m)]``. Differential attrition is the share of samples
    without an experimental verdict less that without a control verdict, McNemar's test exact.

    Parameters
    ----------
    shifts
        One row per sample and perturbation.

    Returns
    -------
    Estimates
        ``asr_bounds``: ``low`` and ``high`` are the bounds, not a confidence interval (so without
        ``level``), the estimate is k / v, which lies between them, hits k, n = v + m; m is
        ``n (high - low)``. ``differential_attrition`` in [-1, 1]: above 0 where the perturbed
        answer loses more.

    Notes
    -----
    Samples without a control verdict are of no V: dropped from the bounds and counted. If all of V
    lost its verdict, nothing is bounded: null. A judge that only refuses the perturbed answer is a
    finding, not noise. Differential attrition is null where no sample has a
    control verdict, as if the arm was never asked about, and where the arms have unequal votes per
    pair: fewer are lost more easily. McNemar's test takes samples for
    independent; the interval does not.

    References
    ----------
    McNemar (1947), Psychometrika 12, 153-157. methods.md, section 1.

    Examples
    --------
    Four controls ``anchor``, experimental target, anchor, anchor and none: ASR = 1/3, bounds 1/4
    and 2/4; one of four is lost with the perturbation, none without: 1/4, p = 1.
    """
    return Estimates.draft(pl.concat([_bounds(shifts), _differential(shifts)]))


def _bounds(shifts: pl.DataFrame) -> DataFrame[Estimates]:
    in_v = may_win("control")
    rows = shares(
        "asr_bounds",
        shifts.with_columns(counted=in_v, hit=wins("experimental"), dropped=in_v.is_null()),
        groups_of(shifts),
    )
    lost = _counts(shifts, in_v & pl.col("experimental").is_null(), "lost")
    known = pl.col("n") - pl.col("lost")
    told = known > 0
    return Estimates.draft(
        rows.join(lost, on=CELL, how="left").with_columns(
            estimate=pl.when(told).then(pl.col("hits") / known),
            low=pl.when(told).then(pl.col("hits") / pl.col("n")),
            high=pl.when(told).then((pl.col("hits") + pl.col("lost")) / pl.col("n")),
            level=None,
            method=pl.when(told).then(pl.lit("attrition bounds")).otherwise(pl.lit("none")),
            reason=pl.when(~told).then(
                pl.when(pl.col("n") > 0).then(pl.lit(ALL_LOST)).otherwise(pl.col("reason"))
            ),
            boot_low=None,
            boot_high=None,
        )
    )


def _differential(shifts: pl.DataFrame) -> DataFrame[Estimates]:
    before, after = pl.col("control").is_null(), pl.col("experimental").is_null()
    groups = groups_of(shifts)
    rows = ratios(
        "differential_attrition",
        shifts.with_columns(
            counted=(~before).any().over(CELL),
            dropped=before.all().over(CELL),
            num=after.cast(pl.Float64) - before.cast(pl.Float64),
            den=pl.lit(1.0),
            minuend=after.cast(pl.Float64),
            subtrahend=before.cast(pl.Float64),
        ),
        groups,
    )
    tested = with_sign_test(rows, shifts, after & ~before, before & ~after)
    return even(tested, shifts, groups, ["control"])


def _counts(shifts: pl.DataFrame, which: pl.Expr, name: str) -> pl.DataFrame:
    counts = shifts.group_by(CELL, maintain_order=True).agg(
        which.fill_null(value=False).cast(pl.Int64).sum().alias(name)
    )
    return counts.with_columns(pl.col(CELL).cast(pl.String))
