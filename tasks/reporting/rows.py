"""Rows of the report's main tables, as texts."""

from collections.abc import Collection, Sequence
from itertools import compress
from typing import NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.curation import PerturbedAnswers
from schemas.frame import Row
from schemas.keys import CONDITIONS, JUDGE
from schemas.results import Estimates, Findings
from tasks.progress import usd
from tasks.reporting.summary import NO_NAMES, finding_words, is_person
from tasks.reporting.wording import (
    bounds,
    count,
    in_report_order,
    interval,
    number,
    p_value,
    reasons,
    thousands,
    with_who,
)
from tasks.statistics.judge_mean import ALL, KEPT

UNKNOWN = "not estimable"
NOT_MEASURED = "not measured"
LONGEST_REPEATED, LONGEST = 30, 40
"""A reason with more characters that several cells, or one, of the scorecard have is a footnote."""
OUTCOMES = ("valid", "invalid", "abstain", "ambiguous", "missing", "cached")
OVER = {
    "mps": "over the control",
    "mps_sham": "over the sham",
    "rating_shift_sd": "over the control, in standard deviations",
    "rating_shift_sham_sd": "over the sham, in standard deviations",
    "pass_rate_shift": "over the control, in the pass rate",
    "pass_rate_shift_sham": "over the sham, in the pass rate",
}
"""Endpoint -> the base of its shift, and its unit if that is not a mean score."""


class CellText(NamedTuple):
    """The text of a table cell, with a smaller note below."""

    text: str
    note: str = ""

    def with_notes(self, *notes: str | None) -> "CellText":
        """Return the same text with more notes, except those that are empty."""
        return CellText(self.text, "; ".join(filter(None, [self.note, *notes])))


BLANK = CellText("")


class Judged(NamedTuple):
    """One judge's row."""

    judge: str
    simulated: bool
    texts: list[CellText]
    finding: CellText = BLANK
    left_out: str = ""
    """Why its numbers are grey; empty if they are not."""
    other: "Judged | None" = None
    """The judge that a row compares it with."""

    @classmethod
    def of(cls, row: Row, *texts: CellText | str, finding: CellText = BLANK) -> "Judged":
        """Return the row of the judge that a row with ``who`` and ``simulated`` is about."""
        cells = [CellText(text) if isinstance(text, str) else text for text in texts]
        return cls(row["who"], bool(row["simulated"]), cells, finding)


class Group(NamedTuple):
    """The rows about one perturbation."""

    perturbation: str
    rows: list[Judged]
    kind: str = ""
    over: str = ""
    """What shifts are measured over; empty if the rows say so themselves."""
    means: Sequence[Judged] = ()
    """Means over all judges and over those not left out, where the two differ."""
    summary: str = ""
    """How many rows have which finding."""
    pairs: int = 0
    """Pairs of judges, listed or not."""


class Without(NamedTuple):
    """The same results without the judges that are left out."""

    reasons: dict[tuple[str, ...], str]
    """Judge -> why it is left out."""
    findings: dict[tuple[str, ...], Row]
    """Cell -> its finding where only the other judges are concluded about."""


NOBODY = Without({}, {})


class Lookup:
    """Estimates by statistic, judge, perturbation and subgroup."""

    def __init__(self, estimates: pl.DataFrame) -> None:
        self._rows = {
            (r["statistic"], *(r[c] for c in JUDGE), r["perturbation"], r["subgroup"]): r
            for r in estimates.to_dicts()
        }

    def find(
        self, statistic: str, cell: Row, perturbation: str | None, subgroup: str = ""
    ) -> Row | None:
        """Return the estimate's row, or None if it was not measured."""
        return self._rows.get((statistic, *(cell[c] for c in JUDGE), perturbation, subgroup))


def said(row: Row | None, absent: str = "not measured") -> CellText:
    """Write an estimate with its interval, or say why there is none."""
    if row is None:
        return CellText(absent)
    if row["estimate"] is None:
        return CellText(UNKNOWN, f"({row.get('reason') or 'no reason was recorded'})")
    if row["low"] is None or row["high"] is None:
        reason = row.get("reason")
        return CellText(number(row["estimate"]), f"no interval ({reason})" if reason else "")
    return CellText(number(row["estimate"]), interval(row["low"], row["high"]))


