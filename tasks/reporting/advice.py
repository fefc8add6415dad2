"""Whether to use each judge, in words: as terminal, report, artifact and gate say it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from schemas.conclusions import RECOMMENDATIONS
from schemas.results import GATES
from tasks.conclusions.recommendations import (
    ABSENT,
    CORE,
    DO_NOT_USE,
    ESSENTIAL,
    IS_OPEN,
    NOT_ENOUGH,
    USE,
    of_wave,
)
from tasks.kit.defaults import POWER, Thresholds
from tasks.reporting.summary import marked
from tasks.reporting.wording import clean, clip, count, listing, with_who


class Advice(NamedTuple):
    """Whether to use a judge, as terminal, report and artifact say it."""

    mark: str
    recommendation: str
    judge: str
    simulated: bool
    why: str

    def text(self) -> str:
        """Write it as a line."""
        judge = marked(self.judge, simulated=self.simulated)
        return f"{self.mark} {judge}: {self.recommendation}. {self.why}."

    def markdown(self) -> str:
        """Write it as an item of a list in Markdown."""
        judge = marked(literal(self.judge), simulated=self.simulated)
        return f"- {self.mark} {judge}: **{self.recommendation}**. {literal(self.why)}."


MARKS = dict(zip(RECOMMENDATIONS, "\N{CHECK MARK}!\N{BALLOT X}?", strict=True))
ORDER = ("use", "use with care", "not enough data", "do not use")
"""Recommendations as they are listed, those of usable judges first."""
REASONS_SHOWN = 3
CHANCE = f"with a chance of {100 * POWER:.0f} %"
"""What a number of further questions promises."""

ALL_REASONS = "mart.recommendations"
LABELS = (
    "Agreement needs labels of people: one per single answer, as in the column human_label of the "
    "data, or else of two people or more{booth}"
)
WAYS = {
    ABSENT["agreement"]: LABELS,
    ABSENT["drift"]: "Drift needs two audits, both with `--wave LABEL`",
}
"""What a judge may not be measured on -> how to measure it."""

BOOTH = " (`voirdire booth {0}`). `voirdire calibrate {0}` compares judges with any of them"


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
    place = pl.col("recommendation").replace_strict({ORDER[0]: 0, ORDER[-1]: 2}, default=1)
    missing = pl.col("not_measured").cast(pl.String)
    absent = (missing.str.contains(ABSENT[gate], literal=True) for gate in CORE)
    shown = shown.with_columns(nothing=pl.all_horizontal(*absent).fill_null(value=False))
    if not_measured(shown):
        shown = shown.with_columns(not_measured=pl.lit(None, pl.String))
    rows = with_who(shown).sort(place, "failed", "inconclusive", "who")
    return [
        Advice(
            MARKS[row["recommendation"]],
            row["recommendation"],
            clip(clean(row["who"]), 60),
            row["simulated"],
            _why(row, most),
        )
        for row in rows.to_dicts()
    ]


def by_recommendation(advised: Sequence[Advice]) -> str:
    """Say in a line which judges to use."""
    groups = {
        each: [
            marked(one.judge, simulated=one.simulated)
            for one in advised
            if one.recommendation == each
        ]
        for each in ORDER
    }
    said = "; ".join(f"{each}: {listing(names)}" for each, names in groups.items() if names)
    return f"{said[:1].upper()}{said[1:]}." if said else "No judge has a recommendation."


def not_measured(recommendations: pl.DataFrame, study: str = "") -> str:
    """Say what was not measured for any judge; empty if that differs between judges.

    With the name of the study it says by which commands people's labels are collected and compared.
    """
    texts = recommendations["not_measured"].unique()
    if len(texts) != 1 or not texts[0]:
        return ""
    booth = BOOTH.format(study) if study else ""
    ways = [way.format(booth=booth) for what, way in WAYS.items() if what in texts[0]]
    return f"Gates not measured: {texts[0]}." + "".join(f" {way}." for way in ways)


def _why(row: Mapping[str, Any], most: int | None) -> str:
    """Say why a judge is recommended or not: reasons, what is inconclusive or not measured."""
    reasons = (row["reasons"] or "").split("; ") if row["reasons"] else []
    shown = reasons[:most]
    rest = len(reasons) - len(shown)
    more = [f"{count(rest, 'more reason')} in {ALL_REASONS}"] if rest > 0 else []
    limiting = "; ".join([*shown, *more])
    word, undecided = row["recommendation"], row["undecided"]
    # What the data do not decide comes first where it is the reason.
    parts = [] if word == NOT_ENOUGH else [limiting]
    if word == USE:
        # Drift may be inconclusive.
        every = row["passed"] + row["inconclusive"]
        share = f"{row['passed']} of" if row["inconclusive"] else "all"
        parts.append(f"passes {share} {count(every, 'gate')}")
    if word == NOT_ENOUGH and row["nothing"]:
        parts.append("none of the gates bias, discernment and agreement could be measured")
    elif row["more_questions"] and undecided and word == NOT_ENOUGH:
        questions = count(row["more_questions"], "more question")
        what = listing([gate for gate in ESSENTIAL if f"{gate}{IS_OPEN[0]} (about " in undecided])
        parts.append(f"about {questions} would decide {what} {CHANCE}")
    if undecided and word != DO_NOT_USE:
        parts.append(undecided)
    if word == NOT_ENOUGH:
        parts.append(limiting)
    if row["not_measured"]:
        parts.append(f"gates not measured: {row['not_measured']}")
    return clean(". ".join(part[0].upper() + part[1:] for part in parts if part))


def open_questions(recommendations: pl.DataFrame, wave: str = "") -> list[str]:
    """Return a line per judge: each gate that is inconclusive, with the questions that it lacks."""
    if recommendations.is_empty():
        return []
    lines = []
    for row in with_who(of_wave(recommendations, wave)).sort("who").iter_rows(named=True):
        reasons = "; ".join(filter(None, (row["undecided"], row["reasons"]))).split("; ")
        open_ = [reason for reason in reasons if any(text in reason for text in IS_OPEN)]
        lines.append(
            clean(
                f"- {row['who']}: {'; '.join(open_) or 'no gate that more questions would decide'}"
            )
        )
    return lines


def policy(thresholds: Thresholds, recommendations: pl.DataFrame) -> str:
    """State the rule by which judges are recommended (methods, section 17).

    Judges of single answers alone have no position, and their gates hold in any mode.
    """
    forbidding = thresholds.disqualifying
    every = set(forbidding) == set(GATES)
    named = "any gate" if every else f"the gate {listing(forbidding).replace(' and ', ' or ')}"
    forbids = f"Do not use: {named} fails. " if forbidding else ""
    other = "" if every else "fails or "
    compared = (recommendations["mode"] != "any").any()
    return (
        f"Policy (`disqualifying` of the study). {forbids}Not enough data: "
        f"{'position or ' if compared else ''}validity is inconclusive. Use with care: another "
        f"gate {other}is inconclusive, except drift."
    )


def literal(text: str) -> str:
    """Keep a text from being read as Markdown or HTML: a provider's error may be in it."""
    return re.sub(r"([\\`*_\[\]<>#!&|~])", r"\\\1", text)
