"""Chart of the shifts of the members of the jury, and of the jury without each member."""

from collections.abc import Iterator, Sequence

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.conclusions import JuryFindings, PanelMembers
from schemas.frame import Row
from schemas.keys import CELL, JUDGES, PANEL
from schemas.results import Estimates
from tasks.charts import chart
from tasks.counting.primary_endpoint import primary
from tasks.drawing.matrices import Column, MatrixCell, matrix
from tasks.drawing.names import Name, names
from tasks.drawing.row_panels import measured, sizes
from tasks.drawing.spec import Spec
from tasks.reporting.wording import MARK, clean, clip, differing, number

ACROSS = 4
"""Maximum number of perturbations in a panel."""

DARKEST = 0.3
"""Shifts of at least this size have the darkest colour."""

JURY = "all, as one jury"


@chart(order=5, title="The judges as one jury")
def jury_matrix(
    estimates: DataFrame[Estimates],
    jury_findings: DataFrame[JuryFindings],
    panel_members: DataFrame[PanelMembers],
) -> list[Spec]:
    """Draw a row per member and one for the jury, a column per perturbation.

    Each number is a mean preference shift (MPS): orange toward the target, blue toward the anchor,
    darker for larger shifts. With three or more members, the number in parentheses is the MPS of
    the jury without that member. The last row is the jury of all members. Biases in the same
    direction do not cancel: more members reduce noise, but not a shared bias.
    """
    jurors = panel_members.filter("juror").select(*PANEL, "judge")
    whole = primary(estimates.filter(pl.col("subgroup") == ""), CELL)
    shifts = whole.join(jurors, on=[*PANEL, "judge"], how="semi")
    return [_panel(*part) for part in _parts(shifts, jury_findings)]


def _parts(
    shifts: pl.DataFrame, juries: pl.DataFrame
) -> Iterator[tuple[str, list[Row], dict[tuple[str, str | None], Row]]]:
    """Yield the cell of each jury, the shifts of its members and its own.

    Each part has at most ``ACROSS`` perturbations.
    """
    several = differing(juries, JUDGES)
    # Promote first, as the columns are.
    juries = juries.rename({"shift": "estimate"}).sort(pl.col("kind") != "promote", "perturbation")
    for key, group in juries.partition_by(JUDGES, as_dict=True, maintain_order=True).items():
        own = dict(zip(JUDGES, key, strict=True))
        where = " / ".join(str(own[name]) for name in several)
        members = shifts.filter(**own).sort("judge")
        wanted = group["perturbation"].unique(maintain_order=True).to_list()
        for start in range(0, len(wanted), ACROSS):
            part = pl.col("perturbation").is_in(wanted[start : start + ACROSS])
            rows = group.filter(part).to_dicts()
            found = {(row["perturbation"], row["left_out"]): row for row in rows}
            yield where, members.filter(part).to_dicts(), found


def _panel(where: str, rows: Sequence[Row], juries: dict[tuple[str, str | None], Row]) -> Spec:
    columns = list(dict.fromkeys(perturbation for perturbation, _ in juries))
    kinds = {perturbation: row["kind"] for (perturbation, _), row in juries.items()}
    known = names([{**row, "who": row["judge"]} for row in rows], 19)
    members = list(dict.fromkeys(row["judge"] for row in rows))
    own = {(row["perturbation"], row["judge"]): row for row in rows}
    simulated = any(row["simulated"] for row in juries.values())
    cells = [
        _cell(known[member], name, own.get((name, member)), juries.get((name, member)))
        for member in members
        for name in columns
    ]
    jury = Name(JURY, MARK if simulated else "", "")
    cells += [_cell(jury, name, juries.get((name, None)), None) for name in columns]
    caption = "Shift of each member of the jury, and of the jury, by perturbation"
    title = "member x perturbation, MPS" + (f", {clean(where)}" if where else "")
    return matrix(
        clip(title, 50),
        "",
        cells,
        [Column(name, clip(clean(name), 14), kinds[name] or "") for name in columns],
        width=78,
        about=f"{caption}, {where}" if where else caption,
        line_above=jury,
    )


def _cell(name: Name, perturbation: str, row: Row | None, without: Row | None) -> MatrixCell:
    shift = None if row is None else row["estimate"]
    left_out = None if without is None else without["estimate"]
    lines = [perturbation, "MPS not estimable" if shift is None else ""]
    if row is not None:
        lines += [measured("MPS", shift, row["low"], row["high"]), sizes(row)]
    lines.append(measured("the jury without this member", left_out))
    return MatrixCell(
        name,
        perturbation,
        "none" if shift is None else number(shift),
        "" if left_out is None else f"({number(left_out)})",
        "open" if shift is None else "bad" if shift > 0 else "good",
        0 if shift is None else min(1.0, abs(shift) / DARKEST) * 0.42,
        tuple(lines),
    )
