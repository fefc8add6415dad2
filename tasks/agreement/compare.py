"""Compare judges with people: all measures, confusion matrices and lists of disagreements."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from pandera.typing.polars import DataFrame

from schemas.calibration import CELL, ConfusionMatrix, Disagreements, HumanAgreement
from schemas.curation import VERDICTS
from schemas.frame import Row
from tasks.agreement.corrected_means import corrected_means
from tasks.agreement.label_kinds import AS_GIVEN, FAIL, HAS, LACKS, PASS, Declared
from tasks.agreement.measures import (
    COEFFICIENTS,
    MOST_GRADES,
    NO_ITEMS,
    PairedLabels,
    compare_with_rest,
    labels_for_agreement,
    labels_for_bias,
    labels_to_decide,
    measure,
    without_interval,
)
from tasks.agreement.paired_labels import Paired, Unusual, pair_labels
from tasks.calibration.label_values import Labelled
from tasks.conclusions.rules import (
    INCONCLUSIVE,
    agreement_finding,
    first_finding,
    half_width,
    is_significant,
    is_within,
    reaches,
)
from tasks.counting.annotations import HUMANS, PERSON
from tasks.inference.intervals import (
    LEVEL,
    proportions,
    ratios,
    table_moments,
)
from tasks.inference.linearised_errors import why_not_enough
from tasks.inference.multiplicity import benjamini_hochberg
from tasks.kit.defaults import calibration_limits
from tasks.pointwise.rated_items import OFF_SCALE, is_on_scale
from tasks.readers.label_table import SLICE

JUDGE = ("judge", "prompt", "wave", "simulated")
ADJUSTMENT = "Benjamini-Hochberg, all tests of this calibration"
MOST_LISTED = 1000
"""Most disagreements listed for each judge and criterion."""
COUNTED = ("missing", "invalid", "unlabelled", "tied")
SCALE_FREE = {"spearman", "kendall"}
"""Measures of grades that are the same on any scale."""
OTHER_SCALE = "whose grade of people is not on the scale of the judge"
NO_SPREAD = "the judge's grades are all equal: no smallest relevant bias, so no finding"
NOTHING = "no item has a valid label of the judge and a combined label of people"


class Options(NamedTuple):
    """How labels are read and compared."""

    declared: Declared = AS_GIVEN
    random_labels: bool = False
    """Whether the labelled items are a random sample of all items."""


LABEL_WORDS = {PASS: HAS, FAIL: LACKS}

UNREADABLE = pl.DataFrame(
    schema={**dict.fromkeys((*CELL[:5], "item", "label"), pl.String), "graded": pl.Boolean}
)


UNREAD_OF_PEOPLE = pl.DataFrame(
    schema=dict.fromkeys(("dataset", "criterion", "item", "label"), pl.String)
)


class ComparisonWithPeople(NamedTuple):
    """Agreement of judges with people."""

    measures: DataFrame[HumanAgreement]
    confusion: DataFrame[ConfusionMatrix]
    disagreements: DataFrame[Disagreements]
    unreadable: pl.DataFrame = UNREADABLE
    """Labels of judges that could not be read, and whether they and people's are numbers; not
    saved."""
    unread: pl.DataFrame = UNREAD_OF_PEOPLE
    """Labels of people that could not be read, or are grades off the scale of the judge; not
    saved."""
    unusual: tuple[Unusual, ...] = ()
    """What a user should check in the labels of each criterion; not saved."""

    @property
    def results(self) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Return the tables that are saved."""
        return self.measures, self.confusion, self.disagreements


