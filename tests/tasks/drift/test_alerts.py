from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from schemas.judging import Tallies
from tasks.drift.alerts import fresh_votes, watch

Make = Callable[..., Any]
VERDICTS = np.array(["anchor", "target"])
CHANGED = {4: "second"}


@pytest.fixture
def tallies(make_vote_log: Make) -> Make:
    """Return the tallies of one plain pair per wave: they only say which waves there are."""
    from tasks.aggregate import count_votes

    def make(
        waves: int, *, cached: tuple[int, ...] = (), judges: tuple[str, ...] = ("ada",)
    ) -> Any:
        rows = [
            {"wave": f"n{w:02}", "choice": "tie", "judge": judge, "cached": w in cached}
            for w in range(waves)
            for judge in judges
        ]
        return count_votes(make_vote_log(rows))

    return make


def nights(make_shifts: Make, shares: list[float], judge: str = "ada", seed: int = 1) -> Any:
    """Shifts of 100 samples a night, of which so many go from anchor to target."""
    draw = np.random.default_rng(seed)
    frames = []
    for night, share in enumerate(shares):
        won = VERDICTS[(draw.random(100) < share).astype(int)]
        rows = [{"control": "anchor", "experimental": verdict} for verdict in won]
        frames.append(make_shifts(rows, wave=f"n{night:02}", judge=judge))
    return pl.concat(frames)


def states(rows: pl.DataFrame, judge: str = "ada") -> list[tuple[Any, ...]]:
    mine = rows.filter(measure="mps_drift", judge=judge).sort("wave")
    return mine.select("wave", "epoch", "base", "state").rows()


def test_a_change_is_suspect_then_confirmed_then_the_baseline(
    make_shifts: Make, tallies: Make
) -> None:
    found = watch(tallies(7), nights(make_shifts, [0.2, 0.2, 0.7, 0.7, 0.7, 0.7, 0.1]))
    assert states(found) == [
        ("n01", 1, "n00", "quiet"),
        ("n02", 1, "n00", "suspect"),
        ("n03", 1, "n00", "alert"),
        ("n04", 2, "n03", "quiet"),
        ("n05", 2, "n03", "quiet"),
        ("n06", 2, "n03", "suspect"),
    ]


def test_a_change_that_does_not_last_is_no_alert(make_shifts: Make, tallies: Make) -> None:
    found = watch(tallies(5), nights(make_shifts, [0.5, 0.95, 0.5, 0.05, 0.95]))
    # The last two change in opposite directions, so neither confirms the other.
    assert [state for *_, state in states(found)] == ["suspect", "quiet", "suspect", "suspect"]


def test_a_night_from_the_cache_neither_confirms_nor_clears(
    make_shifts: Make, tallies: Make
) -> None:
    found = watch(tallies(5, cached=(2,)), nights(make_shifts, [0.2, 0.7, 0.7, 0.7, 0.7]))
    assert states(found) == [
        ("n01", 1, "n00", "suspect"),
        ("n02", 1, "n00", "not measured"),
        ("n03", 1, "n00", "alert"),
        ("n04", 2, "n03", "quiet"),
    ]


def half_cached(make: Make, copied: int) -> Any:
    """Forty pairs; the first wave is won by the anchor, what is new in the next by the target.

    The next wave's votes on the first ``copied`` pairs are copies of those of the first.
    """
    slots = {"anchor": ("first", "second"), "target": ("second", "first")}
    return make(
        {
            "wave": wave,
            "sample": f"s{n:02}",
            "shown_first": side,
            "choice": choice,
            "label": "anchor",
            "cached": wave == "n1" and n < copied,
        }
        for wave in ("n0", "n1")
        for n in range(40)
        for side, choice in zip(
            ("anchor", "target"),
            slots["target" if wave == "n1" and n >= copied else "anchor"],
            strict=True,
        )
    )


