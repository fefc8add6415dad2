"""Numbers and names as people read them, and the definitions of findings."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from schemas.keys import CONDITIONS
from tasks.conclusions.position_bias import POSITION
from tasks.kit import printable
from tasks.kit.defaults import Thresholds
from tasks.kit.printable import JOINERS, LOST, decimal, is_unseen

FIGURE = re.compile(r"\d+(?:\.\d+)?")
MINUS = "\N{MINUS SIGN}"
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
NO_BREAK = dict.fromkeys(map(ord, "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}"), " ")
PLAIN = str.maketrans({"\N{NO-BREAK SPACE}": " ", MINUS: "-"})
"""Typographic signs in numbers on a page -> characters of a keyboard."""

GROUPS = ("humans", "judges", "jury/all", "judges/all")
"""Names of groups of judges."""

MARK = "(simulated)"
"""What follows the name of a judge that is a formula."""

DRAWN = "drawn at random (the same each time)"
"""How pairs are chosen where not all are shown."""

NOT_KNOWN = "not known"
"""Text for a number that is null: rows may lack any number except numbers in their key."""

DEFINITIONS = {
    "biased": "A promote perturbation, which should change nothing, shifts the judge: the "
    "adjusted p-value is below .05, and the shift is at least the smallest "
    "relevant shift, or the log-odds shift at least {minimum_log_odds}. The shift over the "
    "control has the same direction, with a raw p-value below .05. Position: the "
    "judge favours one slot, by a gap of at least {minimum_shift} or by {minimum_log_odds} logits.",
    "no relevant bias": "A promote perturbation: the whole 90 % interval is within the "
    "smallest relevant shift on both sides, and the log-odds shift does not contradict it. "
    "Position: the 90 % interval of the gap lies within its limit, and the effect in "
    "logits does not say otherwise.",
    "mixed": "A promote perturbation: the mean shift is smaller than the smallest relevant "
    "shift, but either individual questions shift (consistently in both orders, "
    "with a spread of true shifts of at least {minimum_spread}), or categories differ and one of "
    "them shifts by at least the smallest relevant shift.",
    "inconclusive": "The data are compatible with several of these findings; a note below the "
    "finding may give another reason. A shift can differ from 0 significantly and be inconclusive, "
    "because it may be smaller than the smallest relevant shift. More questions may decide it, "
    "except where the sham itself moves the judge: there try another sham (--sham second).",
    "detects": "A detract perturbation made the answer worse, and the judge notices: the 95 %"
    " interval of the share of flaws detected (DP) lies above the limit (.5, unless the study sets"
    " another).",
    "detects some": "A detract perturbation made the answer worse: the judge detects some flaws, "
    "but the interval of their share is not entirely above the limit of detects.",
    "overlooks": "A detract perturbation made the answer worse: even the upper bound of the "
    "interval of the share of flaws detected is below {overlooks_below}.",
    "rewards": "A detract perturbation made the answer worse, and yet it won votes: the rule "
    "of biased holds, toward the target.",
    "no finding": "There is no conclusion; the note gives the reason, and the estimate is still "
    "shown. A conclusion needs {fewest_questions} independent questions, and the samples must not "
    "be concentrated in a few of them.",
}
"""Findings, with places for the limits of the study."""
GATES = {
    "position": "Does the judge prefer one slot? It passes if the finding on position is *no "
    "relevant bias* (limit {minimum_shift}), and fails if it is *biased*.",
    "validity": "Are the replies of the judge valid? It passes if the interval of the share of "
    "invalid replies lies below {most_invalid}, also if replies that did not come were invalid, "
    "and fails if the interval lies above.",
    "bias": "Does a perturbation move the judge that should not, or is a flaw overlooked or "
    "rewarded? There is a gate for each perturbation. It passes if the finding is *no relevant "
    "bias* or *detects*, and fails if it is *biased*, *overlooks* or *rewards*.",
    "discernment": "Can the judge tell flawed answers from sound ones? It passes if the interval "
    "of the share of flaws detected lies above {overlooks_below} for one kind of flaw, and fails "
    "if it lies at or below {overlooks_below} for every kind, or on average.",
    "agreement": "Does the judge agree with people? It passes if the interval of the agreement "
    "lost, compared with people among themselves, lies within {most_agreement_lost}. Where each "
    "item has one label, it passes if the interval of the agreement beyond chance lies above "
    "{least_agreement}: of pairs twice the share of right votes minus 1, with a tie as half a "
    "right vote and without pairs labelled a tie; of pass or fail, and of labels, kappa; of "
    "grades the rank correlation. Beside several people it does not pass where they, or the "
    "judge and any of them, agree hardly better than by chance.",
    "drift": "Has the judge changed since its baseline? It fails if a change raised an alert, "
    "and passes if every change lies within its limit.",
}
"""Gates of the scorecard, with places for the limits of the study."""
OF_RATINGS = {
    "biased": "A promote perturbation, which should change nothing, shifts the ratings: the "
    "adjusted p-value is below .05, and the shift is at least the smallest relevant shift. The "
    "shift over the control has the same direction, with a raw p-value below .05.",
    "no relevant bias": "A promote perturbation: the whole 90 % interval is within the "
    "smallest relevant shift on both sides.",
    "mixed": "A promote perturbation: the mean shift is smaller than the smallest relevant "
    "shift, but either individual answers shift (with a relevant spread of true shifts), or "
    "categories differ and one of them shifts by at least the smallest relevant shift.",
    "detects": "A detract perturbation made the answer worse, and the judge notices: the 95 %"
    " interval of the share of flaws detected (D) lies above the limit (.5, unless the study sets"
    " another).",
    "rewards": "A detract perturbation made the answer worse, and yet it raised the rating: the "
    "rule of biased holds, toward higher ratings.",
}
"""Findings that have other rules or words where no judge compares answers."""


def number(value: float | None, digits: int = 2) -> str:
    """Write a number without the zero before its point: ``.21``, ``-.05``, ``1.00``.

    Two digits, as in all tables, pictures and messages, unless the kind of number needs others
    (ranks, p-values, chances).
    """
    return NOT_KNOWN if value is None else decimal(value, digits).replace("-", MINUS)


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """Write an interval: ``[.10, .21]``."""
    if low is None or high is None:
        return NOT_KNOWN
    return f"[{number(low, digits)},\N{NO-BREAK SPACE}{number(high, digits)}]"


def with_minus_signs(text: str) -> str:
    """Write the negative numbers of a plain text as :func:`number` does."""
    return re.sub(r"(?<=[\s(\[])-(?=\.?\d)", MINUS, text)


def bounds(row: Mapping[str, Any], of: str = "") -> str:
    """Write the interval of a number in a row, after a space; empty if an end is null.

    The columns of the ends are ``low`` and ``high``, with ``of`` before them.
    """
    low, high = row[f"{of}low"], row[f"{of}high"]
    return "" if low is None or high is None else f" {interval(low, high)}"


def p_value(value: float | None) -> str:
    """Write a p-value with three digits, never as 0."""
    return "none" if value is None else printable.p_value(value)


def count(many: int | None, one: str, several: str = "") -> str:
    """Write a number of things: ``1 judge``, ``1 200 judges``."""
    return f"{thousands(many)} {one if many == 1 else several or one + 's'}"


def thousands(many: int | None) -> str:
    """Write a whole number in groups of three."""
    return NOT_KNOWN if many is None else printable.thousands(many)


def listing(parts: Sequence[str], last: str = "and") -> str:
    """Write ``a, b and c``."""
    return f" {last} ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def clean(text: str) -> str:
    """Return text on one line without characters that are unseen or reorder others."""
    # Nearly all texts: a report has tens of thousands.
    if text.isprintable() and "  " not in text:
        return text.strip()
    line = re.sub(r"[^\S\xa0\u202f]+", " ", text).strip()  # but keep our no-break spaces
    if line.translate(NO_BREAK).isprintable():
        return line
    return "".join(LOST if is_unseen(c) else c for c in line)


def columns(text: str) -> float:
    """Return about how wide a text is, in digits."""
    return sum(_width(character) for character in text)


def clip(text: str, width: float, tail: float = 1 / 3) -> str:
    """Cut a text wider than ``width`` columns, in its middle, because names differ at either end.

    ``tail`` is the share of the width that the end keeps.
    """
    if columns(text) <= width:
        return text
    end = _prefix(text[::-1], (width - 1) * tail)[::-1]
    return _prefix(text, width - 1.2 - columns(end)) + ELLIPSIS + end


def shorten(text: str, width: int) -> str:
    """Cut a sentence longer than ``width`` characters, between two words where there are two."""
    if len(text) <= width:
        return text
    whole = text[:width].rpartition(" ")[0] or text[: width - 1]
    return whole.rstrip(" ,;:(") + ELLIPSIS


def short_names(names: Iterable[str], width: float) -> dict[str, str]:
    """Map each name to a cleaned text of at most ``width`` columns, no two of them alike."""
    short: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(set(names)):
        text, twin = clip(clean(name), width), 1
        while text in taken:
            twin += 1
            text = f"{clip(clean(name), width - 3 - len(str(twin)))} #{twin}"
        taken.add(text)
        short[name] = text
    return short


def differing(frame: pl.DataFrame, columns: Sequence[str] = CONDITIONS) -> list[str]:
    """Return the columns that differ within a frame."""
    return [name for name in columns if frame[name].n_unique() > 1]


def who_of(frame: pl.DataFrame) -> pl.Expr:
    """Name the judge, and its conditions that differ within the frame: ``who``.

    A dataset that is named after the prompt too, as in a calibration, is named once.
    """
    prompt = pl.format(": {}", pl.col("prompt").cast(pl.String)).fill_null("")
    dataset = pl.col("dataset").cast(pl.String).str.strip_suffix(prompt).alias("dataset")
    plain = frame.with_columns(dataset)
    named = [dataset if name == "dataset" else pl.col(name) for name in differing(plain)]
    return pl.concat_str("judge", *named, separator=" / ").alias("who")


def with_who(frame: pl.DataFrame) -> pl.DataFrame:
    """Add :func:`who_of` the rows.

    ``simulated`` becomes true in all rows of a judge that is a formula (:func:`formulas`), and in
    no others: a row of two judges is marked by the first alone.
    """
    return frame.with_columns(
        who_of(frame),
        simulated=pl.col("judge").cast(pl.String).is_in(sorted(formulas(frame))),
    )


def in_report_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``who`` and sort: promote first, then the largest estimate first, those without last."""
    largest = -pl.col("estimate")
    promote_first = pl.col("kind") != "promote"
    return with_who(frame).sort(promote_first, "perturbation", largest, "who", nulls_last=True)


