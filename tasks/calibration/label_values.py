"""Label values: parsing into texts, numbers or sets, and arrays of them."""

import json
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tasks.agreement.pass_words import LARGEST_GRADE
from tasks.inference.cluster_sums import combined

LabelKind = Literal["text", "number", "set", "any"]
Read = Callable[[Sequence[Any]], list[Hashable | None]]
Grades = TypeVar("Grades", pl.Expr, pl.Series)

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
WHOLE = re.compile(r"(-?\d+)\.0*", re.ASCII)
BITS = frozenset({"0", "1"})


WHY = "unreadable"


def unreadable(why: str) -> str:
    """Return the JSON of a label that is invalid as any kind, with the reason."""
    return json.dumps({WHY: why}, ensure_ascii=False)


TIED = unreadable("repeats tie")
"""Label of a judge whose repeats have no majority."""


def why_unreadable(label: str) -> str | None:
    """Return the reason in a label (JSON) of :func:`unreadable`; None for other labels."""
    found = json.loads(label) if label.startswith("{") else None
    return found.get(WHY) if isinstance(found, dict) else None


class ListLabel(NamedTuple):
    """A list as a hashable label."""

    json: str


def read_labels(kind: LabelKind, labels: Sequence[Any]) -> list[Hashable | None]:
    """Parse labels (text, number, list or None) as ``kind``; None where that is impossible."""
    return READERS[kind](labels)


def readings(kind: LabelKind, labels: pl.Series) -> dict[str, Any]:
    """Return each distinct label (JSON), and what it is as ``kind``; None if it is none."""
    distinct = labels.drop_nulls().unique().to_list()
    read = read_labels(kind, [json.loads(label) for label in distinct])
    return dict(zip(distinct, read, strict=True))


def _texts(labels: Sequence[Any]) -> list[Hashable | None]:
    """Parse names: 3, 3.0, "3" and "3.0" are the same; lists are sets."""
    flags = _flags(labels)
    return [_set(label, flags) if isinstance(label, list) else _text(label) for label in labels]


def _numbers(labels: Sequence[Any]) -> list[Hashable | None]:
    return [_number(label) for label in labels]


def _sets(labels: Sequence[Any]) -> list[Hashable | None]:
    """Parse sets: order and repetition do not matter; a single name is a set of one.

    Among lists, a single name must be in one of them: another is an error message or a note, and a
    single name has no meaning among lists of flags.
    """
    flags = _flags(labels)
    lists = [label for label in labels if isinstance(label, list)]
    known = {_text(name) for label in lists for name in label}
    return [
        _set(label, flags)
        if isinstance(label, list)
        else None
        if flags or (lists and _text(label) not in known)
        else _set([label], 0)
        for label in labels
    ]


def _as_they_are(labels: Sequence[Any]) -> list[Hashable | None]:
    """Keep labels unchanged, for a user's own function; None for objects, which are invalid."""
    return [
        ListLabel(json.dumps(label))
        if isinstance(label, list)
        else None
        if isinstance(label, dict)
        else label
        for label in labels
    ]


def _text(label: Any) -> str | None:
    if isinstance(label, bool):
        return "true" if label else "false"
    if isinstance(label, int | float):
        whole = isinstance(label, int) or label.is_integer()
        return str(int(label)) if whole else repr(label)
    if not isinstance(label, str):
        return None
    # Many tools write a column of integers with gaps as decimals.
    number = WHOLE.fullmatch(label)
    return number[1] if number else label


def _number(label: Any) -> float | None:
    if isinstance(label, str) and NUMBER.fullmatch(label.strip()):
        label = float(label)
    if isinstance(label, bool) or not isinstance(label, int | float):
        return None
    return float(label) if abs(label) <= LARGEST_GRADE else None


def _set(label: Any, flags: int) -> frozenset[str] | None:
    """Parse a list: a set of names or, if it has ``flags``, the set of positions of ones."""
    names = [_text(each) for each in label]
    if flags:
        if len(names) != flags or not BITS.issuperset(names):
            return None
        return frozenset(str(place) for place, name in enumerate(names) if name == "1")
    return None if None in names else frozenset(name for name in names if name is not None)


def _flags(labels: Sequence[Any]) -> int:
    """Return the number of flags in each list, or 0 if lists hold names.

    A set repeats nothing, so [0, 1, 0] is not a set of the names 0 and 1 but a list of flags. If
    all lists are [0, 1] or [1, 0], they are flags too, as they would all be the same set. Other
    lists among flags are invalid.

    Raise ValueError if flags differ in length, or if most lists are something else.
    """
    lists = [[_text(each) for each in label] for label in labels if isinstance(label, list)]
    bits = [each for each in lists if BITS.issuperset(each)]
    lengths = {len(each) for each in bits if len(set(each)) < len(each)}
    if not lengths:
        pairs = len(bits) == len(lists) and all(len(each) == 2 for each in bits)
        return 2 if pairs and len({tuple(each) for each in bits}) > 1 else 0
    others = len(lists) - len(bits)
    if len(lengths) > 1 or others > len(bits):
        found = (
            f"their lengths differ ({min(lengths)} to {max(lengths)})"
            if len(lengths) > 1
            else f"{others} other lists hold something else"
        )
        raise ValueError(
            f"lists of 0 and 1 such as [0, 1, 0] look like one flag per label, but {found}. Give "
            "the names of the labels instead, for people and judges."
        )
    return lengths.pop()