def test_copies_in_a_wave_are_no_new_measurement(make_vote_log: Make, make_shifts: Make) -> None:
    from tasks.aggregate import count_votes

    fresh = fresh_votes(half_cached(make_vote_log, 20))
    found = watch(count_votes(fresh), make_shifts([]))
    row = found.filter(measure="agreement_drift").row(0, named=True)
    # Of the twenty new ones all are wrong now: with the copies it would be half of forty.
    assert (row["estimate"], row["n"], row["state"]) == (-1.0, 20, "suspect")
    assert row["p_value"] == 2.0**-19


def test_a_wave_of_copies_is_not_measured(make_vote_log: Make, make_shifts: Make) -> None:
    from tasks.aggregate import count_votes

    log = half_cached(make_vote_log, 40)
    for votes in (log, fresh_votes(log)):
        found = watch(count_votes(votes), make_shifts([]))
        assert set(found["state"]) == {"not measured"}
        assert set(found["reason"]) == {"not measured: every vote is from a cache"}


def test_what_is_not_a_copy_stays(make_vote_log: Make) -> None:
    # A first wave has nothing to be a copy of; of others it may be unknown.
    log = make_vote_log(
        [
            {"wave": wave, "judge": judge, "cached": cached}
            for wave, judge, cached in (
                ("n0", "ada", True),
                ("n1", "ada", None),
                ("n1", "bea", True),
                ("n2", "bea", False),
            )
        ]
    )
    assert fresh_votes(log).equals(log)


@pytest.mark.parametrize(
    ("clusters", "reported"), [(9, ["not measured"] * 2), (10, ["suspect", "alert"])]
)
def test_nine_questions_are_no_alert(
    make_shifts: Make, tallies: Make, clusters: int, reported: list[str]
) -> None:
    # All move alike: p is 2^-8 and 2^-9, both below 1/90.
    base = make_shifts([{"control": "tie", "experimental": "tie"}] * clusters, wave="n00")
    moved = [
        base.with_columns(wave=pl.lit(f"n0{n}"), experimental_score=pl.lit(0.9)) for n in (1, 2)
    ]
    rows = watch(tallies(3), pl.concat([base, *moved])).filter(measure="mps_drift").sort("wave")
    assert rows["state"].to_list() == reported
    assert rows["p_value"].to_list() == [2.0 ** (1 - clusters)] * 2
    few = "fewer than 10 independent questions" if clusters < 10 else None
    assert rows["reason"].to_list() == [few] * 2


def test_a_change_below_its_minimum_is_no_alert(make_shifts: Make, tallies: Make) -> None:
    # Every one of 100 samples moves by .04, so p is 2^-99.
    base = make_shifts([{"control_score": 0.5, "experimental_score": 0.5}] * 100, wave="n00")
    small = base.with_columns(wave=pl.lit("n01"), experimental_score=pl.lit(0.54))
    large = base.with_columns(wave=pl.lit("n02"), experimental_score=pl.lit(0.56))
    found = watch(tallies(3), pl.concat([base, small, large])).filter(measure="mps_drift")
    assert found["state"].to_list() == ["quiet", "suspect"]
    assert found["p_value"].max() == 2.0**-99


def test_an_epoch_is_of_one_judge(make_shifts: Make, tallies: Make) -> None:
    shifts = pl.concat(
        [
            nights(make_shifts, [0.2, 0.7, 0.7, 0.7]),
            nights(make_shifts, [0.5] * 4, judge="bea", seed=2),
        ]
    )
    found = watch(tallies(4, judges=("ada", "bea")), shifts)
    assert [epoch for _, epoch, *_ in states(found)] == [1, 1, 2]
    assert [epoch for _, epoch, *_ in states(found, "bea")] == [1, 1, 1]


def test_what_can_be_seen_is_reported(make_shifts: Make, tallies: Make) -> None:
    found = watch(tallies(2), nights(make_shifts, [0.5, 0.5])).filter(measure="mps_drift")
    row = found.row(0, named=True)
    # One cell has a p-value beside position's, which has no votes that are no ties: level a.
    se = (row["high"] - row["low"]) / 2 / 1.98422  # t of 99 degrees of freedom
    assert row["level"] == pytest.approx(1 / 90)
    # 2.5392 is the normal quantile of 1 - 1/180, .8416 that of .8.
    assert row["detectable"] == pytest.approx((2.5392 + 0.8416) * se, rel=1e-3)


