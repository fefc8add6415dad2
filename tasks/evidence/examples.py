"""Examples of the report: changed verdicts and moved grades, with texts and replies."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Any, NamedTuple

import polars as pl

from tasks.evidence.browse_address import address_of, view_of
from tasks.judging.vote_wording import grade_text, order_text
from tasks.kit.printable import laid_out
from tasks.reporting.wording import ELLIPSIS, with_who
from tasks.rewriting.word_diff import Passage, difference

ARMS = {"unperturbed": "control", "perturbed": "experimental"}
"""Name of an arm whose replies an example shows -> the arm."""
WORD = re.compile(r"\A\S+\s+(?=\S)")
"""The first of several words."""


class Size(NamedTuple):
    """The length of a text."""

    characters: int
    lines: int


LONGEST_TEXT, LONGEST_SAME, LONGEST_REPLY = Size(2000, 40), Size(600, 12), Size(600, 12)
"""What an example shows of a text, of a passage that did not change, and of a reply."""
MOST_CHARACTERS = 1_000_000
"""Characters of all examples of a report; where there would be more, each is cut shorter."""


class Example(NamedTuple):
    """A pair or answer whose verdict a perturbation changed, or whose grade it moved."""

    sample: str
    question: str
    changed: str
    """Verdict without and with the perturbation."""
    anchor: str
    name: str
    """``Target``, or ``Answer`` if the judge saw no other; and whether only white space differs."""
    target: list[Passage]
    """The target, with what the perturbation removed and added."""
    replies: list[tuple[str, str]]
    """Name of the arm with the order of the answers, and reply, verbatim but for its length."""
    commands: tuple[str, str]
    """What shows all of it: in the terminal, and on a page."""
    address: str
    """The address of that page."""


class Examples(NamedTuple):
    """Examples of one finding."""

    anchor: str
    judge: str
    simulated: bool
    perturbation: str
    what: str
    """What is counted: ``flipped``, of single answers ``ratings flipped`` or ``grades moved``."""
    total: int
    pairs: list[Example]


def examples_of(rows: pl.DataFrame, study: str, *, several: bool) -> list[Examples]:
    """Return the examples of each judge and perturbation, in the order given.

    ``rows`` are the changed rows of ``mart.compared_pairs``; ``total`` is the number of all rows of
    their cell.
    ``several`` tells whether a single answer was rated more than once.
    """
    share = min(1.0, MOST_CHARACTERS / max(_characters(rows), 1))
    named = with_who(rows.drop("category"))
    cells = named.partition_by("who", "perturbation", maintain_order=True)
    return [
        Examples(
            f"examples-{place}",
            cell["who"][0],
            bool(cell["simulated"].any()),
            cell["perturbation"][0],
            _what({*cell["rating_kind"]}),
            cell["total"].item(0),
            [_example(row, study, share, several=several) for row in cell.to_dicts()],
        )
        for place, cell in enumerate(cells, 1)
    ]


def changes(examples: Sequence[Examples], unit: str) -> list[tuple[str, str]]:
    """Return what changed, for a heading, with the option of ``voirdire show`` that finds it."""
    found = {each.what for each in examples}
    verdicts = (f"{unit}s whose verdict a perturbation changed", "")
    grades = ("answers whose grade a perturbation moved", "--moved")
    return [
        *([verdicts] if found - {"grades moved"} else []),
        *([grades] if found & {"grades moved", "ratings changed"} else []),
    ]


def _what(kinds: set[str | None]) -> str:
    if None in kinds:
        return "flipped"
    if "number" not in kinds:
        return "ratings flipped"
    return "grades moved" if len(kinds) == 1 else "ratings changed"


def _characters(rows: pl.DataFrame) -> int:
    """Return about how many characters these examples have, each text at its longest."""
    texts = [pl.col(name).cast(pl.String) for name in ("question", "anchor", "perturbed")]
    replies = [
        pl.col(f"{arm}_replies")
        .cast(pl.List(pl.String))
        .list.eval(pl.element().str.len_chars().clip(upper_bound=LONGEST_REPLY.characters))
        .list.sum()
        for arm in ARMS.values()
    ]
    cut = [text.str.len_chars().clip(upper_bound=LONGEST_TEXT.characters) for text in texts]
    return int(rows.select(pl.sum_horizontal(*cut, *replies).sum()).item())


def _example(row: Mapping[str, Any], study: str, share: float, *, several: bool) -> Example:
    # A single answer is compared repeat by repeat.
    repeat = f"repeat {row['repeat'] + 1}" if several and row["repeat"] is not None else None
    about = ", ".join(filter(None, (row["criterion"], repeat)))
    about += ": " if about else ""
    before, after = (grade_text(row[name] or "no verdict") for name in ("control", "experimental"))
    sham = f" (sham: {grade_text(row['sham'])})" if row["sham"] else ""
    moved = " --moved" if row["rating_kind"] == "number" else ""
    pair = f"{quote(study)} --judge {quote(row['judge'])} --pair {quote(row['sample'])}"
    named = {name: row[name] for name in ("judge", "prompt", "wave", "perturbation", "sample")}
    text, same, reply = (
        Size(round(share * size.characters), size.lines)
        for size in (LONGEST_TEXT, LONGEST_SAME, LONGEST_REPLY)
    )
    name = "Target" if row["rating_kind"] is None else "Answer"
    target = difference(*(laid_out(row[version] or "") for version in ("target", "perturbed")))
    unmarked = text if target.note else same
    parts = (Passage(part.change, shown(part, text, unmarked)) for part in target.parts)
    return Example(
        row["sample"],
        cut(laid_out(row["question"]), text),
        f"{about}{before} \N{RIGHTWARDS ARROW} {after}{sham}",
        cut(laid_out(row["anchor"] or ""), text),
        f"{name} ({target.note})" if target.note else name,
        list(within(parts, Size(2 * text.characters, 2 * text.lines))),
        [
            (", ".join(filter(None, (which, order_text(order)))), cut(laid_out(said or ""), reply))
            for which, arm in ARMS.items()
            for order, said in zip(
                row[f"{arm}_orders"] or (), row[f"{arm}_replies"] or (), strict=True
            )
        ],
        (
            f"voirdire show {pair}{moved}",
            f"voirdire browse {pair} --perturbation {quote(row['perturbation'])}",
        ),
        address_of(view_of(study, **named)),
    )


def cut(text: str, size: Size) -> str:
    """Cut a longer text between two words; its layout stays."""
    kept = "\n".join(text.split("\n", size.lines)[: size.lines])
    if len(kept) > size.characters:
        kept = kept[: size.characters]
        # Between two words, if there are two.
        kept = next(iter(kept.rsplit(None, 1)), "")
    return text if kept == text else kept.rstrip(" \n,;:(") + ELLIPSIS


def shown(part: Passage, changed: Size, same: Size) -> str:
    """Cut a long passage; an unchanged one keeps both ends."""
    text = part.text
    if part.change != "same":
        return cut(text, changed)
    if len(text) <= same.characters and text.count("\n") < same.lines:
        return text
    half = Size(same.characters // 2, same.lines // 2)
    head = cut(text, half).removesuffix(ELLIPSIS)
    tail = "\n".join(text.rsplit("\n", half.lines)[-half.lines :])[-half.characters :]
    if len(tail) == half.characters:
        tail = WORD.sub("", tail)
    between = text[len(head) : len(text) - len(tail)]
    apart = "\n" if "\n" in between else " "
    return f"{head}{apart}...{apart}{tail}"


def within(parts: Iterable[Passage], size: Size) -> Iterator[Passage]:
    """Yield the passages that fit into a size, the last of them cut."""
    left = size
    for part in parts:
        kept = cut(part.text, left)
        yield Passage(part.change, kept)
        if kept != part.text:
            return
        left = Size(left.characters - len(kept), left.lines - kept.count("\n"))
