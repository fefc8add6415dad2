from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.statistics.dasr import dasr

Make = Callable[..., Any]
VERDICTS = ("anchor", "tie", "target")
VERDICT = st.sampled_from([*VERDICTS, None])
ARMS = ("control", "experimental", "sham")


def both(shifts: pl.DataFrame) -> tuple[dict[str, Any], dict[str, Any]]:
    rows = {row["statistic"]: row for row in dasr(shifts=shifts).to_dicts()}
    return rows["dasr"], rows["sham_floor"]


def by_formula(
    samples: list[tuple[str | None, ...]], kind: str
) -> tuple[Fraction | None, Fraction | None]:
    """Second implementation: the sums of methods.md, section 2, sample by sample."""
    num = den = floor = Fraction(0)
    for control, experimental, sham in samples:
        if None in (control, experimental, sham):
            continue
        excluded = "target" if kind == "promote" else "anchor"
        v_control, v_sham = int(control != excluded), int(sham != excluded)
        won = {
            name: int(verdict == "target" if kind == "promote" else verdict != "anchor")
            for name, verdict in (("c", control), ("e", experimental), ("s", sham))
        }
        num += Fraction(v_control * (won["e"] - won["s"]) + v_sham * (won["e"] - won["c"]), 2)
        den += Fraction(v_control + v_sham, 2)
        floor += Fraction(v_control * won["s"] + v_sham * won["c"], 2)
    return (num / den, floor / den) if den else (None, None)


def test_docstring_example(make_shifts: Make) -> None:
    shifts = make_shifts([{"control": "anchor", "sham": "tie", "experimental": "target"}])
    above, floor = both(shifts)
    assert (above["estimate"], floor["estimate"]) == (1.0, 0.0)
    assert (above["n"], above["clusters"]) == (1, 1)


def test_promote_by_hand(make_shifts: Make) -> None:
    # control, sham, experimental: num | den | floor
    # anchor anchor target: 1 | 1 | 0
    # anchor target target: (1 - 1)/2 = 0 | .5 | .5
    # tie    tie    tie:    0 | 1 | 0
    # target anchor anchor: (0 - 1)/2 = -.5 | .5 | .5
    # target target target: no V, not counted
    arms = [
        ("anchor", "anchor", "target"),
        ("anchor", "target", "target"),
        ("tie", "tie", "tie"),
        ("target", "anchor", "anchor"),
        ("target", "target", "target"),
    ]
    shifts = make_shifts({"control": c, "sham": s, "experimental": e} for c, s, e in arms)
    above, floor = both(shifts)
    assert above["estimate"] == pytest.approx(0.5 / 3)
    assert floor["estimate"] == pytest.approx(1 / 3)
    assert (above["n"], above["clusters"], above["dropped"]) == (4, 4, 0)
    # R = 1/6; u = 5/6, -1/12, -1/6, -7/12: sum u^2 = 1.069444; SE = sqrt(4/3 * that) / 3.
    assert above["standard_error"] == pytest.approx(0.398040, abs=5e-6)


def test_floor_is_one_proportion_by_wilson(make_shifts: Make) -> None:
    # k = 1 of v = 3 as above: u = -1/3, 1/3, -1/3, 1/3; var = 4/3 * (4/9) / 9 = .065844 against
    # (1/3)(2/3)/3 = .074074, so deff .8889 (halves vary less than 0 and 1), n_eff = 3.375, times
    # (1.9600 / 3.1824)^2 (t of three degrees) 1.2801: centre (1/3 + 3.8415/2.5603) / 4.0008 =
    # .4583, half 1.96 sqrt(.1736 + .5860) / 4.0008 = .4270.
    arms = [
        ("anchor", "anchor", "target"),
        ("anchor", "target", "target"),
        ("tie", "tie", "tie"),
        ("target", "anchor", "anchor"),
        ("target", "target", "target"),
    ]
    shifts = make_shifts({"control": c, "sham": s, "experimental": e} for c, s, e in arms)
    _, floor = both(shifts)
    assert floor["method"] == "cluster-adjusted Wilson"
    assert (floor["low"], floor["high"]) == pytest.approx((0.0314, 0.8853), abs=1e-4)
    assert (floor["p_value"], floor["standard_error"]) == (None, None)


