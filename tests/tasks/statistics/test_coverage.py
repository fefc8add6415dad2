"""Intervals hold what was planted as often as they say: a small benchmarks/characteristics.py."""

import polars as pl
import pytest

from benchmarks.simulated_votes import PRESETS, simulate
from tasks.aggregate import count_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.inference.bootstrap import formulas_only
from tasks.simulation.traits import Traits
from tasks.statistics import STATISTICS

pytestmark = pytest.mark.slow

STUDIES, VOTES = 400, 6
# Three standard errors of .95 on either side.
NOMINAL = pytest.approx(0.95, abs=3 * (0.95 * 0.05 / STUDIES) ** 0.5)
LARGE, SMALL = "142 questions", "20 questions of 8"
DESIGNS = {LARGE: {"items": 142}, SMALL: {"items": 160, "clusters": 20, "shared": 0.5}}
# methods.md, section 13: the expected values of the presets, by quadrature.
TRUTH = {
    "honest": {"asr": 0.217, "sham_floor": 0.217, "dasr": 0.0, "mps": 0.0, "mps_sham": 0.0},
    "gullible": {"asr": 0.477, "sham_floor": 0.235, "dasr": 0.242, "mps": 0.139, "mps_sham": 0.139},
    "careless": {
        "asr": 0.340,
        "sham_floor": 0.703,
        "dasr": -0.363,
        "mps": -0.197,
        "mps_sham": -0.197,
    },
}
POSITION = {
    "honest": {"position_consistency": 0.484, "preference_fairness": 0.0, "tie_rate": 0.169},
    "gullible": {"position_consistency": 0.465, "preference_fairness": -0.143, "tie_rate": 0.168},
    "careless": {"position_consistency": 0.412, "preference_fairness": 0.231, "tie_rate": 0.155},
}
# 3.92 standard errors of the per-item sigma in methods.md, section 4, at 142 items and 6 votes, and
# of a proportion near .5 for the rates, each with a tenth on top: holding all is no merit. Shared
# gaps of quality widen the rates of 20 questions by up to a half.
WIDEST = {
    "asr": 0.25,
    "sham_floor": 0.25,
    "dasr": 0.25,
    "mps": 0.11,
    "mps_sham": 0.11,
    "position_consistency": 0.13,
    "preference_fairness": 0.2,
    "tie_rate": 0.08,
    "los": 0.8,
    "position_kappa": 0.55,
    "cohen_kappa": 0.3,
    "fleiss_kappa": 0.25,
}
PLAIN = Traits(omega=1.5, nu=0.5, kappa=0.4)


def held(rows: pl.DataFrame, name: str, truth: float, design: str) -> tuple[int, float, float]:
    """Return of how many studies, how often they hold the truth, and their width in widest ones."""
    null = pl.col("perturbation").is_null()
    mine = rows.filter(pl.col("statistic") == name).filter(null.any() <= null)
    width = (mine["high"] - mine["low"]).mean()
    widest = WIDEST[name] * (1.5 if design == SMALL else 1.0)
    share = mine.select(pl.lit(truth).is_between("low", "high").mean()).item()
    return mine.height, share, width / widest  # type: ignore[operator]


@pytest.mark.parametrize(
    ("preset", "design"),
    [("honest", LARGE), ("gullible", SMALL), ("careless", LARGE), ("careless", SMALL)],
)
def test_intervals_cover_what_was_planted(preset: str, design: str) -> None:
    traits, kind, beta = PRESETS[preset]
    log = simulate(
        traits, kind=kind, beta=beta, votes=VOTES, seed=7000, studies=STUDIES, **DESIGNS[design]
    )
    tallies = count_votes(log)
    shifts = match_groups(tally_votes(tallies, "balanced"))
    with formulas_only():
        rows = pl.concat(
            STATISTICS[name](shifts=shifts) for name in ("asr", "dasr", "mps", "mps_sham")
        )
    for name, truth in TRUTH[preset].items():
        number, share, width = held(rows, name, truth, design)
        assert (number, share, width < 1) == (STUDIES, NOMINAL, True), (name, width)
    with formulas_only():
        rows = pl.concat(
            STATISTICS[name](tallies=tallies) for name in ("position_consistency", "tie_rate")
        )
    for name, truth in POSITION[preset].items():
        number, share, width = held(rows, name, truth, design)
        assert (number, share, width < 1) == (STUDIES, NOMINAL, True), (name, width)


@pytest.mark.parametrize(("beta", "design"), [(-1.0, LARGE), (0.5, SMALL)])
def test_log_odds_come_back(beta: float, design: str) -> None:
    # Without noise of prompts and effects the planted beta and kappa are the truth (methods.md,
    # section 13), and the mean of the studies is within .05 of them: 142 questions with 6 votes
    # have a standard deviation of .15, so the mean of 400 of them one of .008.
    log = simulate(
        PLAIN, kind="promote", beta=beta, votes=VOTES, seed=3, studies=STUDIES, **DESIGNS[design]
    )
    tallies = count_votes(log)
    with formulas_only():
        rows = pl.concat(STATISTICS[name](tallies=tallies) for name in ("los", "position_effect"))
    for name, truth in (("los", beta), ("position_kappa", PLAIN.kappa)):
        null = pl.col("perturbation").is_null()
        mine = rows.filter(pl.col("statistic") == name).filter(null.any() <= null)
        assert mine["estimate"].mean() == pytest.approx(truth, abs=0.05), name
        number, share, width = held(rows, name, truth, design)
        assert (number, share, width < 1) == (STUDIES, NOMINAL, True), (name, width)


def labelled(studies: int, design: str, seed: int) -> pl.DataFrame:
    """Return the labels of three people, a study a dataset."""
    rows = []
    for at, name in enumerate(("Ann", "Bob", "Cat")):
        log = simulate(
            PLAIN,
            kind="promote",
            beta=0,
            votes=2,
            seed=seed + at,
            gap_seed=seed,
            studies=studies,
            judge="s",
            **(DESIGNS | {"one": {"items": 60_000, "clusters": 1}})[design],
        ).filter(arm="control")
        verdicts = tally_votes(count_votes(log), "balanced")
        rows.append(
            verdicts.select(
                "cluster",
                dataset="judge",
                item="sample",
                annotator=pl.lit(name),
                label="verdict",
                prompt=pl.lit(None, dtype=pl.String),
                wave=pl.lit(""),
                votes=pl.lit(2),
                value=pl.lit(None, dtype=pl.Float64),
                aspect=pl.lit(None, dtype=pl.String),
                inconsistent=pl.lit(value=False),
                human=pl.lit(value=True),
                simulated=pl.lit(value=True),
            )
        )
    return pl.concat(rows)


def test_agreement_covers_that_of_very_many() -> None:
    # No closed form: the truth is that of 60 000 items, whose error is a twentieth of a study's.
    with formulas_only():
        many = STATISTICS["fleiss_kappa"](annotations=labelled(1, "one", 90))
    (truth,) = many["estimate"]
    rows = STATISTICS["fleiss_kappa"](annotations=labelled(STUDIES, SMALL, 95))
    number, share, width = held(rows, "fleiss_kappa", truth, SMALL)
    assert (number, share, width < 1) == (STUDIES, NOMINAL, True), width