def formulas(rows: pl.DataFrame) -> frozenset[str]:
    """Return the judges, and groups of judges, that are simulated.

    A row of two judges, whose ``subgroup`` is the other, is ``simulated`` if either is. So a judge
    goes by its other rows, unless it has none.
    """
    if "subgroup" not in rows.columns:
        return _marked(rows)
    names = sorted({*rows["judge"].cast(pl.String)} - {*GROUPS})
    other = pl.col("subgroup").cast(pl.String)
    # The aspect of an item, if it has one, stands before the other's name.
    pair = other.is_in(names) | other.str.split(": ").list.last().is_in(names)
    own = rows.filter(~pair.fill_null(value=False))
    known = sorted({*own["judge"].cast(pl.String)})
    return _marked(own) | _marked(rows.filter(~pl.col("judge").cast(pl.String).is_in(known)))


def marked(name: str, *, simulated: bool) -> str:
    """Return the name of a judge, with a mark if it is simulated."""
    return f"{name} {MARK}" if simulated else name


def tagged(row: Mapping[str, Any]) -> str:
    """Return who was asked, clipped and marked if simulated, for running text."""
    return marked(clip(clean(row["who"]), 60), simulated=row["simulated"])


def _marked(rows: pl.DataFrame) -> frozenset[str]:
    return frozenset(rows.filter("simulated")["judge"].cast(pl.String))


