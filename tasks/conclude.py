"""Conclude: estimates to findings about each cell's primary endpoint."""

from collections.abc import Sequence

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import CategoryShifts
from schemas.keys import CELL, PANEL
from schemas.results import Estimates, Exclusions, Findings, KeptFindings
from tasks.conclusions.cautions import LOST_RULES, mixed_rules, with_lost, with_spread
from tasks.conclusions.exclusions import kept
from tasks.conclusions.position_bias import STATISTICS, position_findings
from tasks.conclusions.rules import (
    BIASED,
    BY_EFFECT,
    BY_LOGITS,
    CLEAR,
    INCONCLUSIVE,
    NUMBERS,
    ONLY_ALONE,
    SUPPORTING,
    WORST,
    Rule,
    detects_at_of,
    excludes_zero,
    first_finding,
    half_width,
    is_significant,
    is_within,
    reaches,
    refusal_reason,
    ruled,
    sham_moves,
    shown,
    written,
    written_p,
)
from tasks.counting.primary_endpoint import primary
from tasks.inference.linearised_errors import is_enough, why_not_enough
from tasks.inference.multiplicity import (
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
    rejected_by_e_values,
    shrunk,
)
from tasks.kit.defaults import ALPHA, DEFAULTS, DETECTS_AT, Thresholds, limited_by, limits
from tasks.pointwise.endpoints import NAMES as POINTWISE
from tasks.pointwise.endpoints import (
    minimum_shift,
    own_detection,
    own_names,
    shift_name,
    under_pairwise_names,
    unit,
)

ASIDE = (
    "shift_spread",
    "mean_square_shift",
    "category_spread",
    "lost_over_sham",
    "lost_over_control",
)
BY_PART = ("category_shift", "lost_rate")
"""Further statistics by category, and by arm."""

ADJUSTMENT = "Benjamini-Hochberg, all cells (F1)"
CATEGORIES_ADJUSTMENT = "Benjamini-Hochberg, all categories of all cells (F5)"
DETECTS, DETECTS_SOME, OVERLOOKS, REWARDS = "detects", "detects some", "overlooks", "rewards"
Cells = pl.DataFrame


def endpoints(estimates: DataFrame[Estimates]) -> DataFrame[Estimates]:
    """Keep the estimates that findings are based on."""
    statistic, part = pl.col("statistic"), pl.col("subgroup")
    whole = statistic.is_in(["mps_sham", *SUPPORTING]) & part.is_in(["", *WORST.values()])
    aside = statistic.is_in([*ASIDE, *STATISTICS]) & (part == "")
    rated = statistic.is_in([*POINTWISE])
    return Estimates.of(estimates.filter(whole | aside | statistic.is_in(BY_PART) | rated))


def conclude(
    estimates: DataFrame[Estimates],
    detects_at: float = DETECTS_AT,
    thresholds: Thresholds = DEFAULTS,
) -> DataFrame[Findings]:
    """Turn each cell's primary endpoint into a finding (methods, sections 3 and 16).

    The endpoint is the shift over the sham, or over the control if there is no sham or if only the
    control has enough questions (:mod:`tasks.inference.linearised_errors`).

    Promote kinds. *biased*: the adjusted p-value is below .05 and either the shift reaches the
    minimum or the log-odds reach theirs in the same direction. *no relevant bias*: the 90 %
    interval lies inside the minimum. Else *inconclusive*. If more than .80 of the control pairs are
    unanimous, mean scores can hardly move, so log-odds replace the shift in all of this. Then the
    ``RULES`` apply in order; each may change the finding and adds its note to the ``reason``.

    Detract kinds use the share of flaws detected, DP (``detection_power``). *rewards*: biased
    toward the target; *detects*: the lower end of the 95 % interval is at least ``detects_at``;
    *overlooks*: its upper end is below .2; *detects some*: its lower end is above 0. If the floor
    is below .1, or DP has too few questions or no interval, the share in mean scores
    (``detection_share``) replaces it. DP counts verdicts that the flaw lost, and none that it won:
    where mean scores move to the flaw, nothing is detected, and the cell is *inconclusive*.

    The family (F1) is all cells with enough questions. Benjamini-Hochberg decides; Holm,
    Benjamini-Yekutieli and e-BH (of e-values) are reported too. Without an estimate, or with too
    few questions, nothing is concluded, and the ``reason`` says why. Estimates are also shrunk
    toward the mean of all judges under the same perturbation.

    Cells of ratings follow the same rules in the same family, with the shift of the rating in
    standard deviations of the judge's control ratings, or the shift of the pass rate, in place of
    the mean preference shift, and minima of their own (:mod:`tasks.pointwise.endpoints`). A flaw
    should cost a rating, so detract kinds have the same words as above; a rating that falls tells
    of detecting, and its share of flaws is ``flaws_detected``.

    Position bias is a finding about each judge, in a separate family (``position_bias.py``).
    """
    rows = endpoints(estimates)
    with limited_by(thresholds):
        found = [
            _of_perturbations(under_pairwise_names(rows), detects_at),
            Findings.draft(position_findings(rows)),
        ]
    return Findings.of(pl.concat(found))