def test_waves_come_in_the_order_given(make_shifts: Make, tallies: Make) -> None:
    shifts = nights(make_shifts, [0.2, 0.7])
    found = watch(tallies(2), shifts, waves=["n01", "n00"]).filter(measure="mps_drift")
    assert found.select("wave", "base").rows() == [("n00", "n01")]
    assert watch(tallies(1), shifts.filter(wave="n00")).is_empty()
    assert watch(Tallies.empty(), shifts.clear()).is_empty()


def test_canary_of_texts_and_of_eight_votes_of_baseline(
    make_vote_log: Make, make_shifts: Make
) -> None:
    from tasks.aggregate import count_votes

    # Two votes a night, "first" in nights 0 to 3 and 5, "second" in night 4.
    rows = [
        {"wave": f"n{w:02}", "sample": f"s{i}", "repeat": r, "choice": CHANGED.get(w, "first")}
        for w in range(6)
        for i in range(10)
        for r in range(2)
    ]
    log = make_vote_log(rows, simulated=True)
    texts = log.group_by("dataset", "judge", "prompt", "wave", item="sample", outcome="choice").agg(
        votes=pl.len()
    )
    found = watch(count_votes(log), make_shifts([]), texts)
    for measure in ("verdict_drift", "text_drift"):
        row = found.filter(measure=measure, wave="n04").row(0, named=True)
        # A baseline of eight, all alike, and two others: M = 2; 1 of 45 ways, ten times over.
        assert (row["estimate"], row["state"], row["n"]) == (2.0, "suspect", 10)
        assert row["simulated"] is True
        assert row["p_value"] == pytest.approx(45.0**-10, rel=0.01, abs=1e-4)
        quiet = found.filter(pl.col("measure") == measure, pl.col("wave") != "n04")
        assert quiet["state"].to_list() == ["quiet"] * 4


def test_a_suspect_wave_is_no_part_of_the_baseline_that_it_is_confirmed_against(
    make_vote_log: Make, make_shifts: Make
) -> None:
    from tasks.aggregate import count_votes

    # Two samples of each of ten questions; the judge changes for good in night 1.
    rows = [
        {"wave": f"n{w}", "sample": f"s{i}", "cluster": f"c{i // 2}", "repeat": r, "choice": choice}
        for w, choice in enumerate(("first", "second", "second"))
        for i in range(20)
        for r in range(2)
    ]
    log = make_vote_log(rows)
    keys = ("dataset", "judge", "prompt", "wave")
    texts = log.group_by(*keys, item="sample", outcome="choice").agg(votes=pl.len())
    found = watch(count_votes(log), make_shifts([]), texts)
    for measure in ("verdict_drift", "text_drift"):
        rows = found.filter(measure=measure).sort("wave").select("estimate", "state", "clusters")
        # All alike in each night, and never across: M = 1 + 1 - 0. With night 1 in the baseline of
        # night 2: 2 of 6 pairs of four replies are alike, 2 of 4 across: 1/3 + 1 - 2 * 1/2 = 1/3.
        assert rows.rows() == [(2.0, "suspect", 10), (2.0, "alert", 10)]


def test_a_wave_with_an_alert_is_the_next_baseline_whatever_else_is_suspect_in_it(
    make_vote_log: Make, make_shifts: Make
) -> None:
    from tasks.aggregate import count_votes

    # Replies change in night 1, which night 2 confirms; in night 2 shifts change too.
    rows = [
        {"wave": f"n{w:02}", "sample": f"s{i}", "repeat": r, "choice": choice}
        for w, choice in enumerate(("first", "second", "second", "second"))
        for i in range(20)
        for r in range(2)
    ]
    log = make_vote_log(rows)
    keys = ("dataset", "judge", "prompt", "wave")
    texts = log.group_by(*keys, item="sample", outcome="choice").agg(votes=pl.len())
    found = watch(count_votes(log), nights(make_shifts, [0.2, 0.2, 0.7, 0.7]), texts)
    assert ("n02", 1, "n00", "suspect") in states(found)
    for measure in ("verdict_drift", "text_drift"):
        rows = found.filter(measure=measure).sort("wave").select("base", "estimate", "state")
        assert rows.rows() == [
            ("n00", 2.0, "suspect"),
            ("n00", 2.0, "alert"),
            ("n02", 0.0, "quiet"),
        ]