def _width(character: str) -> float:
    if unicodedata.category(character) in {"Mn", "Me"} or character in JOINERS:
        return 0
    if unicodedata.east_asian_width(character) in "FW":
        return 2
    if character in "mwMW%@":
        return 1.55
    if character in " !'()*,-./:;[]fijlrt|":
        return 0.65
    return 1.15 if character.isupper() else 1


def _prefix(text: str, width: float) -> str:
    used = 0.0
    for index, character in enumerate(text):
        used += _width(character)
        if used > width:
            return text[:index]
    return text


def reasons(texts: pl.Series) -> list[tuple[int, str]]:
    """Count reasons; those that differ only in numbers are merged, with the numbers' range."""
    alike: dict[str, list[str]] = {}
    for text in texts:
        alike.setdefault(FIGURE.sub("#", text), []).append(text)
    return sorted(
        ((len(group), _merged(group)) for group in alike.values()), key=lambda r: (-r[0], r[1])
    )


def _merged(texts: Sequence[str]) -> str:
    columns = zip(*(FIGURE.findall(text) for text in texts), strict=True)
    parts = iter([_range(numbers) for numbers in columns])
    return FIGURE.sub(lambda _: next(parts), texts[0])


def _range(numbers: Sequence[str]) -> str:
    low, high = min(numbers, key=float), max(numbers, key=float)
    return low if float(low) == float(high) else f"{low} to {high}"


