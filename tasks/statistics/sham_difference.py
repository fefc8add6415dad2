"""Sensitivity of MPS to the choice between two shams."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from tasks.counting.arms import mean_shift
from tasks.counting.missing_reasons import SCORE
from tasks.perturbations import SECOND
from tasks.statistics import Rows, statistic

SAMPLE = ("dataset", "judge", "prompt", "wave", "mode", "sample", "base")


@statistic(
    source="methods.md, section 16 (two sham recipes)",
    family="floor",
    unit="score",
    null=0.0,
    missing=f"no sample has a score in both shams{SCORE}",
)
def sham_difference(shifts: DataFrame[Shifts]) -> Rows:
    """Measure how much MPS over the sham depends on the choice between two shams.

    ``mean_i (s_second(i) - s_first(i))``, the MPS over the first sham minus the MPS over the
    second, as both use the same experimental votes.

    Parameters
    ----------
    shifts
        One row per sample and perturbation, from a study with ``sham = "both"``.

    Returns
    -------
    Estimates
        One row per cell that has both shams.

    Notes
    -----
    0 for a judge that neither sham shifts, or that both shift equally.

    References
    ----------
    methods.md, section 16.

    Examples
    --------
    Scores of first -> second sham .5 -> 1 and 1 -> 1: (.5 + 0) / 2 = .25.
    """
    name = pl.col("perturbation").cast(pl.String)
    second = shifts.filter(name.str.ends_with(SECOND))
    if second.is_empty():
        return []
    scores = second.select(
        *SAMPLE[:-1], base=name.str.strip_suffix(SECOND), second_score="sham_score"
    )
    both = shifts.with_columns(base=name).join(scores, on=SAMPLE, how="inner")
    return mean_shift("sham_difference", both, "sham_score", arm="second_score")
