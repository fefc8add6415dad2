"""Statistics, one family per file: ``@statistic(...)`` on a function with the file's name.

Its parameter names are the frames it reads: ``tallies, shifts, contests,
annotations, ratings``.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from schemas.keys import PANEL
from schemas.results import Estimates
from tasks.kit.catalogue import Catalogue, modules
from tasks.kit.user_folder import own_folder

Family = Literal[
    "effect",
    "floor",
    "validity",
    "position",
    "accuracy",
    "agreement",
    "comparison",
    "jury",
    "sequence",
    "drift",
    "correction",
    "pointwise",
]
"""What an estimate is about."""

Unit = Literal[
    "share",
    "score",
    "logit",
    "coefficient",
    "count",
    "ratio",
    "probability",
    "rank",
    "letter",
    "points",
    "squared points",
    "sd",
]
"""Unit of an estimate; ``score`` is a mean score, or a difference of mean scores; ``points`` are
those of the scale of a grade, ``sd`` standard deviations of a judge's control ratings."""

Floor = Literal["sham", "replicate", "random judge", "sham if asked", "as the primary endpoint"]
"""What an estimate is compared with: an arm that shows the effect of noise alone.

*sham if asked*: the sham, where there is one. *as the primary endpoint*: the sham, unless the
primary endpoint is over the control."""


Order = Literal["needed", "irrelevant"]
"""Whether a number about pairs needs the order in which answers were shown, as logs of comparisons
without an order have none. *needed*: where it is not known, the row is left out. *irrelevant*: the
row is also computed from comparisons without an order."""

Rows = pl.DataFrame | Iterable[pl.DataFrame]
"""What a statistic returns: its rows in one frame or in several, with columns of the estimates."""


class RowMeaning(TypedDict, total=False):
    """What differs in one row of a statistic from the others."""

    family: Family
    unit: Unit
    null: float | None
    floor: Floor | None
    marks_excluded: bool
    """Whether the row decides that means of attack success exclude a judge."""
    order: Order


@dataclass(frozen=True)
class Statistic:
    """A pure function from frames to estimates."""

    name: str
    rows: Mapping[str, RowMeaning]
    """What each row that it returns is about: its family, unit, null and floor."""
    reads: tuple[str, ...]
    source: str
    measure: Callable[..., Rows]
    summary: str
    needs: tuple[str, ...] = ()
    """Columns of the vote log, or of the ratings, without which it gives no rows."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Row -> what there is none of if its denominator is empty."""
    no_interval: Mapping[str, str] = field(default_factory=dict)
    """Row -> why it never has an interval."""

    @property
    def gives(self) -> tuple[str, ...]:
        """Names of the rows that it returns."""
        return tuple(self.rows)

    @property
    def of_ratings(self) -> bool:
        """Tell whether it is about ratings of single answers alone."""
        return self.reads == ("ratings",)

    def __call__(self, **frames: pl.DataFrame) -> DataFrame[Estimates]:
        """Compute the estimates from the frames that the function names."""
        return Estimates.of(with_floors(self.draft(**frames)))

    def draft(self, **frames: pl.DataFrame) -> DataFrame[Estimates]:
        """Compute the estimates without validation, for callers that validate them together.

        A function that draws anything but bootstrap bounds writes the column ``seed`` itself.
        Floors that depend on other rows of the cell are left open (:func:`with_floors`).
        """
        from tasks.counting.missing_reasons import explained

        # Only pointwise studies, and logs of ratings, have any.
        known = {"ratings": Ratings.empty(), **frames}
        measured = self.measure(**{frame: known[frame] for frame in self.reads})
        several = [measured] if isinstance(measured, pl.DataFrame) else measured
        some = [Estimates.draft(rows) for rows in several if rows.height]
        if not some:
            return Estimates.empty()
        drafts = some[0] if len(some) == 1 else pl.concat(some)
        return cast(
            "DataFrame[Estimates]",
            explained(drafts, self.missing, self.no_interval, **self._declared),
        )

    @cached_property
    def _declared(self) -> dict[str, pl.Expr]:
        """Columns of the rows that the catalogue knows."""
        from tasks.inference.bootstrap import seed_of_bounds

        return {
            "family": self._each("family", pl.String),
            "unit": pl.coalesce("unit", self._each("unit", pl.String)),
            "null_value": self._each("null", pl.Float64),
            "floor": pl.coalesce("floor", self._each("floor", pl.String)),
            "seed": pl.coalesce("seed", seed_of_bounds()),
        }

    def rows_by_order(self, order: Order) -> list[str]:
        """Return the rows that need the order in which answers were shown, or do not."""
        return [name for name, row in self.rows.items() if row.get("order") == order]

    def _each(self, what: Literal["family", "unit", "null", "floor"], kind: Any) -> pl.Expr:
        values = {name: row.get(what) for name, row in self.rows.items()}
        return pl.col("statistic").replace_strict(values, return_dtype=kind)


