"""Terminal tables of judges compared with people."""

from collections import Counter
from collections.abc import Sequence

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from flows.cli.printing.tables import fits, plain_table, print_line, print_rows
from flows.cli.printing.terminal import plain
from tasks.agreement.compare import ComparisonWithPeople
from tasks.agreement.pass_words import PASS_WORDS
from tasks.conclusions.rules import BIASED
from tasks.counting.annotations import HUMANS
from tasks.counting.positions import VERDICTS
from tasks.kit.printable import first_few, several
from tasks.reporting.agreement_rows import (
    MOST_IN_REPORT,
    AgreementRow,
    JudgeView,
    adjustment_line,
    columns_of,
    judge_views,
)
from tasks.reporting.summary import simulated_sentence
from tasks.reporting.wording import clean, formulas, listing, shorten

SHOWN, SHOWN_OF_SEVERAL, SHOWN_TEXTS, LONGEST_TEXT = 5, 2, 3, 160
"""Disagreements of one judge and of each of several, texts of each, and characters of a text that
the terminal shows."""
MOST_VIEWS = 6
"""Most judges and criteria that are shown one by one: of more, half of these have the highest kappa
and half the lowest."""
MOST_SLICES = 8
"""Most slices that are shown: those with the least agreement, or the largest mean error."""
LONGEST_REPEATED = 25
"""Characters of a note that stands in several rows; a longer one becomes a footnote."""
NAMED = 5
"""Most of the others, and of labels, that are named."""
ABOUT = ("dataset", "criterion")


def show_comparison(
    console: Console,
    comparison: ComparisonWithPeople,
    *,
    saved: bool,
    more: str = "--format json",
    alone: str = "",
    scale_known: bool = False,
) -> None:
    """Print each judge against people: measures, confusion matrix, slices and disagreements.

    ``saved`` says that there is a report, which has all of it; else ``more`` prints it. ``alone``
    are the options with which only one judge is compared, and so shown. ``scale_known`` says that
    nobody need declare a scale.
    """
    views = judge_views(comparison)
    if len(views) > 1:
        for kind in dict.fromkeys(view.kind for view in views):
            some = [view for view in views if view.kind == kind]
            title = f"Judges against {some[0].against}"
            _show_parts(console, "judge", kind, [view.whole for view in some], title)
    kappas = [-2.0 if view.kappa is None else view.kappa for view in views]
    ranked = sorted(range(len(views)), key=kappas.__getitem__, reverse=True)
    half = MOST_VIEWS // 2
    between = sorted(ranked[half:-half]) if len(views) > MOST_VIEWS else []
    for view in [view for place, view in enumerate(views) if place not in between]:
        console.print(f"[bold]{escape(view.title)} against {view.against}[/bold]: {view.items}")
        if view.unreadable:
            print_line(console, f"{view.unreadable}.")
        if not between:
            rows = [tuple(map(plain, measure)) for measure in view.measures]
            rows, footnotes = _with_footnotes(rows)
            console.print(plain_table(("", "estimate", "95 %", ""), rows))
            print_line(console, "\n".join((*footnotes, "")), style="dim")
        if view.matrix:
            words = ["people \\ judge", *view.matrix.words]
            console.print(plain_table(words, [(word, *row) for word, row in view.matrix.rows]), "")
        if view.slices:
            _show_slices(console, view, saved=saved, more=more)
        most = SHOWN if len(views) == 1 else SHOWN_OF_SEVERAL
        _show_disagreements(console, view, most, saved=saved, more=more)
        if view.labels:
            print_line(console, plain(view.labels))
    if between:
        others = first_few([views[place].title for place in between], NAMED)
        print_line(
            console,
            f"Shown one by one: of {len(views)}, the {half} with the highest and the {half} with "
            f"the lowest kappa, without {'; '.join(others)}. All intervals, corrected means, "
            f"confusion matrices, slices and disagreements of these {len(views)}: "
            f"{'the report, and ' if saved else ''}{more}."
            + (f" One judge alone: {alone}." if alone else ""),
        )
    seen = dict.fromkeys(
        "{:g} to {:g}".format(*each.undeclared)
        + (f" ({clean(each.criterion)})" if each.criterion else "")
        for each in comparison.unusual
        if each.undeclared and not scale_known
    )
    if seen:
        print_line(
            console,
            f"Scale not declared: grades from {listing([*seen])}. With `--scale LOW "
            "HIGH`, grades outside it are invalid.",
        )
    of_judges = comparison.measures.filter(pl.col("judge") != HUMANS)
    for line in (
        *(_nothing_shared(comparison) or _two_names(comparison)),
        adjustment_line(of_judges),
        simulated_sentence({*of_judges["judge"]}, formulas(of_judges)),
    ):
        if line:
            print_line(console, f"{line}.")


def _with_footnotes(rows: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], list[str]]:
    """Replace what ends the notes of several rows by marks; return the rows and the footnotes."""
    last = [row[-1].rpartition("; ")[2] for row in rows]
    often = [note for note, n in Counter(last).items() if n > 1 and len(note) > LONGEST_REPEATED]
    marks = {note: f"({at})" for at, note in enumerate(often, 1)}
    marked = [
        (*row[:-1], row[-1].removesuffix(note) + marks.get(note, note))
        for row, note in zip(rows, last, strict=True)
    ]
    return marked, [f"{mark} {note}" for note, mark in marks.items()]


def _names(comparison: ComparisonWithPeople) -> pl.DataFrame:
    """Return the counts of labels that are compared as names."""
    names = comparison.measures.filter(kind="name").select(ABOUT).unique()
    return comparison.confusion.join(names, on=ABOUT, how="semi", nulls_equal=True)


