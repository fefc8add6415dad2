"""One rule says what shifts are over, wherever they are shown."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from schemas.results import Estimates
from tasks.aggregate import count_votes
from tasks.conclude import conclude
from tasks.conclusions.summary_scores import acceptability
from tasks.counting.primary_endpoint import primary
from tasks.statistics import STATISTICS

Make = Callable[..., Any]
CELL = ("judge", "perturbation")
SCORE = "; a score needs a valid vote in each order (in mode paper: in either order)"


def shifts(make_shifts: Make, shams: int, **more: Any) -> pl.DataFrame:
    """Two judges on 40 questions: over the control a moves by .3, over the sham by -.1."""
    jitter = np.random.default_rng(3).uniform(-0.05, 0.05, 40)
    return make_shifts(
        [
            {
                "judge": judge,
                "sample": f"s{n:02}",
                "control_score": 0.4,
                "experimental_score": base + jitter[n],
                "has_sham": n < max(shams, 5),
                "sham_score": 0.8 if n < shams else None,
            }
            for judge, base in (("a", 0.7), ("b", 0.75))
            for n in range(40)
        ],
        **more,
    )


@pytest.mark.parametrize(
    ("sham", "control", "expected"),
    [
        (0, 10, "mps"),
        (9, 10, "mps"),
        (9, 40, "mps"),
        (10, 40, "mps_sham"),
        (9, 9, "mps_sham"),
        (None, 40, "mps"),
        (None, 0, "mps"),
        (5, None, "mps_sham"),
    ],
)
def test_a_handful_of_shams_is_no_endpoint(
    make_estimates: Make, sham: int | None, control: int | None, expected: str
) -> None:
    given = {"mps_sham": sham, "mps": control}
    rows = make_estimates(
        [
            {"statistic": name, "perturbation": "boast", "clusters": n, "n": n, "estimate": 0.1}
            for name, n in given.items()
            if n is not None
        ]
    )
    found = primary(rows, CELL)
    assert found["statistic"].to_list() == [expected]
    reported = f"over the control: {sham} of {control} questions have a shift over the sham"
    assert found["instead"].item() == (reported if expected == "mps" and sham is not None else None)


# Of 0 shams five were asked about, and none has a valid vote.
@pytest.mark.parametrize("shams", [0, 5, 9, 10, 40])
def test_every_statistic_takes_the_same(make_shifts: Make, make_vote_log: Make, shams: int) -> None:
    waves = [shifts(make_shifts, shams, wave=wave) for wave in ("n1", "n2")]
    both, frame = pl.concat(waves), waves[0]
    tallies = count_votes(
        make_vote_log([{"judge": judge, "wave": wave} for judge in "ab" for wave in ("n1", "n2")])
    )
    names = ("mps", "mps_sham", "contrast", "ranking", "e_process", "sequential_looks")
    rows = pl.concat(STATISTICS[name](shifts=frame, tallies=tallies) for name in names)
    means, jury, drift = (
        STATISTICS[name](shifts=both, tallies=tallies) for name in ("judge_mean", "jury", "drift")
    )
    over = shams >= 10
    n = shams if over else 40

    def reported(found: pl.DataFrame, statistic: str) -> list[int]:
        return found.filter(statistic=statistic, subgroup="")["n"].to_list()

    findings = conclude(Estimates.of(rows))
    assert findings["statistic"].to_list() == ["mps_sham" if over else "mps"] * 2
    # Over the sham the shift has the other sign than over the control, so it is not confirmed.
    assert set(findings["finding"]) == {"inconclusive" if over else "biased"}
    assert set(findings["estimate"] < 0) == {over}
    reason = f"over the control: {shams} of 40 questions have a shift over the sham"
    unconfirmed = "not confirmed over the control: MPS "
    reported_why = [
        why.startswith(unconfirmed) if over else why == reason for why in findings["reason"]
    ]
    assert all(reported_why)
    named = rows.filter(pl.col("statistic").str.starts_with("mps") & (pl.col("subgroup") == "b"))
    assert named.select("statistic", "n").rows() == [
        ("mps_sham_contrast" if over else "mps_contrast", n)
    ]
    ranks = rows.filter(statistic="rank").sort("judge")
    # a is moved less over the control, b over the sham: .7 less .4, .75 less .8.
    assert ranks.select("estimate", "n").rows() == ([(2, n), (1, n)] if over else [(1, n), (2, n)])
    assert reported(rows, "e_value") == [n, n]
    assert set(rows.filter(statistic="e_value")["method"]) == {
        "betting, over the sham" if over else "betting, over control"
    }
    assert rows.filter(statistic="sequential_shift", subgroup="3/3")["n"].to_list() == [n, n]
    assert reported(means, "mean_shift") == [n] * 2
    assert reported(jury, "jury_correlation") == [n] * 2
    assert drift.filter(statistic="mps_drift")["n"].to_list() == [n] * 2
    assert acceptability(frame)["first"].to_list() == ([0.0, 1.0] if over else [1.0, 0.0])


def test_one_judge_without_shams_is_held_to_the_control_alone(
    make_shifts: Make, make_vote_log: Make
) -> None:
    # Beside others it is measured as they are, and has nothing; its own finding is of its own.
    frame = shifts(make_shifts, 40).with_columns(
        sham_score=pl.when(pl.col("judge").cast(pl.String) == "a").then("sham_score")
    )
    frames = {"shifts": frame, "tallies": count_votes(make_vote_log([{"judge": "a"}]))}
    rows = pl.concat(STATISTICS[name](**frames) for name in ("mps", "mps_sham", "ranking"))
    found = conclude(Estimates.of(rows))
    assert found.select("judge", "statistic").rows() == [("a", "mps_sham"), ("b", "mps")]
    rank = rows.filter(statistic="rank").sort("judge")
    assert rank["reason"].to_list()[1].endswith(f"compared with{SCORE}")


def test_a_wave_without_shams_is_compared_over_the_control(
    make_shifts: Make, make_vote_log: Make
) -> None:
    # The same votes; only the second wave has no valid sham, which is no change of the judge.
    waves = [shifts(make_shifts, shams, wave=wave) for wave, shams in (("n1", 40), ("n2", 0))]
    tallies = count_votes(make_vote_log([{"judge": "a", "wave": wave} for wave in ("n1", "n2")]))
    found = STATISTICS["drift"](shifts=pl.concat(waves), tallies=tallies)
    row = found.filter(statistic="mps_drift", judge="a")
    assert row.select("estimate", "n").rows() == [(0.0, 40)]


def test_a_sham_without_votes_says_so(make_shifts: Make) -> None:
    found = STATISTICS["mps_sham"](shifts=shifts(make_shifts, 0))
    assert set(found["reason"]) == {
        f"nothing qualifies: no sample has a score in the experimental arm and in the sham{SCORE}"
    }