READERS: dict[LabelKind, Read] = {
    "text": _texts,
    "number": _numbers,
    "set": _sets,
    "any": _as_they_are,
}


Bits = NDArray[np.uint64]
LARGEST_BYTES = 1 << 30
"""Most bytes that the sets may take."""
CHUNK = 1 << 22


class Sets:
    """The distinct sets of a panel, as one row of bits each."""

    def __init__(self, values: Sequence[Any]) -> None:
        names = sorted({name for value in values for name in value})
        words = max(1, -(-len(names) // 64))
        if len(values) * words * 8 > LARGEST_BYTES:
            raise ValueError(
                f"{len(values)} distinct sets of {len(names)} labels are too many. "
                "Score texts by a function of your own, PATH:FUNCTION."
            )
        self.labels = len(names)
        """Size of the universe: all labels that anyone gave."""
        place = {name: number for number, name in enumerate(names)}
        bits = np.zeros((len(values), words), np.uint64)
        for row, value in enumerate(values):
            for name in value:
                bits[row, place[name] // 64] |= np.uint64(1) << np.uint64(place[name] % 64)
        self.bits: Bits = bits
        self.sizes = count_bits(bits)

    def common(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the labels that both sets contain."""
        step = max(1, CHUNK // self.bits.shape[1])
        parts = [
            count_bits(self.bits[a[i : i + step]] & self.bits[b[i : i + step]])
            for i in range(0, a.size, step)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def count_bits(bits: Bits) -> NDArray[np.int64]:
    """Count the bits of each row."""
    counted: NDArray[np.int64] = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    return counted


Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
PAIRS = 2_000_000_000
"""Most pairs of distinct labels of an item that are compared; so many take minutes."""

AT_ONCE = 1 << 20
"""Pairs that are compared at once."""


@dataclass(frozen=True)
class Panel:
    """A table with one row per item and distinct label, sorted by both.

    How well an annotator fits depends only on the item and the annotator's own label, so scores are
    computed once per row of this table and looked up for each human label by ``row``.
    """

    values: Sequence[Hashable]
    """Value of each code, including the judges' codes."""
    size: Codes
    """Number of people per item, two or more."""
    item: Codes
    code: Codes
    count: Codes
    """Number of people who gave this label."""
    row: Codes
    """Row of the table for each human label."""

    @property
    def others(self) -> Codes:
        """Return the number of other people, per row."""
        others: Codes = self.size[self.item] - 1
        return others

    @property
    def starts(self) -> Codes:
        """Return the first row of each item."""
        starts: Codes = np.searchsorted(self.item, np.arange(self.size.size + 1))
        return starts

    def votes(self, codes: Codes) -> Codes:
        """Return the number of people who gave each item the label ``codes[item]``."""
        wide = len(self.values)
        wanted = np.arange(self.size.size) * wide + codes
        keys = self.item * wide + self.code
        place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        votes: Codes = np.where(keys[place] == wanted, self.count[place], 0)
        return votes

    def sums(self, values: Floats) -> Floats:
        """Sum over the rows of each item, weighted by the people who gave the label."""
        sums: Floats = np.bincount(self.item, values * self.count, minlength=self.size.size).astype(
            np.float64
        )
        return sums


def make_panel(values: Sequence[Hashable], items: Codes, codes: Codes) -> Panel:
    """Count the labels ``codes`` of ``items``, which are numbered from 0 without gaps."""
    wide = max(len(values), 1)
    size = np.bincount(items)
    row, keys = combined([(items * wide + codes, size.size * wide)])
    return Panel(values, size, keys // wide, keys % wide, np.bincount(row), row)


def neighbours(panel: Panel) -> Iterator[tuple[slice, Codes, Codes]]:
    """Pair each row with all rows of its item, in blocks of about ``AT_ONCE`` pairs.

    Yields a slice of rows and, for each pair, the index within the slice and the other row.
    """
    starts = panel.starts
    first, widths = starts[panel.item], np.diff(starts)[panel.item]
    ends = np.cumsum(widths)
    if ends.size and ends[-1] > PAIRS:
        raise ValueError(
            f"{ends[-1]} pairs of distinct labels of one item are too many (at most {PAIRS}). "
            "Leave out people, or give labels from a list."
        )
    done = 0
    while done < widths.size:
        before = ends[done - 1] if done else 0
        stop = max(done + 1, int(np.searchsorted(ends, before + AT_ONCE, side="right")))
        width = widths[done:stop]
        place = np.repeat(np.arange(stop - done), width)
        offset = np.arange(place.size) - np.repeat(np.cumsum(width) - width, width)
        yield slice(done, stop), place, first[done:stop][place] + offset
        done = stop


def are_whole(grades: pl.Expr) -> pl.Expr:
    """Tell whether all grades are whole numbers."""
    return (grades == grades.floor()).all()


def nearest_whole(grades: Grades) -> Grades:
    """Return the nearest whole grades, of two equally near the higher."""
    return (grades + 0.5).floor()


def as_whole(labels: pl.DataFrame, criteria: Sequence[str | None]) -> pl.DataFrame:
    """Return labels (JSON) in which the grades of some criteria are whole.

    If each single grade of a criterion is a whole number, the mean of an annotator's repeats counts
    as the nearest whole grade wherever labels are compared for equality: 4, 4 and 3 agree with 4.
    Means, biases and metrics of numbers use the exact mean. Labels without the column ``criterion``
    are about the criterion null.
    """
    if not criteria:
        return labels
    of = pl.col("criterion") if "criterion" in labels.columns else pl.lit(None, pl.String)
    read = readings("number", labels["label"])
    grade = pl.col("label").replace_strict(read, default=None, return_dtype=pl.Float64)
    whole = pl.coalesce(nearest_whole(grade).cast(pl.String), "label")
    known = pl.Series(criteria, dtype=pl.String)
    about = of.is_in(known.implode(), nulls_equal=True)
    return labels.with_columns(label=pl.when(about).then(whole).otherwise("label"))


class Labelled(NamedTuple):
    """Labels that people and judges gave to the items of one dataset."""

    dataset: str
    humans: pl.DataFrame
    """``annotator``, ``item`` and ``label``, as JSON, or null if invalid."""
    judges: pl.DataFrame
    """The same columns; ``annotator`` is a ``name`` of ``who``."""
    who: pl.DataFrame
    """One row per judge: ``name``, and ``judge``, ``prompt``, ``wave``, ``simulated``."""
    items: pl.DataFrame
    """What is known of the items, see :class:`tasks.readers.label_table.LabelTable`; with the ends
    of the judges' scale (``lowest``, ``highest``), if they have one."""
    whole: tuple[str | None, ...] = ()
    """Criteria of which each single grade is a whole number (see ``as_whole``)."""
    means: pl.DataFrame | None = None
    """What labels that are means of repeats are the means of: ``judge``, ``prompt``, ``item`` and
    the text ``held``."""
    unlabelled: pl.DataFrame | None = None
    """The ``item`` and ``name`` of each label of which people say neither yes nor no, where their
    labels are sets; null if their sets are complete."""


NO_TEXTS = "{}"
"""Texts of an item, as a JSON object, of which there are none."""
OWN_CLUSTER = pl.format("item {}", "item")
"""Cluster of an item that is in none of the clusters that there are."""


def items_of(labels: Sequence[pl.DataFrame], clusters: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the items of labels of which only the ``cluster`` may be known."""
    named = pl.concat(each["item"] for each in labels).drop_nulls()
    items = pl.DataFrame({"item": named.unique().sort()}).with_columns(
        criterion=pl.lit(None, pl.String),
        label_chance=pl.lit(None, pl.Float64),
        texts=pl.lit(NO_TEXTS),
    )
    if clusters is None:
        return items.with_columns(cluster="item")
    known = clusters.select("item", "cluster")
    joined = items.join(known, on="item", how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce("cluster", OWN_CLUSTER))


def require_two_names(labelled: Labelled) -> Labelled:
    """Raise an error if a person and a judge have the same name."""
    both = {*labelled.humans["annotator"].unique()} & {*labelled.who["judge"]}
    if both:
        raise ValueError(
            f"{min(both)!r:.60} is the name of a person and of a judge. Rename one of the two."
        )
    return labelled


def as_json(word: str) -> str:
    """Return the JSON of a label written by :func:`as_word`."""
    return word if word.startswith(("[", '"')) else json.dumps(word, ensure_ascii=False)


def as_word(label: Any) -> str | None:
    """Return a label as text: sets as JSON, and texts that look like JSON in quotes."""
    if label is None:
        return None
    if isinstance(label, frozenset):
        return json.dumps(sorted(label), ensure_ascii=False)
    if isinstance(label, ListLabel):
        return label.json
    if isinstance(label, float):
        return str(int(label)) if label.is_integer() else repr(label)
    text = label if isinstance(label, str) else json.dumps(label)
    return json.dumps(text, ensure_ascii=False) if text.startswith(("[", '"')) else text
