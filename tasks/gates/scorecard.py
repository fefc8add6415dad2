"""Scorecard: gates that a judge passes or fails (methods, sections 3, 11 and 16)."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.keys import CELL, JUDGE
from schemas.results import (
    AGREED_BY,
    BEST_DETECTED,
    BEYOND_CHANCE,
    DETECTED,
    ENDPOINTS,
    IN_LOGITS,
    IN_SDS,
    MEAN_DETECTED,
    Drifts,
    Estimates,
    Findings,
    Gates,
)
from tasks.conclusions.position_bias import EFFECT, GAP, POSITION
from tasks.conclusions.rules import (
    AGREES,
    CLEAR,
    DISAGREES,
    agreement_finding,
    half_width,
    sham_moves,
    shown,
    written,
)
from tasks.counting.annotations import HUMANS
from tasks.gates.consequences import NOT_MEASURED, consequence, is_unexplained_drift
from tasks.gates.drift_gates import drift_gates
from tasks.gates.explanations import LOST, reason, share_name, words
from tasks.gates.more_questions import more_questions
from tasks.inference.linearised_errors import why_not_enough
from tasks.kit.defaults import limits
from tasks.pointwise.endpoints import UNITS

FAILS, PASSES = ["biased", "overlooks", "rewards"], ["no relevant bias", "detects"]
LOGITS = ["los_sham", "los"]
"""Effects in logits over the sham and over the control, which decide where pairs are too easy."""
OVER_SHAM = ["mps_sham", *UNITS["mps_sham"].values()]
"""Primary endpoints over the sham."""
BESIDE = ("effect_logits", "sham_shift")
"""Effects of a finding on which its gate may rest beside its value."""
OWN = (*CELL, "simulated", "few", "reason", "clusters")
"""What a gate keeps of the estimate that it tests."""
WHOLE = pl.col("perturbation").is_null()
NOTHING = pl.lit(None, pl.String)
INTERVAL = pl.col("estimate", "low", "high")


def scorecard(
    estimates: DataFrame[Estimates],
    findings: DataFrame[Findings],
    drifts: DataFrame[Drifts] | None = None,
    people: pl.DataFrame | None = None,
) -> DataFrame[Gates]:
    """Return one row per judge and gate.

    ``people`` (columns ``dataset`` and ``judge``) have none: judges are compared with them.

    Gates are position, validity, each bias, discernment, agreement (if people labelled the same
    items; of several criteria, the worst; beyond chance if each item has one label) and drift (if
    there are waves). A gate fails if the whole interval lies beyond the tolerance, passes if the
    whole interval lies within it, and is inconclusive otherwise. Position and biases follow their
    findings; drift fails only if an alert is confirmed. Discernment passes if more than a fifth of
    one kind of flaw is significantly detected, and fails if significantly less is detected of every
    kind or on average. With too few questions a gate neither passes nor fails. ``margin`` is the
    share of the tolerance left at the worse end of the interval: for a promote bias, and for a
    rewarded flaw, the 90 % interval of the shift, as in its finding; for another detract bias, how
    far the lower bound of the detected share lies beyond the limit for detecting. It is null, with
    a reason, where a finding differs from its interval, for example because of its adjusted p-value
    or log-odds. Discernment that fails on average shows the mean.
    """
    judged = estimates.with_columns(few=why_not_enough())
    followed = _with_sizes(findings, judged)
    rows = [
        _validity(judged, limits().most_invalid),
        _findings(followed),
        _discernment(judged, followed),
        _agreement(judged),
        drift_gates(judged, Drifts.empty() if drifts is None else drifts),
    ]
    verdict = (
        pl.when(pl.col("few").is_not_null())
        .then(pl.lit("inconclusive"))
        .when("failed")
        .then(pl.lit("fail"))
        .when("passed")
        .then(pl.lit("pass"))
        .otherwise(pl.lit("inconclusive"))
    )
    asked = judged.filter(subgroup="").group_by(JUDGE).agg(questions=pl.col("clusters").max())
    gates = pl.concat(rows, how="diagonal_relaxed").join(asked, on=JUDGE, how="left")
    # For drift, only questions count that the baseline has too.
    gates = gates.with_columns(questions=pl.coalesce("shared", "questions"))
    if people is not None:
        gates = gates.join(people, on=["dataset", "judge"], how="anti")
    return Gates.of(explained(gates.with_columns(verdict=verdict)))


def explained(gates: pl.DataFrame) -> pl.DataFrame:
    """Add the questions that each gate lacks, what it means for its judge, and its texts."""
    # More questions do not change that people, or the judge with them, agree by chance.
    by_chance = (pl.col("measure") == LOST) & pl.col("why").is_not_null()
    lacking = (
        (pl.col("verdict") == "inconclusive")
        & ((pl.col("gate") != "drift") | is_unexplained_drift())
        & ~by_chance.fill_null(value=False)
    )
    # Where replies lack, the same questions are asked again before further ones.
    unanswered = pl.col("no_reply").is_not_null().any().over(JUDGE)
    known = gates.with_columns(
        too_few=pl.col("few").is_not_null(),
        more_questions=pl.when(lacking & ~unanswered).then(more_questions(gates)),
        consequence=consequence(),
    )
    measured = pl.col("consequence") != NOT_MEASURED
    return known.with_columns(reason=reason(), words=pl.when(measured).then(words()))


def _validity(estimates: pl.DataFrame, tolerance: float) -> pl.DataFrame:
    """Return the share of invalid replies; a reply that never came may be one of them."""
    whole = WHOLE & (pl.col("subgroup") == "")
    rates = estimates.filter(pl.col("statistic") == "invalid_rate", whole)
    missing = estimates.filter(pl.col("statistic") == "missing_rate", whole)
    missing = missing.select(*CELL, missing=pl.col("estimate").fill_null(0))
    known = rates.join(missing, on=CELL, how="left", nulls_equal=True)
    low, high, lost = (pl.col(name) for name in ("low", "high", "missing"))
    most = high + lost.fill_null(0)
    # Without any reply the share of ballots with an invalid one is 0.
    replied = lost.fill_null(0) < 1
    failed, passed = low > tolerance, most <= tolerance
    # Replies that did not come may be what is lacking, rather than questions.
    unanswered = ~failed & ~passed & ((high <= tolerance) | (lost > tolerance))
    return known.select(
        *OWN,
        *(pl.when(replied).then(end).alias(end) for end in ("low", "high")),
        gate=pl.lit("validity"),
        measure=pl.lit("invalid replies"),
        value=pl.when(replied).then("estimate"),
        tolerance=pl.lit(tolerance),
        failed=failed,
        passed=passed,
        margin=pl.when(replied).then(1 - most / tolerance),
        no_reply=pl.when(unanswered).then(lost),
        why=pl.coalesce("reason", "few"),
    )


def _with_sizes(findings: pl.DataFrame, estimates: pl.DataFrame) -> pl.DataFrame:
    """Add what each finding's test rests on, and half the width of its 90 % interval."""
    key = [*CELL, "tested"]
    known = estimates.filter(
        pl.col("subgroup") == "",
        pl.col("statistic").is_in([*ENDPOINTS, *LOGITS, GAP, EFFECT]),
    )
    sure = pl.col("few").is_null() & pl.col("standard_error").is_not_null()
    sizes = known.with_columns(half_width(known), tested="statistic").select(
        *key, "few", "clusters", "standard_error", half=pl.when(sure).then("half")
    )
    # Easy pairs are about the effect in logits, over the sham if it was measured over it.
    over_sham = sizes.filter(tested=LOGITS[0]).select(*CELL, over_sham=pl.lit(LOGITS[0]))
    both = findings.join(over_sham, on=CELL, how="left", nulls_equal=True)
    in_logits = pl.when(pl.col("statistic").is_in(OVER_SHAM)).then("over_sham")
    tested = (
        pl.when(pl.col("by_logits"))
        .then(pl.coalesce(in_logits, pl.lit(LOGITS[1])))
        .otherwise("statistic")
    )
    return both.with_columns(tested=tested).join(sizes, on=key, how="left", nulls_equal=True)


