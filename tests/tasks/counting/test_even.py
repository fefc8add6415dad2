"""Arms with unequal votes per pair (methods, section 1: never compare ASRs with different n)."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tasks.aggregate import count_votes
from tasks.counting.cells import UNEQUAL
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.statistics import STATISTICS

Make = Callable[..., Any]
COMPARED = {
    "dasr": {"dasr", "sham_floor"},
    "detection_power": {"detection_gain", "detection_power"},
    "net_flips": {
        "flips_up",
        "flips_down",
        "flip_direction",
        "robustness_rate",
        "consistency_rate",
        "excess_flips",
    },
    "replicate_floor": {"replicate_floor", "prompt_sensitivity"},
}


def shifts(make_shifts: Make, **columns: Any) -> pl.DataFrame:
    arms = [("tie", "anchor", "target", "target"), ("target", "tie", "tie", "tie")] * 6
    names = ("control", "experimental", "sham", "replicate")
    rows = [dict(zip(names, each, strict=True)) for each in arms]
    return make_shifts(rows, kind="detract", **columns)


@pytest.mark.parametrize("statistic", COMPARED)
def test_rates_of_unequal_arms_are_not_compared(make_shifts: Make, statistic: str) -> None:
    measure = STATISTICS[statistic]
    equal = dict.fromkeys(("control_votes", "sham_votes", "replicate_votes"), 6)
    assert measure(shifts=shifts(make_shifts, **equal)).equals(measure(shifts=shifts(make_shifts)))
    found = measure(shifts=shifts(make_shifts, votes=2, **equal))
    # Of means of scores, that unequal votes do not bend.
    found = found.filter(pl.col("statistic") != "detection_share")
    assert set(found["statistic"]) == COMPARED[statistic]
    for row in found.to_dicts():
        reported = [
            row[name] for name in ("estimate", "low", "p_value", "hits", "level", "boot_low")
        ]
        assert reported == [None] * 6
        assert (row["n"], row["dropped"], row["reason"]) == (0, 12, UNEQUAL)
        assert row["votes_per_pair"] == 2


def test_what_needs_no_equal_votes_stays(make_shifts: Make) -> None:
    plain, uneven = shifts(make_shifts), shifts(make_shifts, control_votes=2, sham_votes=4)
    for name in ("mps", "mps_sham"):
        assert STATISTICS[name](shifts=uneven).equals(STATISTICS[name](shifts=plain))
    (row,) = STATISTICS["asr"](shifts=uneven).to_dicts()
    assert row["method"] == "cluster-adjusted Wilson; 2 votes per pair in control"
    assert (row["estimate"], row["votes_per_pair"]) == (0.5, 6)
    # The sham alone has other votes: control and experimental arm are still compared.
    found = STATISTICS["net_flips"](shifts=shifts(make_shifts, sham_votes=4))
    null = found.filter(pl.col("estimate").is_null())["statistic"]
    assert set(null) == {"consistency_rate", "excess_flips"}


def test_the_votes_of_each_arm_are_carried(make_vote_log: Make) -> None:
    asked = {"control": 6, "experimental": 2, "sham": 4}
    log = [
        {"sample": "s1", "arm": arm, "shown_first": side, "repeat": repeat}
        for arm, votes in asked.items()
        for side in ("anchor", "target")
        for repeat in range(votes // 2)
    ]
    found = match_groups(tally_votes(count_votes(make_vote_log(log)), "balanced"))
    columns = ("control_votes", "votes", "sham_votes", "replicate_votes")
    assert found.select(columns).rows() == [(6, 2, 4, None)]


def _log(make_vote_log: Make, experimental: int) -> pl.DataFrame:
    """Return two judges' votes, six per pair of the other arms, over two waves and 12 samples."""
    votes = {"control": 6, "sham": 6, "experimental": experimental}
    return make_vote_log(
        [
            {
                "judge": judge,
                "wave": wave,
                "sample": f"s{item}",
                "arm": arm,
                "shown_first": side,
                "repeat": repeat,
                "choice": ("first", "second", "tie")[(item * 7 + repeat + len(arm + judge)) % 3],
            }
            for judge in ("ada", "bob")
            for wave in ("n1", "n2")
            for item in range(12)
            for arm, asked in votes.items()
            for side in ("anchor", "target")
            for repeat in range(asked // 2)
        ]
    )


def test_nor_are_they_in_means_juries_and_waves(make_vote_log: Make) -> None:
    names = ("contrast", "judge_mean", "jury", "drift")
    found = {}
    for votes in (6, 2):
        tallies = count_votes(_log(make_vote_log, votes))
        frames = {"tallies": tallies, "shifts": match_groups(tally_votes(tallies, "balanced"))}
        rows = pl.concat(
            STATISTICS[name](**{table: frames[table] for table in STATISTICS[name].reads})
            for name in names
        )
        found[votes] = {
            name: (part["estimate"].is_null().all(), {*part["reason"].drop_nulls()})
            for (name,), part in rows.group_by("statistic")
        }
    # Of the arms of each judge; two judges, alike in each arm, are compared all the same.
    uneven = {"mean_dasr", "mean_sham_floor", "jury_dasr", "jury_excess_flips", "dasr_drift"}
    stay = {"mean_shift", "mean_asr", "mps_sham_contrast", "asr_contrast", "mps_drift"}
    assert not any(found[6][name][0] for name in uneven | stay)
    for name in uneven | stay:
        null, reasons = found[2][name]
        assert null == (name in uneven), name
        assert not null or reasons == {UNEQUAL}, (name, reasons)
