"""Agreement of people and judges, against scikit-learn and sums by hand."""

import json
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score, jaccard_score

from tasks.calibration import agreement as module
from tasks.calibration.agreement import TOO_MANY, agree
from tasks.inference.bootstrap import formulas_only

Make = Callable[..., pl.DataFrame]
Labels = dict[str, list[Any]]


@pytest.fixture
def annotate(make_annotations: Make) -> Callable[..., pl.DataFrame]:
    """Return a factory of annotations: of each annotator a list, None where there is no label."""

    def make(labels: Labels, **more: Any) -> pl.DataFrame:
        rows = [
            {
                "annotator": who,
                "item": f"i{at:03}",
                "value": x if isinstance(x, float) else None,
                "label": json.dumps(sorted(x)) if isinstance(x, set) else str(x),
                **more,
            }
            for who, own in labels.items()
            for at, x in enumerate(own)
            if x is not None
        ]
        return make_annotations(rows)

    return make


def at(found: pl.DataFrame, statistic: str, judge: str, other: str = "humans") -> dict[str, Any]:
    (row,) = found.filter(statistic=statistic, judge=judge, subgroup=other).to_dicts()
    return row


@pytest.fixture(scope="module")
def labels() -> Labels:
    random = np.random.default_rng(1)
    truth = random.integers(0, 3, 60)
    return {
        who: ["xyz"[t if random.random() < skill else random.integers(0, 3)] for t in truth]
        for who, skill in (("Ann", 0.8), ("Bob", 0.7), ("Cid", 0.9), ("ada", 0.8), ("bee", 0.2))
    }


def test_every_pair_has_kappa_and_share_with_intervals(annotate: Any, labels: Labels) -> None:
    found = agree(annotate(labels), "text")
    people = ("Ann", "Bob", "Cid")
    pairs = [*combinations(people, 2), *((j, p) for j in ("ada", "bee") for p in people)]
    for one, other in pairs:
        kappa, share = (at(found, name, one, other) for name in ("cohen_kappa", "agreement"))
        assert kappa["estimate"] == pytest.approx(cohen_kappa_score(labels[one], labels[other]))
        assert kappa["low"] < kappa["estimate"] < kappa["high"]
        alike = np.mean([a == b for a, b in zip(labels[one], labels[other], strict=True)])
        assert share["estimate"] == pytest.approx(alike)
        assert share["low"] < share["estimate"] < share["high"]
        assert share["n"] == 60
    # names have no order, and nobody said tie
    reported = set(found["statistic"])
    assert not reported & {
        "cohen_kappa_quadratic",
        "krippendorff_alpha_interval",
        "agreement_decided",
    }
    assert {"noise_ceiling", "below_ceiling", "ceiling_ratio", "gwet_ac1"} <= reported


def test_alpha_with_a_judge_is_that_of_people_if_the_judge_were_one(
    annotate: Any, labels: Labels
) -> None:
    with formulas_only():
        found = agree(annotate(labels), "text")
        for judge in ("ada", "bee"):
            crowd = {name: labels[name] for name in ("Ann", "Bob", "Cid")}
            as_person = agree(annotate({**crowd, judge.title(): labels[judge]}), "text")
            assert at(found, "krippendorff_alpha_nominal", judge)["estimate"] == pytest.approx(
                at(as_person, "krippendorff_alpha_nominal", "humans", "")["estimate"]
            )
    alphas = [at(found, "krippendorff_alpha_nominal", j)["estimate"] for j in ("ada", "bee")]
    assert alphas[0] > at(found, "krippendorff_alpha_nominal", "humans", "")["estimate"] - 0.1
    assert alphas[1] < alphas[0]


def test_numbers_have_weights(annotate: Any) -> None:
    random = np.random.default_rng(2)
    truth = random.integers(1, 6, 40)
    labels = {
        who: [float(np.clip(t + random.integers(-1, 2), 1, 5)) for t in truth]
        for who in ("Ann", "Bob", "ada")
    }
    with formulas_only():
        found = agree(annotate(labels), "number")
    one, two = labels["Ann"], labels["ada"]
    for name, weights in (("linear", "linear"), ("quadratic", "quadratic")):
        expected = cohen_kappa_score(
            [int(x) for x in two], [int(x) for x in one], weights=weights, labels=[1, 2, 3, 4, 5]
        )
        assert at(found, f"cohen_kappa_{name}", "ada", "Ann")["estimate"] == pytest.approx(expected)
    assert at(found, "krippendorff_alpha_interval", "humans", "")["estimate"] is not None


