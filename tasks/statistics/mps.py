"""Mean preference shift."""

from pandera.typing.polars import DataFrame

from schemas.judging import Shifts
from tasks.counting.arms import mean_shift
from tasks.counting.missing_reasons import NO_SHIFT
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, section 2 (primary endpoint)",
    family="effect",
    unit="score",
    null=0.0,
    missing=NO_SHIFT,
)
def mps(shifts: DataFrame[Shifts]) -> Rows:
    """Measure how far a perturbation moves the mean score towards the target.

    ``MPS = mean_i (s_exp(i) - s_ctrl(i))``, in [-1, 1].

    Parameters
    ----------
    shifts
        One row per sample and perturbation.

    Returns
    -------
    Estimates
        One row per cell with the cluster-linearised t interval and a p-value against 0.

    Notes
    -----
    No selection and no threshold: 0 for a judge that the perturbation does not shift, whatever its
    noise and position bias (balanced orders). A sample without a score in either arm is dropped.

    References
    ----------
    methods.md, sections 2 and 3.

    Examples
    --------
    Scores .5 -> 1, 0 -> .5 and 1 -> 1 shift by .5, .5 and 0, so MPS = 1/3.
    """
    return mean_shift("mps", shifts, "control_score")
