"""Betting e-process: anytime-valid evidence after every question."""

import math

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from tasks.counting.missing_reasons import NO_SHIFT
from tasks.counting.question_order import LARGEST, evidence, in_turn, own_columns
from tasks.inference.intervals import EMPTY
from tasks.kit.defaults import ALPHA
from tasks.statistics import Rows, statistic

UNREACHED = f"the e-value never reaches {1 / ALPHA:.0f}"


@statistic(
    source="methods.md, section 4; Waudby-Smith & Ramdas (2024), J. R. Stat. Soc. B 86, 1-27",
    gives=("e_value", "e_stop"),
    family="sequence",
    unit="ratio",
    null=1.0,
    rows={"e_stop": {"unit": "share", "null": None}},
    missing=NO_SHIFT,
    no_interval="evidence, not an estimate: no interval",
)
def e_process(shifts: DataFrame[Shifts]) -> Rows:
    """Compute the e-value of bets on each question's shift, learned from earlier questions.

    ``E = 1/2 prod_t (1 + a_t x_t) + 1/2 prod_t (1 - b_t x_t)``, x the mean shift of a question,
    ``a_t = clip(mu / (v + mu^2), 0, .5)`` with mean and variance of the questions before t (that is
    ``clip(sum x / sum x^2, 0, .5)``), b_t its mirror image. Stop at ``E >= 1 / .05``.

    Parameters
    ----------
    shifts
        One row per sample and perturbation. The shift has the same base as the finding's.

    Returns
    -------
    Estimates
        Two rows per cell: ``e_value``, E after the last question, whose ``p_value`` is 1 over the
        largest E so far and is valid at any time; and ``e_stop``, the share of the samples at which
        E first reaches 20.

    Notes
    -----
    Questions are ordered by a digest of their names. Samples without a score are dropped.
    ``e_stop`` is null if E never reaches 20; E is capped at 1e300.

    References
    ----------
    methods.md, section 4.

    Examples
    --------
    Shifts of 1, 1, 1: no bet on the first, then half: E = (1.5^2 + 1) / 2 = 1.625.
    """
    described, clusters = in_turn(shifts)
    if clusters.is_empty():
        return []
    cells = described.with_row_index("cell").with_columns(
        pl.col("cell").cast(pl.Int64),
        method=pl.concat_str(pl.lit("betting, "), "over"),
        **own_columns(),
    )
    run = evidence(clusters.filter(pl.col("counted") > 0))
    ends = run.group_by("cell", maintain_order=True).agg(
        n=pl.col("counted").sum(),
        clusters=pl.len(),
        e_value=pl.col("log_e").last().clip(upper_bound=LARGEST).exp(),
        p_value=(-pl.col("log_e").max()).exp().clip(upper_bound=1.0),
        hits=pl.col("seen").filter(pl.col("log_e") >= -math.log(ALPHA)).min(),
    )
    found = cells.join(ends, on="cell", how="left").with_columns(
        pl.col("n", "clusters").fill_null(0), subgroup=pl.lit("")
    )
    nothing = pl.when(pl.col("n") == 0).then(pl.lit(EMPTY))
    value = found.with_columns(
        statistic=pl.lit("e_value"), estimate="e_value", hits=pl.lit(None), reason=nothing
    )
    stop = found.with_columns(
        statistic=pl.lit("e_stop"),
        estimate=pl.col("hits") / pl.col("n"),
        p_value=pl.lit(None),
        reason=pl.when(pl.col("n") == 0)
        .then(pl.lit(EMPTY))
        .when(pl.col("hits").is_null())
        .then(pl.lit(UNREACHED)),
    )
    return [value, stop]
