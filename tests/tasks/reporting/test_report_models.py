from collections.abc import Callable
from typing import Any

import pytest

from tasks.conclusions.comparisons import win_checks
from tasks.inference.linearised_errors import too_few
from tasks.reporting import juries_and_models

Make = Callable[..., Any]
PAIR: dict[str, Any] = {
    "subgroup": "ant vs bee",
    "perturbation": None,
    "kind": None,
    "mode": "any",
    "n": 58,
    "clusters": 57,
}
WIN = {"statistic": "win_rate", "estimate": 0.56, "low": 0.52, "high": 0.6}


def model_rows(estimates: Any) -> Any:
    return juries_and_models.model_rows(estimates, win_checks(estimates))


@pytest.mark.parametrize(
    ("clusters", "bound", "said"),
    [
        (9, 0.05, "no conclusion: fewer than 10 independent questions"),
        (10, 0.05, "robust to the biases measured"),
        (10, None, "robust to 0 of 1 biases measured"),
    ],
)
def test_a_conclusion_about_models_is_that_of_the_mart(
    make_estimates: Make, clusters: int, bound: float | None, said: str
) -> None:
    bias = {"statistic": "bias_bound", "perturbation": "padding", "estimate": bound}
    sizes = {"clusters": clusters, "too_few": too_few(clusters, None)}
    (row,) = model_rows(make_estimates([WIN, bias], **PAIR | sizes))
    assert row.finding.text.startswith(said)


def test_a_win_rate_that_is_missing_is_not_a_draw(make_estimates: Make) -> None:
    # .20 [.16, .24] of the votes in one order, and no rate over both.
    naive = {"statistic": "win_rate_naive", "estimate": 0.2, "low": 0.16, "high": 0.24}
    none = {
        "statistic": "win_rate",
        "estimate": None,
        "low": None,
        "high": None,
        "reason": "every pair was seen in the same order",
    }
    (row,) = model_rows(make_estimates([naive, none], **PAIR))
    assert row.finding.text == "not estimable: every pair was seen in the same order"


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({}, "r .71; worth 63; \N{PLUS-MINUS SIGN}.05 takes 120"),
        ({"labels_needed": None}, "r .71; worth 63; \N{PLUS-MINUS SIGN}.05 is out of reach"),
        ({"effective_labels": 4.25}, "r .71; worth 4.3; \N{PLUS-MINUS SIGN}.05 takes 120"),
        ({"label_correlation": None}, "(labels do not vary)"),
    ],
)
def test_corrections_tell_what_the_labels_are_worth(
    make_estimates: Make, changes: dict[str, Any], reported: str
) -> None:
    values = {"label_correlation": 0.7123, "effective_labels": 63.2, "labels_needed": 120.0}
    rows = [
        {"statistic": name, "estimate": value, "reason": "labels do not vary"}
        for name, value in (values | changes).items()
    ]
    (row,) = model_rows(make_estimates([WIN, *rows], **PAIR | {"n": 40}))
    assert tuple(row.texts[-1]) == ("40", reported)
