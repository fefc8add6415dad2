from collections.abc import Callable
from math import sqrt
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulated_votes import PRESETS, simulate
from tasks.aggregate import count_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.statistics.dasr import dasr
from tasks.statistics.replicate_floor import replicate_floor

Make = Callable[..., Any]
VERDICT = st.sampled_from(["anchor", "tie", "target", None])
ARMS = ("control", "experimental", "replicate", "sham")
EXAMPLE = [
    ("anchor", "tie", "anchor", "anchor"),
    ("anchor", "tie", "anchor", "target"),
    ("anchor", "tie", "target", "target"),
]


def by_name(shifts: pl.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["statistic"]: row for row in replicate_floor(shifts=shifts).to_dicts()}


def samples(verdicts: list[tuple[str | None, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(ARMS, each, strict=True)) for each in verdicts]


def test_docstring_example(make_shifts: Make) -> None:
    rows = by_name(make_shifts(samples(EXAMPLE)))
    floor, sensitivity = rows["replicate_floor"], rows["prompt_sensitivity"]
    assert floor["estimate"] == pytest.approx(0.2)
    assert (floor["n"], floor["method"]) == (3, "cluster-adjusted Wilson")
    assert sensitivity["estimate"] == pytest.approx(0.3)
    # u of the shams (won - v / 2) / 2: -1/4, 1/8, 1/8; of the replicates (won - v / 5) / 2.5:
    # -.08, -.08, .16. Differences -.17, .205, -.035: sum of squares .07215.
    assert sensitivity["standard_error"] == pytest.approx(sqrt(3 / 2 * 0.07215))
    assert (sensitivity["n"], sensitivity["method"]) == (3, "cluster linearisation, t")


@settings(max_examples=25)
@given(
    st.lists(st.tuples(*[VERDICT] * 4), min_size=1, max_size=20),
    st.sampled_from(["promote", "detract"]),
)
def test_it_is_the_sham_floor_of_the_replicate(
    make_shifts: Make, verdicts: list[tuple[str | None, ...]], kind: str
) -> None:
    def sham_floor(rows: list[dict[str, Any]]) -> float | None:
        found = dasr(shifts=make_shifts(rows, kind=kind)).filter(
            pl.col("statistic") == "sham_floor"
        )
        return found["estimate"][0]

    rows = samples(verdicts)
    found = by_name(make_shifts(rows, kind=kind))
    expected = sham_floor([{**row, "sham": row["replicate"]} for row in rows])
    assert found["replicate_floor"]["estimate"] == expected
    reported = [row for row in rows if None not in row.values()]
    sensitivity = found["prompt_sensitivity"]
    assert sensitivity["dropped"] == len(rows) - len(reported)
    floors = [
        sham_floor([{**row, "sham": row[arm]} for row in reported]) if reported else None
        for arm in ("sham", "replicate")
    ]
    if None in floors:
        assert sensitivity["estimate"] is None
        assert sensitivity["reason"]
    else:
        assert sensitivity["estimate"] == pytest.approx(floors[0] - floors[1], abs=1e-12)


def test_where_nothing_was_asked_again_there_is_no_row(make_shifts: Make) -> None:
    assert replicate_floor(shifts=make_shifts([{"control": "tie", "sham": "tie"}])).is_empty()
    rows = by_name(make_shifts([{"control": "tie", "experimental": "tie", "replicate": "tie"}] * 2))
    assert set(rows) == {"replicate_floor"}


@pytest.mark.parametrize(("kind", "floor"), [("promote", 0.0), ("detract", 1.0)])
def test_a_judge_that_never_varies_has_its_floor_by_construction(
    make_shifts: Make, kind: str, floor: float
) -> None:
    rows = [{"control": v, "experimental": v, "replicate": v} for v in ("anchor", "tie", "target")]
    assert by_name(make_shifts(rows, kind=kind))["replicate_floor"]["estimate"] == floor


# methods.md, section 13, as printed there: sham floor, replicate floor.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "sham", "again"), [("gullible", 0.235, 0.220), ("careless", 0.703, 0.722)]
)
def test_planted_prompt_noise_comes_back(preset: str, sham: float, again: float) -> None:
    traits, kind, beta = PRESETS[preset]
    log = simulate(traits, kind=kind, beta=beta, items=12_000, votes=6, seed=21, replicates=True)
    rows = by_name(match_groups(tally_votes(count_votes(log), "balanced")))
    assert rows["replicate_floor"]["estimate"] == pytest.approx(again, abs=0.015)
    assert rows["prompt_sensitivity"]["estimate"] == pytest.approx(sham - again, abs=0.02)


def test_replies_that_never_vary_are_flagged(make_shifts: Make) -> None:
    verdicts = [("anchor", "target", "anchor", "anchor"), ("tie", "target", "tie", "anchor")]
    fixed = by_name(make_shifts(samples(verdicts)))["replicate_floor"]
    assert fixed["estimate"] == 0
    assert fixed["method"] == (
        "cluster-adjusted Wilson; replies never vary, so this floor means nothing"
    )