def with_floors(rows: pl.DataFrame) -> pl.DataFrame:
    """Fill in floors that depend on other rows of the same perturbation."""
    statistic, enough = pl.col("statistic").cast(pl.String), pl.col("too_few").is_null()
    shams = statistic.is_in(["mps_sham", "jury_mps_sham"])
    contrasted = statistic.is_in(["mps_contrast", "mps_sham_contrast"])
    pairs = rows.filter(shams | contrasted | (statistic == "mps"))
    over = (
        pairs.group_by(PANEL)
        .agg(
            shams.any().alias("_shams"),
            # The same base as that of pairs of judges, which is chosen for all of them.
            pl.coalesce(
                (statistic == "mps_sham_contrast").filter(contrasted).max(),
                enough.filter(statistic == "mps_sham").max()
                | ~enough.filter(statistic == "mps").max().fill_null(value=False),
                pl.lit(value=True),
            ).alias("_over_sham"),
        )
        .filter("_shams")
    )
    found = rows.join(over, on=PANEL, how="left", nulls_equal=True, maintain_order="left")
    floor = pl.col("floor")
    sham = pl.lit("sham")
    return found.with_columns(
        floor=pl.when(floor == "sham if asked")
        .then(pl.when("_shams").then(sham))
        .when(floor == "as the primary endpoint")
        .then(pl.when("_over_sham").then(sham))
        .otherwise(floor)
    ).drop("_shams", "_over_sham")


def statistic(
    *,
    source: str,
    family: Family,
    unit: Unit = "share",
    null: float | None = None,
    floor: Floor | None = None,
    marks_excluded: bool = False,
    order: Order | None = None,
    gives: tuple[str, ...] = (),
    needs: tuple[str, ...] = (),
    rows: Mapping[str, RowMeaning] | None = None,
    missing: str | Mapping[str, str] = "",
    no_interval: str | Mapping[str, str] = "",
) -> Callable[[Callable[..., Rows]], Statistic]:
    """Register a function as a statistic of the catalogue.

    ``gives`` names the rows that it returns (default: one of its own name). Their ``family``,
    ``unit``, ``null`` (the value that means no effect) and ``floor`` become columns of the
    estimates; ``rows`` says where a row differs, and may name further ones. Rows of attack success
    have ``marks_excluded``; ``order`` is an :data:`Order`.
    ``needs`` are optional columns of the vote log without which there are no rows.
    The reason of a row with an empty denominator says what is ``missing`` ("no vote is valid"),
    that of an estimate that never has an interval why there is ``no_interval``: a text for all
    rows, or one by row.
    """

    def declare(measure: Callable[..., Rows]) -> Statistic:
        name = getattr(measure, "__name__", "")
        reads = tuple(inspect.signature(measure).parameters)
        summary = (measure.__doc__ or "").strip().split("\n")[0]
        usual: RowMeaning = {"family": family, "unit": unit, "null": null, "floor": floor}
        if marks_excluded:
            usual["marks_excluded"] = True
        if order:
            usual["order"] = order
        about: dict[str, RowMeaning] = {row: {**usual} for row in gives or (name,)}
        for row, differs in (rows or {}).items():
            about[row] = {**usual, **differs}
        reasons = (_by_row(text, about) for text in (missing, no_interval))
        return Statistic(name, about, reads, source, measure, summary, needs, *reasons)

    return declare


