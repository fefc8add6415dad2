"""Whether to use a judge: one recommendation from its gates (methods, section 17)."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import RECOMMENDATIONS, Recommendations
from schemas.keys import CELL, JUDGE
from schemas.results import GATES, Drifts, Estimates, Findings, Gates
from tasks.conclusions.more_questions import is_doubtful, more_questions
from tasks.conclusions.rules import BEYOND, BY_EFFECT, BY_LOG_ODDS, MIXED_WHY, written, written_p
from tasks.conclusions.scorecard import (
    ALERT,
    BEYOND_CHANCE,
    BY_MEAN,
    CHANCE_CORRECTED,
    NO_MARGIN,
    ONE_LABEL,
    WORST,
)
from tasks.inference.linearised_errors import why_not_enough
from tasks.inference.quantiles import normal_quantile
from tasks.kit.defaults import ALPHA, limits

USE, WITH_CARE, DO_NOT_USE, NOT_ENOUGH = RECOMMENDATIONS
SPREAD = ("mean_square_shift", "rating_mean_square")
"""Statistics whose p-value tells whether shifts may differ between questions."""

LOST_RATES = ("lost_rate", "rating_lost_rate")
"""Shares of unreadable votes or ratings by arm."""

ODDS = ("los_sham", "los", "position_kappa")
"""Effects in logits beside a shift or gap; the first that was measured counts."""

FORBIDS, CARE, UNDECIDED, PASSED = "forbids", "care", "undecided", "passed"
STATED, NOT_MEASURED = "stated", "not measured"
"""What a gate means for the recommendation."""
SUBJECTS = {
    "position": "position",
    "validity": "validity",
    "discernment": "detection of flaws",
    "agreement": "agreement with people",
    "drift": "drift",
}
"""Gate of the whole judge -> how a recommendation names it."""
ABSENT = {
    "bias": "biases",
    **{gate: SUBJECTS[gate] for gate in ("discernment", "agreement", "drift")},
}
"""Gate that a judge may lack -> how a recommendation says so."""
FAILED = {
    "position": "prefers one slot",
    "validity": "unreadable replies",
    "discernment": "does not detect flaws",
    "agreement": "agrees less with people than people with each other",
    "drift": "has changed since its baseline",
}
WITH_LABELS = "agreement with the labels"
HARDLY = "agrees with the labels hardly better than by chance"
"""How a judge fails the gate agreement where each item has one label."""
FOUND = {
    "biased": "biased by {}",
    "overlooks": "overlooks {}",
    "rewards": "rewards {}",
    "mixed": "mixed under {}",
    "detects some": "detects some of {}, perhaps too few",
}
"""Finding about a perturbation that limits the use of a judge -> its reason."""
UNREADABLE = "{} of the votes of an arm cannot be read"
"""Why more questions do not decide a bias."""
IS_OPEN = (" is inconclusive", " more question")
"""Texts of which one is in each reason about a gate that the data do not decide."""
POOR = 0.5
"""A test-retest reliability below this is poor (Koo & Li 2016, J. Chiropr. Med. 15, 155-163)."""
CORE = ("bias", "discernment", "agreement")
"""Nothing is recommended without one of these gates."""
ESSENTIAL = ("position", "validity")
"""While one of these gates is inconclusive, the data are not enough for a recommendation."""
WHO = [*JUDGE, "mode"]
FINDING = (
    "kind",
    "finding",
    "lost_finding",
    "detects_at",
    "control",
    "shift_spread",
    "p_value",
    "p_adjusted",
)
"""What of a finding tells which questions its gate lacks."""


def recommend(
    gates: DataFrame[Gates],
    findings: DataFrame[Findings],
    estimates: DataFrame[Estimates],
    drifts: DataFrame[Drifts],
    people: pl.DataFrame,
) -> DataFrame[Recommendations]:
    """Return one row per judge, unless a person, and way to make verdicts.

    *Do not use* if a gate of the threshold ``disqualifying`` fails (by default each gate is one);
    else *not enough data* if position or validity is inconclusive, or no bias, detection of flaws
    or agreement has an interval; else *use with care* if another gate fails or is inconclusive;
    else *use*. Drift that is inconclusive without an alert limits no judge, as before a second
    wave, but is stated. Reasons are ordered: disqualifying gates first, in the order of the
    threshold, then by margin, the worst first.

    Parameters
    ----------
    gates
        The scorecard. Rows of mode *any* count for each mode of the same judge.
    people
        Columns ``dataset`` and ``judge``: judges for whom nothing is recommended.
    """
    rated = _by_mode(gates.join(people, on=["dataset", "judge"], how="anti"))
    if rated.is_empty():
        return Recommendations.empty()
    known = _with_questions(rated, findings, estimates, drifts)
    inconclusive = pl.col("verdict") == "inconclusive"
    # The next wave confirms a suspicion, not more questions.
    suspect = (pl.col("gate") == "drift") & pl.col("reason").is_not_null()
    more = more_questions(known)
    projected = known.with_columns(more=pl.when(inconclusive & ~suspect).then(more))
    rows = projected.with_columns(_standing()).with_columns(_weight(), _reason(), _subject())
    standing = pl.col("standing")
    limiting, measured = standing.is_in([FORBIDS, CARE]), standing != NOT_MEASURED
    # Without an interval, as of a judge that passes every answer, an estimate says nothing.
    informs = measured & (~inconclusive | pl.col("low").is_not_null())
    absent = [
        pl.when(~(pl.col("gate") == gate).any()).then(pl.lit(subject))
        for gate, subject in ABSENT.items()
    ]
    blocking = pl.col("more").filter(standing == UNDECIDED)
    unmeasured = pl.col("subject").filter(~measured).str.join(", ")
    found = (
        rows.sort(*WHO, "weight", "margin", "perturbation", nulls_last=True)
        .group_by(WHO, maintain_order=True)
        .agg(
            pl.col("simulated").max(),
            forbidden=(standing == FORBIDS).any(),
            limited=limiting.any(),
            open=(standing == UNDECIDED).any() | ~(pl.col("gate").is_in(CORE) & informs).any(),
            passed=(pl.col("verdict") == "pass").sum(),
            failed=(pl.col("verdict") == "fail").sum(),
            inconclusive=(inconclusive & measured).sum(),
            reasons=pl.col("reason_text").filter(limiting).str.join("; "),
            undecided=pl.col("reason_text")
            .filter(standing.is_in([UNDECIDED, STATED]))
            .str.join("; "),
            # A number that leaves another of these gates undecided would not be enough.
            more_decide=pl.when(blocking.null_count() == 0).then(blocking.max()),
            more_free=pl.col("more").filter(standing == CARE).max(),
            not_measured=pl.concat_str(
                pl.when(unmeasured != "").then(unmeasured),
                *absent,
                separator=", ",
                ignore_nulls=True,
            ),
        )
    )
    stated = (pl.when(pl.col("undecided") != "").then("undecided"), "level", "repeats")
    found = found.join(_stated(estimates), on=JUDGE, how="left").with_columns(
        undecided=pl.concat_str(*stated, separator="; ", ignore_nulls=True)
    )
    texts = ("reasons", "undecided", "not_measured")
    recommendation = (
        pl.when("forbidden")
        .then(pl.lit(DO_NOT_USE))
        .when("open")
        .then(pl.lit(NOT_ENOUGH))
        .when("limited")
        .then(pl.lit(WITH_CARE))
        .otherwise(pl.lit(USE))
    )
    return Recommendations.of(
        found.with_columns(
            *(pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in texts),
            recommendation=recommendation,
            more_questions=pl.when("forbidden")
            .then(None)
            .when("open")
            .then("more_decide")
            .otherwise("more_free"),
        )
    )


def _stated(estimates: pl.DataFrame) -> pl.DataFrame:
    """Return what is stated of judges of single answers, as texts.

    ``level``: how far the mean grade or pass rate lies from people's, if by more than the smallest
    relevant shift. ``repeats``: how far ratings of the same answer agree, if hardly.
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
    return known.group_by(JUDGE).agg(
        level=pl.coalesce(
            pl.format("mean grade minus people's: {} points, {}", in_points, in_deviations.first()),
            pl.format("pass rate minus people's: {}", numbers).filter(far).first(),
        ),
        repeats=pl.format(
            "ratings of the same answer hardly agree: intraclass correlation {}", numbers
        )
        .filter((name == "rating_icc") & (high < POOR))
        .first(),
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


def _with_questions(
    gates: pl.DataFrame, findings: pl.DataFrame, estimates: pl.DataFrame, drifts: pl.DataFrame
) -> pl.DataFrame:
    """Add the finding that a gate follows, the questions that it rests on and its standard error.

    The standard error is null for shares, and where no question differs from another.
    ``questions`` counts those of which the judge was asked, ``clusters`` those that count.
    ``wider`` is how many times as wide an interval is whose level is that of the adjusted p-value,
    ``spread_p`` the p-value of the hypothesis that no single question is moved, ``odds`` the effect
    in logits, ``most_lost`` the largest share of unreadable votes of an arm,
    ``kinds`` the number of kinds of flaws behind the gate discernment.
    """
    rest = ("clusters", "standard_error")
    sizes = estimates.filter(pl.col("subgroup") == "").select(*CELL, "statistic", *rest)
    about = pl.when(pl.col("kind") == "position").then(pl.lit("position")).otherwise(pl.lit("bias"))
    found = findings.join(sizes, on=[*CELL, "statistic"], how="left", nulls_equal=True).select(
        *JUDGE, "perturbation", *FINDING, *rest, gate=about
    )
    flawed = found.filter(pl.col("kind") == "detract").group_by(JUDGE)
    flaws = flawed.agg(pl.col("clusters").max(), kinds=pl.col("perturbation").n_unique())
    # Agreement has a subgroup for the people that it is with.
    whole = estimates.filter(pl.col("perturbation").is_null())
    lone = [
        whole.filter(pl.col("statistic").is_in(statistics))
        .group_by(JUDGE)
        .agg(pl.col("clusters").max())
        .with_columns(gate=pl.lit(gate))
        for gate, statistics in (
            ("validity", ["invalid_rate"]),
            ("agreement", ["ceiling_ratio", *BEYOND_CHANCE]),
        )
    ]
    lone.append(flaws.with_columns(gate=pl.lit("discernment")))
    key = [*JUDGE, "gate", "perturbation"]
    everything = pl.concat([found, *lone], how="diagonal_relaxed").unique(key, maintain_order=True)
    # The gate shows the change whose interval reaches farthest.
    of_drift = [*JUDGE, "gate", "high"]
    tested = drifts.filter(pl.col("minimum") > 0, pl.col("p_value").is_not_null())
    changes = tested.with_columns(gate=pl.lit("drift")).group_by(of_drift).agg(pl.col(rest).max())
    rows = gates.join(everything, on=key, how="left", nulls_equal=True)
    rows = rows.join(changes, on=of_drift, how="left", suffix="_drift")
    spread = estimates.filter(pl.col("statistic").is_in(SPREAD), pl.col("subgroup") == "")
    moved = spread.group_by(*JUDGE, "perturbation").agg(spread_p=pl.col("p_value").min())
    rows = rows.join(moved, on=[*JUDGE, "perturbation"], how="left")
    adjusted = pl.when(pl.col("p_adjusted") > 0).then(pl.col("p_value") / pl.col("p_adjusted"))
    odds = estimates.filter(pl.col("statistic").is_in(ODDS), pl.col("subgroup") == "")
    beside = odds.sort(pl.col("statistic").replace_strict(ODDS, range(len(ODDS))))
    by_odds = beside.group_by(*JUDGE, "perturbation").agg(odds=pl.col("estimate").first())
    rows = rows.join(by_odds, on=[*JUDGE, "perturbation"], how="left", nulls_equal=True)
    lost = estimates.filter(pl.col("statistic").is_in(LOST_RATES))
    most = lost.group_by(*JUDGE, "perturbation").agg(most_lost=pl.col("estimate").max())
    rows = rows.join(most, on=[*JUDGE, "perturbation"], how="left")
    asked = estimates.filter(pl.col("subgroup") == "").group_by(JUDGE)
    rows = rows.join(asked.agg(questions=pl.col("clusters").max()), on=JUDGE, how="left")
    level = ALPHA * rows.select(adjusted.fill_null(1.0)).to_series().to_numpy()
    wider = normal_quantile(1 - level / 2) / normal_quantile(1 - ALPHA / 2)
    return rows.with_columns(
        *(pl.coalesce(name, f"{name}_drift").alias(name) for name in rest), wider=wider
    ).drop("p_value", *(f"{name}_drift" for name in rest))


def _standing() -> pl.Expr:
    """Say what a gate means for the recommendation."""
    fails = pl.col("verdict") == "fail"
    open_ = pl.col("verdict") == "inconclusive"
    nothing = pl.col("value").is_null() & (pl.col("clusters").fill_null(0) == 0)
    return (
        pl.when(open_ & pl.col("gate").is_in(ESSENTIAL))
        .then(pl.lit(UNDECIDED))
        .when(open_ & nothing)
        .then(pl.lit(NOT_MEASURED))
        .when(fails & pl.col("gate").is_in(limits().disqualifying))
        .then(pl.lit(FORBIDS))
        .when(open_ & (pl.col("gate") == "drift") & pl.col("reason").is_null())
        .then(pl.lit(STATED))
        .when(fails | open_)
        .then(pl.lit(CARE))
        .when(_sham_shift().is_not_null())
        .then(pl.lit(STATED))
        .otherwise(pl.lit(PASSED))
        .alias("standing")
    )


def _sham_shift() -> pl.Expr:
    """Return by how much the sham itself moves a judge that passes beyond it, as text."""
    return pl.col("reason").str.extract(f"{BEYOND.partition('{')[0]}([^;]+)")


def _weight() -> pl.Expr:
    """Order gates: disqualifying ones first, as the threshold lists them, what is stated last."""
    first = list(limits().disqualifying)
    return (
        pl.when(pl.col("standing") == FORBIDS)
        .then(pl.col("gate").replace_strict(first, range(len(first)), default=len(first)))
        .otherwise(pl.when(pl.col("standing") == STATED).then(len(GATES) + 1).otherwise(len(GATES)))
        .alias("weight")
    )


def _is_alone() -> pl.Expr:
    """Tell whether the gate agreement is about one label per item, whose authors are not known."""
    return pl.col("reason").str.starts_with(ONE_LABEL).fill_null(value=False)


def _found() -> pl.Expr:
    """Tell whether a gate follows a finding that limits the use of a judge."""
    return pl.col("finding").is_in([*FOUND]).fill_null(value=False)


def _subject() -> pl.Expr:
    """Name what a gate is about."""
    gate = pl.when(_is_alone()).then(pl.lit(WITH_LABELS)).otherwise(pl.col("gate"))
    named = pl.coalesce("perturbation", gate.replace(SUBJECTS))
    return named.str.replace_all("_", " ").alias("subject")


def _in_logits() -> pl.Expr:
    """Write the numbers of a bias whose size is the effect in logits; null of other gates.

    The p-value is that of the shift, or gap, unless pairs are too easy to move the mean.
    """
    size = r"(?:LOS )?(-?[\d.]+)[^;]*?, limit ([\d.]+)"
    effect = pl.col("reason").str.extract_groups(BY_EFFECT.partition("{")[0] + size)
    tested = pl.when(pl.col("gate") == "position").then(pl.lit("gap")).otherwise(pl.lit("shift"))
    both = pl.format(
        " ({} {} [{}, {}]{}, and effect in logits {}, limit {})",
        tested,
        *(written(name) for name in ("value", "low", "high")),
        pl.format(", adjusted p {}", written_p("p_adjusted")).fill_null(""),
        effect.struct.field("1"),
        effect.struct.field("2"),
    )
    alone = pl.col("reason").str.extract(f"{BY_LOG_ODDS.partition('{')[0]}([^;]+)")
    limit = written(limits().minimum_log_odds)
    return pl.coalesce(both, pl.format(" (effect in logits {}, limit {})", alone, limit))


def _reason() -> pl.Expr:
    """Word what a gate contributes to the reasons or to what is inconclusive."""
    subject = _subject()
    found = pl.col("gate").replace(FAILED)
    for finding, text in FOUND.items():
        about = (pl.col("gate") == "bias") & (pl.col("finding") == finding)
        found = pl.when(about).then(pl.format(text, subject)).otherwise(found)
    # An alert says what has changed.
    alert = pl.col("reason").str.extract(f"^{ALERT.format('(.+)')}$")
    found = (
        pl.when(pl.col("gate") == "drift")
        .then(found + pl.format(": {}", alert).fill_null(""))
        .otherwise(found)
    )
    worst = WORST.format(r"\d+", "(.+)")
    criterion = pl.col("reason").str.extract(f"{worst}$").str.replace_all("; ", ", ")
    on_criterion = pl.format(" on {}", criterion).fill_null("")
    alone = _is_alone()
    found = pl.when(alone).then(pl.lit(HARDLY)).otherwise(found) + on_criterion
    flaw = (pl.col("kind") == "detract") & ~pl.col("finding").is_in(["overlooks", "rewards"])
    detects = pl.coalesce("detects_at", "tolerance")
    two = pl.format("limits {} and {}", written(limits().overlooks_below), written(detects))
    limit = pl.coalesce(pl.when(flaw).then(two), pl.format("limit {}", written("tolerance")))
    plural = pl.when(pl.col("more") == 1).then(pl.lit("")).otherwise(pl.lit("s"))
    missing = pl.format("about {} more question{}", "more", plural)
    by_mean = (pl.col("reason") == BY_MEAN).fill_null(value=False)
    found += pl.when(by_mean).then(pl.lit(" on average")).otherwise(pl.lit(""))
    flaws = pl.col("gate") == "discernment"
    detected = (
        pl.when(by_mean)
        .then(pl.lit("mean share detected"))
        .when(flaws & (pl.col("kinds") > 1))
        .then(pl.lit("share detected of the kind detected best"))
        .when(
            flaws | (pl.col("kind").eq_missing("detract") & pl.col("finding").ne_missing("rewards"))
        )
        .then(pl.lit("share detected"))
    )
    measure = pl.when(alone).then(pl.lit(CHANCE_CORRECTED)).otherwise(detected)
    numbers = pl.format(
        " ({}{} [{}, {}], {}{})",
        pl.format("{} ", measure).fill_null(""),
        *(written(name) for name in ("value", "low", "high")),
        limit,
        # A flaw may be detected for certain once more questions are asked.
        pl.when(_found()).then(pl.lit(", ") + missing).fill_null(""),
    ).fill_null("")
    # A mixed bias rests on the spread of the shifts, not on their mean.
    spread = pl.col("reason").str.extract(f"((?:{'|'.join(MIXED_WHY)})[^;]*)")
    mixed = pl.col("finding").eq_missing("mixed")
    numbers = pl.when(mixed).then(pl.format(" ({})", spread)).fill_null(numbers)
    found += pl.coalesce(_in_logits(), numbers)
    decided = _found() | (pl.col("verdict") != "inconclusive")
    # More questions do not remove a reason such as a sham that moves the judge.
    why = pl.col("reason").str.replace(f"^{ONE_LABEL}(; )?", "")
    why = why.str.replace(f"(; )?{NO_MARGIN}$", "")
    why = why.str.replace(f"(; )?{worst}$", "").replace("", None)
    why = why.str.replace_all("; ", ", ")
    undecided = subject + on_criterion + pl.lit(IS_OPEN[0])
    # Unreadable votes may hide either finding.
    doubtful = (pl.col("gate") == "bias") & is_doubtful()
    lost = pl.when(doubtful).then(pl.format(UNREADABLE, written("most_lost")))
    undecided = pl.coalesce(
        undecided + pl.format(" ({})", missing),
        undecided + pl.format(" ({})", pl.coalesce(why, lost)),
        undecided + numbers,
    )
    passed = pl.format("{}: the sham itself shifts the judge by {}", subject, _sham_shift())
    found = pl.when(pl.col("verdict") == "pass").then(passed).otherwise(found)
    return pl.when(decided).then(found).otherwise(undecided).alias("reason_text")
