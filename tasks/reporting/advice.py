"""Whether to use each judge, in words: as terminal, report, artifact and gate say it."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any, NamedTuple

import polars as pl

from schemas.conclusions import RECOMMENDATIONS
from schemas.keys import JUDGE
from schemas.results import DETECTED, GATES
from tasks.gates.consequences import CARE, STATED
from tasks.gates.explanations import ABSENT, after_change
from tasks.gates.more_questions import MOST_TIMES
from tasks.gates.recommendations import of_wave
from tasks.gates.summaries import REASONS_SHOWN, SEPARATOR, list_order, why
from tasks.kit.defaults import DETECTS_AT, TARGET_HALF_WIDTH, Thresholds
from tasks.reporting.summary import is_person
from tasks.reporting.wording import (
    GROUPS,
    clean,
    clip,
    count,
    interval,
    listing,
    marked,
    number,
    with_minus_signs,
    with_who,
)

FIRST = "nothing to compare, as these are the results of the first"
BASELINE = "the baseline (the first wave, or that of the last alert)"
WIDE = "intervals reach beyond the limits"


class Advice(NamedTuple):
    """Whether to use a judge, as terminal, report and artifact say it."""

    mark: str
    recommendation: str
    judge: str
    simulated: bool
    why: str

    @property
    def level(self) -> str:
        """Recommendation of an audit that has the same mark."""
        return next(each for each, mark in MARKS.items() if mark == self.mark)

    def text(self) -> str:
        """Write it as a line."""
        judge = marked(self.judge, simulated=self.simulated)
        return f"{self.mark} {judge}: {self.recommendation}. {self.why}."

    def typeset(self) -> "Advice":
        """Return it with the minus signs of tables."""
        return self._replace(why=with_minus_signs(self.why))

    def markdown(self) -> str:
        """Write it as an item of a list in Markdown."""
        judge = marked(literal(self.judge), simulated=self.simulated)
        return f"- {self.mark} {judge}: **{self.recommendation}**. {literal(self.why)}."


MARKS = dict(zip(RECOMMENDATIONS, "\N{CHECK MARK}!\N{BALLOT X}?", strict=True))
ORDER = ("use", "use with care", "not enough data", "do not use")
"""Order in which recommendations are listed: usable judges first."""
SHAM_MOVES = "the sham itself moves this judge"
"""Begins the reason that another sham may remove."""

LABELS = (
    "Agreement needs labels of people beside valid replies: the column human_label or human_grade "
    "for single answers; for pairs, the column label or labels of two people or more{booth}"
)
WAYS = {
    ABSENT["discernment"]: (
        "Discernment needs answers with flaws: add `--perturbation factual_error` or "
        "`gender_bias` (the bundled questions have such answers, data of your own need a column "
        "of this name)"
    ),
    ABSENT["agreement"]: LABELS,
    ABSENT["drift"]: "Drift needs two audits, both with `--wave LABEL`",
}
"""What a judge may not be measured on -> how to measure it."""

IN_A_FILE = {
    ABSENT["discernment"]: (
        "Discernment needs votes on answers with flaws: rows of the kind `detract`, such as of the "
        "perturbation `factual_error`"
    ),
    ABSENT["agreement"]: (
        "Agreement as a gate needs labels of people; for pairs, the column label or two people's"
    ),
    ABSENT["drift"]: "Drift needs votes of two waves, told apart by the column `wave`",
}
"""The same about a file of votes or ratings."""
ONE_PERSON = "; agreement with the one person of this file is shown separately"
"""What is added about agreement if the file has one person."""
BOOTH = " (`voirdire booth {0}`). Then `voirdire calibrate {0}` compares judges with them"


def advice(
    recommendations: pl.DataFrame, wave: str = "", most: int | None = REASONS_SHOWN
) -> list[Advice]:
    """Return a line per judge for the wave ``wave``, or for the last one without results of it.

    Usable judges come first, those not to be used last; between them, the fewer gates are open the
    earlier. Each line has at most ``most`` reasons; null: all.
    """
    if recommendations.is_empty():
        return []
    shown = of_wave(recommendations, wave)
    # Results of an earlier version have no order.
    listed = pl.coalesce("list_order", list_order())
    rows = with_who(shown).sort(listed, "failed", "inconclusive", "who")
    said_once = bool(not_measured(shown))
    return [
        Advice(
            MARKS[row["recommendation"]],
            row["recommendation"],
            clip(clean(row["who"]), 60),
            row["simulated"],
            _why(row, most, said_once=said_once),
        )
        for row in rows.to_dicts()
    ]


def _why(row: Mapping[str, Any], most: int | None, *, said_once: bool) -> str:
    """Say why a judge is recommended or not, and what was not measured, unless that is of all."""
    lacking = row["not_measured"] and not said_once
    last = f"Gates not measured: {row['not_measured']}" if lacking else ""
    return clean(". ".join(filter(None, (why(row, most), last))))


def by_recommendation(advised: Sequence[Advice]) -> str:
    """Say in a line which judges to use."""
    groups: dict[str, list[str]] = {}
    for one in sorted(advised, key=lambda one: ORDER.index(one.level)):
        groups.setdefault(one.recommendation, []).append(marked(one.judge, simulated=one.simulated))
    said = "; ".join(f"{each}: {listing(names)}" for each, names in groups.items())
    return f"{said[:1].upper()}{said[1:]}." if said else "No judge has a recommendation."


ONLY_PEOPLE = (
    "only people voted in this study, and gates and recommendations are for judges. Audit a judge "
    "on the same data (`voirdire audit --dataset FILE --judge JUDGE`), or measure a file that also "
    "has votes of judges (`voirdire measure FILE`)."
)
"""Why a study has no recommendation, and what to do."""


def without_judges(judges: Iterable[str], persons: Collection[str]) -> str:
    """Say that no judge can be recommended if only people voted; empty if a judge did."""
    known = {*judges} - {*GROUPS}
    only = bool(known) and all(is_person(judge, persons) for judge in known)
    return f"No judge is recommended: {ONLY_PEOPLE}" if only else ""


def not_measured(recommendations: pl.DataFrame, study: str = "", people: int | None = None) -> str:
    """Say what was not measured for any judge; empty if that differs between judges.

    With the name of the study it gives the commands that collect and compare people's labels.
    ``people`` is the number of people in a file of votes or ratings, which has no study.
    """
    absent = _not_measured(recommendations)
    if not absent:
        return ""
    booth = BOOTH.format(study) if study else ""
    known = WAYS if people is None else IN_A_FILE
    if people == 1:
        known = known | {ABSENT["agreement"]: known[ABSENT["agreement"]] + ONE_PERSON}
    ways = [way.format(booth=booth) for what, way in known.items() if what in absent]
    return f"Gates not measured: {', '.join(absent)}." + "".join(f" {way}." for way in ways)


def _not_measured(recommendations: pl.DataFrame) -> list[str]:
    """Return what was not measured for any judge, if it is the same for all."""
    texts = recommendations["not_measured"].unique()
    return str(texts[0]).split(", ") if len(texts) == 1 and texts[0] else []


def open_notes(gates: pl.DataFrame, study: str, fewest: int, unanswered: int = 0) -> Iterator[str]:
    """Explain what the lines of ``open_questions`` about these gates show, and nothing else.

    ``fewest`` is how many questions a gate needs; ``unanswered`` the number of ballots of the study
    that have no reply yet.
    """
    open_ = gates.filter(_is_open()).with_columns(pl.col("words").fill_null(""))
    numbered = open_.filter(pl.col("more_questions").is_not_null())
    few = open_["too_few"].any()
    others = open_.filter(
        pl.col("more_questions").is_null(),
        ~pl.col("too_few").fill_null(value=False),
        ~pl.col("words").str.contains(SHAM_MOVES, literal=True),
    )
    near = others["words"].str.contains(", limit", literal=True)
    if few:
        yield (
            f"Where a judge has too few questions, further ones decide: it needs at least {fewest} "
            "independent questions with a verdict."
        )
    if unanswered:
        verb = "has" if unanswered == 1 else "have"
        yield (
            f"{count(unanswered, 'ballot')} of this study {verb} no reply yet: `voirdire audit "
            f"{quote(study)}` asks for {'it' if unanswered == 1 else 'them'}."
        )
    notes = []
    if near.any():
        notes.append(
            "Where an interval and its limit stand instead of a number, the true value may lie so "
            f"near the limit that it takes more than {MOST_TIMES} times the questions asked."
        )
    if not near.all():
        other = "another reason" if few else "a reason"
        notes.append(f"Where {other} stands instead of a number, more questions do not remove it.")
    if numbered.height:
        drift = (numbered["gate"] == "drift").any()
        base = " (for drift: how many more than the baseline has)" if drift else ""
        notes.append(
            f"`mart.scorecard` has these numbers{base}. More questions decide on which side of its "
            "limit an estimate lies; the tables below say which shift a new study of this design "
            "detects."
        )
    if notes:
        yield " ".join(notes)
    labelled = "agreement" in gates["gate"]
    compare = f"`voirdire calibrate {quote(study)}` says how many"
    width = f"±{number(TARGET_HALF_WIDTH)}"
    yield (
        f"{compare} more labels would decide the agreement with people, also beyond {MOST_TIMES} "
        f"times as many, and how many would estimate it to about {width}."
        if labelled
        else f"Once there are labels of people, {compare} would estimate the agreement with them "
        f"to about {width}."
    )


def _is_open() -> pl.Expr:
    """Tell whether more questions might decide a gate."""
    # A bias that is mixed is found, and so is that some flaws are detected.
    found = (pl.col("finding") != "inconclusive").fill_null(value=False)
    lacks = pl.col("more_questions").is_not_null()
    return (pl.col("verdict") == "inconclusive") & (~found | lacks)


def open_questions(gates: pl.DataFrame) -> list[str]:
    """Return a line per judge: each gate that is inconclusive, with the questions that it lacks.

    All gates belong to one wave. What makes the data insufficient comes first.
    """
    consequence = pl.col("consequence")
    inconclusive, open_ = pl.col("verdict") == "inconclusive", _is_open()
    rows = with_who(gates).sort(
        "who", consequence == CARE, consequence == STATED, "margin", "perturbation", nulls_last=True
    )
    words = pl.col("words")
    lines = rows.group_by("who", maintain_order=True).agg(
        said=words.filter(open_).drop_nulls().str.join(SEPARATOR),
        known=words.filter(inconclusive & ~open_).drop_nulls().str.join(SEPARATOR),
    )
    none = "no gate that more questions would decide"
    settled = (
        pl.when(pl.col("known") == "")
        .then(pl.lit("every gate that was measured is decided"))
        .otherwise(pl.format("{} ({})", pl.lit(none), "known"))
    )
    also = pl.format("{}; more questions leave open: {}", "said", "known")
    undecided = pl.when(pl.col("known") == "").then("said").otherwise(also)
    text = pl.when(pl.col("said") == "").then(settled).otherwise(undecided)
    return [clean(f"- {who}: {each}") for who, each in lines.select("who", text).iter_rows()]


def policy(
    thresholds: Thresholds,
    recommendations: pl.DataFrame,
    detects_at: float = DETECTS_AT,
    *,
    gates: pl.DataFrame | None = None,
) -> str:
    """State the rule for recommending judges, and its limits (methods, section 17).

    ``gates`` is the scorecard of a file, which may hold pairs without any perturbed one.
    """
    compared = recommendations["mode"] != "any"
    if gates is not None:
        placed = gates.filter(gate="position").select(*JUDGE, placed=pl.lit(value=True)).unique()
        joined = recommendations.join(placed, on=JUDGE, how="left", maintain_order="left")
        compared |= joined["placed"].fill_null(value=False)
    limits = _limits(thresholds, _not_measured(recommendations), detects_at, compared)
    return (
        f"Policy (`disqualifying` of the study). {rule(thresholds, compared=bool(compared.any()))} "
        f"Limits (`thresholds`): {', '.join(limits)}."
    )


def rule(thresholds: Thresholds, *, compared: bool = True) -> str:
    """Say when a judge is not recommended, and when with care (methods, section 17).

    Judges of single answers alone, which have ``compared`` nothing, have no position.
    """
    forbidding = thresholds.disqualifying
    every = set(forbidding) == set(GATES)
    named = "any gate" if every else f"the gate {listing(forbidding, 'or')}"
    forbids = f"Do not use: {named} fails. " if forbidding else ""
    other = "" if every else "fails or "
    return (
        f"{forbids}Not enough data: {'position or ' if compared else ''}validity is inconclusive, "
        "or none of bias, discernment and agreement has an interval. Use with care: any other "
        f"gate {other}is inconclusive (except drift), or the judge's verdicts hardly repeat."
    )


def _limits(
    thresholds: Thresholds, absent: Collection[str], detects_at: float, compared: pl.Series
) -> Iterator[str]:
    """Name the limits of the gates that were measured of any judge, which ``compared`` pairs."""
    if compared.any():
        yield f"shift and position {number(thresholds.minimum_shift)}"
    if not compared.all():
        yield f"shift of grades {number(thresholds.minimum_rating_shift)} standard deviations"
        yield f"shift of a pass rate {number(thresholds.minimum_pass_rate_shift)}"
    yield f"invalid replies {number(thresholds.most_invalid)}"
    if ABSENT["discernment"] not in absent:
        yield f"{DETECTED} {number(thresholds.overlooks_below)} and {number(detects_at)}"
    if ABSENT["agreement"] not in absent:
        yield f"agreement lost {number(thresholds.most_agreement_lost)}"
        yield f"agreement beyond chance {number(thresholds.least_agreement)}"
    if ABSENT["drift"] not in absent:
        yield f"drift of the shift {number(thresholds.minimum_shift_drift)}"
        if compared.any():
            yield f"of the ASR above its floor {number(thresholds.minimum_dasr_drift)}"
            yield f"of the position gap {number(thresholds.minimum_position_drift)}"
            yield f"of right verdicts {number(thresholds.minimum_agreement_drift)}"


def literal(text: str) -> str:
    """Keep a text from being read as Markdown or HTML: a provider's error may be in it."""
    return re.sub(r"([\\`*_\[\]<>#!&|~])", r"\\\1", text)


