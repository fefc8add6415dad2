"""Tests find what is not there as often as they say: a small, seeded benchmarks/characteristics."""

from typing import Any

import polars as pl
import pytest

from benchmarks.simulated_votes import simulate
from tasks.aggregate import count_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.inference.bootstrap import formulas_only
from tasks.simulation.traits import Traits
from tasks.statistics import STATISTICS

pytestmark = pytest.mark.slow

STUDIES, PAIRS = 500, 400
ALPHA = 0.05
DESIGNS = {
    "142 questions": {"items": 142},
    "20 questions of 8": {"items": 160, "clusters": 20, "shared": 0.5},
}
# The sign test is exact and discrete: docs/reference/operating-characteristics.md has .034 to .039.
SHIFTS = {
    "mps": ("mps", ALPHA),
    "mps_sham": ("mps_sham", ALPHA),
    "dasr": ("dasr", ALPHA),
    "excess_flips": ("net_flips", ALPHA),
    "flip_direction": ("net_flips", 0.037),
}
TALLIES = {
    "los": "los",
    "position_gap": "first_pick_share",
    "preference_fairness": "position_consistency",
    "position_kappa": "position_effect",
}


def expected(size: float, number: int = STUDIES) -> Any:
    """Compare a share of so many studies with ``size``, to three standard errors on either side."""
    return pytest.approx(size, abs=3 * (size * (1 - size) / number) ** 0.5)


def studies(psi: float, design: str) -> pl.DataFrame:
    """Count the votes of judges without any bias, one a study."""
    traits = Traits(omega=1.5, nu=0.5, psi=psi)
    log = simulate(
        traits, kind="promote", beta=0, votes=4, seed=5, studies=STUDIES, **DESIGNS[design]
    )
    return count_votes(log)


def found(statistic: str, row: str, **frames: pl.DataFrame) -> float:
    """Return the share of studies whose p-value is at most .05; all must have one."""
    with formulas_only():
        rows = STATISTICS[statistic](**frames).filter(pl.col("statistic") == row)
    rows = rows.filter(pl.col("perturbation").is_null().any() <= pl.col("perturbation").is_null())
    assert rows["p_value"].count() == STUDIES
    return float(rows.select((pl.col("p_value") <= ALPHA).mean()).item())


@pytest.mark.parametrize(("design", "psi"), [("142 questions", 1.0), ("20 questions of 8", 0.0)])
def test_default_tests_keep_their_size(design: str, psi: float) -> None:
    tallies = studies(psi, design)
    shifts = match_groups(tally_votes(tallies, "balanced"))
    for row, (statistic, size) in SHIFTS.items():
        assert found(statistic, row, shifts=shifts) == expected(size), row
    for row, statistic in TALLIES.items():
        assert found(statistic, row, tallies=tallies) == expected(ALPHA), row


def test_what_prompt_noise_does_to_the_conflict_between_orders() -> None:
    # W - X is 1/2 sum (p - p')^2: 0 without an effect of the order, be it by whim of the prompt.
    # So it prints no p-value; this is what one would find.
    shares = []
    for psi in (0.0, 1.0):
        with formulas_only():
            rows = STATISTICS["excess_conflict"](tallies=studies(psi, "142 questions"))
        mine = rows.filter(pl.col("perturbation").is_null(), statistic="excess_conflict")
        assert (mine.height, mine["p_value"].count()) == (STUDIES, 0)
        inside = mine.select(pl.lit(0.0).is_between("low", "high").mean()).item()
        shares.append(1 - inside)
    assert shares[0] == expected(ALPHA)
    # What 1000 studies of another seed found.
    assert shares[1] == expected(0.32)


def test_two_judges_alike_on_the_same_answers() -> None:
    logs = [
        simulate(
            Traits(omega=1.5, nu=0.5, psi=1.0),
            kind="promote",
            beta=0,
            items=142,
            votes=2,
            seed=seed,
            studies=PAIRS,
            gap_seed=1,
            judge="s",
        ).with_columns(dataset="judge", judge=pl.lit(f"judge {seed}"))
        for seed in (2, 3)
    ]
    shifts = match_groups(tally_votes(count_votes(pl.concat(logs)), "balanced"))
    rows = STATISTICS["contrast"](shifts=shifts)
    # McNemar's test is exact, so conservative: methods.md, section 3, has .03.
    sizes = {"mps_sham_contrast": ALPHA, "asr_contrast": ALPHA, "mcnemar": 0.03}
    for name, size in sizes.items():
        p = rows.filter(statistic=name)["p_value"]
        assert p.count() == PAIRS
        assert (p <= ALPHA).mean() == expected(size, PAIRS), name
