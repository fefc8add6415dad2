"""Verdict flips: directions, robustness rate, and flips in excess of the sham's."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from schemas.results import Estimates
from tasks.counting.cells import differences, even, known_shares, portions
from tasks.counting.verdicts import with_sham
from tasks.inference.cluster_sums import Groups, grouped
from tasks.inference.permutation import with_sign_test
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, section 2; robustness and consistency rate: arXiv:2410.02736",
    gives=(
        "flips_up",
        "flips_down",
        "flip_direction",
        "robustness_rate",
        "consistency_rate",
        "excess_flips",
    ),
    family="effect",
    rows={"flip_direction": {"null": 0.0}, "excess_flips": {"null": 0.0, "floor": "sham"}},
    missing={
        **dict.fromkeys(
            ("flips_up", "flips_down", "robustness_rate"),
            "no sample has a verdict in control and in the experimental arm",
        ),
        "flip_direction": "no verdict changes",
        "consistency_rate": "no sample has a verdict in control and in the sham",
        "excess_flips": "no sample has verdicts in control, sham and experimental",
    },
)
def net_flips(shifts: DataFrame[Shifts]) -> Rows:
    """Measure how many verdicts flip, in which direction, and how many more than for a sham.

    With anchor < tie < target: up = #(experimental > control), down = #(experimental < control),
    direction = (up - down) / (up + down). RR, the robustness rate, is the share of verdicts that
    are equal in control and experimental; CR, the consistency rate, the same for control and sham;
    excess flips = CR - RR.

    Parameters
    ----------
    shifts
        One row per sample and perturbation.

    Returns
    -------
    Estimates
        ``flips_up`` and ``flips_down`` (shares), ``flip_direction`` in [-1, 1], with ``hits`` up,
        an interval from the share of flips that go up (twice it minus 1) and the p-value of an
        exact sign test, ``robustness_rate``; where there are shams ``consistency_rate`` and
        ``excess_flips`` in [-1, 1], by cluster linearisation.

    Notes
    -----
    RR alone does not measure bias: a noisy judge flips without any. A rate needs verdicts in the
    arms that it compares, ``excess_flips`` in all three, so it is not exactly the difference of the
    two rates. Arms with unequal votes per pair are not compared, as fewer votes flip more often.
    Without a flip the direction is null. The sign test assumes independent samples; the interval
    does not.

    References
    ----------
    Ye et al. (2024), Justice or Prejudice? arXiv:2410.02736 (CALM), which repeats the same prompt
    for CR; here it is the sham, which also differs in wording. methods.md, section 2.

    Examples
    --------
    control, sham, experimental: (anchor, anchor, target), (tie, tie, target), (anchor, tie, tie),
    (target, target, tie), (tie, tie, tie). Up 3, down 1: direction 1/2, p = 10/16. RR = 1/5,
    CR = 4/5, excess flips 3/5.
    """
    moved = _rank("experimental") - _rank("control")
    flips = {
        "up": moved > 0,
        "down": moved < 0,
        "same": moved == 0,
        "still": _rank("sham") == _rank("control"),
    }
    both = shifts, with_sham(shifts)
    items, beside = (each.with_columns(**flips) for each in both)
    every, shammed = (grouped(each) for each in both)
    turned = [
        known_shares("flips_up", items, pl.col("up"), every),
        known_shares("flips_down", items, pl.col("down"), every),
        _direction(items, every),
        known_shares("robustness_rate", items, pl.col("same"), every),
    ]
    still, same = (pl.col(name).cast(pl.Float64) for name in ("still", "same"))
    steady = [
        known_shares("consistency_rate", beside, pl.col("still"), shammed),
        differences("excess_flips", beside, still, same, shammed),
    ]
    return [
        even(pl.concat(turned), items, every, ("control",)),
        even(pl.concat(steady), beside, shammed, ("control", "sham")),
    ]


def _rank(arm: str) -> pl.Expr:
    target, anchor = pl.col(arm) == "target", pl.col(arm) == "anchor"
    return target.cast(pl.Int8) - anchor.cast(pl.Int8)


def _direction(items: pl.DataFrame, groups: Groups) -> DataFrame[Estimates]:
    up, down = (pl.col(name).cast(pl.Int64).fill_null(0) for name in ("up", "down"))
    # With few flips, mostly in one direction, t intervals of the difference miss on that side.
    share = portions(
        "flip_direction",
        items.with_columns(num=up, den=up + down, dropped=pl.col("up").is_null()),
        groups,
    )
    rows = share.with_columns(
        pl.col("low", "high", "boot_low", "boot_high") * 2 - 1,
        estimate=pl.when(pl.col("n") > 0).then((pl.col("hits") * 2 - pl.col("n")) / pl.col("n")),
    )
    return with_sign_test(Estimates.draft(rows), items, pl.col("up"), pl.col("down"))