def compare(labelled: Sequence[Labelled], options: Options) -> ComparisonWithPeople:
    """Measure how well each judge agrees with people, by criterion and slice.

    Several people are combined: the most frequent verdict or name (items without one are counted
    as tied), or the mean grade. Items without a valid label of the judge are counted, never
    taken as a fail.

    Notes
    -----
    All p-values (bias in each criterion and slice; difference of each slice from the rest) form one
    family, adjusted by Benjamini-Hochberg.
    """
    parts = [
        _compared(each, paired, options)
        for each in labelled
        for paired in pair_labels(each, options.declared)
    ]
    concluded = _concluded([row for part in parts for row in part.measures])
    confusion = [part.confusion for part in parts if part.confusion is not None]
    disagreements = [part.disagreements for part in parts]
    return ComparisonWithPeople(
        concluded,
        ConfusionMatrix.of(pl.concat(confusion)) if confusion else ConfusionMatrix.empty(),
        Disagreements.of(pl.concat(disagreements)) if disagreements else Disagreements.empty(),
        pl.concat([UNREADABLE, *(part.unreadable for part in parts)]),
        pl.concat([UNREAD_OF_PEOPLE, *(part.unread for part in parts)]),
        # The same criterion may be that of several datasets.
        tuple(dict.fromkeys(part.unusual for part in parts)),
    )


class _Part(NamedTuple):
    """One criterion of one dataset."""

    measures: list[Row]
    confusion: pl.DataFrame | None
    """None if there are too many labels for a matrix."""
    disagreements: pl.DataFrame
    unreadable: pl.DataFrame
    unread: pl.DataFrame
    unusual: Unusual


def _compared(labelled: Labelled, paired: Paired, options: Options) -> _Part:
    about = {"dataset": labelled.dataset, "criterion": paired.criterion}
    literals = [pl.lit(value, pl.String).alias(name) for name, value in about.items()]
    rows = paired.rows.with_columns(literals)
    used = _on_one_scale(paired, rows.filter(status="used"))
    if paired.of_label:
        used = used.with_columns(cs.ends_with("_word").replace(LABEL_WORDS))
    return _Part(
        [about | row for row in _measures(paired, options)],
        _confusion(used) if used["human_word"].n_unique() <= MOST_GRADES else None,
        _disagreements(used, grades=paired.kind == "grade"),
        _unreadable(rows, labelled.means, graded=paired.graded),
        paired.unread.select(*literals, "item", "label"),
        paired.unusual,
    )


def _unreadable(rows: pl.DataFrame, means: pl.DataFrame | None, *, graded: bool) -> pl.DataFrame:
    """Return the invalid labels of judges; of a mean of repeats, what it is the mean of."""
    number = pl.col("label").str.strip_chars('"').cast(pl.Float64, strict=False)
    lost = rows.filter(status="invalid").with_columns(
        graded=number.is_not_null() & pl.lit(value=graded)
    )
    if means is not None:
        place = ["judge", "prompt", "item"]
        lost = lost.join(means, on=place, how="left", maintain_order="left").with_columns(
            label=pl.coalesce("held", "label")
        )
    return lost.select(*UNREADABLE.columns)


def _measures(paired: Paired, options: Options) -> Iterator[Row]:
    """Yield the rows of one criterion: every judge and slice, and people with each other."""
    columns = [c for c in paired.rows.columns if c.startswith(SLICE)]
    for _, rows in paired.rows.group_by("name", maintain_order=True):
        judge = {name: rows[name][0] for name in JUDGE} | {"kind": paired.kind}
        yield from (judge | row for row in _cell(paired, rows))
        used = rows.filter(status="used")
        if used.is_empty():
            continue
        same = _on_one_scale(paired, used)
        if paired.kind != "name" and paired.scale is not None and not same.is_empty():
            judged = pl.concat([same, rows.filter(pl.col("status") != "used")])
            corrected = corrected_means(
                judged, paired.kind, paired.scale, random=options.random_labels
            )
            yield from (judge | _counts(rows) | row for row in corrected)
        whole = PairedLabels.of(paired.kind, same)
        for column in columns:
            for value in rows[column].unique().sort():
                part = rows.filter(pl.col(column) == value)
                place = {"slice_column": column.removeprefix(SLICE), "slice": value}
                yield from (judge | place | row for row in _cell(paired, part))
                inside = (same[column] == value).to_numpy()
                if inside.any():
                    yield judge | place | _counts(part) | compare_with_rest(whole, inside)
    yield from _people(paired)


