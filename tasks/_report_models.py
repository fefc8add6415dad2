"""The rows of the report's table about models, as texts."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import VERSUS
from schemas.results import Estimates
from tasks._report_rows import JUDGE, Judged, Row, Text, said
from tasks._words import listing, number, thousands, with_who
from tasks.enough import too_few

SHOWN = ("win_rate_naive", "win_rate", "length_controlled", "ppi_win_rate")
LABELS = ("label_correlation", "effective_labels", "labels_needed")


def model_rows(estimates: DataFrame[Estimates]) -> list[Judged]:
    """Return per judge and pair of models its win rates, and which biases could overturn them."""
    about = estimates.filter(pl.col("subgroup").str.contains(VERSUS, literal=True))
    if about.is_empty():
        return []
    found = {(r["statistic"], *_place(r)): r for r in about.to_dicts()}
    pairs = with_who(about).filter(pl.col("statistic") == "win_rate").sort("who", "subgroup")
    checks = about.filter(pl.col("statistic").is_in(["bias_bound", "tipping_shift"])).to_dicts()
    return [
        Judged(
            row["who"],
            row["simulated"],
            [
                Text(row["subgroup"]),
                *(said(found.get((name, *_place(row)))) for name in SHOWN),
                _labels([found.get((name, *_place(row))) for name in LABELS]),
            ],
            Text(_conclusion(row, [check for check in checks if _place(check) == _place(row)])),
        )
        for row in pairs.to_dicts()
    ]


def _place(row: Row) -> tuple[str, ...]:
    return (*(row[column] for column in JUDGE), row["subgroup"])


def _labels(rows: list[Row | None]) -> Text:
    """Write how many labels there are, r, what they are worth and how many it would take."""
    r, worth, needed = rows
    if r is None or worth is None or needed is None:
        return Text("none")
    many = thousands(r["n"])
    if r["estimate"] is None:
        return Text(many, f"({r['reason']})")
    takes = (
        "\N{PLUS-MINUS SIGN}.05 is out of reach"
        if needed["estimate"] is None
        else f"\N{PLUS-MINUS SIGN}.05 takes {thousands(round(needed['estimate']))}"
    )
    value = number(worth["estimate"], 0 if worth["estimate"] >= 10 else 1)
    return Text(many, f"r {number(r['estimate'])}; worth {value}; {takes}")


def _conclusion(win: Row, checks: list[Row]) -> str:
    """Say which biases could have made the win."""
    if win["low"] is None or win["low"] <= 0.5 <= win["high"]:
        return "no winner" if win["low"] is not None else f"cannot be told: {win['reason']}"
    for row in (win, *checks):
        if why := too_few(row["clusters"], row["df"]):
            return f"no conclusion: {why}"
    margin = abs(win["estimate"] - 0.5)
    tipping = {c["perturbation"]: c["estimate"] for c in checks if c["statistic"] != "bias_bound"}
    fragile = [
        check["perturbation"]
        for check in checks
        if check["statistic"] == "bias_bound"
        and check["estimate"] is not None
        and check["estimate"] > margin
    ]
    if fragile:
        told = [f"{name} (a shift of {number(tipping[name])} reverses it)" for name in fragile]
        return f"conclusion not robust to {listing(told)}"
    bounds = [check["estimate"] for check in checks if check["statistic"] == "bias_bound"]
    if not bounds:
        return "no perturbation was measured"
    if None in bounds:
        return f"robust to {len(bounds) - bounds.count(None)} of {len(bounds)} biases measured"
    return "robust to the biases measured"