def kept_findings(
    estimates: DataFrame[Estimates],
    findings: DataFrame[Findings],
    exclusions: DataFrame[Exclusions],
    thresholds: Thresholds = DEFAULTS,
) -> DataFrame[KeptFindings]:
    """Conclude again without the excluded judges, with the same limits as ``findings``."""
    if not exclusions["excluded"].any():
        return KeptFindings.empty()
    rest = endpoints(Estimates.of(kept(estimates, exclusions)))
    return KeptFindings.of(conclude(rest, detects_at_of(findings), thresholds))


def category_shifts(estimates: DataFrame[Estimates]) -> DataFrame[CategoryShifts]:
    """Return the shift in each category of questions, with its p-value adjusted (family F5).

    The family is every category of every cell of the study that has enough questions
    (:mod:`tasks.inference.linearised_errors`). Each test asks whether the shift in one category
    differs from 0. Whether the categories of a cell differ from one another is tested by
    ``category_spread``, whose adjusted p-value is a part of the finding (``category_p``).
    """
    by_category = pl.col("statistic").is_in(["category_shift", "rating_category_shift"])
    rows = estimates.filter(by_category)
    adjusted = benjamini_hochberg(rows.select(p=pl.when(is_enough()).then("p_value"))["p"])
    return CategoryShifts.of(
        rows.with_columns(
            category="subgroup",
            p_adjusted=adjusted,
            adjustment=pl.when(adjusted.is_not_null()).then(pl.lit(CATEGORIES_ADJUSTMENT)),
            reason=pl.coalesce("reason", why_not_enough()),
        )
    )


def _of_perturbations(rows: pl.DataFrame, detects_at: float) -> DataFrame[Findings]:
    whole = rows.filter(subgroup="")
    cells = cells_with_findings(whole, detects_at)
    if cells.is_empty():
        return Findings.empty()
    cells = _beside(cells, whole, ASIDE)
    for side, name in WORST.items():
        worst = rows.filter(subgroup=name).with_columns(subgroup=pl.lit(""))
        words = _words_of(worst, whole, side, detects_at)
        cells = cells.join(words, on=CELL, how="left")
    by_part = rows.filter(pl.col("statistic").is_in(BY_PART))
    cells = ruled(with_lost(cells, by_part), LOST_RULES)
    cells = ruled(with_spread(cells, by_part), mixed_rules())
    accepted = pl.col("refused").is_null()
    return Findings.draft(
        cells.with_columns(
            reason=pl.coalesce("refused", "note"),
            statistic=own_names(),
            unit=unit(),
            **{
                name + end: f"{statistic}_{number}"
                for name, statistic in (
                    ("control", "mps"),
                    ("sham_shift", "sham_shift"),
                    ("effect_logits", "odds"),
                    ("shift_spread", "shift_spread"),
                )
                for end, number in (("", "estimate"), ("_low", "low"), ("_high", "high"))
            },
            control_p="mps_p_value",
            by_logits="by_odds",
            spread_p="mean_square_shift_p_value",
            adjustment=pl.when(pl.col("p_adjusted").is_not_null()).then(pl.lit(ADJUSTMENT)),
            detects_at=pl.when(pl.col("kind") == "detract").then(detects_at),
            finding=pl.when(accepted).then("word"),
            detected="detected_estimate",
            detected_by=own_detection(),
            e_rejected=pl.when(accepted).then("e_rejected"),
        )
    )


def cells_with_findings(rows: pl.DataFrame, detects_at: float) -> Cells:
    """Return the cells with their finding by ``RULES`` (``word``) and its ``note``.

    ``refused`` says why nothing is concluded.
    """
    cells = primary(rows, CELL)
    if cells.is_empty():
        return cells
    cells = _beside(cells, rows, SUPPORTING)
    cells = _with_tested(_with_detected(cells))
    cells = _adjusted(cells).with_columns(refused=refusal_reason("half"))
    return ruled(cells.with_columns(word=_first_word(detects_at)), RULES)