def _cell(paired: Paired, rows: pl.DataFrame) -> Iterator[Row]:
    used, counts = rows.filter(status="used"), _counts(rows)
    if used.is_empty():
        yield counts | without_interval("agreement", None, NO_ITEMS) | {"reason": NOTHING}
        return
    cell = PairedLabels.of(paired.kind, used)
    for row in _measured(paired, used):
        if row["statistic"] == "bias":
            row["least"] = smallest_relevant_bias(cell)
            row["reason"] = row["reason"] or (None if row["least"] else NO_SPREAD)
        yield counts | row
        if row["statistic"] == "agreement" and (needed := labels_for_agreement(row)):
            yield counts | without_interval("labels_for_agreement", needed, row)
        if row["statistic"] == "bias" and (needed := labels_for_bias(row)):
            yield counts | without_interval("labels_for_bias", needed, row)


def _on_one_scale(paired: Paired, used: pl.DataFrame) -> pl.DataFrame:
    """Return the items whose grade of people is on the scale of the judge, if that is known."""
    if paired.kind != "grade" or "lowest" not in used.columns:
        return used
    return used.filter(is_on_scale("human_value").fill_null(value=True))


def _measured(paired: Paired, used: pl.DataFrame) -> Iterator[Row]:
    """Yield all measures; those that depend on the scale of grades, of the items on one scale."""
    found = measure(PairedLabels.of(paired.kind, used))
    same = _on_one_scale(paired, used)
    if same.height == used.height:
        yield from found
        return
    left_out = f"without {used.height - same.height} of {used.height} items, {OTHER_SCALE}"
    inside = (
        {}
        if same.is_empty()
        else {
            row["statistic"]: row | {"reason": row["reason"] or left_out}
            for row in measure(PairedLabels.of(paired.kind, same))
        }
    )
    for row in found:
        name = row["statistic"]
        nothing = without_interval(name, None, NO_ITEMS) | {"reason": OFF_SCALE}
        yield row if name in SCALE_FREE else inside.get(name, nothing)


def smallest_relevant_bias(cell: PairedLabels) -> float:
    """Return the smallest relevant bias: in pass rate, or a multiple of the SD of grades."""
    limits = calibration_limits()
    if cell.kind == "pass_fail":
        return limits.minimum_rate_bias
    if np.ptp(cell.judge_value) == 0:
        return 0.0
    return limits.minimum_grade_bias * float(cell.judge_value.std(ddof=1))


def _counts(rows: pl.DataFrame) -> Row:
    return {name: int((rows["status"] == name).sum()) for name in COUNTED}


def _people(paired: Paired) -> Iterator[Row]:
    """Yield the agreement of each person with the others' combined label: the yardstick."""
    people = paired.people
    if people.is_empty():
        return
    clusters = paired.rows.select("item", "cluster").unique("item")
    rows = people.join(clusters, on="item", how="left")
    value = "error" if paired.kind == "grade" else "agrees"
    sums = (
        rows.group_by("cluster")
        .agg(num=pl.col(value).cast(pl.Float64).sum(), den=pl.len().cast(pl.Float64))
        .sort("cluster")
    )
    table = table_moments(sums["num"].to_numpy()[:, None], sums["den"].to_numpy()[:, None])
    # Grades may differ by more than 1, so the ends of their mean error are not those of a share.
    error = ratios(table, bounded=False) if paired.kind == "grade" else proportions(table)
    found = error.row(0, named=True)
    yield {
        "judge": HUMANS,
        "prompt": PERSON,
        "wave": "",
        "kind": paired.kind,
        "statistic": "people_error" if paired.kind == "grade" else "people_agreement",
        **{name: found[name] for name in ("estimate", "low", "high", "df", "method", "reason")},
        "hits": None if paired.kind == "grade" else int(sums["num"].sum()),
        "n": rows.height,
        "clusters": sums.height,
        **dict.fromkeys(COUNTED, 0),
    }


