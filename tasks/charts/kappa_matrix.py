"""Chart of chance-corrected agreement (kappa) for pairs of judges and people."""

from collections.abc import Iterator, Sequence

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.frame import Row
from schemas.results import Estimates
from tasks.calibration.agreement import kappa_for_labels
from tasks.charts import chart
from tasks.drawing.matrices import Column, MatrixCell, matrix
from tasks.drawing.names import Name, names
from tasks.drawing.row_panels import measured
from tasks.drawing.spec import Spec
from tasks.reporting.wording import GROUPS, count, number, short_names, with_who

ACROSS = 5
"""Maximum number of people in a panel."""
MOST_PEOPLE, MOST_JUDGES = 25, 30
KAPPA_TITLES = {
    "label_kappa": "mean over labels of Cohen's kappa",
    "cohen_kappa_quadratic": "Cohen's kappa, quadratic weights",
    "cohen_kappa": "Cohen's kappa",
}

GREY = "grey: share of equal labels"
Found = dict[tuple[str, str], Row]


@chart(order=14, title="Who agrees with whom beyond chance?")
def kappa_matrix(agreement: DataFrame[Estimates]) -> list[Spec]:
    """Draw a row per judge and person, a column per person, for each dataset.

    Each number is the kappa between the row and the person named above: 1 is full agreement, 0 the
    agreement expected by chance; blue is above 0, orange below. The grey number is the share of
    items with the same label. Judges are above the line, people below it: a judge that labels like
    another person has a row like theirs. 'none': kappa is undefined, for example because one of the
    two gave only one label.
    """
    parts = agreement.sort("dataset").partition_by("dataset", maintain_order=True)
    several = len(parts) > 1
    return [
        panel
        for part in parts
        for panel in _panels(part, f"{part['dataset'][0]}; {GREY}" if several else GREY)
    ]


def _panels(estimates: pl.DataFrame, subtitle: str) -> Iterator[Spec]:
    name = kappa_for_labels(estimates)
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
    found = _found(pairs), _found(named.filter(pl.col("statistic") == "agreement"))
    for start in range(0, len(people), ACROSS):
        yield _panel(name, subtitle, rows, people[start : start + ACROSS], found)


def _found(rows: pl.DataFrame) -> Found:
    found = {(row["who"], row["subgroup"]): row for row in rows.to_dicts()}
    turned = {(row["subgroup"], row["judge"]): row for row in rows.to_dicts()}
    return {**turned, **found}


def _panel(
    name: str, subtitle: str, rows: Sequence[Row], people: Sequence[str], found: tuple[Found, Found]
) -> Spec:
    kappas, shares = found
    known, column_names = names(rows, 20), short_names(people, 8)
    cells = [
        _cell(known[who], person, None if who == person else kappas.get(pair), shares.get(pair))
        for who in [row["who"] for row in rows]
        for person in people
        for pair in [(who, person)]
    ]
    models = [row["who"] for row in rows if "statistic" in row]
    first = next((known[row["who"]] for row in rows if "statistic" not in row), None)
    return matrix(
        KAPPA_TITLES[name],
        subtitle,
        cells,
        [Column(person, column_names[person], "") for person in people],
        width=60,
        about="Kappa of each judge and person with each person",
        line_above=first if models else None,
    )


def _cell(name: Name, person: str, row: Row | None, share: Row | None) -> MatrixCell:
    if row is None:
        return MatrixCell(name, person, "\N{MIDDLE DOT}", "", "open", 0, ())
    kappa = row["estimate"]
    alike = None if share is None else share["estimate"]
    lines = (
        f"with {person}",
        measured("kappa", kappa, row["low"], row["high"]) or "kappa not estimable",
        measured("share of equal labels", alike),
        f"n {count(row['n'], 'item')}",
    )
    return MatrixCell(
        name,
        person,
        "none" if kappa is None else number(kappa),
        "" if alike is None else number(alike),
        "open" if kappa is None else "good" if kappa > 0 else "bad",
        0 if kappa is None else min(1.0, abs(kappa)) * 0.55,
        lines,
    )
