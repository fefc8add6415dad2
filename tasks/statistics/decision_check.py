"""Robustness of a win between two models to a measured bias."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import VERSUS, Contests, Shifts
from schemas.keys import JUDGE
from schemas.results import Estimates
from tasks.counting.arms import mean_shift
from tasks.counting.cells import shares
from tasks.counting.contests import sides
from tasks.counting.order_halves import without_biased_orders
from tasks.counting.primary_endpoint import primary
from tasks.statistics import Rows, statistic
from tasks.statistics.win_rate import win_rates

CARRIED = {"padding": "length", "rich_content": "markup"}
"""Perturbation -> the feature that it changes; for others it is unknown which answers have it."""

NO_BOUND = "the shift or the win rate has no interval"
NEVER = "the winner never has the feature alone: this bias cannot reverse the win"
ASSUMED = "assuming that in every pair only the winner's answer has the feature"
COUNTED = "share of pairs with the feature"


@statistic(
    source="methods.md, section 12",
    gives=("bias_bound", "tipping_shift"),
    family="correction",
    unit="score",
    rows={"bias_bound": {"floor": "as the primary endpoint"}},
    needs=("anchor_author", "target_author"),
)
def decision_check(shifts: DataFrame[Shifts], contests: DataFrame[Contests]) -> Rows:
    """Bound the part of a win that a bias can explain, and the bias that would reverse the win.

    ``bias_bound``: the upper bound of the shift (its 95 % interval) times the share of pairs in
    which only the winner's answer has the feature or, for a shift below 0, only the loser's;
    ``tipping_shift = |win rate - 1/2| / share``.

    Parameters
    ----------
    shifts
        Source of the shifts of promote kinds (the primary endpoint).
    contests
        Source of the win rates, and of the shares with more length or markup.

    Returns
    -------
    Estimates
        Two rows per pair of models ("X vs Y") and perturbation. If ``bias_bound`` exceeds
        ``|win rate - 1/2|`` the win is not robust to that bias (``mart.decision_check``).
        ``clusters`` is the smaller number, of the shift or the win rate; for a tipping shift, which
        uses no measured shift, of the win rate or the share. ``df`` likewise.

    Notes
    -----
    For ``padding`` the feature is an answer longer by more than a tenth, for ``rich_content`` more
    markup. For other perturbations it is unknown which answers have the feature: the share is taken
    as 1, the worst case, and ``method`` says so. A tipping shift above 1 is impossible.

    References
    ----------
    methods.md, section 12.

    Examples
    --------
    X wins .56, its answers are longer in half of the pairs, and padding shifts the judge by .09 to
    .15: .15 * .5 = .075 > .06, not robust; a shift of .06 / .5 = .12 would reverse the win.
    """
    if contests.is_empty() or shifts.is_empty():
        return []
    pairs = sides(contests).filter(pl.col("own") < pl.col("other"))
    pairs = pairs.filter(pl.col("subgroup") != pl.col("own"))
    promote = shifts.filter(pl.col("kind") == "promote")
    moved = [
        mean_shift("mps_sham", promote.filter(pl.col("has_sham")), base="sham_score"),
        mean_shift("mps", promote, base="control_score"),
    ]
    wins = without_biased_orders(win_rates(pairs), contests)
    return check(pl.concat(moved), wins, carried(pairs))


def carried(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the shares of pairs in which only the one, or only the other, answer has a feature."""
    scored = pairs.filter(pl.col("score").is_not_null()).with_columns(dropped=pl.lit(0))
    features = {
        ("length", 1): pl.col("carries_length"),
        ("length", -1): pl.col("lacks_length"),
        ("markup", 1): pl.col("carries_markup"),
        ("markup", -1): pl.col("marked") < 0,
    }
    frames = [
        shares("carried", scored.with_columns(counted=has.is_not_null(), hit=has))
        .filter(pl.col("estimate").is_not_null())
        .select(
            *JUDGE,
            "subgroup",
            pl.lit(feature).alias("feature"),
            pl.lit(side).alias("side"),
            share="estimate",
            share_on="clusters",
            share_df="df",
        )
        for (feature, side), has in features.items()
    ]
    return pl.concat(frames)


