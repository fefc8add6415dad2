from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa

from tasks.statistics.agreement import agreement

Make = Callable[..., Any]
LABELS = ("anchor", "tie", "target")
WEIGHTINGS = {
    "cohen_kappa": None,
    "cohen_kappa_linear": "linear",
    "cohen_kappa_quadratic": "quadratic",
}
LABEL = st.sampled_from([*LABELS, None])


def pair(make: Make, one: list[Any], other: list[Any], **defaults: Any) -> dict[str, Any]:
    rows = [
        {"annotator": who, "item": f"i{at:03}", "label": label}
        for who, labels in (("ada", one), ("Bob", other))
        for at, label in enumerate(labels)
        if label is not None
    ]
    found = agreement(annotations=make(rows, **defaults)).to_dicts()
    assert {(row["judge"], row["subgroup"], row["prompt"]) for row in found} <= {
        ("ada", "Bob", "plain")
    }
    return {row["statistic"]: row for row in found}


def test_docstring_example(make_annotations: Make) -> None:
    one = ["anchor"] * 3 + ["target"] * 4 + ["anchor", "anchor", "target"]
    other = ["anchor"] * 3 + ["target"] * 4 + ["target", "target", "anchor"]
    rows = pair(make_annotations, one, other)
    assert rows["agreement"]["estimate"] == 0.7
    assert rows["cohen_kappa"]["estimate"] == pytest.approx(0.4)
    # Two labels only: all weights but those of agreement are alike.
    assert rows["cohen_kappa_linear"]["estimate"] == pytest.approx(0.4)
    assert rows["cohen_kappa_quadratic"]["estimate"] == pytest.approx(0.4)
    raw = rows["agreement"]
    assert (raw["hits"], raw["n"], raw["clusters"], raw["dropped"]) == (7, 10, 10, 0)
    # G/(G-1) = 10/9, so n_eff = 9: (.7 + .21342) / 1.42683 -+ 1.96 sqrt(.02333 + .01186) / 1.42683
    assert (raw["low"], raw["high"]) == pytest.approx((0.3825, 0.8979), abs=1e-4)
    assert raw["method"] == "cluster-adjusted Wilson"
    # The bootstrap of a mean of ten: binomial(10, .7) / 10 has quantiles .4 and 1 (.9 at .972).
    assert raw["boot_low"] == pytest.approx(0.4, abs=0.11)
    assert raw["boot_high"] == pytest.approx(0.95, abs=0.06)
    kappa = rows["cohen_kappa"]
    assert kappa["low"] < 0.4 < kappa["high"] <= 1
    assert kappa["method"] == "cluster bootstrap, expanded BCa"


def test_ties_are_left_out_where_it_says_so(make_annotations: Make) -> None:
    rows = pair(
        make_annotations, ["tie", "tie", "anchor", "anchor"], ["tie", "anchor", "anchor", "target"]
    )
    assert (rows["agreement"]["hits"], rows["agreement"]["n"]) == (2, 4)
    assert (rows["agreement_decided"]["hits"], rows["agreement_decided"]["n"]) == (1, 2)


@settings(max_examples=40)
@given(st.lists(st.tuples(LABEL, LABEL), min_size=1, max_size=25))
def test_against_statsmodels(make_annotations: Make, votes: list[tuple[Any, Any]]) -> None:
    common = [vote for vote in votes if None not in vote]
    rows = pair(make_annotations, *(list(side) for side in zip(*votes, strict=True)))
    if not common:
        assert rows == {}
        return
    raw = rows["agreement"]
    assert raw["n"] == len(common)
    assert raw["dropped"] == sum((a is None) != (b is None) for a, b in votes)
    assert raw["estimate"] == pytest.approx(np.mean([a == b for a, b in common]))
    table = np.zeros((3, 3))
    for a, b in common:
        table[LABELS.index(a), LABELS.index(b)] += 1
    single = len({label for vote in common for label in vote}) == 1
    for name, weighting in WEIGHTINGS.items():
        row = rows[name]
        if single:
            assert (row["estimate"], row["low"], row["n"]) == (None, None, len(common))
            assert row["reason"].startswith("one label only")
            continue
        expected = cohens_kappa(table, wt=weighting, return_results=False)
        assert row["estimate"] == pytest.approx(expected, abs=1e-12), name
        assert -1 <= row["estimate"] <= 1
        if row["low"] is not None:
            assert row["low"] <= row["estimate"] <= row["high"]