def result_groups(
    findings: DataFrame[Findings],
    estimates: DataFrame[Estimates],
    without: Without = NOBODY,
    persons: Collection[str] = NO_NAMES,
) -> list[Group]:
    """Return the results by perturbation, promote first, the largest shift first."""
    lookup = Lookup(estimates)
    return [_group(rows, lookup, without, persons=persons) for rows in _by_perturbation(findings)]


def _by_perturbation(findings: DataFrame[Findings]) -> list[list[Row]]:
    groups = in_report_order(findings).partition_by("kind", "perturbation", maintain_order=True)
    return [rows.to_dicts() for rows in groups]


def rated_groups(
    findings: DataFrame[Findings],
    estimates: DataFrame[Estimates],
    without: Without = NOBODY,
    persons: Collection[str] = NO_NAMES,
) -> list[Group]:
    """Return the results of ratings: the columns of :func:`result_groups` that ratings have."""
    lookup = Lookup(estimates)
    found = []
    for rows in _by_perturbation(findings):
        group, judged = _group(rows, lookup, without, persons=persons), []
        for judge, row in zip(group.rows, rows, strict=True):
            shift, over, p, questions = (judge.texts[at] for at in SHARED)
            # A judge's mean rating or pass rate of unperturbed answers.
            level = lookup.find("mean_rating" if row["unit"] == "sd" else "pass_rate", row, None)
            texts = [_with_points(shift, row, lookup), over, p, said(level), questions]
            judged.append(judge._replace(texts=texts))
        found.append(group._replace(rows=judged, means=[]))
    return found


SHARED = (0, 1, 6, 8)
"""Columns of results that ratings have too: shift, over control, p and questions."""


def _with_points(shift: CellText, row: Row, lookup: Lookup) -> CellText:
    """Add the points of the scale to a shift in standard deviations.

    The standard deviation is the control's: samples without a rating there count only in points.
    """
    if row["unit"] != "sd":
        return shift
    names = (row["statistic"].removesuffix("_sd"), row["statistic"])
    points, deviations = (lookup.find(name, row, row["perturbation"]) for name in names)
    if points is None or points["estimate"] is None:
        return shift
    written = said(points)
    apart = deviations is not None and deviations["n"] != points["n"]
    more = f"(n {points['n']})" if apart else ""
    return shift.with_notes(" ".join(filter(None, [f"{written.text} points", written.note, more])))


def _group(
    rows: Sequence[Row], lookup: Lookup, without: Without, *, persons: Collection[str]
) -> Group:
    perturbation, kind = str(rows[0]["perturbation"]), str(rows[0]["kind"])
    over = {OVER[row["statistic"]] for row in rows}
    shared = over.pop() if len(over) == 1 else ""
    judged = [
        _result(row, lookup, "" if shared else OVER[row["statistic"]], without) for row in rows
    ]
    models = [row for row in rows if not is_person(row["judge"], persons)]
    return Group(perturbation, judged, kind, shared, _means(models, lookup, without))


def _means(rows: Sequence[Row], lookup: Lookup, without: Without) -> list[Judged]:
    """Return the means over judges, with and without excluded judges; none if nobody is excluded.

    People have no part in them, and formulas only where all are (``judge_mean``). Waves, and
    whatever else a judge was asked under, are not averaged.
    """
    parts: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        parts.setdefault(tuple(row[c] for c in CONDITIONS), []).append(row)
    several = [len(set(values)) > 1 for values in zip(*parts, strict=True)]
    means = []
    for key, alike in sorted(parts.items(), key=lambda part: part[0]):
        means += _means_of(alike, lookup, without, " / ".join(["", *compress(key, several)]))
    return means


def _means_of(rows: Sequence[Row], lookup: Lookup, without: Without, where: str) -> list[Judged]:
    averaged = [row for row in rows if not row["simulated"]] or rows
    kept = [row for row in averaged if judge_of(row) not in without.reasons]
    if len(kept) == len(averaged):
        return []
    formulas = len(rows) - len(averaged)
    real = f", not counting {thousands(formulas)} simulated" if formulas else ""
    fewer = thousands(len(averaged) - len(kept))
    among, left_out = f", including the {fewer} left out", f", without the {fewer} left out"
    # The mean of a single judge is its own row.
    return [
        _mean(f"Mean of {count(len(some), 'judge')}{where}{which}{real}", averaged, lookup, part)
        for some, which, part in ((averaged, among, ""), (kept, left_out, KEPT))
        if len(some) > 1
    ]


