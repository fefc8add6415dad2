"""Whether to use a judge: one recommendation from its gates (methods, section 17)."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import Recommendations
from schemas.keys import JUDGE
from schemas.results import Estimates, Gates
from tasks.conclusions.rules import written
from tasks.gates.consequences import (
    CARE,
    CORE,
    DO_NOT_USE,
    FORBIDS,
    NOT_ENOUGH,
    NOT_MEASURED,
    STATED,
    UNDECIDED,
    USE,
    WITH_CARE,
    weight,
)
from tasks.gates.explanations import ABSENT, subject
from tasks.gates.summaries import summarised
from tasks.inference.linearised_errors import why_not_enough
from tasks.kit.defaults import limits

BY_COIN = 0.5
"""How often a toss of a coin between two answers gives a pair the same verdict twice.

It is no threshold of a study: it follows from there being two answers.
"""
REPEATED = {
    "within_order_agreement": "a pair shown twice in one order gets the same verdict with "
    "probability {}",
    "position_consistency": "a pair shown in both orders gets the same verdict with probability {}",
}
"""Statistic of how far verdicts on the same pair agree -> its words; the first that is known."""
OF_A_COIN = " (a coin toss: .5)"
OF_NOISE = " (pure noise: 0)"
WHO = [*JUDGE, "mode"]
MORE = ("more_questions", "more_decide")
"""What a judge that is not to be used lacks no more."""


def recommend(
    gates: DataFrame[Gates], estimates: DataFrame[Estimates]
) -> DataFrame[Recommendations]:
    """Return one row per judge and way to make verdicts.

    *Do not use* if a gate of the threshold ``disqualifying`` fails (by default each gate is one);
    else *not enough data* if position or validity is inconclusive, or no bias, discernment or
    agreement has an interval; else *use with care* if another gate fails or is inconclusive, or
    ratings or verdicts hardly repeat; else *use*. Drift that is inconclusive without an alert
    limits no judge, as before a second wave, but is stated. Reasons are ordered: disqualifying
    gates first, in the order of the threshold, then by margin, the worst first; what hardly repeats
    is the last.

    Parameters
    ----------
    gates
        The scorecard. Rows of mode *any* count for each mode of the same judge.
    """
    rated = _by_mode(gates)
    if rated.is_empty():
        return Recommendations.empty()
    rows = rated.with_columns(weight=weight(), subject=subject())
    rows = rows.sort(*WHO, "weight", "margin", "perturbation", nulls_last=True)
    consequence, more = pl.col("consequence"), pl.col("more_questions")
    is_drift, inconclusive = pl.col("gate") == "drift", pl.col("verdict") == "inconclusive"
    limiting, measured = consequence.is_in([FORBIDS, CARE]), consequence != NOT_MEASURED
    blocking, stays = consequence == UNDECIDED, more.is_null()
    few = pl.col("too_few").fill_null(value=False)
    # Without an interval, as of a judge that passes every answer, an estimate says nothing.
    informs = measured & (~inconclusive | pl.col("low").is_not_null())
    # If more questions decide all that makes the data not enough, that many are named, else as
    # many as decide every gate that they can decide.
    enough = blocking.any() & ~(blocking & stays).any()
    lacking = ~stays & (blocking | (~enough & (consequence == CARE)))
    absent = [
        pl.when(~(pl.col("gate") == gate).any()).then(pl.lit(name)) for gate, name in ABSENT.items()
    ]
    found = rows.group_by(WHO, maintain_order=True).agg(
        pl.col("simulated").max(),
        forbidden=(consequence == FORBIDS).any(),
        limited=limiting.any(),
        open=blocking.any() | ~(pl.col("gate").is_in(CORE) & informs).any(),
        passed=(pl.col("verdict") == "pass").sum(),
        failed=(pl.col("verdict") == "fail").sum(),
        inconclusive=(inconclusive & measured).sum(),
        reasons=_joined("words", limiting, "; "),
        unsettled=_joined("words", (blocking | (consequence == STATED)) & ~is_drift, "; "),
        drift=_joined("words", (consequence == STATED) & is_drift, "; "),
        unanswered=(blocking & pl.col("no_reply").is_not_null()).any(),
        stays_open=_joined("subject", blocking & stays & ~few & pl.col("low").is_not_null()),
        too_few=_joined("subject", blocking & stays & few),
        more_questions=more.filter(lacking).max(),
        more_decide=_joined("subject", lacking),
        unmeasured=_joined("subject", ~measured),
        absent=pl.concat_str(*absent, separator=", ", ignore_nulls=True).replace("", None),
    )
    texts = {
        "undecided": pl.concat_str("unsettled", "level", separator="; ", ignore_nulls=True),
        "not_measured": pl.concat_str("unmeasured", "absent", separator=", ", ignore_nulls=True),
    }
    unsteady = pl.col("unsteady")
    recommendation = (
        pl.when("forbidden")
        .then(pl.lit(DO_NOT_USE))
        .when("open")
        .then(pl.lit(NOT_ENOUGH))
        .when(pl.col("limited") | unsteady.is_not_null())
        .then(pl.lit(WITH_CARE))
        .otherwise(pl.lit(USE))
    )
    recommended = found.join(_stated(estimates), on=JUDGE, how="left").with_columns(
        *(text.replace("", None).alias(name) for name, text in texts.items()),
        *(pl.when(~pl.col("forbidden")).then(name).alias(name) for name in MORE),
        reasons=pl.concat_str("reasons", unsteady, separator="; ", ignore_nulls=True).replace(
            "", None
        ),
        recommendation=recommendation,
    )
    return Recommendations.of(summarised(recommended))


def _joined(name: str, which: pl.Expr, separator: str = ", ") -> pl.Expr:
    """Join the texts of some rows; null if there is none."""
    return pl.col(name).filter(which).str.join(separator).replace("", None)


def _stated(estimates: pl.DataFrame) -> pl.DataFrame:
    """Return what is stated of judges, as texts.

    ``level``: how far the mean grade or pass rate lies from people's, if by more than the smallest
    relevant shift. ``unsteady``: how far ratings of the same answer, or verdicts on the same pair,
    agree, if hardly: below the least reliability, or perhaps no more often than tosses of a coin.
    """
    low, high, name = pl.col("low"), pl.col("high"), pl.col("statistic")
    numbers = pl.format("{} [{}, {}]", written("estimate"), written(low), written(high))
    passes = (name == "rating_bias") & (pl.col("unit") == "share")
    beyond = pl.max_horizontal(low, -high)
    far = passes & (beyond > limits().minimum_pass_rate_shift)
    graded = (name == "rating_bias_sd") & (beyond > limits().minimum_rating_shift)
    in_points = numbers.filter((name == "rating_bias") & ~passes).first()
    in_deviations = pl.format("{} standard deviations of its grades", numbers).filter(graded)
    known = estimates.filter(
        pl.col("perturbation").is_null(), pl.col("subgroup") == "", why_not_enough().is_null()
    )
    hardly = pl.format(
        "ratings of the same answer hardly agree: intraclass correlation {}" + OF_NOISE, numbers
    ).filter((name == "rating_icc") & (high < limits().least_reliability))
    said = [
        pl.format(text + OF_A_COIN, numbers).filter(name == each).first()
        for each, text in REPEATED.items()
    ]
    least = pl.coalesce(low.filter(name == each).first() for each in REPEATED)
    return known.group_by(JUDGE).agg(
        level=pl.coalesce(
            pl.format("mean grade minus people's: {} points, {}", in_points, in_deviations.first()),
            pl.format("pass rate minus people's: {}", numbers).filter(far).first(),
        ),
        unsteady=pl.coalesce(hardly.first(), pl.when(least <= BY_COIN).then(pl.coalesce(said))),
    )


def of_wave(frame: pl.DataFrame, wave: str) -> pl.DataFrame:
    """Return the rows of a wave; of the last one if there are none."""
    waves = frame["wave"]
    return frame.filter(wave=wave if (waves == wave).any() else str(waves.max()))


def _by_mode(gates: pl.DataFrame) -> pl.DataFrame:
    """Count the gates of mode *any* for each mode that the judge has."""
    own = gates.filter(pl.col("mode") != "any")
    modes = gates.select(WHO).unique()
    alone = modes.join(own.select(JUDGE).unique(), on=JUDGE, how="anti")
    modes = pl.concat([own.select(WHO).unique(), alone]).rename({"mode": "for_mode"})
    shared = gates.join(modes, on=JUDGE).filter(
        (pl.col("mode") == "any") | (pl.col("mode") == pl.col("for_mode"))
    )
    return shared.drop("mode").rename({"for_mode": "mode"})