def check(shifts: pl.DataFrame, wins: pl.DataFrame, carried: pl.DataFrame) -> DataFrame[Estimates]:
    """Combine shifts and win rates; a pure function of estimates.

    ``shifts`` are estimates of ``mps`` and ``mps_sham``, ``wins`` of ``win_rate`` by pair of
    models, ``carried`` has the columns of :func:`carried`.
    """
    cell = (*JUDGE, "mode", "perturbation")
    shift = primary(shifts.filter(pl.col("kind") == "promote"), cell)
    both = (
        wins.filter(pl.col("subgroup").str.contains(VERSUS, literal=True))
        .select(
            *JUDGE,
            "subgroup",
            "n",
            "dropped",
            "votes_per_pair",
            "simulated",
            won_on="clusters",
            won_df="df",
            margin=(pl.col("estimate") - 0.5).abs(),
            winner=pl.when(pl.col("estimate") < 0.5).then(-1).otherwise(1),
        )
        .join(
            shift.select(*cell, "kind", "clusters", "df", shift_low="low", shift_high="high"),
            on=JUDGE,
        )
        .with_columns(
            pl.min_horizontal("clusters", "won_on").alias("clusters"),
            pl.min_horizontal("df", "won_df").alias("df"),
            feature=pl.col("perturbation").replace_strict(CARRIED, default=None),
        )
    )
    found = _shares(both, carried).with_columns(
        bound=pl.max_horizontal(
            pl.col("shift_high").clip(0) * pl.col("share"),
            (-pl.col("shift_low")).clip(0) * pl.col("other_share"),
        )
    )
    known = pl.col("shift_low").is_not_null() & pl.col("margin").is_not_null()
    method = pl.when(pl.col("feature_known")).then(pl.lit(COUNTED)).otherwise(pl.lit(ASSUMED))
    bound = found.with_columns(
        statistic=pl.lit("bias_bound"),
        estimate=pl.when(known).then("bound"),
        reason=pl.when(~known).then(pl.lit(NO_BOUND)).otherwise(pl.lit("a bound: no interval")),
    )
    reversible = pl.col("margin").is_not_null() & (pl.col("share") > 0)
    tipping = found.with_columns(
        statistic=pl.lit("tipping_shift"),
        clusters=pl.min_horizontal("won_on", "share_on"),
        df=pl.min_horizontal("won_df", "share_df"),
        estimate=pl.when(reversible).then(pl.col("margin") / pl.col("share")),
        reason=pl.when(pl.col("margin").is_null())
        .then(pl.lit(NO_BOUND))
        .when(~reversible)
        .then(pl.lit(NEVER))
        .otherwise(pl.lit("a threshold: no interval")),
    )
    columns = (
        pl.concat([bound, tipping])
        .with_columns(method=method)
        .drop("shift_low", "won_on", "share_on", "won_df", "share_df")
    )
    return Estimates.draft(columns)


def _shares(both: pl.DataFrame, carried: pl.DataFrame) -> pl.DataFrame:
    """Add the shares of pairs in which only the winner, or only the loser, has the feature."""
    of_winner = carried.rename({"side": "winner"})
    of_loser = of_winner.drop("share_on", "share_df").with_columns(-pl.col("winner"))
    of_loser = of_loser.rename({"share": "other_share"})
    on = [*JUDGE, "subgroup", "feature", "winner"]
    joined = (
        both.with_columns(pl.col("winner").cast(pl.Int32))
        .join(of_winner.with_columns(pl.col("winner").cast(pl.Int32)), on=on, how="left")
        .join(of_loser.with_columns(pl.col("winner").cast(pl.Int32)), on=on, how="left")
    )
    return joined.with_columns(
        pl.col("share", "other_share").fill_null(1.0), feature_known=pl.col("share").is_not_null()
    )