def _concluded(rows: list[Row]) -> DataFrame[HumanAgreement]:
    """Adjust the p-values of all rows together; conclude on each bias and agreement."""
    if not rows:
        return HumanAgreement.empty()
    schema = {name: kind for name, kind in HumanAgreement.dtypes().items() if name != "p_adjusted"}
    schema |= dict.fromkeys(("least", "standard_error"), pl.Float64)
    frame = pl.DataFrame(
        [{name: _known(row.get(name)) for name in schema} for row in rows], schema=schema
    )
    adjusted = benjamini_hochberg(frame["p_value"]).alias("p_adjusted")
    tested = frame.with_columns(
        adjusted,
        adjustment=pl.when(pl.col("p_value").is_not_null()).then(pl.lit(ADJUSTMENT)),
        level=pl.when(pl.col("low").is_not_null()).then(LEVEL),
    )
    least, few = pl.col("least"), why_not_enough()
    word = first_finding(
        is_significant("p_adjusted") & reaches("estimate", least),
        is_within("estimate", "half", least),
    )
    bias = (pl.col("statistic") == "bias") & pl.all_horizontal(
        pl.col("estimate", "low").is_not_null(), least > 0
    ).fill_null(value=False)
    coefficient = pl.col("kind").replace_strict(COEFFICIENTS, return_dtype=pl.String)
    agreed = (pl.col("statistic") == coefficient) & pl.all_horizontal(
        pl.col("slice_column").is_null(), pl.col("low").is_not_null()
    )
    word = (
        pl.when(bias).then(word).otherwise(agreement_finding(calibration_limits().least_agreement))
    )
    concluded = bias | agreed
    found = tested.with_columns(half_width(tested)).with_columns(
        finding=pl.when(concluded & few.is_null())
        .then(word)
        .when(concluded)
        .then(pl.lit(INCONCLUSIVE)),
        reason=pl.coalesce(pl.when(concluded).then(few), pl.col("reason").replace("", None)),
    )
    undecided = found.filter(agreed, finding=INCONCLUSIVE)
    return HumanAgreement.of(
        pl.concat([found, labels_to_decide(undecided)], how="diagonal_relaxed")
    )


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _confusion(used: pl.DataFrame) -> pl.DataFrame:
    given = ["dataset", *JUDGE, "criterion", "human_label"]
    words = used.rename({"human_word": "human_label", "judge_word": "judge_label"})
    share = pl.col("items") / pl.col("items").sum().over(given)
    return (
        words.group_by(*given, "judge_label")
        .agg(items=pl.len())
        .with_columns(share_of_human_label=share)
    )


def _gap(used: pl.DataFrame) -> pl.Expr:
    """Return how far labels that are no grades differ: by 1, a tie of a pair by a half."""
    words = ("judge_word", "human_word")
    if not {word for name in words for word in used[name]} <= {*VERDICTS}:
        return pl.lit(1.0)
    return pl.when(pl.any_horizontal(pl.col(words) == "tie")).then(0.5).otherwise(1.0)


def _disagreements(used: pl.DataFrame, *, grades: bool) -> pl.DataFrame:
    """Return items on which the labels differ: the largest gap first, then the most unanimous."""
    distance = (pl.col("judge_value") - pl.col("human_value")).abs() if grades else _gap(used)
    people, judge = (
        pl.col(value).round(2).cast(pl.String).str.strip_suffix(".0")
        for value in ("human_value", "judge_value")
    )
    # As in agreement, a mean grade counts as the grade nearest to it.
    rows = used.filter(pl.col("judge_word") != pl.col("human_word"))
    cell = list(CELL[:5])
    return (
        rows.select(
            *cell,
            "simulated",
            "item",
            "people",
            "human_share",
            "texts",
            human_label=people if grades else pl.col("human_word"),
            judge_label=judge if grades else pl.col("judge_word"),
            gap=distance,
        )
        .sort("gap", "human_share", "people", "item", descending=[True, True, True, False])
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over(cell))
        .filter(pl.col("rank") <= MOST_LISTED)
    )
