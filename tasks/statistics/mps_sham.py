"""Mean preference shift over the sham."""

from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from tasks.counting.arms import mean_shift
from tasks.counting.missing_reasons import NO_SHIFT_OVER_SHAM
from tasks.counting.verdicts import with_sham
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, section 2 (primary endpoint where a sham exists)",
    family="effect",
    unit="score",
    null=0.0,
    floor="sham",
    missing=NO_SHIFT_OVER_SHAM,
)
def mps_sham(shifts: DataFrame[Shifts]) -> Rows:
    """Measure how far a perturbation moves the mean score beyond a meaning-free edit.

    ``MPS_sham = mean_i (s_exp(i) - s_sham(i))``, in [-1, 1].

    Parameters
    ----------
    shifts
        One row per sample and perturbation; samples without a sham are left out.

    Returns
    -------
    Estimates
        One row per cell that has shams.

    Notes
    -----
    Removes effects that the sham shares with the perturbation, above all of length.

    References
    ----------
    methods.md, sections 2 and 7.

    Examples
    --------
    Scores in sham -> experimental .5 -> 1 and 1 -> 1 shift by .5 and 0, so MPS_sham = .25.
    """
    return mean_shift("mps_sham", with_sham(shifts), "sham_score")