def _by_row(text: str | Mapping[str, str], rows: Collection[str]) -> Mapping[str, str]:
    """Return a reason by row; raise an error for a row that the statistic does not give."""
    if isinstance(text, str):
        return dict.fromkeys(rows, text) if text else {}
    if strange := sorted({*text} - {*rows}):
        raise ValueError(
            f"there is a reason for the row {strange[0]!r}, which the statistic does not give. "
            f"Its rows: {', '.join(rows)}."
        )
    return text


def _refuse_taken_rows(new: Statistic, known: Catalogue[Statistic]) -> None:
    """Raise an error for a statistic that gives a row which another one gives."""
    taken = {row: entry.name for entry in known.values() for row in entry.gives}
    if twice := sorted({*new.gives} & {*taken}):
        raise ValueError(
            f"the statistic {taken[twice[0]]!r} gives the row {twice[0]!r} too. Rename the row."
        )


STATISTICS: Catalogue[Statistic] = modules(
    "statistic",
    __name__,
    Path(__file__).parent,
    Statistic,
    own=partial(own_folder, "statistics"),
    accept=_refuse_taken_rows,
)


OWN_AUTHOR = "own_author"
"""Stands among filled columns for an author that is named like a judge."""
AUTHORS = ("anchor_author", "target_author")


def filled_columns(*frames: pl.DataFrame) -> set[str]:
    """Return the columns that some row has a value in; for true or false, that some row is true.

    With ``OWN_AUTHOR`` if a judge's model wrote some of the answers.
    """
    filled = {
        column.name
        for frame in frames
        for column in frame
        if (column.any() if column.dtype == pl.Boolean else column.count())
    }
    own = any(_has_own_author(frame) for frame in frames if filled.issuperset(AUTHORS))
    return filled | ({OWN_AUTHOR} if own else set())


def _has_own_author(frame: pl.DataFrame) -> bool:
    if not {"judge", *AUTHORS}.issubset(frame.columns):
        return False
    judges, *authors = (
        {*frame[name].drop_nulls().unique().cast(pl.String)} for name in ("judge", *AUTHORS)
    )
    return not judges.isdisjoint(set().union(*authors))


def lacking(filled: Collection[str], *, single: bool = False) -> dict[str, tuple[str, ...]]:
    """Return the statistics that have no data, each with the columns that it needs.

    ``filled`` are the columns of the vote log, or of ratings of ``single`` answers, that have
    values (:func:`filled_columns`).
    """
    missing = {
        name: tuple(column for column in entry.needs if column not in filled)
        for name, entry in STATISTICS.items()
        if entry.of_ratings == single
    }
    return {
        # Without authors, none can be a judge's.
        name: tuple(c for c in columns if c != OWN_AUTHOR) or columns
        for name, columns in missing.items()
        if columns
    }


ABOUT = {
    "human": "human (votes of people)",
    "human_value": "human_value (people's grade in the same row)",
    "passes_at": "passes_at (the grade from which an answer passes)",
    "perturbation": "perturbation (only audits fill it)",
    "side": "side (anchor or target)",
}
"""Column whose name alone does not say what it needs -> how to name it."""


def lacking_line(
    filled: Collection[str], begin: str = "Not computed", *, single: bool = False
) -> str:
    """Say in one line which columns the statistics without data need; empty if there are none."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, columns in lacking(filled, single=single).items():
        names.setdefault(columns, []).append(name)
    needs = [
        f"{', '.join(some)} {'need' if len(some) > 1 else 'needs'} {columns_in_words(columns)}"
        for columns, some in names.items()
    ]
    return f"{begin}: {'; '.join(needs)}." if needs else ""


def columns_in_words(columns: tuple[str, ...]) -> str:
    """Name the columns that a statistic needs, and what they are where names do not say it."""
    if columns == (OWN_AUTHOR,):
        return "an author that is named like a judge, provider/model"
    names = " and ".join(ABOUT.get(column, column) for column in columns)
    return f"the column{'s' if len(columns) > 1 else ''} {names}"