def _mean(name: str, rows: Sequence[Row], lookup: Lookup, subgroup: str) -> Judged:
    cell = {**rows[0], "judge": ALL}
    # As in the rows of judges; what has no mean is blank.
    columns = ("mean_shift", "", "mean_asr", "mean_sham_floor", "", "mean_dasr", "", "", "")
    texts = [
        said(lookup.find(name, cell, cell["perturbation"], subgroup), "none") if name else BLANK
        for name in columns
    ]
    return Judged(name, bool(rows[0]["simulated"]), texts)


def judge_of(row: Row) -> tuple[str, ...]:
    """Return what names a judge in a row."""
    return tuple(row[c] for c in JUDGE)


def _result(row: Row, lookup: Lookup, over: str, without: Without) -> Judged:
    own = row["perturbation"]
    alone = without.findings.get((*judge_of(row), own))
    primary = lookup.find(row["statistic"], row, own)
    shift = said({**row, "reason": (primary or {}).get("reason")})
    asr, floor, chance, above = (
        lookup.find(name, row, own) for name in ("asr", "sham_floor", "random_baseline", "dasr")
    )
    texts = [
        CellText(shift.text, " ".join(filter(None, [shift.note, over]))),
        _over_control(row),
        _with_bounds(asr, lookup.find("asr_bounds", row, own), lookup, row),
        said(floor, absent="no\N{NO-BREAK SPACE}sham"),
        said(chance)
        if chance is None or chance["estimate"] is None
        else CellText(said(chance).text),
        said(above, absent="no\N{NO-BREAK SPACE}sham"),
        CellText(p_value(row["p_adjusted"]), _other_ps(row, alone)),
        said(lookup.find("position_consistency", row, None)),
        _questions(primary),
    ]
    if row["estimate"] is None:
        # One reason is enough for a row; each cell's own stands in the table of all numbers.
        texts = [CellText(text.text) if text.text == UNKNOWN else text for text in texts]
    words = finding_text(row)
    if alone and finding_words(alone) != finding_words(row):
        words = words.with_notes(f"{finding_words(alone)[0]} without the judges left out")
    left_out = without.reasons.get(judge_of(row), "")
    return Judged(row["who"], row["simulated"], texts, words, left_out)


def finding_text(row: Row) -> CellText:
    """Write the finding with its note, and the reason that limits it."""
    return CellText(*finding_words(row)).with_notes(row["reason"] if row["finding"] else None)


def _over_control(row: Row) -> CellText:
    """Write the shift over the control, and below it how far the sham alone moves the judge."""
    if row["control"] is None:
        return CellText("not measured")
    over = said(
        {"estimate": row["control"], "low": row["control_low"], "high": row["control_high"]}
    )
    if row["sham_shift"] is None:
        return over
    return over.with_notes(f"sham {number(row['sham_shift'])}{bounds(row, 'sham_shift_')}")


def _with_bounds(asr: Row | None, limits: Row | None, lookup: Lookup, row: Row) -> CellText:
    """Add the range of the ASR over all values that the invalid votes could have had.

    The ASR itself may lie outside, as the page explains: it leaves out samples without a verdict.
    """
    rate = said(asr)
    if limits is None or limits["low"] is None or limits["high"] is None:
        return rate
    arms = (
        lookup.find("lost_rate", row, row["perturbation"], arm)
        for arm in ("control", "experimental")
    )
    lost = sum(arm["hits"] or 0 for arm in arms if arm)
    if not lost:
        return rate
    ends = " to ".join(number(limits[end]) for end in ("low", "high"))
    return rate.with_notes(f"{count(lost, 'vote')} without a verdict: {ends}")


def _other_ps(row: Row, alone: Row | None) -> str:
    """Write the raw p-value, and the one adjusted over the judges that are not left out."""
    if row["p_value"] is None:
        return ""
    adjusted, kept = p_value(row["p_adjusted"]), p_value(alone["p_adjusted"]) if alone else ""
    return f"raw {p_value(row['p_value'])}" + (
        f"; kept {kept}" if kept not in {"", adjusted} else ""
    )


def _questions(row: Row | None) -> CellText:
    if row is None:
        return CellText("not measured")
    notes = [
        count(row["n"], "sample") if row["n"] != row["clusters"] else "",
        f"{count(row['dropped'], 'sample')} left out (an arm without a verdict)"
        if row["dropped"]
        else "",
    ]
    return CellText(thousands(row["clusters"]), ", ".join(filter(None, notes)))


