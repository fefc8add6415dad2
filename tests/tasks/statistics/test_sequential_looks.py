from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tasks.counting.missing_reasons import NO_SHIFT
from tasks.counting.question_order import in_turn, places
from tasks.statistics.mps_sham import mps_sham
from tasks.statistics.sequential_looks import sequential_looks

Make = Callable[..., Any]
SCORE = st.sampled_from(["anchor", "tie", "target", None])


def looks(shifts: pl.DataFrame) -> dict[str, dict[str, Any]]:
    rows = sequential_looks(shifts=shifts).to_dicts()
    return {row["subgroup"] or "stop": row for row in rows}


def ordered(shifts: pl.DataFrame) -> list[float]:
    """Shifts in the order of their turns, one sample per cluster."""
    turns = in_turn(shifts).clusters.select("cluster", "turn")
    scored = shifts.join(turns, on="cluster").sort("turn")
    return (scored["experimental_score"] - scored["sham_score"]).to_list()


def test_docstring_example(make_shifts: Make) -> None:
    # The order is that of the digests: give each cluster its shift by its turn.
    plain = make_shifts([{"control": "anchor", "sham": "anchor", "experimental": "anchor"}] * 90)
    turn = in_turn(plain).clusters.select("cluster", "turn")
    shifts = plain.join(turn, on="cluster").with_columns(
        experimental_score=(pl.col("turn") % 2).cast(pl.Float64)
    )
    found = looks(shifts)
    # 30 questions, 15 of them 1: sd = sqrt(30/29)/2, t = .5 / (sd / sqrt(30)) = 5.385 on 29.
    assert found["1/3"]["estimate"] == 0.5
    assert found["1/3"]["p_value"] == pytest.approx(2 * stats.t.sf(29**0.5, 29))
    assert (found["stop"]["hits"], found["stop"]["n"]) == (30, 90)
    assert found["stop"]["estimate"] == pytest.approx(1 / 3)


def test_each_look_is_the_t_test_of_the_first_questions(make_shifts: Make) -> None:
    # Second implementation: scipy's t on the prefix, and its quantile at the bound's level.
    draw = np.random.default_rng(5)
    verdicts = np.array(["anchor", "tie", "target"])
    rows = [
        {"control": "tie", "sham": s, "experimental": e}
        for s, e in verdicts[draw.integers(3, size=(50, 2))]
    ]
    shifts = make_shifts(rows)
    x, found = ordered(shifts), looks(shifts)
    for look, number, bound in (("1/3", 17, 3.471), ("2/3", 34, 2.454), ("3/3", 50, 2.004)):
        test = stats.ttest_1samp(x[:number], 0)
        row = found[look]
        assert (row["n"], row["clusters"]) == (number, number)
        assert row["estimate"] == pytest.approx(np.mean(x[:number]))
        assert row["p_value"] == pytest.approx(test.pvalue)
        interval = test.confidence_interval(1 - 2 * stats.norm.sf(bound))
        assert (row["low"], row["high"]) == pytest.approx(
            (max(-1, interval.low), min(1, interval.high))
        )
    assert found["stop"]["estimate"] is None
    assert found["stop"]["reason"] == "no look crosses its bound"
    whole = mps_sham(shifts=shifts).row(0, named=True)
    assert found["3/3"]["estimate"] == pytest.approx(whole["estimate"])
    assert found["3/3"]["standard_error"] == pytest.approx(whole["standard_error"])


def test_samples_of_a_question_come_together(make_shifts: Make) -> None:
    rows = [
        {
            "cluster": f"q{n % 12}",
            "control": "anchor",
            "experimental": "tie" if n < 24 else "anchor",
        }
        for n in range(36)
    ]
    found = looks(make_shifts(rows))
    assert [found[look]["n"] for look in ("1/3", "2/3", "3/3")] == [12, 24, 36]
    assert [found[look]["clusters"] for look in ("1/3", "2/3", "3/3")] == [4, 8, 12]
    # Each question shifts by .5, .5 and 0: all alike, so no interval; only 2 of 2^12 sign flips
    # are as far, but fewer than ten questions stop nothing.
    assert found["3/3"]["estimate"] == pytest.approx(1 / 3)
    assert found["3/3"]["p_value"] == 2.0**-11
    assert found["3/3"]["low"] is None
    assert found["3/3"]["reason"] == "no variation between clusters: no interval"
    assert found["stop"]["hits"] == 36
    assert "over control" in found["stop"]["method"]


@pytest.mark.parametrize("rows", [[{}], [{"control": "tie"}] * 3])
def test_nothing_to_look_at(make_shifts: Make, rows: list[dict[str, Any]]) -> None:
    found = looks(make_shifts(rows))
    assert {row["estimate"] for row in found.values()} == {None}
    assert {row["reason"] for row in found.values()} == {f"nothing qualifies: {NO_SHIFT}"}
    assert found["3/3"]["dropped"] == len(rows)
    assert sequential_looks(shifts=make_shifts([])).is_empty()


def test_a_single_question(make_shifts: Make) -> None:
    found = looks(make_shifts([{"control": "tie", "experimental": "target"}]))
    assert found["3/3"]["estimate"] == 0.5
    assert found["3/3"]["reason"] == "a single cluster: no interval"
    assert found["stop"]["estimate"] is None


@settings(max_examples=25)
@given(arms=st.lists(st.tuples(SCORE, SCORE, SCORE), min_size=1, max_size=40), seed=st.integers(0))
def test_neither_order_of_rows_nor_type_of_keys_matters(
    make_shifts: Make, arms: list[tuple[str | None, ...]], seed: int
) -> None:
    shifts = make_shifts({"control": c, "sham": s, "experimental": e} for c, s, e in arms)
    keys = ("dataset", "judge", "prompt", "wave", "perturbation", "sample", "cluster")
    shuffled = shifts.sample(fraction=1, shuffle=True, seed=seed % 2**32)
    shuffled = shuffled.with_columns(pl.col(keys).cast(pl.Categorical))
    assert sequential_looks(shifts=shuffled).equals(sequential_looks(shifts=shifts))


def test_the_order_depends_on_the_seed_and_no_vote(make_shifts: Make) -> None:
    won = make_shifts([{"control": "anchor", "experimental": "target"}] * 30)
    lost = make_shifts([{"control": "target", "experimental": "anchor"}] * 30)
    assert in_turn(won).clusters["cluster"].equals(in_turn(lost).clusters["cluster"])
    assert not places(won["cluster"]).equals(places(won["cluster"], seed=1))
    # By hashlib: md5 of "0/s000" and so on.
    import hashlib

    names = sorted(won["cluster"], key=lambda name: hashlib.md5(f"0/{name}".encode()).hexdigest())
    assert in_turn(won).clusters["cluster"].to_list() == names