@pytest.mark.parametrize("kind", ["promote", "detract"])
def test_every_triple_of_verdicts(make_shifts: Make, kind: str) -> None:
    for triple in product(VERDICTS, repeat=3):
        shifts = make_shifts([dict(zip(ARMS, triple, strict=True))], kind=kind)
        above, floor = both(shifts)
        assert (above["estimate"], floor["estimate"]) == by_formula([triple], kind), triple


@settings(max_examples=40)
@given(
    st.lists(st.tuples(VERDICT, VERDICT, VERDICT), max_size=30, min_size=1),
    st.sampled_from(["promote", "detract"]),
)
def test_against_the_formula(
    make_shifts: Make, samples: list[tuple[str | None, ...]], kind: str
) -> None:
    shifts = make_shifts((dict(zip(ARMS, sample, strict=True)) for sample in samples), kind=kind)
    for row, expected in zip(both(shifts), by_formula(samples, kind), strict=True):
        assert row["dropped"] == sum(None in sample for sample in samples)
        if expected is None:
            assert row["estimate"] is None
            assert row["reason"] is not None
        else:
            assert row["estimate"] == pytest.approx(float(expected), abs=1e-12)
            assert -1 <= row["estimate"] <= 1
    floor = both(shifts)[1]
    if floor["low"] is not None:
        assert 0 <= floor["low"] <= floor["estimate"] <= floor["high"] <= 1


def test_exchanging_control_and_sham_changes_nothing(make_shifts: Make) -> None:
    triples = list(product(VERDICTS, repeat=3))[3:20]
    rows = [{"control": c, "experimental": e, "sham": s} for c, e, s in triples]
    swapped = [{"control": s, "experimental": e, "sham": c} for c, e, s in triples]
    assert both(make_shifts(rows)) == both(make_shifts(swapped))


def test_one_cluster_has_no_interval(make_shifts: Make) -> None:
    rows = [
        {"control": "tie", "sham": "tie", "experimental": "target"},
        {"control": "tie", "sham": "tie", "experimental": "tie"},
    ]
    for row in both(make_shifts(rows, cluster="q")):
        assert (row["low"], row["reason"]) == (None, "a single cluster: no interval")


def test_every_sample_won_gets_newcombe(make_shifts: Make) -> None:
    rows = [{"control": "tie", "sham": "tie", "experimental": "target"}] * 4
    above, floor = both(make_shifts(rows))
    assert (above["method"], above["p_value"]) == ("Newcombe", 0.125)
    assert (above["low"], above["high"]) == pytest.approx((0.307190, 1), abs=5e-7)
    assert (floor["estimate"], floor["low"]) == (0.0, 0.0)
    # z^2 / (4 + z^2) = 3.841459 / 7.841459.
    assert floor["high"] == pytest.approx(0.489891, abs=5e-7)


def test_samples_without_a_sham_are_left_out(make_shifts: Make) -> None:
    assert dasr(shifts=make_shifts([{"control": "tie", "experimental": "target"}])).is_empty()
    assert dasr(shifts=make_shifts([])).is_empty()


def test_samples_without_a_sham_have_no_part(make_shifts: Make) -> None:
    rows = [{"control": "anchor", "sham": "tie", "experimental": "target"}] * 3
    alone = {"control": "anchor", "experimental": "target"}
    mixed = make_shifts([alone, *rows, alone])
    assert mixed["has_sham"].to_list() == [False, True, True, True, False]
    for some, all_of_them in zip(both(mixed), both(make_shifts(rows)), strict=True):
        assert (some["estimate"], some["n"]) == (all_of_them["estimate"], 3)
        assert some["clusters"] == 3
