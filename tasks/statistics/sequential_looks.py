"""Group-sequential looks at the mean preference shift."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from schemas.keys import CELL
from schemas.results import Estimates
from tasks.counting.missing_reasons import NO_SHIFT
from tasks.counting.question_order import Turns, in_turn, own_columns
from tasks.inference.cluster_sums import totals
from tasks.inference.intervals import ALIKE, EMPTY, LEVEL, moments, ratios
from tasks.inference.linearised_errors import is_enough
from tasks.inference.quantiles import normal_tail, t_quantile
from tasks.statistics import Rows, statistic

LOOKS = ("1/3", "2/3", "3/3")
BOUNDS = (3.471, 2.454, 2.004)
"""O'Brien-Fleming bounds for three looks at level .05 (methods, section 4)."""

UNCROSSED = "no look crosses its bound"


@statistic(
    source="methods.md, section 4; O'Brien & Fleming (1979), Biometrics 35, 549-556",
    gives=("sequential_shift", "sequential_stop"),
    family="sequence",
    rows={"sequential_shift": {"unit": "score", "null": 0.0}},
    missing=NO_SHIFT,
    no_interval={"sequential_stop": "a place in the order of the questions: no interval"},
)
def sequential_looks(shifts: DataFrame[Shifts]) -> Rows:
    """Test the mean preference shift after a third, two thirds and all of the questions.

    A look stops if ``|z| >= 3.471, 2.454, 2.004``, where z has the two-sided p-value of the
    cluster-robust t of the questions so far. Questions are ordered by a digest of their names.

    Parameters
    ----------
    shifts
        One row per sample and perturbation. The shift has the same base as the finding's.

    Returns
    -------
    Estimates
        Per cell three rows ``sequential_shift``, with the look as ``subgroup``: the shift so far,
        its raw p-value, and the repeated confidence interval (level .05 over all three looks); and
        one row ``sequential_stop``: the share of the samples at which a look first stops.

    Notes
    -----
    ``sequential_stop`` is null if no look crosses its bound. A look at too few questions
    (:mod:`tasks.inference.linearised_errors`) never stops. If all questions shift by the same
    amount, there is no repeated interval.

    References
    ----------
    methods.md, section 4; Jennison & Turnbull (1989), J. R. Stat. Soc. B 51, 305-361 (repeated
    intervals).

    Examples
    --------
    Ninety questions that shift by 1 and 0 in turn: 30 of them give .5 with z above 3.471, so the
    first look stops, at a third of the samples.
    """
    turns = in_turn(shifts)
    if turns.clusters.is_empty():
        return []
    cells = pl.concat(_seen(turns, look) for look in range(1, len(LOOKS) + 1))
    nominal = pl.col("subgroup").replace_strict(
        dict(zip(LOOKS, (float(normal_tail(bound)) for bound in BOUNDS), strict=True)),
        return_dtype=pl.Float64,
    )
    rows = (
        pl.concat([cells, ratios(cells).drop("low", "high", "method")], how="horizontal")
        .with_columns(nominal.alias("nominal"))
        .with_columns(_half())
        .with_columns(
            statistic=pl.lit("sequential_shift"),
            n="counted",
            low=(pl.col("estimate") - pl.col("half")).clip(-1.0, 1.0),
            high=(pl.col("estimate") + pl.col("half")).clip(-1.0, 1.0),
            level=pl.when(pl.col("half").is_not_null()).then(LEVEL),
            method=pl.concat_str(pl.lit("O'Brien-Fleming, "), "over"),
            **own_columns(),
            reason=pl.col("reason").fill_null(
                pl.when(pl.col("half").is_null()).then(pl.lit(ALIKE))
            ),
        )
    )
    return [rows, _stops(rows)]


def _seen(turns: Turns, look: int) -> pl.DataFrame:
    """Return each cell with the moments of the clusters seen by a look."""
    cell, turn = (turns.clusters[name].to_numpy() for name in ("cell", "turn"))
    starts = np.searchsorted(cell, np.arange(turns.cells.height + 1))
    sums = {
        name: turns.clusters[name].cast(pl.Float64).to_numpy()
        for name in ("counted", "dropped", "up", "down")
    }
    # In integers: a third of 90 is not 30.000000000000004.
    last = -(-totals((sums["counted"] > 0).astype(np.float64), starts) * look // len(LOOKS))
    seen = (turn <= last[cell]) | (look == len(LOOKS))
    counted, dropped, up, down = (np.where(seen, values, 0.0) for values in sums.values())
    found = moments({"num": up - down, "den": counted, "counted": counted}, starts)
    return turns.cells.with_columns(
        *found,
        subgroup=pl.lit(LOOKS[look - 1]),
        counted=found["den"].cast(pl.Int64),
        dropped=pl.Series(totals(dropped, starts).astype(np.int64)),
    )


def _half() -> pl.Expr:
    """Return half the width of the repeated interval."""

    def widths(columns: Sequence[pl.Series]) -> pl.Series:
        freedom, nominal, error = columns
        df = freedom.fill_null(1.0).to_numpy()
        quantile = t_quantile(df, 1 - nominal.to_numpy() / 2)
        return pl.Series(quantile, dtype=pl.Float64) * error

    return pl.map_batches(
        ["df", "nominal", "standard_error"], widths, return_dtype=pl.Float64
    ).alias("half")


def _stops(rows: pl.DataFrame) -> DataFrame[Estimates]:
    """Return one row per cell: the samples seen by the first look that stops."""
    crossed = (pl.col("p_value") <= pl.col("nominal")) & is_enough()
    stops = (
        rows.sort(*CELL, "subgroup")
        .group_by(CELL, maintain_order=True)
        .agg(
            pl.col("kind", "simulated", "method", "seed", "floor").first(),
            pl.col("n", "clusters", "df", "dropped", "votes_per_pair").last(),
            hits=pl.col("n").filter(crossed).min(),
        )
    )
    silent = pl.when(pl.col("n") == 0).then(pl.lit(EMPTY)).otherwise(pl.lit(UNCROSSED))
    return Estimates.draft(
        stops.with_columns(
            statistic=pl.lit("sequential_stop"),
            subgroup=pl.lit(""),
            estimate=pl.col("hits") / pl.col("n"),
            reason=pl.when(pl.col("hits").is_null()).then(silent),
        )
    )
