"""Chart of chance-corrected agreement (kappa) for pairs of judges and people."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks.charts import chart
from tasks.drawing.canvas import BLUE, INK, LINE, RED, SMALL, SOFT, Sheet, names, settings
from tasks.drawing.marks import CENTRED, cell_text, shaded_cell
from tasks.drawing.row_panels import write_name
from tasks.reporting.wording import number, short_names, with_who

LEFT, CELL, ROW, HEAD, FOOT = 168, 60, 36, 74, 10
ACROSS = 5
"""Maximum number of people in a panel."""
MOST_PEOPLE, MOST_JUDGES = 25, 30
KAPPAS = {
    "label_kappa": "mean over labels of Cohen's kappa",
    "cohen_kappa_quadratic": "Cohen's kappa, quadratic weights",
    "cohen_kappa": "Cohen's kappa",
}
GROUPS = ("humans", "judges")

Row = dict[str, Any]
Found = dict[tuple[str, str], Row]


@chart(
    order=14,
    title="Who agrees with whom beyond chance?",
    reading=(
        "Each number is the kappa between the row and the person named above: 1 is full "
        "agreement, 0 the agreement expected by chance; blue is above 0, orange below. "
        "The grey number is the share of items with the same label. Judges are above the "
        "line, people below it: a judge that labels like another person has a row like "
        "theirs. 'none': kappa is undefined, for example because one of the two gave only "
        "one label."
    ),
)
def kappa_matrix(agreement: DataFrame[Estimates]) -> list[str]:
    """Draw a row per judge and person, a column per person, for each dataset."""
    parts = agreement.sort("dataset").partition_by("dataset", maintain_order=True)
    drawn = [matrix for part in parts for matrix in _parts(part)]
    return [_panel(f"kappa-{at}", matrix) for at, matrix in enumerate(drawn, 1)]


class Matrix(NamedTuple):
    """The data of a panel."""

    name: str
    """Name of the kappa."""
    rows: list[Row]
    people: list[str]
    kappas: Found
    shares: Found


def _parts(estimates: pl.DataFrame) -> Iterator[Matrix]:
    name = _which(estimates)
    models = estimates.filter(pl.col("statistic") == "noise_ceiling")["judge"].unique().to_list()
    is_model = pl.col("judge").is_in(models)
    # People have no judge prompt, so only names of judges need one to be unique.
    named = pl.concat(
        [
            with_who(estimates.filter(is_model)),
            estimates.filter(~is_model).with_columns(who="judge"),
        ],
        how="diagonal",
    )
    pairs = named.filter(
        pl.col("statistic") == name, ~pl.col("subgroup").is_in(["", *GROUPS, *models])
    )
    people = sorted({*pairs["subgroup"], *pairs.filter(~is_model)["judge"]})[:MOST_PEOPLE]
    judges = pairs.filter(is_model).unique("who").sort("who").head(MOST_JUDGES).to_dicts()
    rows: list[Row] = [*judges, *({"who": each, "simulated": None} for each in people)]
    shares = _found(named.filter(pl.col("statistic") == "agreement"))
    for start in range(0, len(people), ACROSS):
        yield Matrix(name, rows, people[start : start + ACROSS], _found(pairs), shares)


def _which(estimates: pl.DataFrame) -> str:
    known = estimates.drop_nulls("estimate")["statistic"].unique().to_list()
    if "label_kappa" in known:
        return "label_kappa"
    numbers = "cohen_kappa_quadratic" in known and "agreement_decided" not in known
    return "cohen_kappa_quadratic" if numbers else "cohen_kappa"


def _found(rows: pl.DataFrame) -> Found:
    found = {(row["who"], row["subgroup"]): row for row in rows.to_dicts()}
    turned = {(row["subgroup"], row["judge"]): row for row in rows.to_dicts()}
    return {**turned, **found}


def _panel(key: str, matrix: Matrix) -> str:
    name, rows, people, kappas, shares = matrix
    known = names(rows, 20)
    column_names = short_names(people, 8)
    models = sum("statistic" in row for row in rows)
    up, across = ROW * len(rows), CELL * len(people)
    with settings(key):
        sheet = Sheet(key, HEAD + up + FOOT, (LEFT, FOOT, across, up))
        sheet.axes.set(xlim=(0, len(people)), ylim=(len(rows), 0))
        sheet.axes.axis("off")
        sheet.write(2, FOOT + up + 58, KAPPAS[name], fontweight="bold")
        sheet.write(2, FOOT + up + 40, "grey: share of equal labels", fontsize=SMALL, color=SOFT)
        sheet.axes.axhline(0, color=LINE, linewidth=1)
        if models:
            sheet.axes.axhline(models, color=INK, linewidth=1.2)
        for x, person in enumerate(people):
            middle = LEFT + CELL * (x + 0.5)
            sheet.write(
                middle,
                FOOT + up + 14,
                column_names[person],
                whole=person,
                ha="center",
                fontsize=SMALL,
            )
        for y, row in enumerate(rows):
            write_name(sheet, LEFT - 12, y + 0.5, known[row["who"]])
            for x, person in enumerate(people):
                pair = (row["who"], person)
                _cell(sheet, (x, y), kappas.get(pair), shares.get(pair), same=pair[0] == pair[1])
        return sheet.render("Kappa of each judge and person with each person")


def _cell(
    sheet: Sheet, place: tuple[int, int], row: Row | None, share: Row | None, *, same: bool
) -> None:
    x, y = place
    middle = LEFT + CELL * (x + 0.5)
    if same or row is None:
        sheet.write(middle, y + 0.5, "\N{MIDDLE DOT}", color=SOFT, **CENTRED)
        return
    kappa = row["estimate"]
    if kappa is not None:
        tint = min(1.0, abs(kappa)) * 0.55
        shaded_cell(sheet, place, BLUE if kappa > 0 else RED, tint, 0.05)
    text = "none" if kappa is None else number(kappa)
    alike = "" if share is None or share["estimate"] is None else number(share["estimate"])
    cell_text(sheet, middle, y, text, alike, lift=0.34)
