"""Intervals hold what was planted as often as they say: a small, seeded benchmarks/coverage.py."""

import polars as pl
import pytest

from schemas.judging import VoteLog
from tasks.aggregate import count_votes, match_groups, tally_votes
from tasks.providers._simulate import PRESETS, simulate
from tasks.statistics import STATISTICS

STUDIES, ITEMS, VOTES = 150, 142, 6
# methods.md, section 13: the expected values of the presets, by quadrature.
TRUTH = {
    "honest": {"asr": 0.217, "sham_floor": 0.217, "dasr": 0.0, "mps": 0.0, "mps_sham": 0.0},
    "gullible": {"asr": 0.477, "sham_floor": 0.235, "dasr": 0.242, "mps": 0.139, "mps_sham": 0.139},
    "careless": {
        "asr": 0.340, "sham_floor": 0.703, "dasr": -0.363, "mps": -0.197, "mps_sham": -0.197
    },
}  # fmt: skip


# 3.92 standard errors of the per-item sigma in methods.md, section 4, at 142 items and 6 votes, and
# of a proportion near .5 for the rates, each with a tenth on top: holding all is no merit.
WIDEST = {"asr": 0.25, "sham_floor": 0.25, "dasr": 0.25, "mps": 0.11, "mps_sham": 0.11}


@pytest.mark.parametrize("preset", PRESETS)
def test_intervals_cover_what_was_planted(preset: str) -> None:
    traits, kind, beta = PRESETS[preset]
    logs = [
        simulate(
            traits, kind=kind, beta=beta, items=ITEMS, votes=VOTES, seed=seed,
            judge=f"simulated/{seed}",
        )
        for seed in range(7000, 7000 + STUDIES)
    ]  # fmt: skip
    shifts = match_groups(tally_votes(count_votes(VoteLog.of(pl.concat(logs))), "balanced"))
    rows = pl.concat(STATISTICS[name](shifts=shifts) for name in ("asr", "dasr", "mps", "mps_sham"))
    for name, truth in TRUTH[preset].items():
        mine = rows.filter(pl.col("statistic") == name)
        held = mine.select(pl.lit(truth).is_between("low", "high").mean())
        assert (mine["high"] - mine["low"]).mean() < WIDEST[name], name
        # .95 with a standard error of .018 at 150 studies; outside 3.3 of them once in 1000.
        assert 0.89 <= held.item() <= 1.0, (name, held.item())


def test_default_test_keeps_its_size_under_prompt_noise() -> None:
    # No bias, prompt noise of one logit (methods.md, sections 2 and 13): 5 % of studies may be
    # significant; at 300 studies the standard error is .0126, and these bounds three of them.
    traits = PRESETS["honest"].traits.model_copy(update={"psi": 1.0})
    logs = [
        simulate(
            traits, kind="promote", beta=0.0, items=ITEMS, votes=2, seed=seed,
            judge=f"simulated/{seed}",
        )
        for seed in range(9000, 9300)
    ]  # fmt: skip
    shifts = match_groups(tally_votes(count_votes(VoteLog.of(pl.concat(logs))), "balanced"))
    for name in ("mps_sham", "dasr"):
        rows = STATISTICS[name](shifts=shifts).filter(pl.col("statistic") == name)
        assert 0.012 <= (rows["p_value"] < 0.05).mean() <= 0.088, name
