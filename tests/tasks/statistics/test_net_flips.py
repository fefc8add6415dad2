from collections.abc import Callable
from itertools import product
from math import sqrt
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from tasks.statistics.net_flips import net_flips

Make = Callable[..., Any]
ARMS = ("control", "sham", "experimental")
VERDICT = st.sampled_from(["anchor", "tie", "target", None])
RANK = {"anchor": -1, "tie": 0, "target": 1}
EXAMPLE = [
    ("anchor", "anchor", "target"),
    ("tie", "tie", "target"),
    ("anchor", "tie", "tie"),
    ("target", "target", "tie"),
    ("tie", "tie", "tie"),
]


def by_name(shifts: pl.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["statistic"]: row for row in net_flips(shifts=shifts).to_dicts()}


def samples(triples: list[tuple[str | None, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(ARMS, triple, strict=True)) for triple in triples]


def test_docstring_example(make_shifts: Make) -> None:
    rows = by_name(make_shifts(samples(EXAMPLE)))
    assert (rows["flips_up"]["hits"], rows["flips_down"]["hits"]) == (3, 1)
    assert (rows["flips_up"]["estimate"], rows["flips_down"]["n"]) == (0.6, 5)
    assert (rows["flip_direction"]["estimate"], rows["flip_direction"]["n"]) == (0.5, 4)
    # 3 of 4: 2 * (1 + 4) / 16
    assert rows["flip_direction"]["p_value"] == 0.625
    assert rows["robustness_rate"]["estimate"] == 0.2
    assert rows["consistency_rate"]["estimate"] == 0.8
    assert rows["excess_flips"]["estimate"] == pytest.approx(0.6)
    # Differences 1, 1, 0, 1, 0 less .6: sum of squares 1.2, SE = sqrt(5/4 * 1.2) / 5.
    assert rows["excess_flips"]["standard_error"] == pytest.approx(sqrt(1.5) / 5)


@settings(max_examples=30)
@given(st.lists(st.tuples(VERDICT, VERDICT, VERDICT), min_size=1, max_size=25))
def test_against_counting(make_shifts: Make, triples: list[tuple[str | None, ...]]) -> None:
    rows = by_name(make_shifts(samples(triples)))
    pairs = [(RANK[c], RANK[e]) for c, _, e in triples if c and e]
    up, down = sum(e > c for c, e in pairs), sum(e < c for c, e in pairs)
    for name, hits in (
        ("flips_up", up),
        ("flips_down", down),
        ("robustness_rate", len(pairs) - up - down),
    ):
        assert rows[name]["n"] == len(pairs)
        assert rows[name]["dropped"] == len(triples) - len(pairs)
        if pairs:
            assert (rows[name]["hits"], rows[name]["estimate"]) == (hits, hits / len(pairs))
        else:
            assert rows[name]["estimate"] is None
    direction = rows["flip_direction"]
    if up + down:
        assert direction["estimate"] == pytest.approx((up - down) / (up + down))
        # Second implementation: scipy.
        p_value = binomtest(up, up + down).pvalue
        # A single flip is a single cluster.
        assert direction["p_value"] == (pytest.approx(p_value) if up + down > 1 else None)
    else:
        assert (direction["estimate"], direction["p_value"]) == (None, None)
        assert direction["reason"]
    reported = [(c, s, e) for c, s, e in triples if c and s and e]
    if reported:
        excess = sum((s == c) - (e == c) for c, s, e in reported) / len(reported)
        assert rows["excess_flips"]["estimate"] == pytest.approx(excess)
        assert rows["excess_flips"]["n"] == len(reported)


def test_the_direction_has_the_interval_of_the_share_that_goes_up(make_shifts: Make) -> None:
    # Nine up, one down: the effective size is 10, as deff = 10/9 * .9 / 10^2 / (.09 / 10) = 10/9
    # times 1, so 9: Wilson of 8.1 in 9 by statsmodels, turned to [-1, 1].
    triples = [("anchor", "anchor", "target")] * 9 + [("target", "target", "anchor")]
    row = by_name(make_shifts(samples(triples)))["flip_direction"]
    low, high = proportion_confint(8.1, 9, method="wilson")
    assert (row["estimate"], row["hits"], row["n"]) == (0.8, 9, 10)
    assert (row["low"], row["high"]) == pytest.approx((2 * low - 1, 2 * high - 1))


def test_exchanging_the_answers_turns_the_direction(make_shifts: Make) -> None:
    other = {"anchor": "target", "target": "anchor", "tie": "tie"}
    triples = list(product(other, repeat=3))[4:22]
    forth = by_name(make_shifts(samples(triples)))
    back = by_name(make_shifts(samples([tuple(other[v] for v in t) for t in triples])))
    assert forth["flip_direction"]["estimate"] == -back["flip_direction"]["estimate"] != 0
    assert forth["flips_up"]["estimate"] == back["flips_down"]["estimate"]
    assert forth["excess_flips"] == back["excess_flips"]


def test_without_a_sham_there_are_no_rates_over_it(make_shifts: Make) -> None:
    rows = by_name(make_shifts([{"control": "tie", "experimental": "target"}] * 2))
    assert set(rows) == {"flips_up", "flips_down", "flip_direction", "robustness_rate"}
    assert net_flips(shifts=make_shifts([])).is_empty()


def test_columns_may_be_categorical(make_shifts: Make) -> None:
    shifts = make_shifts(samples(EXAMPLE))
    text = [c for c, t in shifts.schema.items() if t == pl.String]
    categorical = shifts.with_columns(pl.col(text).cast(pl.Categorical))
    assert net_flips(shifts=categorical).equals(net_flips(shifts=shifts))


def test_a_single_cluster_has_no_test(make_shifts: Make) -> None:
    turned = {"control": "anchor", "experimental": "target", "cluster": "q"}
    rows = net_flips(shifts=make_shifts([turned] * 5))
    row = rows.filter(statistic="flip_direction").row(0, named=True)
    assert (row["estimate"], row["clusters"], row["p_value"]) == (1.0, 1, None)


def test_samples_without_a_sham_count_for_flips_only(make_shifts: Make) -> None:
    shammed = samples([("anchor", "tie", "target"), ("tie", "tie", "target")])
    alone = {"control": "anchor", "experimental": "tie"}
    rows = by_name(make_shifts([alone, *shammed, alone]))
    assert (rows["flips_up"]["hits"], rows["flips_up"]["n"]) == (4, 4)
    assert (rows["consistency_rate"]["hits"], rows["consistency_rate"]["n"]) == (1, 2)
    # Of two, one is moved by the sham and both by the experiment.
    assert (rows["excess_flips"]["estimate"], rows["excess_flips"]["n"]) == (0.5, 2)
