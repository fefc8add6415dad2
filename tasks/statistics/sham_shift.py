"""Mean preference shift of the sham itself."""

from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from tasks.counting.arms import mean_shift
from tasks.counting.missing_reasons import NO_SHIFT_OF_SHAM
from tasks.counting.verdicts import with_sham
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, section 16 (sham neutrality)",
    family="floor",
    unit="score",
    null=0.0,
    missing=NO_SHIFT_OF_SHAM,
)
def sham_shift(shifts: DataFrame[Shifts]) -> Rows:
    """Measure how far the meaning-free edit (sham) alone moves the mean score.

    ``sham_shift = mean_i (s_sham(i) - s_ctrl(i))``, in [-1, 1].

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
    0 for a judge that the sham does not shift. On the same samples it is MPS minus MPS over the
    sham, so a judge that dislikes the sham seems to like the perturbation, measured over the sham.

    References
    ----------
    methods.md, section 16.

    Examples
    --------
    Scores of control -> sham .5 -> 0 and 1 -> 1 shift by -.5 and 0, so sham_shift = -.25.
    """
    return mean_shift("sham_shift", with_sham(shifts), "control_score", arm="sham_score")