def test_canary_of_first_tokens_sees_what_no_verdict_tells(
    make_vote_log: Make, make_shifts: Make
) -> None:
    from tasks.aggregate import count_votes

    # Two votes a night, all alike; the chance of their first token is .9, and .5 in night 4.
    rows = [
        {"wave": f"n{w:02}", "sample": f"s{i}", "repeat": r, "choice": "first"}
        for w in range(6)
        for i in range(10)
        for r in range(2)
    ]
    log = make_vote_log(rows)
    tokens = log.select(
        "dataset",
        "judge",
        "prompt",
        "wave",
        item="sample",
        first_token=pl.lit("A"),
        first_probability=pl.when(pl.col("wave") == "n04").then(0.5).otherwise(0.9),
    )
    found = watch(count_votes(log), make_shifts([]), tokens=tokens)
    row = found.filter(measure="token_drift", wave="n04").row(0, named=True)
    # Eight alike, two others alike: 1 + 1 - 2 * .6 = .8, one of 45 ways, ten times over.
    assert (row["estimate"], row["n"]) == (pytest.approx(0.8), 10)
    assert (row["state"], row["mode"], row["base"]) == ("suspect", "any", "n00")
    assert row["p_value"] < 1e-4
    quiet = found.filter(pl.col("measure") == "token_drift", pl.col("wave") != "n04")
    assert quiet["state"].to_list() == ["quiet"] * 4
    assert found.filter(measure="verdict_drift")["estimate"].to_list() == [0.0] * 5
    without = watch(count_votes(log), make_shifts([]), tokens=tokens.clear())
    assert "token_drift" not in set(without["measure"])


def test_e_values_stand_beside_and_decide_nothing(make_shifts: Make, tallies: Make) -> None:
    shifts = pl.concat(
        [
            nights(make_shifts, [0.1, 0.9]),
            nights(make_shifts, [0.5, 0.5], judge="bea", seed=2),
        ]
    )
    found = watch(tallies(2, judges=("ada", "bea")), shifts)
    moved = found.filter(measure="mps_drift").sort("judge")
    # Two e-values at 1/90: the largest needs 2 * 90.
    assert moved["e_rejected"].to_list() == [True, False]
    assert moved["e_value"][0] > 180 > moved["e_value"][1]
    assert found.filter(pl.col("measure") != "mps_drift")["e_rejected"].null_count() > 0
    cached = watch(tallies(2, judges=("ada", "bea"), cached=(1,)), shifts)
    assert cached.filter(measure="mps_drift")["e_value"].to_list() == [None, None]


def test_agreement_is_watched(make_vote_log: Make, make_shifts: Make) -> None:
    from tasks.aggregate import count_votes

    # Forty pairs, right before and wrong after: p = 2 / 2^40.
    rows = [
        {
            "wave": wave,
            "sample": f"s{n:02}",
            "shown_first": side,
            "choice": choice,
            "label": "anchor",
        }
        for wave, slots in (("n0", ("first", "second")), ("n1", ("second", "first")))
        for n in range(40)
        for side, choice in zip(("anchor", "target"), slots, strict=True)
    ]
    found = watch(count_votes(make_vote_log(rows)), make_shifts([]))
    row = found.filter(measure="agreement_drift").row(0, named=True)
    assert (row["estimate"], row["minimum"], row["state"]) == (-1.0, 0.05, "suspect")
    assert row["p_value"] == 2.0**-39
