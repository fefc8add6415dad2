"""Intervals and tests of clustered items, against plain loops, statsmodels and SciPy."""

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.stats import norm, sem, t, ttest_1samp
from statsmodels.stats.proportion import proportion_confint

from tasks.calibration.alt_test import AltTest, alt_test
from tasks.metrics import METRICS

PEOPLE = ("Ann", "Bob", "Cid")


def frame(rows: list[tuple[str, str, str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["annotator", "item", "label"], orient="row").with_columns(
        label=pl.col("label").map_elements(json.dumps, return_dtype=pl.String)
    )


@pytest.fixture(scope="module")
def study() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Forty items of four labels; each person leaves some out, as does the judge."""
    random = np.random.default_rng(3)
    truth = random.integers(0, 3, 40)

    def said(who: str, right: float) -> list[tuple[str, str, str]]:
        return [
            (who, f"i{i:02}", "abcd"[truth[i] if random.random() < right else 3])
            for i in range(40)
            if random.random() < 0.9
        ]

    people = [row for who in PEOPLE for row in said(who, 0.8)]
    return frame(people), frame(said("ada", 0.7))


def run(study: tuple[pl.DataFrame, pl.DataFrame], clusters: pl.DataFrame | None) -> AltTest:
    return alt_test(*study, METRICS["accuracy"], least=10, clusters=clusters)


def outcomes(study: tuple[pl.DataFrame, pl.DataFrame]) -> dict[str, dict[str, int]]:
    """Tell of each person and item whether the judge fits the others at least as well."""
    humans = {(a, i): x for a, i, x in study[0].rows()}
    judge = {i: x for _, i, x in study[1].rows()}
    found: dict[str, dict[str, int]] = {who: {} for who in PEOPLE}
    for (who, item), label in humans.items():
        others = [x for (a, i), x in humans.items() if i == item and a != who]
        if others and item in judge:
            found[who][item] = int(others.count(judge[item]) >= others.count(label))
    return found


def effective(share: float, variance: float, df: float) -> float:
    factor = (t.ppf(0.975, df) / norm.ppf(0.975)) ** 2
    return share * (1 - share) / variance / float(factor)


def wilson(share: float, size: float) -> tuple[float, float]:
    low, high = proportion_confint(share * size, size, method="wilson")
    return float(low), float(high)


def test_a_share_of_items_has_wilsons_interval(study: Any) -> None:
    hits = outcomes(study)
    for row in run(study, None).annotators.to_dicts():
        own = list(hits[row["annotator"]].values())
        assert row["advantage_probability"] == pytest.approx(sum(own) / len(own))
        # G / (G - 1), the design effect of items that are not clustered
        size = len(own) - 1
        assert (row["low"], row["high"]) == pytest.approx(wilson(sum(own) / len(own), size))


@pytest.mark.parametrize("per", [1, 4])
def test_the_mean_over_people_counts_clusters(study: Any, per: int) -> None:
    cluster = {f"i{i:02}": f"c{i // per}" for i in range(40)}
    clusters = pl.DataFrame({"item": list(cluster), "cluster": list(cluster.values())})
    row = run(study, clusters).judges.row(0, named=True)
    hits = outcomes(study)
    sums: dict[str, float] = {}
    asked = {item for own in hits.values() for item in own}
    sizes = Counter(cluster[item] for item in asked)
    shares = {who: sum(own.values()) / len(own) for who, own in hits.items()}
    for who, own in hits.items():
        for item, hit in own.items():
            off = (hit - shares[who]) / len(own) / len(PEOPLE)
            sums[cluster[item]] = sums.get(cluster[item], 0.0) + off
    mean = sum(shares.values()) / len(PEOPLE)
    part = {name: size / len(asked) for name, size in sizes.items()}
    variance = math.fsum(u**2 / (1 - part[name]) for name, u in sums.items())
    squares = {name: p**2 / (1 - p) for name, p in part.items()}
    traces = math.fsum(p**2 for p in part.values()) + sum(squares.values()) ** 2
    df = 1 / (traces - math.fsum(q**2 for q in squares.values()))
    assert row["advantage_probability"] == pytest.approx(mean)
    expected = wilson(mean, effective(mean, variance, df))
    assert (row["low"], row["high"]) == pytest.approx(expected)
    if per == 1:
        plain = run(study, None).judges.row(0, named=True)
        assert (plain["low"], plain["high"]) == pytest.approx(expected)


def four_times(study: Any) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """Copy each item four times; the copies are a cluster."""
    copied = [
        frame(
            [
                (who, f"{item}-{copy}", json.loads(label))
                for who, item, label in labels.rows()
                for copy in range(4)
            ]
        )
        for labels in study
    ]
    names = pl.concat(copied)["item"].unique()
    return copied, pl.DataFrame({"item": names, "cluster": names.str.head(3)})


@pytest.mark.parametrize("kind", ["additive", "multiplicative"])
@pytest.mark.parametrize("test", ["auto", "t", "score"])
def test_copies_of_items_decide_nothing(study: Any, test: Any, kind: Any) -> None:
    options = {"test": test, "epsilons": (0.0, 0.1, 0.3), "kind": kind, "least": 10}
    copied, clusters = four_times(study)
    accuracy = METRICS["accuracy"]
    once = alt_test(*study, accuracy, **options)
    again = alt_test(*copied, accuracy, clusters=clusters, **options)
    blind = alt_test(*copied, accuracy, **options)
    same = ["test", "p_value_t", "p_value_score", "p_adjusted", "rejected"]
    assert_frame_equal(once.annotators.select(same), again.annotators.select(same))
    assert once.judges["winning_rate"].equals(again.judges["winning_rate"])
    assert not once.annotators["p_value"].equals(blind.annotators["p_value"])


def test_with_equal_clusters_the_t_test_is_that_of_their_means() -> None:
    random = np.random.default_rng(8)
    truth = random.integers(0, 3, 60)
    right = random.choice([0.95, 0.3], 15).repeat(4)

    def said(who: str, chance: Any) -> list[tuple[str, str, str]]:
        hit = random.random(60) < chance
        return [(who, f"i{i:02}", "abcd"[truth[i] if hit[i] else 3]) for i in range(60)]

    study = frame([row for who in PEOPLE for row in said(who, 0.8)]), frame(said("ada", right))
    items = [f"i{i:02}" for i in range(60)]
    clusters = pl.DataFrame({"item": items, "cluster": [f"c{i // 4}" for i in range(60)]})
    found = alt_test(*study, METRICS["accuracy"], epsilons=(0.1,), clusters=clusters, test="t")
    humans = {(a, i): x for a, i, x in study[0].rows()}
    judge = {i: x for _, i, x in study[1].rows()}
    more = []
    for row in found.annotators.to_dicts():
        others = [who for who in PEOPLE if who != row["annotator"]]
        lead = []
        for item in items:
            ours, theirs = (
                sum(humans[other, item] == label for other in others)
                for label in (judge[item], humans[row["annotator"], item])
            )
            lead.append(int(theirs >= ours) - int(ours >= theirs))
        means = np.array(lead).reshape(15, 4).mean(axis=1)
        expected = ttest_1samp(means, 0.1, alternative="less")
        if sem(means) > sem(lead):
            assert row["p_value"] == pytest.approx(expected.pvalue)
        else:
            # Clusters never make the error smaller than that of independent items.
            wider = expected.statistic * sem(means) / sem(lead)
            assert row["p_value"] == pytest.approx(t.cdf(wider, 14))
        more.append(sem(means) > sem(lead))
    assert {*more} == {False, True}


def test_clusters_widen_the_interval_of_a_person(study: Any) -> None:
    # Items of a cluster are judged alike: copies of ten items, four of each.
    few = [labels.filter(pl.col("item") < "i10") for labels in study]
    copied, clusters = four_times(few)
    alone = run((copied[0], copied[1]), None).annotators
    together = run((copied[0], copied[1]), clusters).annotators
    hits = outcomes((copied[0], copied[1]))
    for one, two in zip(alone.to_dicts(), together.to_dicts(), strict=True):
        own = hits[one["annotator"]]
        share = sum(own.values()) / len(own)
        # of copies there are as many independent items as clusters, less one
        assert (two["low"], two["high"]) == pytest.approx(wilson(share, len(own) / 4 - 1))
        assert two["high"] - two["low"] > one["high"] - one["low"]


def test_a_single_item_has_no_interval() -> None:
    humans = frame([(who, "i", "a") for who in PEOPLE])
    found = alt_test(humans, frame([("ada", "i", "a")]), METRICS["accuracy"], least=1)
    assert found.judges.select("advantage_probability", "low", "high").rows() == [(1, None, None)]
    assert found.annotators["low"].null_count() == 3


def test_whoever_always_fits_has_an_interval_below_one() -> None:
    rows = [(who, f"i{i}", "a") for who in PEOPLE for i in range(20)]
    found = alt_test(
        frame(rows),
        frame([("ada", f"i{i}", "a") for i in range(20)]),
        METRICS["accuracy"],
        least=1,
    ).judges.row(0, named=True)
    # all of 20: z^2 / (n + z^2) below 1
    assert found["low"] == pytest.approx(20 / (20 + 1.959964**2), abs=1e-6)
    assert found["high"] == 1
