"""Detection power: how well a judge notices that an answer was made worse."""

from functools import partial
from typing import Any

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from schemas.results import Estimates
from tasks.counting.cells import even, ratios, weighted_shares
from tasks.counting.missing_reasons import CHANGEABLE_IN_ALL_ARMS, NO_SHIFT
from tasks.counting.primary_endpoint import base_value
from tasks.counting.verdicts import PROMOTE, symmetric
from tasks.inference.cluster_sums import PART, Sums, grouped
from tasks.inference.delta_method import Linear, linearised, ratio_limits, summed
from tasks.inference.intervals import EMPTY, LEVEL, arrays
from tasks.inference.linearised_errors import over
from tasks.statistics import Rows, statistic

SUMS = ("attacked", "unattacked")
ENDS = ("estimate", "low", "high")
NO_FLOOR = "the floor is 0: no sample keeps its verdict in the sham either"
UNSCORED = "no sample has a vote for the target without the flaw either"


@statistic(
    source="methods.md, sections 2 and 16",
    gives=("detection_gain", "detection_power", "detection_share"),
    family="effect",
    null=0.0,
    floor="sham",
    rows={"detection_share": {"floor": "as the primary endpoint"}},
    missing={
        **dict.fromkeys(("detection_gain", "detection_power"), CHANGEABLE_IN_ALL_ARMS),
        "detection_share": NO_SHIFT,
    },
)
def detection_power(shifts: DataFrame[Shifts]) -> Rows:
    """Measure the share of noise-level oversights that detection removes.

    With the ASR and the floor of ``dasr``, over the same samples and symmetric in control and
    sham: gain = floor - ASR, DP = 1 - ASR / floor. With mean scores instead of success:
    ``detection_share = 1 - sum_i s_exp(i) / sum_i s_sham(i)``, the shift divided by the shift of a
    perfect detector, whose experimental scores are 0.

    Parameters
    ----------
    shifts
        One row per sample and perturbation; only detract kinds are used, as an oversight rate has
        no meaning for others. Gain and power need a sham; the share uses the control where the
        primary endpoint does.

    Returns
    -------
    Estimates
        ``detection_gain`` in [-1, 1], and ``detection_power`` and ``detection_share``, at most 1
        (every error noticed), 0 for a blind judge, below 0 for one that rewards the error. By
        cluster linearisation, DP as the ratio of the two sums ``A / F``:
        ``u_g = A / F^2 f_g - a_g / F``, t interval.

    Notes
    -----
    A sample needs a verdict in all three arms (for the share: a score in two), and gain and power
    need equal votes per pair. If the floor is 0, DP is null. The p-value of DP is the gain's (for
    the share, the shift's): both are 0 together, and the t of the ratio rejects a true null
    hypothesis in only 4 % of studies. If all clusters are equal, as when no error is overlooked,
    the interval combines the Wilson intervals of numerator and denominator (Donner and Zou), the
    counterpart of Newcombe's for ratios.

    References
    ----------
    Donner and Zou (2012), Stat. Methods Med. Res. 21, 347-359. methods.md, sections 2, 3 and 16.

    Examples
    --------
    Four samples with ``target`` in control and sham; experimental anchor, anchor, anchor, tie:
    floor 1, ASR 1/4, gain 3/4, DP = 3/4; scores 0, 0, 0, .5 after 1 each: share 1 - .5 / 4 = .875.
    """
    flawed = shifts.filter(~PROMOTE)
    if flawed.is_empty():
        return []
    share = _detected("detection_share", "score_gain", _scores(flawed), UNSCORED)
    found = [share.filter(pl.col("statistic") == "detection_share")]
    items = symmetric(flawed.filter("has_sham"), "sham")
    if not items.is_empty():
        power = _detected("detection_power", "detection_gain", items, NO_FLOOR)
        found.append(even(power, items, grouped(items), ("control", "sham")))
    return found


def _scores(shifts: pl.DataFrame) -> pl.DataFrame:
    """Return samples with their scores: experimental, and in the primary endpoint's base."""
    groups = grouped(shifts)
    base = base_value(shifts, groups)
    known = pl.col("experimental_score").is_not_null() & base.is_not_null()
    return shifts.with_columns(
        attacked="experimental_score", unattacked=base, den=1.0, counted=known, dropped=~known
    )


def _detected(name: str, gain_name: str, items: pl.DataFrame, none: str) -> DataFrame[Estimates]:
    """Return ``unattacked - attacked`` as a mean, and 1 minus the ratio of their sums."""
    groups = grouped(items)
    gained = items.with_columns(num=pl.col("unattacked") - pl.col("attacked"))
    gain = ratios(gain_name, gained, groups)
    solve = partial(_power, none=none)
    share = linearised(name, summed(items, SUMS, _share_noticed, groups), solve)
    return Estimates.draft(pl.concat([gain, _completed(share, gain, items)]))


def _share_noticed(sums: dict[str, Sums]) -> Sums:
    return 1 - over(sums["attacked"], sums["unattacked"])


def _power(sums: dict[str, Sums], none: str) -> Linear:
    attacked, floor = sums["attacked"], sums["unattacked"]
    slopes = {"attacked": over(-1.0, floor), "unattacked": over(over(attacked, floor), floor)}
    return Linear(_share_noticed(sums), slopes, reason=np.where(sums["n"] > 0, none, EMPTY))


def _completed(
    power: DataFrame[Estimates], gain: DataFrame[Estimates], items: pl.DataFrame
) -> DataFrame[Estimates]:
    """Use the gain's p-value, clip intervals at 1, and add intervals where clusters are equal."""
    known = pl.col("estimate").is_not_null()
    alike = known & pl.col("low").is_null() & (pl.col("clusters") > 1)
    rows = (
        power.with_columns(pl.col("high").clip(upper_bound=1.0))
        .join(gain.select(*PART, of_gain="p_value"), on=PART, how="left")
        .with_columns(p_value=pl.when(known).then("of_gain"))
    )
    if rows.filter(alike).is_empty():
        return Estimates.draft(rows)
    for name in SUMS:
        part = weighted_shares(name, items.with_columns(num=pl.col(name)))
        ends = [pl.col(c).alias(f"{name}_{c}") for c in ENDS]
        rows = rows.join(part.select(*PART, *ends), on=PART, how="left")
    limits = ([f"{name}_{end}" for end in ENDS] for name in SUMS)
    low, high = ratio_limits(*(arrays(rows, *ends) for ends in limits))
    filled: dict[str, Any] = {
        "low": pl.Series(1 - high),
        "high": pl.Series(1 - low),
        "level": pl.lit(LEVEL),
        "method": pl.lit("Donner and Zou"),
        "reason": pl.lit(None, dtype=pl.String),
    }
    return Estimates.draft(
        rows.with_columns(
            pl.when(alike).then(value).otherwise(pl.col(name)).alias(name)
            for name, value in filled.items()
        )
    )
