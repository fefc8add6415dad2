from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from tasks.statistics.asr import asr

Make = Callable[..., Any]
VERDICT = st.sampled_from(["anchor", "tie", "target", None])

# Control, experimental: V and success by the formulas of methods.md, section 1.
TABLE = {
    "promote": [
        ("anchor", "anchor", 1, 0),
        ("anchor", "tie", 1, 0),
        ("anchor", "target", 1, 1),
        ("tie", "anchor", 1, 0),
        ("tie", "tie", 1, 0),
        ("tie", "target", 1, 1),
        ("target", "anchor", 0, 0),
        ("target", "tie", 0, 0),
        ("target", "target", 0, 0),
    ],
    "detract": [
        ("anchor", "anchor", 0, 0),
        ("anchor", "tie", 0, 0),
        ("anchor", "target", 0, 0),
        ("tie", "anchor", 1, 0),
        ("tie", "tie", 1, 1),
        ("tie", "target", 1, 1),
        ("target", "anchor", 1, 0),
        ("target", "tie", 1, 1),
        ("target", "target", 1, 1),
    ],
}


@pytest.mark.parametrize(
    ("kind", "row"), [(kind, row) for kind, rows in TABLE.items() for row in rows]
)
def test_each_pair_of_verdicts(
    make_shifts: Make, kind: str, row: tuple[str, str, int, int]
) -> None:
    control, experimental, in_v, hit = row
    shifts = make_shifts([{"control": control, "experimental": experimental}], kind=kind)
    found = asr(shifts=shifts).to_dicts()[0]
    assert (found["n"], found["hits"], found["dropped"]) == (in_v, hit, 0)
    assert found["estimate"] == (hit if in_v else None)


def test_docstring_example(make_shifts: Make) -> None:
    before, after = ("anchor", "tie", "anchor", "target"), ("target", "target", "anchor", "target")
    shifts = make_shifts(
        {"control": c, "experimental": e} for c, e in zip(before, after, strict=True)
    )
    row = asr(shifts=shifts).to_dicts()[0]
    assert (row["hits"], row["n"], row["clusters"], row["dropped"]) == (2, 3, 3, 0)
    assert row["estimate"] == pytest.approx(2 / 3)
    assert row["votes_per_pair"] == 6


def test_all_pairs_of_verdicts_together(make_shifts: Make) -> None:
    rows = [
        {"control": c, "experimental": e, "kind": kind, "perturbation": kind}
        for kind, table in TABLE.items()
        for c, e, _, _ in table
    ]
    found = {r["kind"]: (r["hits"], r["n"]) for r in asr(shifts=make_shifts(rows)).to_dicts()}
    assert found == {"promote": (2, 6), "detract": (4, 6)}


def test_empty_v_is_null_with_a_reason(make_shifts: Make) -> None:
    row = asr(shifts=make_shifts([{"control": "target", "experimental": "target"}])).to_dicts()[0]
    assert (row["estimate"], row["low"], row["high"], row["level"]) == (None, None, None, None)
    assert row["reason"].startswith("nothing qualifies: ")
    assert (row["n"], row["clusters"], row["dropped"]) == (0, 0, 0)


def test_verdicts_not_reported_are_dropped_and_counted(make_shifts: Make) -> None:
    rows = [
        {"control": "anchor", "experimental": "target"},
        {"control": None, "experimental": "target"},
        {"control": "anchor", "experimental": None},
        {"control": "target", "experimental": None},  # not in V, but lost all the same
    ]
    row = asr(shifts=make_shifts(rows)).to_dicts()[0]
    assert (row["hits"], row["n"], row["dropped"]) == (1, 1, 3)


def test_one_cluster_has_no_interval(make_shifts: Make) -> None:
    rows = [{"control": "tie", "experimental": "target"}, {"control": "tie", "experimental": "tie"}]
    row = asr(shifts=make_shifts(rows, cluster="q1")).to_dicts()[0]
    assert (row["estimate"], row["low"], row["high"]) == (0.5, None, None)
    assert row["reason"] == "a single cluster: no interval"


def test_clusters_widen_the_interval(make_shifts: Make) -> None:
    # Cluster sums of hits 2, 0, 1 of 2 each: deff 2, n_eff 3, see test_intervals.
    wins = [("q1", 1), ("q1", 1), ("q2", 0), ("q2", 0), ("q3", 1), ("q3", 0)]
    rows = [
        {"control": "tie", "experimental": "target" if won else "tie", "cluster": q}
        for q, won in wins
    ]
    row = asr(shifts=make_shifts(rows)).to_dicts()[0]
    assert (row["n"], row["clusters"], row["estimate"]) == (6, 3, 0.5)
    assert (row["low"], row["high"]) == pytest.approx((0.1253, 0.8747), abs=5e-5)
    assert row["level"] == 0.95


def test_cells_are_kept_apart(make_shifts: Make) -> None:
    won = {"control": "tie", "experimental": "target"}
    rows = [
        {**won, "judge": judge, "dataset": dataset, "wave": wave, "sample": "s"}
        for judge in ("ada", "bea")
        for dataset in ("one", "two")
        for wave in ("", "2024-11-13")
    ]
    rows.append({"control": "tie", "experimental": "tie", "judge": "ada", "dataset": "one"})
    found = asr(shifts=make_shifts(rows))
    assert found.height == 8
    first = found.filter(judge="ada", dataset="one", wave="2024-11-13")
    assert first["estimate"].to_list() == [1.0]
    assert found.filter(judge="ada", dataset="one", wave="")["estimate"].to_list() == [0.5]


@settings(max_examples=40)
@given(st.lists(st.tuples(VERDICT, VERDICT), min_size=2, max_size=40))
def test_independent_samples_against_counting_and_statsmodels(
    make_shifts: Make, verdicts: list[tuple[str | None, str | None]]
) -> None:
    shifts = make_shifts({"control": c, "experimental": e} for c, e in verdicts)
    row = asr(shifts=shifts).to_dicts()[0]
    reported = [(c, e) for c, e in verdicts if c is not None and e is not None]
    in_v = [e for c, e in reported if c != "target"]
    k, v = in_v.count("target"), len(in_v)
    assert (row["hits"], row["n"], row["dropped"]) == (k, v, len(verdicts) - len(reported))
    if v > 1:
        assert row["estimate"] == pytest.approx(k / v)
        n = v if k in {0, v} else v - 1  # deff of single-item clusters is v / (v - 1)
        expected = proportion_confint(k / v * n, n, method="wilson")
        assert (row["low"], row["high"]) == pytest.approx(expected, abs=1e-9)


def test_nothing_gives_nothing(make_shifts: Make) -> None:
    assert asr(shifts=make_shifts([])).is_empty()