def _nothing_shared(comparison: ComparisonWithPeople) -> list[str]:
    """Say that judges give no label that people give, and what to do, unless labels of pairs."""
    own = [*ABOUT, "judge", "prompt", "wave"]
    labels = _names(comparison).with_columns(pl.col("judge_label", "human_label").cast(pl.String))
    sets = labels.group_by(own).agg(pl.col("judge_label", "human_label").unique())
    apart = sets.filter(pl.col("judge_label").list.set_intersection("human_label").list.len() == 0)
    lines = []
    for _, rows in apart.sort(own).group_by(ABOUT, maintain_order=True):
        theirs, said = ({*rows[side].explode()} for side in ("human_label", "judge_label"))
        if theirs <= {*VERDICTS}:
            continue
        judges, people, words = (
            listing([clean(each) for each in sorted(some)[:NAMED]])
            for some in ({*rows["judge"]}, theirs, said)
        )
        usual = any(word.strip().lower() in PASS_WORDS for word in said)
        todo = (
            "Name people's label for a pass with `--pass LABEL`: the judge's usual words, such as "
            "pass, true and 0, are then read as verdicts"
            if usual
            else "Write the labels of both alike"
        )
        lines.append(
            f"{judges} and people share no label, so they cannot agree: the labels of people are "
            f"{people}, those of the judge {words}. {todo}"
        )
    return lines


def _two_names(comparison: ComparisonWithPeople) -> list[str]:
    """Say what makes verdicts of people's labels where they are two names, unless of pairs."""
    labels = _names(comparison)
    found = labels.group_by(ABOUT).agg(pl.col("human_label").unique().sort())["human_label"]
    pairs = {tuple(map(clean, words)) for words in found if len(words) == 2}
    return [
        f"People's labels are {listing(list(pair))}, which are read as names. `"
        "--pass LABEL` says which of the two is a pass, and adds TPR, TNR and the bias of the pass "
        "rate"
        for pair in sorted(pairs)
        if not {*pair} <= {*VERDICTS}
    ]


def _show_parts(
    console: Console, what: str, kind: str, parts: Sequence[AgreementRow], title: str
) -> None:
    """Print a row per judge, criterion or slice, with the interval of the first statistic.

    Slices have no ``title``. ``what`` is the heading of the first column.
    """
    against_rest = any(part.p for part in parts)
    first, *others = columns_of(kind)
    # Of slices, the bias is not tested against a rest, and there are many.
    findings = bool(title) and any(part.finding for part in parts)
    last = [*(["p vs rest"] if against_rest else []), *(["bias finding"] if findings else [])]
    names = [what, "items", first, "95 %", *others, *last]
    rows = [
        (
            part.name,
            part.items,
            *map(plain, part.texts[0]),
            *(plain(text) for text, _ in part.texts[1:]),
            *([part.p] if against_rest else []),
            *([part.finding] if findings else []),
        )
        for part in parts
    ]
    print_rows(console, names, rows, title)
    console.print()


def _show_slices(console: Console, view: JudgeView, *, saved: bool, more: str) -> None:
    _show_parts(console, view.split_by, view.kind, view.slices[:MOST_SLICES], "")
    lines = []
    if left := len(view.slices[MOST_SLICES:]):
        where = f"{'the report, and ' if saved else ''}{more}"
        better = "a smaller mean error" if view.kind == "grade" else "more agreement"
        lines.append(f"{several(left, 'slice')} with {better}: {where}.")
    if any(part.finding for part in view.slices):
        lines.append(_biased_slices(view))
    for line in lines:
        print_line(console, line)
    if lines:
        console.print()


def _biased_slices(view: JudgeView) -> str:
    at = columns_of(view.kind).index("bias")
    biased = [part for part in view.slices if part.finding == BIASED]
    found = [f"{part.name} ({plain(part.texts[at][0])})" for part in biased]
    if not found:
        return "No slice is shown to be biased."
    shown = listing(first_few(found, MOST_SLICES))
    return f"Biased on {shown}; `--format json` has the intervals."


def _show_disagreements(
    console: Console, view: JudgeView, most: int, *, saved: bool, more: str
) -> None:
    """Print the first disagreements: as a table or, where texts would be broken, as lines."""
    if not view.disagreements:
        return
    rows = [
        (
            each.item,
            f"people: {plain(each.human)}, judge: {each.judge}",
            "\n".join(
                f"{name}: {shorten(clean(text), LONGEST_TEXT)}"
                for name, text in each.texts[:SHOWN_TEXTS]
            ),
        )
        for each in view.disagreements[:most]
    ]
    many = len(view.disagreements)
    in_report = (
        "all are in the report"
        if many <= MOST_IN_REPORT
        else f"{MOST_IN_REPORT} are in the report, more with {more}"
    )
    where = in_report if saved else f"more with {more}"
    shown = f"; the first {most} ({where})" if many > most else ""
    print_line(console, f"{view.differing}, worst first{shown}", style="italic")
    names = ("item", "labels", "texts") if any(row[2] for row in rows) else ("item", "labels")
    if fits(names, rows, console.width):
        console.print(plain_table(names, [row[: len(names)] for row in rows]), "")
        return
    for item, labels, texts in rows:
        print_line(console, f"{item}: {labels}")
        for text in filter(None, texts.split("\n")):
            console.print(Padding(Text(plain(text)), (0, 0, 0, 2), expand=False))
    console.print()