def _words_of(worst: pl.DataFrame, whole: pl.DataFrame, side: str, detects_at: float) -> Cells:
    """Return a worst case's finding and shift; the family keeps the other cells as observed."""
    names = {"word": f"word_{side}", "estimate": f"at_{side}"}
    if worst.is_empty():
        empty = worst.select(*CELL, "estimate", word=pl.lit(None, pl.String))
        return empty.rename(names)
    others = whole.join(worst, on=CELL, how="anti")
    words = cells_with_findings(pl.concat([others, worst]), detects_at)
    return words.join(worst, on=CELL, how="semi").select(*CELL, *names).rename(names)


def _beside(cells: Cells, rows: pl.DataFrame, statistics: Sequence[str]) -> Cells:
    """Add the numbers of statistics by cell; numbers of mode *any* count for each mode."""
    some = rows.filter(pl.col("statistic").is_in(statistics))
    shared = {*some["statistic"]} - {*some.filter(pl.col("mode") != "any")["statistic"]}
    for key in (CELL, [name for name in CELL if name != "mode"]):
        own = [name for name in statistics if (name in shared) == ("mode" not in key)]
        numbers = {
            "e_value" if name == "e_value" else f"{name}_{number}": pl.col(number)
            .filter(pl.col("statistic") == name)
            .first()
            for name in own
            for number in (NUMBERS[:1] if name == "e_value" else NUMBERS)
        }
        found = some.filter(pl.col("statistic").is_in(own)).group_by(key).agg(**numbers)
        cells = cells.join(found, on=list(key), how="left")
    return cells


def _with_detected(cells: Cells) -> Cells:
    """Add the share of flaws detected, from verdicts or, where that is unstable, from scores."""
    stable = (
        (pl.col("sham_floor_estimate") >= limits().least_floor)
        & is_enough("detection_power_clusters", "detection_power_df")
        & pl.col("detection_power_low").is_not_null()
    ).fill_null(value=False)
    detract = pl.col("kind") == "detract"
    by = pl.when(stable).then(pl.lit("detection_power")).otherwise(pl.lit("detection_share"))
    return cells.with_columns(
        *(
            pl.when(stable)
            .then(f"detection_power_{end}")
            .otherwise(f"detection_share_{end}")
            .alias(f"detected_{end}")
            for end in ("estimate", "low", "high")
        ),
        detected_by=pl.when(detract).then(by),
    )


def _with_tested(cells: Cells) -> Cells:
    """Add the effect that is tested: the shift or, if pairs are too easy, the log-odds.

    ``tested_...`` are its numbers, with ``tested_minimum``; ``beside_...`` the same effect over the
    control; ``odds_...`` the log-odds over the same base as the shift.
    """
    over_sham = pl.col("statistic") == "mps_sham"
    odds = {
        name: pl.when(over_sham & pl.col("los_sham_clusters").is_not_null())
        .then(f"los_sham_{name}")
        .otherwise(f"los_{name}")
        for name in NUMBERS
    }
    cells = cells.with_columns(value.alias(f"odds_{name}") for name, value in odds.items())
    too_easy = (
        (pl.col("unanimous_rate_estimate") > limits().most_unanimous)
        & (pl.col("kind") == "promote")
    ).fill_null(value=False)
    easy = too_easy & pl.col("odds_low").is_not_null()
    return cells.with_columns(
        *(
            pl.when(easy).then(f"odds_{name}").otherwise(name).alias(f"tested_{name}")
            for name in NUMBERS
        ),
        *(
            pl.when(easy).then(f"los_{name}").otherwise(f"mps_{name}").alias(f"beside_{name}")
            for name in ("estimate", "p_value")
        ),
        too_easy=too_easy,
        by_odds=easy,
        tested_minimum=pl.when(easy).then(limits().minimum_log_odds).otherwise(minimum_shift()),
        minimum=minimum_shift(),
        odds_minimum=pl.lit(limits().minimum_log_odds),
    )


def _adjusted(cells: Cells) -> Cells:
    # Cells with too few questions do not count in the family.
    enough = pl.when(is_enough())
    raw, evidence = cells.select(enough.then(name) for name in ("tested_p_value", "e_value"))
    return shrunk(cells, [*PANEL, "statistic"]).with_columns(
        benjamini_hochberg(raw).alias("p_adjusted"),
        holm(raw).alias("p_holm"),
        benjamini_yekutieli(raw).alias("p_by"),
        rejected_by_e_values(evidence, ALPHA).alias("e_rejected"),
        half_width(cells, "tested_").alias("half"),
        p_value="tested_p_value",
    )


