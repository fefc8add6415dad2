"""Agreement of people and judges, as texts and as objects."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.results import Estimates
from tasks._report_rows import Judged, Text, said
from tasks._words import count, number, with_who

HUMANS = "humans"
ALPHAS = ("krippendorff_alpha_interval", "krippendorff_alpha_nominal")
"""Of numbers, of names."""
KAPPAS = ("label_kappa", "cohen_kappa_quadratic", "cohen_kappa")
PAIR = ("agreement", "cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic", "gwet_ac1",
        "mean_jaccard", "label_kappa")  # fmt: skip
NUMBERS = ("estimate", "low", "high", "n", "reason")



class Agreement:
    """Estimates of a calibration, told apart by whom they are about."""

    def __init__(self, agreement: DataFrame[Estimates], dataset: str | None = None) -> None:
        """Tell apart what is of one dataset, or of all; names of judges are those among all."""
        ceiling = agreement.filter(pl.col("statistic") == "noise_ceiling")
        self.models = ceiling["judge"].unique().to_list()
        self.known = {*agreement.drop_nulls("estimate")["statistic"]}
        is_model = pl.col("judge").is_in(self.models)
        judges = with_who(agreement.filter(is_model)).sort("who")
        own = pl.lit(value=True) if dataset is None else pl.col("dataset") == dataset
        self.judges = judges.filter(own)
        self.groups = agreement.filter(own, pl.col("judge") == HUMANS)
        """What is of all people."""
        of_people = ~pl.col("subgroup").is_in(["", HUMANS])
        self.people = agreement.filter(own, ~is_model, of_people)

    @property
    def kappa(self) -> str:
        """Return the kappa that suits these labels: weighted for numbers only."""
        names = [k for k in KAPPAS if k in self.known]
        weighted = "agreement_decided" in self.known and "cohen_kappa" in names
        return "cohen_kappa" if weighted or not names else names[0]

    @property
    def alpha(self) -> str:
        """Return the alpha that suits these labels."""
        ordered = ALPHAS[0] in self.known and "agreement_decided" not in self.known
        return ALPHAS[0] if ordered else ALPHAS[1]


def judge_rows(agreement: DataFrame[Estimates]) -> list[Judged]:
    """Return a row per judge: what it shares with people."""
    found = Agreement(agreement)
    rows = []
    for (who,), own in found.judges.group_by("who", maintain_order=True):
        of_all = {r["statistic"]: r for r in own.filter(subgroup=HUMANS).to_dicts()}
        people = own.filter(~pl.col("subgroup").is_in([HUMANS, *found.models]))
        texts = [
            said(of_all.get("below_ceiling")), said(of_all.get("noise_ceiling")),
            said(of_all.get("ceiling_ratio")), _range(people, found.kappa, of_all),
        ]  # fmt: skip
        if "mean_jaccard" in found.known:
            texts.append(_range(people, "mean_jaccard", of_all))
        texts.append(said(of_all.get(found.alpha)))
        rows.append(Judged(str(who), bool(own["simulated"].any()), texts))
    return rows


def _range(people: pl.DataFrame, statistic: str, of_all: dict[str, Row]) -> Text:
    """Write the mean over people, and from where to where it goes."""
    values = people.filter(statistic=statistic)["estimate"].drop_nulls().to_list()
    if not values:
        return Text("none", (of_all.get("cohen_kappa") or {}).get("reason") or "")
    ends = f"{number(min(values))} to {number(max(values))}" if len(values) > 1 else ""
    return Text(number(sum(values) / len(values)), ends)


def datasets_of(agreement: DataFrame[Estimates]) -> list[str]:
    """Return the datasets, whose people and items are each other's strangers."""
    return agreement["dataset"].unique().sort().to_list()


def about_people(agreement: DataFrame[Estimates]) -> str:
    """Say in a sentence, one per dataset, how well people agree with each other."""
    names = datasets_of(agreement)
    if len(names) < 2:
        return _about(Agreement(agreement))
    return " ".join(f"{name}: {_about(Agreement(agreement, name))}" for name in names)


def _about(found: Agreement) -> str:
    pairs = found.people.filter(statistic="agreement")["estimate"].drop_nulls().to_list()
    kappas = found.people.filter(statistic=found.kappa)["estimate"].drop_nulls().to_list()
    alpha = found.groups.filter(statistic=found.alpha).to_dicts()
    parts = []
    if pairs:
        parts.append(
            f"of {count(len(pairs), 'pair')}, the mean gives {_mean(pairs)} of labels alike"
            f" ({number(min(pairs))} to {number(max(pairs))})"
        )
    if kappas:
        parts.append(f"mean kappa {_mean(kappas)}")
    if alpha:
        told = said(alpha[0])
        parts.append(f"Krippendorff's alpha {told.text} {told.note}".strip())
    if not parts:
        return "How well people agree with each other cannot be told."
    return f"People with each other: {'; '.join(parts)}."


def _mean(values: Sequence[float]) -> str:
    return number(sum(values) / len(values))


def as_object(agreement: DataFrame[Estimates], who: str, dataset: str) -> dict[str, Any]:
    """Return what one judge shares with people, and people with each other, as plain values."""
    found = Agreement(agreement, dataset)
    own = found.judges.filter(who=who)
    of_all = own.filter(subgroup=HUMANS)
    with_people = own.filter(~pl.col("subgroup").is_in([HUMANS, *found.models]))
    return {
        **{name: _numbers(of_all, name)
           for name in ("noise_ceiling", "below_ceiling", "ceiling_ratio")},
        "alpha_people": _alphas(found.groups),
        "alpha_with_judge": _alphas(of_all),
        "people": [
            {"annotator": name, **_pair(rows)}
            for (name,), rows in with_people.group_by("subgroup", maintain_order=True)
        ],
        "among_people": [
            {"annotator": one, "other": other, **_pair(rows)}
            for (one, other), rows in
            found.people.group_by("judge", "subgroup", maintain_order=True)
        ],
    }  # fmt: skip


def _alphas(rows: pl.DataFrame) -> dict[str, Any]:
    names = rows["statistic"].unique().sort().to_list()
    return {
        name.removeprefix("krippendorff_alpha_"): _numbers(rows, name)
        for name in names if name.startswith("krippendorff_alpha_")
    }  # fmt: skip


def _pair(rows: pl.DataFrame) -> dict[str, Any]:
    there = {*rows["statistic"]}
    return {name: _numbers(rows, name) for name in PAIR if name in there}


def _numbers(rows: pl.DataFrame, name: str) -> dict[str, Any] | None:
    found = rows.filter(statistic=name).select(NUMBERS).to_dicts()
    return found[0] if found else None
