import math
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.counting.question_order import in_turn
from tasks.statistics.e_process import e_process

Make = Callable[..., Any]
SCORE = st.sampled_from(["anchor", "tie", "target", None])


def both(shifts: pl.DataFrame) -> tuple[dict[str, Any], dict[str, Any]]:
    rows = {row["statistic"]: row for row in e_process(shifts=shifts).to_dicts()}
    return rows["e_value"], rows["e_stop"]


def by_formula(x: list[float]) -> list[float]:
    """Second implementation: the formula of methods.md, section 4, question by question."""
    up = down = 1.0
    path = []
    for t, value in enumerate(x):
        past = x[:t]
        mean = sum(past) / t if t else 0.0
        variance = sum((p - mean) ** 2 for p in past) / t if t else 0.0
        stake = mean / (variance + mean**2) if variance + mean**2 > 0 else 0.0
        up *= 1 + min(max(stake, 0), 0.5) * value
        down *= 1 - min(max(-stake, 0), 0.5) * value
        path.append((up + down) / 2)
    return path


def test_docstring_example(make_shifts: Make) -> None:
    shifts = make_shifts([{"control": "anchor", "experimental": "target"}] * 3)
    value, stop = both(shifts)
    assert value["estimate"] == pytest.approx(1.625)
    assert value["p_value"] == pytest.approx(1 / 1.625)
    assert (value["n"], value["clusters"]) == (3, 3)
    assert (stop["estimate"], stop["reason"]) == (None, "the e-value never reaches 20")


def test_it_stops_when_the_evidence_is_there(make_shifts: Make) -> None:
    # (1.5^(t-1) + 1) / 2 >= 20 first at t - 1 = 10: 1.5^9 = 38.4, 1.5^10 = 57.7.
    rows = [{"control": "target", "sham": "target", "experimental": "anchor"}] * 40
    value, stop = both(make_shifts(rows))
    assert value["estimate"] == pytest.approx((1.5**39 + 1) / 2)
    assert (stop["hits"], stop["n"], stop["estimate"]) == (11, 40, 11 / 40)
    assert value["method"] == "betting, over the sham"


@settings(max_examples=40)
@given(arms=st.lists(st.tuples(SCORE, SCORE), min_size=1, max_size=40), seed=st.integers(0))
def test_by_formula_in_any_order_of_rows(
    make_shifts: Make, arms: list[tuple[str | None, ...]], seed: int
) -> None:
    shifts = make_shifts({"control": c, "experimental": e} for c, e in arms)
    turns = in_turn(shifts).clusters.filter(pl.col("counted") > 0)
    path = by_formula((turns["up"] - turns["down"]).to_list())
    value, stop = both(shifts.sample(fraction=1, shuffle=True, seed=seed % 2**32))
    assert value["dropped"] == sum(None in pair for pair in arms)
    if not path:
        assert (value["estimate"], stop["estimate"]) == (None, None)
        assert value["reason"].startswith("nothing qualifies: ")
        return
    assert value["estimate"] == pytest.approx(path[-1])
    assert value["p_value"] == pytest.approx(min(1, 1 / max(path)))
    reached = [t for t, e in enumerate(path, 1) if e >= 20 * (1 - 1e-12)]
    assert stop["hits"] == (reached[0] if reached else None)


def test_a_question_with_several_samples_is_one_bet(make_shifts: Make) -> None:
    rows = [
        {
            "cluster": f"q{n % 5}",
            "control": "anchor",
            "experimental": "target" if n < 5 else "anchor",
        }
        for n in range(10)
    ]
    value, _ = both(make_shifts(rows))
    # Each question shifts by .5: stake clip(.5 / .25) = .5, so 1.25^4.
    assert value["estimate"] == pytest.approx((1.25**4 + 1) / 2)
    assert (value["n"], value["clusters"]) == (10, 5)


def test_mountains_of_evidence_do_not_overflow(make_shifts: Make) -> None:
    rows = [{"control": "anchor", "experimental": "target"}] * 2500
    value, stop = both(make_shifts(rows))
    assert value["estimate"] == pytest.approx(1e300)
    assert 0 <= value["p_value"] < 1e-300
    assert stop["hits"] == 11


def test_no_shifts_no_rows(make_shifts: Make) -> None:
    assert e_process(shifts=make_shifts([])).is_empty()
    assert math.isclose(
        both(make_shifts([{"control": "tie", "experimental": "tie"}]))[0]["p_value"], 1
    )
