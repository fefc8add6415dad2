"""Chart of the shifts of the members of the jury, and of the jury without each member."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.charts import chart
from tasks.counting.primary_endpoint import primary
from tasks.drawing.canvas import (
    BLUE,
    INK,
    LINE,
    MIDDLE,
    RED,
    SMALL,
    SOFT,
    Name,
    Sheet,
    names,
    settings,
)
from tasks.drawing.marks import cell_text, shaded_cell
from tasks.drawing.row_panels import write_name
from tasks.reporting.wording import clean, clip, number

GROUP = ("dataset", "prompt", "wave", "mode")
LEFT, CELL, ROW, HEAD, FOOT = 160, 78, 40, 74, 14
ACROSS = 4
"""Maximum number of perturbations in a panel."""

DARKEST = 0.3
"""Shifts of at least this size have the darkest colour."""

Row = dict[str, Any]


@chart(
    order=5,
    title="The judges as one jury",
    reading=(
        "Each number is a mean preference shift (MPS): orange toward the target, blue "
        "toward the anchor, darker for larger shifts. With three or more members, the "
        "number in parentheses is the MPS of the jury without that member. The last row "
        "is the jury of all members. Biases in the same direction do not cancel: more "
        "members reduce noise, but not a shared bias."
    ),
)
def jury_matrix(estimates: DataFrame[Estimates]) -> list[str]:
    """Draw a row per member and one for the jury, a column per perturbation."""
    return [
        _panel(f"jury-{index}", where, rows, juries)
        for index, (where, rows, juries) in enumerate(_parts(estimates), 1)
    ]


def _parts(
    estimates: pl.DataFrame,
) -> Iterator[tuple[str, list[Row], dict[tuple[str, str], Row]]]:
    """Yield the cell of each jury, the shifts of its members and its own.

    Each part has at most ``ACROSS`` perturbations.
    """
    cell = (*GROUP, "judge", "perturbation", "subgroup")
    juries = primary(estimates, cell, ("jury_mps", "jury_mps_sham"))
    own = primary(estimates.filter(pl.col("subgroup") == ""), cell)
    differing = [juries[column].n_unique() > 1 for column in GROUP]
    for key, group in juries.partition_by(GROUP, as_dict=True, maintain_order=True).items():
        where = " / ".join(
            str(value) for value, differs in zip(key, differing, strict=True) if differs
        )
        rows = own
        for column, value in zip(GROUP, key, strict=True):
            rows = rows.filter(pl.col(column) == value)
        # A simulated judge is a member only if all judges are simulated.
        real = rows.filter(~pl.col("simulated").fill_null(value=False))
        members = (rows if real.is_empty() else real).sort("judge")
        # In juries of three or more, each member is left out once. People are not members.
        left_out = group.filter(pl.col("subgroup") != "")["subgroup"].unique()
        if not left_out.is_empty():
            members = members.filter(pl.col("judge").is_in(left_out.implode()))
        columns = group.sort(pl.col("kind") != "promote", "perturbation")["perturbation"]
        wanted = columns.unique(maintain_order=True).to_list()
        for start in range(0, len(wanted), ACROSS):
            part = pl.col("perturbation").is_in(wanted[start : start + ACROSS])
            ordered = group.filter(part).sort(pl.col("kind") != "promote", "perturbation")
            found = {(r["perturbation"], r["subgroup"]): r for r in ordered.to_dicts()}
            yield where, members.filter(part).to_dicts(), found


def _panel(key: str, where: str, rows: Sequence[Row], juries: dict[tuple[str, str], Row]) -> str:
    columns = list(dict.fromkeys(perturbation for perturbation, _ in juries))
    known = names([{**row, "who": row["judge"]} for row in rows], 19)
    members = list(dict.fromkeys(row["judge"] for row in rows))
    own = {(row["perturbation"], row["judge"]): row for row in rows}
    up = ROW * (len(members) + 1)
    across = CELL * len(columns)
    with settings(key):
        sheet = Sheet(key, HEAD + up + FOOT, (LEFT, FOOT, across, up))
        sheet.axes.set(xlim=(0, len(columns)), ylim=(len(members) + 1, 0))
        sheet.axes.axis("off")
        _head(sheet, FOOT + up, columns, juries, where)
        for y, member in enumerate(members):
            write_name(sheet, LEFT - 12, y + 0.5, known[member])
            for x, perturbation in enumerate(columns):
                without = juries.get((perturbation, member))
                _cell(sheet, (x, y), own.get((perturbation, member)), _without(without))
        simulated = any(row["simulated"] for row in juries.values())
        jury = Name("all, as one jury", "(simulated)" if simulated else "", "all, as one jury")
        write_name(sheet, LEFT - 12, len(members) + 0.5, jury)
        sheet.axes.axhline(len(members), color=INK, linewidth=1.2)
        for x, perturbation in enumerate(columns):
            _cell(sheet, (x, len(members)), juries.get((perturbation, "")), "")
        caption = "Shift of each member of the jury, and of the jury, by perturbation"
        return sheet.render(f"{caption}, {where}" if where else caption)


def _head(
    sheet: Sheet,
    top: float,
    columns: Sequence[str],
    juries: dict[tuple[str, str], Row],
    where: str,
) -> None:
    kinds = {perturbation: row["kind"] for (perturbation, _), row in juries.items()}
    for x, perturbation in enumerate(columns):
        middle = LEFT + CELL * (x + 0.5)
        name = clip(clean(perturbation), 14)
        sheet.write(middle, top + 30, name, whole=perturbation, ha="center", fontsize=SMALL)
        sheet.write(
            middle, top + 14, kinds[perturbation] or "", ha="center", fontsize=SMALL, color=SOFT
        )
    title = "member x perturbation, MPS" + (f", {clean(where)}" if where else "")
    sheet.write(2, top + 58, clip(title, 50), whole=title, fontsize=MIDDLE, fontweight="bold")
    sheet.axes.axhline(0, color=LINE, linewidth=1)


def _without(row: Row | None) -> str:
    return "" if row is None or row["estimate"] is None else f"({number(row['estimate'])})"


def _cell(sheet: Sheet, place: tuple[int, int], row: Row | None, below: str) -> None:
    x, y = place
    shift = None if row is None else row["estimate"]
    if shift is not None:
        tint = min(1.0, abs(shift) / DARKEST) * 0.42
        shaded_cell(sheet, place, RED if shift > 0 else BLUE, tint, 0.06)
    text = "none" if shift is None else number(shift)
    cell_text(sheet, LEFT + CELL * (x + 0.5), y, text, below)