def _moved() -> pl.Expr:
    """Tell whether a shift is significant, and large enough in score or in log-odds."""
    shift, odds = pl.col("tested_estimate"), pl.col("odds_estimate")
    same = (odds.sign() == shift.sign()).fill_null(value=False)
    by_odds = reaches("odds_estimate", pl.col("odds_minimum")) & same
    large = reaches("tested_estimate", pl.col("tested_minimum")) | by_odds
    return is_significant("p_adjusted") & large


def _first_word(detects_at: float) -> pl.Expr:
    low, high = pl.col("detected_low"), pl.col("detected_high")
    # The 90 % interval lies inside the minimum.
    still = is_within("tested_estimate", "half", pl.col("tested_minimum"))
    promote = first_finding(_moved(), still)
    detract = (
        pl.when(_moved() & (pl.col("estimate") > 0))
        .then(pl.lit(REWARDS))
        .when(low >= detects_at)
        .then(pl.lit(DETECTS))
        .when(high < limits().overlooks_below)
        .then(pl.lit(OVERLOOKS))
        .when(low > 0)
        .then(pl.lit(DETECTS_SOME))
    )
    kind = pl.when(pl.col("kind") == "promote").then(promote).otherwise(detract)
    return pl.coalesce(kind, pl.lit(INCONCLUSIVE))


OVER_SHAM = pl.col("statistic") == "mps_sham"
AGREES = (
    (pl.col("beside_estimate").sign() == pl.col("tested_estimate").sign())
    & (pl.col("beside_p_value") < ALPHA)
).fill_null(value=False)
"""Whether the shift over the control agrees (methods, section 16: sham neutrality)."""

ODDS_MOVE = (
    (pl.col("odds_estimate").abs() >= pl.col("odds_minimum")) & excludes_zero("odds")
).fill_null(value=False)

TOO_EASY = "pairs too easy: MPS cannot move much"

RULES = (
    Rule(pl.col("instead").is_not_null(), pl.col("instead")),
    Rule(
        (pl.col("kind") == "detract") & pl.col("detected_low").is_null(),
        pl.format("the flaws detected: {}", "detection_share_reason"),
    ),
    Rule(
        pl.col("word").is_in([BIASED, REWARDS]) & OVER_SHAM & ~AGREES,
        pl.coalesce(
            pl.when(excludes_zero("sham_shift")).then(
                pl.format("the sham itself moves this judge by {}", shown("sham_shift"))
            ),
            pl.format("not confirmed over the control: {} {}", shift_name(), shown("mps")),
            pl.lit("not confirmed over the control: it has no shift"),
        ),
        INCONCLUSIVE,
    ),
    Rule(
        pl.col("word").is_in([DETECTS, DETECTS_SOME])
        & (pl.col("detected_by") == "detection_power")
        & (pl.col("detection_share_estimate") < 0),
        pl.format("the mean preference moves to the flaw: D {}", shown("detection_share")),
        INCONCLUSIVE,
    ),
    Rule(
        pl.col("word").is_in([BIASED, REWARDS])
        & ~reaches("tested_estimate", pl.col("tested_minimum")),
        pl.format(BY_EFFECT, pl.format("LOS {}", shown("odds")), written("odds_minimum")),
    ),
    Rule(
        (pl.col("word") == CLEAR) & ODDS_MOVE,
        pl.format("the log-odds say otherwise: LOS {}", shown("odds")),
        INCONCLUSIVE,
    ),
    Rule(
        pl.col("too_easy"),
        pl.when("by_odds")
        .then(
            pl.format(
                f"{TOO_EASY}, {BY_LOGITS}: {{}}, limit {{}}",
                shown("odds"),
                written("odds_minimum"),
            )
        )
        .otherwise(pl.lit(TOO_EASY)),
    ),
    Rule(
        (pl.col("word") == CLEAR) & OVER_SHAM & sham_moves("sham_shift_estimate"),
        pl.format("beyond what any such edit does: the sham shifts by {}", shown("sham_shift")),
    ),
    Rule(
        (pl.col("word") == INCONCLUSIVE)
        & (pl.col("kind") == "promote")
        & reaches("tested_estimate", pl.col("tested_minimum"))
        & is_significant("p_value")
        & ~is_significant("p_adjusted"),
        pl.format(
            f"{ONLY_ALONE} (p {{}}), not among all tests of the study (adjusted p {{}})",
            written_p("p_value"),
            written_p("p_adjusted"),
        ),
    ),
)
"""Rules that follow the first finding, in order; each sees the finding that earlier ones left."""
