"""How often designs that stop early find what is not there: a small benchmarks/design.py."""

import polars as pl
import pytest

from benchmarks.simulated_votes import simulate
from schemas.judging import VoteLog
from tasks.aggregate import count_votes
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.simulation.traits import Traits
from tasks.statistics import STATISTICS

STUDIES, ITEMS = 250, 142


def found(beta: float, psi: float, statistic: str, row: str) -> pl.Series:
    """Return the share of samples at which each of many studies stops, null if it does not."""
    log = simulate(
        Traits(omega=1.5, nu=0.5, kappa=0.4, psi=psi),
        kind="promote",
        beta=beta,
        items=STUDIES * ITEMS,
        votes=2,
        seed=11,
    )
    number = pl.col("sample").str.extract(r"(\d+)$").cast(pl.Int64) // ITEMS
    log = VoteLog.of(log.with_columns(judge=pl.concat_str(pl.lit("study/"), number)))
    shifts = match_groups(tally_votes(count_votes(log), "balanced"))
    rows = STATISTICS[statistic](shifts=shifts)
    return rows.filter(pl.col("statistic") == row)["estimate"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "row", "size"),
    [("sequential_looks", "sequential_stop", 0.049), ("e_process", "e_stop", 0.009)],
)
def test_size_under_prompt_noise_and_savings(statistic: str, row: str, size: float) -> None:
    quiet = found(0.0, 1.0, statistic, row)
    # methods.md, section 4; at 250 studies three standard errors are .041 and .018.
    assert len(quiet) == STUDIES
    assert abs(quiet.is_not_null().mean() - size) <= 3 * (size * (1 - size) / STUDIES) ** 0.5
    # A logit of bias: "one third fewer items", "45 % fewer".
    loud = found(1.0, 0.5, statistic, row)
    assert loud.is_not_null().mean() > 0.9
    saved = 1 - loud.fill_null(1.0).mean()
    assert saved == pytest.approx({"e_stop": 0.45}.get(row, 0.34), abs=0.06)