def scorecard_rows(gates: pl.DataFrame) -> tuple[list[str], list[Judged], list[str]]:
    """Return the gates, each judge's verdicts on them, and the footnotes.

    A long reason, above all one that several cells have, is a footnote: they have its number.
    """
    if gates.is_empty():
        return [], [], []
    named = with_who(gates).with_columns(gate=pl.coalesce("perturbation", "gate"))
    order = named.sort(pl.col("perturbation").is_not_null(), "gate")["gate"]
    columns = order.unique(maintain_order=True).to_list()
    parts = gates.select(pl.col("reason").str.split("; ").explode()).drop_nulls()
    length, often = pl.col("reason").str.len_chars(), pl.len().over("reason") > 1
    long = parts.filter((length > LONGEST) | (often & (length > LONGEST_REPEATED)))
    notes = sorted(long["reason"].unique())
    judged = []
    for rows in named.sort("who").partition_by("who", maintain_order=True):
        found = {row["gate"]: row for row in rows.to_dicts()}
        texts = [_gate(found.get(column), notes) for column in columns]
        judged.append(Judged(rows["who"][0], bool(rows["simulated"].any()), texts))
    return columns, judged, notes


def _gate(row: Row | None, footnotes: Sequence[str]) -> CellText:
    if row is None:
        return CellText(NOT_MEASURED)
    known = row["value"] is not None and row["low"] is not None
    reasons = [
        f"note {footnotes.index(part) + 1}" if part in footnotes else part
        for part in (row["reason"] or "").split("; ")
    ]
    notes = [interval(row["low"], row["high"]) if known else "", "; ".join(reasons)]
    return CellText(gate_verdict(row), " ".join(filter(None, notes)))


def gate_verdict(row: Row) -> str:
    """Return the verdict on a gate; ``not measured`` for what a study cannot decide by design."""
    # Discernment has no value either if its questions are too few; more of them would decide it.
    unmeasured = (row["gate"] == "discernment" and row["consequence"] == NOT_MEASURED) or (
        row["gate"] == "drift" and row["value"] is None
    )
    return NOT_MEASURED if unmeasured and row["verdict"] == "inconclusive" else row["verdict"]


def validity_rows(
    estimates: DataFrame[Estimates], costs: pl.DataFrame | None = None
) -> list[Judged]:
    """Return per judge what became of its ballots: planned, then each outcome.

    The last text is what they cost, given the ``costs`` of :class:`tasks.report.SavedVotes`.
    """
    names = [f"{outcome}_rate" for outcome in OUTCOMES]
    whole = estimates.filter(
        pl.col("statistic").is_in(names), pl.col("perturbation").is_null()
    ).unique(["statistic", *JUDGE], keep="first", maintain_order=True)
    if whole.is_empty():
        return []
    lookup = Lookup(whole)
    judges = with_who(whole).unique("who", keep="first").sort("who").to_dicts()
    return [
        Judged.of(
            judge,
            thousands(judge["n"]),
            *(_outcome(lookup.find(name, judge, None)) for name in names),
            *([] if costs is None else [_cost(costs, judge)]),
        )
        for judge in judges
    ]


def _cost(costs: pl.DataFrame, judge: Row) -> str:
    own = costs.filter(judge=judge["judge"], prompt=judge["prompt"])["cost_usd"].to_list()
    if not own:
        return "nothing asked"
    return "no price" if None in own else usd(sum(own))


def _outcome(row: Row | None) -> CellText:
    if row is None or row["estimate"] is None:
        return said(row)
    rate = number(row["estimate"])
    return CellText(rate) if row["hits"] is None else CellText(thousands(row["hits"]), rate)


def dropped_rows(perturbed: DataFrame[PerturbedAnswers]) -> list[list[str]]:
    """Return perturbation, number made and dropped, and reasons, most frequent first."""
    rows = []
    for group in perturbed.partition_by("perturbation", maintain_order=True):
        made, failed = group.height, group["failure"].count()
        # A text that failed is not asked about, so its sham is not missed.
        shams = group.filter(pl.col("failure").is_null())["sham_failure"].drop_nulls()
        found = [
            *(("the answer", *reason) for reason in reasons(group["failure"].drop_nulls())),
            *(("its sham only", *reason) for reason in reasons(shams)),
        ]
        head = [group["perturbation"][0], thousands(made), thousands(failed)]
        if not found:
            rows.append([*head, "", "", "nothing dropped"])
        for part, many, reason in found:
            rows.append([*head, part, thousands(many), reason])
            head = ["", "", ""]
    return rows