def _findings(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the gates that follow findings: position, and each bias."""
    # That a judge rewards a flaw rests on the shift, as a bias does.
    by_share = (pl.col("kind") == "detract") & pl.col("finding").ne_missing("rewards")
    # Easy pairs can hardly move the mean, so the effect in logits decides in its place.
    easy = pl.col("by_logits").fill_null(value=False) & ~by_share
    estimate, low, high = (
        pl.when(easy).then(f"effect_logits{end}").otherwise(shift)
        for end, shift in (("", "estimate"), ("_low", "low"), ("_high", "high"))
    )
    minimum = pl.when(easy).then(limits().minimum_log_odds).otherwise("minimum")
    reach = pl.coalesce(estimate.abs() + pl.col("half"), pl.max_horizontal(high, -low))
    margin = (
        pl.when(by_share)
        .then(pl.col("detected_low") / pl.col("detects_at") - 1)
        .otherwise(1 - reach / minimum)
    )
    # Where the adjusted p-value or the log-odds say otherwise than the interval.
    contradicted = (pl.col("finding").is_in(PASSES) != (margin >= 0)).fill_null(value=False)
    # A significant shift may be too small for a bias, but not its effect in logits.
    by_effect = pl.col("finding").is_in(FAILS) & (estimate.abs() < minimum) & ~by_share & ~easy
    excluded = pl.col("statistic").is_in(OVER_SHAM) & (pl.col("finding") == CLEAR)
    moves = excluded & sham_moves("sham_shift")
    silent = pl.col("finding").is_null() & estimate.is_not_null()
    of_position = pl.col("kind") == POSITION
    size = (
        pl.when(by_share)
        .then(share_name(pl.lit(DETECTED), pl.col("detected_by") == "detection_share"))
        .when(easy | (pl.col("statistic") == EFFECT))
        .then(pl.lit(IN_LOGITS))
        .when(pl.col("unit") == "sd")
        .then(pl.lit(IN_SDS))
        .when(~of_position)
        .then(pl.lit("shift"))
        .otherwise(pl.lit("gap"))
    )
    return rows.with_columns(
        *(
            pl.when(decides).then(f"{name}{end}").alias(f"{name}{end}")
            for name, decides in zip(BESIDE, (by_effect, moves), strict=True)
            for end in ("", "_low", "_high")
        ),
        odds="effect_logits",
        gate=pl.when(of_position).then(pl.lit("position")).otherwise(pl.lit("bias")),
        measure=size,
        value=pl.when(by_share).then("detected").otherwise(estimate),
        low=pl.when(by_share).then("detected_low").otherwise(low),
        high=pl.when(by_share).then("detected_high").otherwise(high),
        tolerance=pl.when(pl.col("finding") == "overlooks")
        .then(limits().overlooks_below)
        .when(by_share)
        .then("detects_at")
        .otherwise(minimum),
        failed=pl.col("finding").is_in(FAILS),
        passed=pl.col("finding").is_in(PASSES),
        margin=pl.when(~contradicted).then(margin),
        contradicted=contradicted,
        few=pl.when(silent).then("few"),
        why="reason",
    )


def _discernment(estimates: pl.DataFrame, findings: pl.DataFrame) -> pl.DataFrame:
    """Tell whether a judge can tell flawed answers from sound ones (methods, section 16).

    The mean over kinds of flaws takes them as independent. It is also taken of D, the share in mean
    scores: for a judge at random more votes make mean scores more precise, but not verdicts.
    """
    limit = limits().overlooks_below
    shares = estimates.filter(
        pl.col("statistic") == "detection_share",
        pl.col("subgroup") == "",
        pl.col("few").is_null(),
    )
    scored = {"scored": "estimate", "scored_low": "low", "scored_high": "high"}
    detracting = (pl.col("kind") == "detract") & pl.col("finding").is_not_null()
    seen = {"seen": "detected", "seen_low": "detected_low", "seen_high": "detected_high"}
    cells = findings.join(
        shares.select(*CELL, **{name: pl.col(column) for name, column in scored.items()}),
        on=CELL,
        how="left",
    ).with_columns(
        pl.when(detracting).then(column).alias(name)
        for name, column in (seen | {name: name for name in scored}).items()
    )
    flawed = pl.col("kind") == "detract"
    best = pl.col("seen_low").arg_max()
    none = pl.col("seen_high").max() <= limit
    by_seen = (_mean("seen", "high") <= limit).fill_null(value=False)
    by_scored = (
        (pl.col("scored_high").count() == pl.col("seen_high").count())
        & (pl.col("scored_low").max() <= limit)
        & (_mean("scored", "high") <= limit)
    ).fill_null(value=False)
    failed = (pl.col("seen_low").max() <= limit) & (none | by_seen | by_scored)
    by_mean = (failed & ~none).fill_null(value=False)

    def decisive(end: str, otherwise: pl.Expr) -> pl.Expr:
        """Return the end of the interval that decides: of a mean, or of one kind of flaw."""
        mean = pl.when(by_seen).then(_mean("seen", end)).otherwise(_mean("scored", end))
        return pl.when(by_mean).then(mean).otherwise(otherwise)

    name = pl.col("perturbation").str.replace_all("_", " ", literal=True)
    found = cells.group_by(JUDGE, maintain_order=True).agg(
        pl.col("simulated").max(),
        mode=pl.col("mode").filter(flawed).max().fill_null("any"),
        value=decisive("", pl.col("seen").get(best, null_on_oob=True)),
        low=decisive("low", pl.col("seen_low").max()),
        high=decisive("high", pl.col("seen_high").get(best, null_on_oob=True)),
        by_mean=by_mean,
        by_seen=by_seen,
        by_d=pl.col("detected_by").get(best, null_on_oob=True) == "detection_share",
        each=pl.format("{} {}", name, written("scored"))
        .filter(pl.col("scored").is_not_null())
        .sort_by(name.filter(pl.col("scored").is_not_null()))
        .str.join(", "),
        clusters=pl.col("clusters").filter(flawed).max(),
        kinds=pl.col("perturbation").filter(flawed).n_unique(),
        why=pl.col("reason").filter(flawed).min(),
        failed=failed.fill_null(value=False),
    )
    several = pl.when("by_mean").then(pl.lit(MEAN_DETECTED)).otherwise(pl.lit(BEST_DETECTED))
    share = pl.when(pl.col("kinds") <= 1).then(pl.lit(DETECTED)).otherwise(several)
    by_d = pl.when("by_mean").then(~pl.col("by_seen")).otherwise("by_d")
    return found.with_columns(
        gate=pl.lit("discernment"),
        measure=share_name(share, by_d),
        perturbation=NOTHING,
        tolerance=pl.lit(limit),
        passed=(pl.col("low") > limit).fill_null(value=False),
        margin=pl.col("low") / limit - 1,
        why=pl.when(pl.col("kinds") == 0)
        .then(pl.lit("no flawed answer was shown"))
        .when(pl.col("low").is_null())
        .then("why")
        .when(pl.col("by_mean") & (pl.col("kinds") == 1))
        .then(pl.lit("D, the share in mean scores"))
        .when(pl.col("by_mean") & ~pl.col("by_seen"))
        .then(pl.format("D of {}", "each")),
    )


def _mean(name: str, end: str) -> pl.Expr:
    """Return a mean over kinds of flaws, or the end ``low`` or ``high`` of its interval."""
    middle = pl.col(name)
    if not end:
        return middle.mean()
    reach = pl.col(f"{name}_{end}") - middle
    half = (reach**2).sum().sqrt() / reach.count()
    return middle.mean() + (half if end == "high" else -half)


def _agreement(estimates: pl.DataFrame) -> pl.DataFrame:
    """Return the gate agreement: of several criteria, the worst.

    The gate fails if the judge fails on one criterion, and passes only if it passes on each; the
    reason names the worst. A criterion without an estimate passes nothing. Among criteria of the
    same outcome the one with the smallest margin is the worst.
    """
    among_people = _agreement_lost(estimates, limits().most_agreement_lost)
    alone = _beyond_chance(estimates, limits().least_agreement)
    # Where no item of a criterion has labels of two people, agreement with single labels counts.
    nothing, part = pl.col("value").is_null(), (*JUDGE, "criterion")
    alone = alone.join(among_people.filter(~nothing), on=part, how="anti", nulls_equal=True)
    empty = among_people.filter(nothing).join(alone, on=part, how="anti", nulls_equal=True)
    among_people = pl.concat([among_people.filter(~nothing), empty])
    rows = pl.concat([among_people, alone], how="diagonal_relaxed")
    criteria = pl.len().over(CELL)
    criteria_rows = rows.with_columns(
        gate=pl.lit("agreement"),
        why=pl.coalesce("reason", "few"),
        criteria=criteria,
        criterion=pl.when(criteria > 1).then("criterion"),
    ).drop("reason")
    decided = pl.col("few").is_null()
    outcome = (
        pl.when(decided & pl.col("failed"))
        .then(0)
        .when(pl.col("value").is_null())
        .then(2)
        .when(decided & pl.col("passed"))
        .then(3)
        .otherwise(1)
    )
    # A loss is worse the larger it is, an agreement the smaller.
    agreed = pl.col("measure").str.starts_with(BEYOND_CHANCE)
    size = pl.when(agreed).then("value").otherwise(-pl.col("value"))
    worst = criteria_rows.sort(outcome, "margin", size, nulls_last=True, maintain_order=True)
    return worst.unique(CELL, keep="first", maintain_order=True)


def _agreement_lost(estimates: pl.DataFrame, tolerance: float) -> pl.DataFrame:
    """Return what a judge loses of the agreement that people reach among themselves.

    .1 is the strictest margin of the alternative annotator test (methods, sections 8 and 9). It
    passes only beside people who agree with each other beyond chance, and a judge that agrees
    beyond chance with one of them: where labels are drawn by lot, or are nearly all the same, a
    judge loses nothing that tells anything of the answers.
    """
    rows = _with_chance(estimates.filter(pl.col("statistic") == "ceiling_ratio", WHOLE), estimates)
    least, most = 1 - pl.col("high"), 1 - pl.col("low")
    failed, passed = least > tolerance, (most <= tolerance) & pl.col("chance").is_null()
    why = pl.coalesce("reason", pl.when(~failed).then("chance"))
    return rows.with_columns(reason=why).select(
        *OWN,
        measure=pl.lit(LOST),
        criterion="part",
        value=1 - pl.col("estimate"),
        low=least,
        high=most,
        tolerance=pl.lit(tolerance),
        failed=failed,
        passed=passed,
        margin=1 - most / tolerance,
    )


def _with_chance(rows: pl.DataFrame, estimates: pl.DataFrame) -> pl.DataFrame:
    """Add whose agreement is hardly better than chance (``chance``), and the criterion (``part``).

    Of several people, the one counts for whom it is surest that the judge's kappa exceeds 0.
    """
    part = pl.col("subgroup").str.strip_suffix(HUMANS).str.strip_suffix(": ")
    rows = rows.with_columns(part=part.replace("", None))
    alphas = estimates.filter(
        pl.col("statistic") == "krippendorff_alpha_nominal", pl.col("judge") == HUMANS
    )
    alphas = alphas.select(
        "dataset", INTERVAL.name.prefix("alpha_"), part=pl.col("subgroup").replace("", None)
    ).sort("alpha_low")
    people = alphas.unique(["dataset", "part"], keep="first", maintain_order=True)
    kappas = estimates.filter(pl.col("statistic") == "cohen_kappa", WHOLE)
    kappas = kappas.select(*JUDGE, "subgroup", INTERVAL.name.prefix("kappa_"))
    pairs = rows.select(*JUDGE, "part").join(kappas, on=JUDGE, nulls_equal=True)
    before = pl.col("part") + ": "
    of_part = pairs.filter(pl.col("subgroup").str.starts_with(before).fill_null(value=True))
    other = pl.coalesce(pl.col("subgroup").str.strip_prefix(before), "subgroup")
    # Every model has a row, so whoever else a judge is compared with is a person.
    models = rows.select("dataset", other="judge")
    of_people = of_part.with_columns(other=other).join(models, on=["dataset", "other"], how="anti")
    best = of_people.sort("kappa_low", nulls_last=True, descending=True)
    best = best.unique([*JUDGE, "part"], keep="first").drop("subgroup", "other")
    hardly = "hardly better than by chance"
    chance = (
        pl.when(pl.col("alpha_low") <= 0)
        .then(pl.format(f"people agree with each other {hardly}, alpha {{}}", shown("alpha")))
        .when(pl.col("kappa_low") <= 0)
        .then(pl.format(f"it agrees with people {hardly}, kappa at most {{}}", shown("kappa")))
    )
    return (
        rows.join(people, on=["dataset", "part"], how="left", nulls_equal=True)
        .join(best, on=[*JUDGE, "part"], how="left", nulls_equal=True)
        .with_columns(chance=chance)
    )


def _beyond_chance(estimates: pl.DataFrame, limit: float) -> pl.DataFrame:
    """Return how far a judge agrees beyond chance with the labels that came with the items."""
    rows = estimates.filter(pl.col("statistic").is_in([*AGREED_BY]), WHOLE)
    return rows.select(
        *OWN,
        "low",
        "high",
        measure=pl.col("statistic").replace_strict(AGREED_BY, return_dtype=pl.String),
        criterion=pl.col("subgroup").replace("", None),
        value="estimate",
        tolerance=pl.lit(limit),
        failed=agreement_finding(limit) == DISAGREES,
        passed=agreement_finding(limit) == AGREES,
        margin=pl.col("low") / limit - 1 if limit else pl.lit(None, pl.Float64),
    )