def did_change(drifts: pl.DataFrame, gates: pl.DataFrame) -> str:
    """Name the waves that were compared, and say whether a judge changed."""
    found = gates.filter(pl.col("gate") == "drift")
    last = drifts.join(found, on=["dataset", "judge", "prompt", "wave"], how="semi")
    pairs = last.select("base", "wave").unique().rows()
    since = (
        f"from wave {pairs[0][0]} to wave {pairs[0][1]}" if len(pairs) == 1 else f"since {BASELINE}"
    )
    if found.is_empty():
        return f"Did a judge change {since}? Unknown: {FIRST}."
    verdicts = set(found["verdict"])
    suspected = "Perhaps" if last.filter(state="suspect").height else "Not shown"
    decided = "No" if verdicts == {"pass"} else suspected
    answer = "Yes" if "fail" in verdicts else decided
    return f"Did a judge change {since}? {answer}: {_drift_words(gates)}."


def _drift_words(gates: pl.DataFrame) -> str:
    """Say which judges fail the gate drift, leave it open, or pass it, in this order, and why.

    Of those that leave it open, the ones with a suspicion, or another reason, are first.
    """
    order = pl.col("verdict").replace_strict({"fail": 0, "inconclusive": 1, "pass": 2})
    # The change that the baseline follows is said already.
    said = after_change().fill_null("")
    why = pl.col("reason").str.strip_prefix(said).str.strip_prefix("; ").replace("", None)
    rows = with_who(gates.filter(pl.col("gate") == "drift")).with_columns(why=why)
    rows = rows.sort(order, pl.col("why", "earlier_change").is_null(), "who")
    numbers = [
        None if low is None else f"{number(value)} {interval(low, high)}"
        for value, low, high in rows.select("value", "low", "high").rows()
    ]
    change = pl.Series(numbers, dtype=pl.String)
    what = pl.concat_str("changed", change, separator=": ", ignore_nulls=True)
    after = pl.format(" after {}", "earlier_change").fill_null("")
    follows = pl.col("earlier_change").is_not_null()
    again = pl.when(follows).then(pl.lit(" again")).otherwise(pl.lit(""))
    text = (
        pl.when(pl.col("verdict") == "fail")
        .then(pl.format("{} changed{} ({}){}", pl.lit("{}"), again, what, after))
        .when(pl.col("verdict") == "pass")
        .then(pl.format("no relevant change of {}{}", pl.lit("{}"), after))
        .when(pl.col("why").is_null())
        .then(pl.format("no alert for {}{}{}", pl.lit("{}"), after, pl.lit(f" ({WIDE})")))
        .otherwise(pl.format("inconclusive for {}{} ({})", pl.lit("{}"), after, "why"))
    )
    by_text = rows.group_by(text=text, maintain_order=True).agg("who")
    return "; ".join(
        text.replace("{}", listing([clean(each) for each in who]), 1)
        for text, who in by_text.iter_rows()
    )