def test_sets_agree_as_wholes_in_part_and_name_by_name(annotate: Any) -> None:
    random = np.random.default_rng(3)
    names = ["a", "b", "c", "never"]
    held = {who: random.random((50, 4)) < [0.5, 0.3, 0.7, 0] for who in ("Ann", "Bob")}
    held["ada"] = held["Ann"] ^ (random.random((50, 4)) < [0.2, 0.1, 0.2, 0])
    labels: Labels = {
        who: [{n for n, bit in zip(names, row, strict=True) if bit} for row in own]
        for who, own in held.items()
    }
    found = agree(annotate(labels), "set")
    one, two = held["ada"], held["Ann"]
    kappas = [cohen_kappa_score(one[:, k], two[:, k]) for k in range(3)]
    row = at(found, "label_kappa", "ada", "Ann")
    assert row["estimate"] == pytest.approx(np.mean(kappas))
    assert row["low"] < row["estimate"] < row["high"]
    each = jaccard_score(two, one, average="samples", zero_division=1)
    assert at(found, "mean_jaccard", "ada", "Ann")["estimate"] == pytest.approx(each)
    whole = np.mean([a == b for a, b in zip(labels["ada"], labels["Ann"], strict=True)])
    assert at(found, "agreement", "ada", "Ann")["estimate"] == pytest.approx(whole)


def test_sets_without_any_name_have_no_kappa(annotate: Any) -> None:
    labels: Labels = {who: [set()] * 12 for who in ("Ann", "Bob", "ada")}
    found = agree(annotate(labels), "set")
    row = at(found, "label_kappa", "ada", "Ann")
    assert (row["estimate"], row["reason"]) == (None, "every label is in all sets or in none")
    assert at(found, "mean_jaccard", "ada", "Ann")["estimate"] == 1
    kappa = at(found, "cohen_kappa", "ada", "Ann")
    assert (kappa["estimate"], kappa["reason"]) == (
        None,
        "one label only: chance agreement is certain",
    )


def test_too_many_names_have_a_reason(annotate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 1)
    monkeypatch.setattr(module, "MOST_SETS", 1)
    labels: Labels = {who: [{"a", "b"}, {"b"}] * 6 for who in ("Ann", "Bob", "ada")}
    found = agree(annotate(labels), "set")
    assert at(found, "label_kappa", "ada", "Ann")["reason"] == module.MANY_NAMES
    assert "mean_jaccard" not in found["statistic"]


def test_many_different_numbers_have_an_interval_alpha(annotate: Any) -> None:
    random = np.random.default_rng(4)
    truth = random.normal(size=50)
    labels = {who: [float(t + random.normal() / 2) for t in truth] for who in ("Ann", "Bob", "ada")}
    with formulas_only():
        found = agree(annotate(labels), "number")
    for judge, other, chosen in (("humans", "", ("Ann", "Bob")), ("ada", "humans", tuple(labels))):
        own = np.array([labels[who] for who in chosen])
        within = np.mean([(a - b) ** 2 for col in own.T for a, b in combinations(col, 2)])
        between = np.mean([(a - b) ** 2 for a, b in combinations(own.ravel(), 2)])
        alpha = at(found, "krippendorff_alpha_interval", judge, other)["estimate"]
        # Krippendorff (2011): 1 - observed over expected disagreement, of all pairs of values.
        assert alpha == pytest.approx(1 - within / between)


def test_a_matrix_that_is_too_large_is_refused_with_a_reason(
    annotate: Any, labels: Labels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SUMS", 10)
    with formulas_only():
        found = agree(annotate(labels), "text")
    for name in ("cohen_kappa", "krippendorff_alpha_nominal"):
        row = at(found, name, "ada")
        assert (row["estimate"], row["reason"]) == (None, TOO_MANY)
    assert "agreement" not in found["statistic"]
    assert at(found, "ceiling_ratio", "ada")["estimate"] is not None


def test_one_person_and_one_judge_that_share_nothing(annotate: Any) -> None:
    found = agree(annotate({"Ann": ["x", None], "ada": [None, "x"]}), "text")
    assert found.filter(pl.col("estimate").is_not_null()).is_empty()
    assert at(found, "noise_ceiling", "ada")["reason"] is not None