@settings(max_examples=40)
@given(st.lists(st.tuples(LABEL, LABEL), min_size=2, max_size=25))
def test_against_scikit_learn(make_annotations: Make, votes: list[tuple[Any, Any]]) -> None:
    common = [vote for vote in votes if None not in vote]
    rows = pair(make_annotations, *(list(side) for side in zip(*votes, strict=True)))
    # Of a single label scikit-learn's kappa is not a number.
    if len({label for vote in common for label in vote}) < 2:
        return
    one, other = zip(*common, strict=True)
    assert rows["agreement"]["estimate"] == pytest.approx(accuracy_score(one, other), abs=1e-12)
    decided = [vote for vote in common if "tie" not in vote]
    if decided:
        alike = accuracy_score(*zip(*decided, strict=True))
        assert rows["agreement_decided"]["estimate"] == pytest.approx(alike, abs=1e-12)
    for name, weighting in WEIGHTINGS.items():
        expected = cohen_kappa_score(one, other, labels=list(LABELS), weights=weighting)
        assert rows[name]["estimate"] == pytest.approx(expected, abs=1e-12), name


def test_renaming_labels_and_order_of_rows_change_nothing(make_annotations: Make) -> None:
    one, other = list("aabbccaabc"), list("abbbccacbc")
    first = pair(make_annotations, one, other)
    swap = {"a": "y", "b": "x", "c": "z"}
    second = pair(make_annotations, *([swap[label] for label in side] for side in (one, other)))
    assert first["cohen_kappa"]["estimate"] == second["cohen_kappa"]["estimate"]
    weighted = first["cohen_kappa_linear"]
    assert (weighted["estimate"], weighted["reason"]) == (None, "the labels have no order")
    rows = make_annotations(
        [
            {"annotator": w, "item": f"i{i}", "label": v}
            for w, s in (("ada", one), ("Bob", other))
            for i, v in enumerate(s)
        ]
    )
    shuffled = agreement(annotations=rows.sample(fraction=1, shuffle=True, seed=3))
    assert shuffled.equals(agreement(annotations=rows))
    assert shuffled.equals(
        agreement(annotations=rows.with_columns(pl.col(pl.String).cast(pl.Categorical)))
    )


def test_whom_to_compare(make_annotations: Make) -> None:
    people = [{"annotator": name, "item": "i", "label": "tie"} for name in ("Bob", "Amy")]
    models = [
        {"annotator": name, "item": "i", "label": "tie", "prompt": prompt}
        for name, prompt in (("ada", "p"), ("bea", "p"), ("ada", "q"))
    ]
    alone = [{"annotator": "Eve", "item": "other", "label": "tie"}]
    found = agreement(annotations=make_annotations([*people, *models, *alone]))
    pairs = found.filter(pl.col("statistic") == "agreement").select("judge", "prompt", "subgroup")
    assert sorted(pairs.rows()) == [
        ("Amy", "none", "Bob"),
        ("ada", "p", "Amy"),
        ("ada", "p", "Bob"),
        ("ada", "p", "bea"),
        ("ada", "q", "Amy"),
        ("ada", "q", "Bob"),
        ("bea", "p", "Amy"),
        ("bea", "p", "Bob"),
    ]


def test_one_cluster_and_perfect_agreement_have_no_bootstrap(make_annotations: Make) -> None:
    one = ["anchor", "target", "target", "anchor"] * 3
    rows = pair(make_annotations, one, one, cluster="q")
    assert {row["reason"] for row in rows.values()} == {"a single cluster: no interval"}
    rows = pair(make_annotations, one, one)
    assert rows["cohen_kappa"]["estimate"] == 1.0
    assert "draws are equal" in rows["cohen_kappa"]["reason"]
    # Wilson at 12 of 12: 12 / (12 + 3.8415)
    assert rows["agreement"]["low"] == pytest.approx(0.7575, abs=1e-4)
    assert rows["agreement"]["high"] == 1.0


def test_nothing_to_compare(make_annotations: Make) -> None:
    assert agreement(annotations=make_annotations([])).is_empty()
    single = make_annotations([{"annotator": "ada", "item": "i", "label": "tie"}])
    assert agreement(annotations=single).is_empty()


def test_an_aspect_is_named(make_annotations: Make) -> None:
    rows = [{"annotator": who, "item": "i", "label": "tie", "aspect": "tone"} for who in ("a", "B")]
    assert set(agreement(annotations=make_annotations(rows))["subgroup"]) == {"tone: B"}


def test_bootstrap_covers_clusters_not_items(make_annotations: Make) -> None:
    # Ten clusters of eight copies say no more than ten items.
    one, other = list("aabbaabbab"), list("abbbaababb")
    wide = pair(make_annotations, one, other)["cohen_kappa"]
    rows = [
        {"annotator": who, "item": f"i{at}/{copy}", "cluster": f"i{at}", "label": label}
        for who, labels in (("ada", one), ("Bob", other))
        for at, label in enumerate(labels)
        for copy in range(8)
    ]
    copied = agreement(annotations=make_annotations(rows)).filter(
        pl.col("statistic") == "cohen_kappa"
    )
    assert copied["estimate"][0] == pytest.approx(wide["estimate"])
    assert copied["low"][0] == pytest.approx(wide["low"])
    assert (copied["n"][0], copied["clusters"][0]) == (80, 10)