def rated_unit(unit: str | None, *, labels: bool) -> str:
    """Return the unit of a rating: ``labels`` for a share of labels chosen."""
    return "labels" if labels and unit == "share" else unit or ""


ENDPOINTS = {
    "score": "mean preference shift (MPS)",
    "sd": "rating shift in standard deviations of the judge's control ratings",
    "share": "shift of the pass rate",
    "labels": "shift of the share of labels chosen",
}


def endpoint_words(findings: pl.DataFrame, labels: Collection[str]) -> str:
    """State the primary endpoint; ``labels`` are the prompts that ask for labels."""
    cells = findings.filter(pl.col("kind") != POSITION)
    if cells.height or findings.is_empty():
        units = {
            rated_unit(unit or "score", labels=prompt in labels)
            for unit, prompt in cells.select("unit", "prompt").unique().rows()
        } or {"score"}
        named = [text for unit, text in ENDPOINTS.items() if unit in units]
        return f"{'; '.join(named)}, over the sham where there is one"
    return "position: the gap, or where each pair was seen in one order the effect in logits"


def glossary(thresholds: Thresholds, unit: str = "pair") -> dict[str, str]:
    """Define the words of findings, with the limits of the study.

    ``unit`` is what the judges saw: ``answer`` if only single ones.
    """
    limits = written_limits(thresholds)
    own = OF_RATINGS if unit == "answer" else {}
    return {finding: text.format(**limits) for finding, text in {**DEFINITIONS, **own}.items()}


def gate_definitions(thresholds: Thresholds) -> dict[str, str]:
    """Define the gates of the scorecard, with the limits of the study."""
    limits = written_limits(thresholds)
    return {gate: text.format(**limits) for gate, text in GATES.items()}


def written_limits(thresholds: Thresholds) -> dict[str, Any]:
    """Return each limit as the report writes it, by its name."""
    return {
        name: number(limit) if isinstance(limit, float) else limit
        for name, limit in thresholds.model_dump().items()
    }
