import json
from collections.abc import Callable
from typing import Any

import polars as pl

from flows.cli.printing.calibration_tables import as_object
from tasks.charts import CHARTS
from tasks.reporting.calibration_report import (
    Agreement,
    about_people,
    datasets_of,
    judge_rows,
)

Make = Callable[..., pl.DataFrame]
CELL = {"perturbation": None, "kind": None, "simulated": None, "prompt": "none"}


def agreed(judge: str, other: str, **values: float | None) -> list[dict[str, Any]]:
    return [
        {**CELL, "judge": judge, "subgroup": other, "statistic": name, "estimate": value}
        for name, value in values.items()
    ]


ROWS = [
    *agreed(
        "ada",
        "humans",
        noise_ceiling=0.8,
        below_ceiling=0.6,
        ceiling_ratio=0.75,
        krippendorff_alpha_nominal=0.4,
    ),
    *agreed("bee", "humans", noise_ceiling=0.8),
    *agreed("ada", "Ann", agreement=0.6, cohen_kappa=0.5),
    *agreed("ada", "bee", agreement=0.1, cohen_kappa=0.1),
    *agreed("Ann", "Bob", agreement=0.7, cohen_kappa=None),
    *agreed("humans", "", krippendorff_alpha_nominal=0.5),
]


def test_an_object_per_judge(make_estimates: Make) -> None:
    found = as_object(make_estimates(ROWS), "ada", "demo")
    assert found["ceiling_ratio"] == {
        "estimate": 0.75,
        "low": None,
        "high": None,
        "n": 0,
        "reason": None,
    }
    assert found["alpha_people"]["nominal"]["estimate"] == 0.5
    assert found["alpha_with_judge"]["nominal"]["estimate"] == 0.4
    (ann,) = found["people"]
    assert (ann["annotator"], ann["cohen_kappa"]["estimate"]) == ("Ann", 0.5)
    (pair,) = found["among_people"]
    assert (pair["annotator"], pair["other"]) == ("Ann", "Bob")
    assert (pair["agreement"]["estimate"], pair["cohen_kappa"]["estimate"]) == (0.7, None)
    assert json.dumps(found)
    assert as_object(make_estimates(ROWS), "bee", "demo")["people"] == []


def test_datasets_have_people_of_their_own(make_estimates: Make) -> None:
    other = [
        *agreed("ada", "humans", noise_ceiling=0.6),
        *agreed("ada", "Ann", cohen_kappa=0.2),
        *agreed("Ann", "Bob", agreement=0.3),
        *agreed("humans", "", krippendorff_alpha_nominal=0.1),
    ]
    both = make_estimates([*ROWS, *({**row, "dataset": "other"} for row in other)])
    assert datasets_of(both) == ["demo", "other"]
    for dataset, alpha, pair, ceiling in (("demo", 0.5, 0.7, 0.8), ("other", 0.1, 0.3, 0.6)):
        found = as_object(both, f"ada / {dataset}", dataset)
        assert found["alpha_people"]["nominal"]["estimate"] == alpha
        assert found["noise_ceiling"]["estimate"] == ceiling
        assert [each["agreement"]["estimate"] for each in found["among_people"]] == [pair]
    said = about_people(both)
    assert said.startswith("demo: Agreement among people: mean agreement .70 over 1 pair")
    assert "other: Agreement among people: mean agreement .30 over 1 pair" in said


def test_rows_say_why_there_is_no_kappa(make_estimates: Make) -> None:
    refused = {
        **CELL,
        "statistic": "cohen_kappa",
        "judge": "bee",
        "subgroup": "humans",
        "reason": "too many",
    }
    ada, bee = judge_rows(make_estimates([*ROWS, refused]))
    assert [text.text for text in ada.texts] == [".60", ".80", ".75", ".50", ".40"]
    assert bee.texts[3] == ("none", "too many")


def test_weights_are_for_numbers_not_for_verdicts(make_estimates: Make) -> None:
    weighted = agreed("ada", "Ann", cohen_kappa_quadratic=0.9)
    interval = agreed("humans", "", krippendorff_alpha_interval=0.9)
    numbers = Agreement(make_estimates([*ROWS, *weighted, *interval]), "demo")
    assert (numbers.kappa, numbers.alpha) == (
        "cohen_kappa_quadratic",
        "krippendorff_alpha_interval",
    )
    decided = agreed("ada", "Ann", agreement_decided=0.9)
    verdicts = Agreement(make_estimates([*ROWS, *weighted, *interval, *decided]), "demo")
    assert (verdicts.kappa, verdicts.alpha) == ("cohen_kappa", "krippendorff_alpha_nominal")


def test_each_dataset_has_the_coefficients_of_its_labels(make_estimates: Make) -> None:
    grades = [
        *agreed("ada", "humans", noise_ceiling=0.6, krippendorff_alpha_interval=0.35),
        *agreed("ada", "Ann", agreement=0.4, cohen_kappa=0.2, cohen_kappa_quadratic=0.9),
        *agreed("Ann", "Bob", agreement=0.3, cohen_kappa=0.1, cohen_kappa_quadratic=0.8),
        *agreed("humans", "", krippendorff_alpha_interval=0.7),
    ]
    verdicts = agreed("Ann", "Cat", agreement_decided=0.9, cohen_kappa=0.25)
    both = make_estimates([*ROWS, *verdicts, *({**row, "dataset": "grades"} for row in grades)])
    shown = {row.judge: (row.texts[3].text, row.texts[4].text) for row in judge_rows(both)}
    assert shown == {
        "ada / demo": (".50", ".40"),
        "ada / grades": (".90", ".35"),
        "bee / demo": ("none", "not measured"),
    }
    said = about_people(both)
    assert "mean kappa .25; Krippendorff's alpha .50" in said
    assert "mean kappa .80; Krippendorff's alpha .70" in said
    titles = [panel["title"]["text"] for panel in CHARTS["kappa_matrix"](agreement=both)]
    assert titles == ["Cohen's kappa", "Cohen's kappa, quadratic weights"]


def test_people_who_share_nothing(make_estimates: Make) -> None:
    lone = make_estimates(agreed("ada", "humans", noise_ceiling=None))
    assert (
        about_people(lone)
        == "The labels do not suffice to measure how well people agree with each other."
    )
