"""Jury: the mean of several judges' scores, evaluated like a judge."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.frame import ranked
from schemas.judging import Shifts, Tallies
from schemas.results import Estimates
from tasks.agreement.coefficients import Coefficient
from tasks.counting.arms import ARMS
from tasks.counting.cells import planned
from tasks.counting.missing_reasons import NO_SHIFT
from tasks.counting.verdicts import verdict_of_mean
from tasks.inference.cluster_sums import Floats
from tasks.panels.error_correlation import correlation, products, size_rows
from tasks.panels.panels import ALL, JudgePanel, of_models, panels
from tasks.statistics import RowMeaning, statistic
from tasks.statistics.asr import asr
from tasks.statistics.dasr import dasr
from tasks.statistics.detection_power import detection_power
from tasks.statistics.mps import mps
from tasks.statistics.mps_sham import mps_sham
from tasks.statistics.net_flips import net_flips
from tasks.statistics.sham_shift import sham_shift

BESIDE = ("control", "sham")
EVALUATED = (mps, mps_sham, sham_shift, asr, dasr, detection_power)
"""Also without each member, unlike ``net_flips``."""
OF_A_JUDGE: dict[str, RowMeaning] = {
    f"jury_{name}": {**row, "family": "jury", "marks_excluded": False}
    for entry in (*EVALUATED, net_flips)
    for name, row in entry.rows.items()
}
UNVARIED = "shifts of the members do not vary"
NO_ERRORS = "a good judge reacts to the flaw, so shifts are not errors"


@statistic(
    source="arXiv:2404.18796; methods.md, section 11",
    gives=tuple(OF_A_JUDGE),
    family="jury",
    floor="as the primary endpoint",
    rows={
        **OF_A_JUDGE,
        "jury_correlation": {"unit": "coefficient", "null": 0.0},
        "jury_size": {"unit": "count"},
    },
    missing=dict.fromkeys(("jury_correlation", "jury_size"), NO_SHIFT),
)
def jury(shifts: DataFrame[Shifts], tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Evaluate the jury of all judges like a single judge, also without each of its members.

    Per item and arm the jury's score is the mean of its members' scores, its verdict the sign of
    ``score - 1/2``. ``jury_size = m / (1 + (m - 1) r)``, r the mean correlation of the members'
    shifts (``jury_correlation``): the number of independent judges with the same noise.

    Parameters
    ----------
    shifts
        One row per sample and perturbation. Members are the judges with a score under the
        perturbation that are neither people nor simulated or, if all are simulated, those.
    tallies
        Used to know who is a person.

    Returns
    -------
    Estimates
        For judge ``jury/all``, per perturbation: the statistics of ``mps``, ``mps_sham``,
        ``sham_shift``, ``asr``, ``dasr`` and ``detection_power``, named ``jury_...``; ``subgroup``
        is empty for the whole jury, else the member left out (of three or more). For the whole jury
        also the statistics of ``net_flips``, and size and correlation, with widened percentiles of
        2000 cluster bootstraps.

    Notes
    -----
    An item needs every member's score in an arm, or the jury has none there: a member without
    scores in one arm would shift the mean. So ``jury_mps`` is the mean of the members' MPS on these
    items: more members reduce noise, but not a bias that they share. r treats shifts as errors, as
    a fair judge has none; members that never vary do not count in it. For errors against labels see
    ``jury_errors``. Rates of a jury are not comparable with a judge's, as it pools the votes of all
    members. A jury has verdicts but no votes, so statistics of votes are undefined: log-odds shift,
    kappa, share of first picks, ties among votes, validity (``jury_accuracy`` evaluates its
    verdicts on control pairs). Its finding is in ``mart.jury``, adjusted over its own
    perturbations: as a function of its members it does not belong to their family.

    References
    ----------
    Verga et al. (2024), Replacing Judges with Juries, arXiv:2404.18796. methods.md, section 11.

    Examples
    --------
    Shifts of .2, 0 and -.2 in every item: jury 0; without the first -.1. Three members with r = .3
    are worth 3 / 1.6 = 1.875 judges.
    """
    return jury_of(of_models(shifts, tallies))


def jury_of(shifts: DataFrame[Shifts]) -> DataFrame[Estimates]:
    """Return the estimates of the jury of all judges in ``shifts``, see :func:`jury`."""
    values = {
        **{arm: pl.col(f"{arm}_score") for arm in ARMS},
        "shammed": pl.col("has_sham").cast(pl.Float64),
        **{f"{arm}_votes": planned(arm) for arm in BESIDE},
    }
    juries = [
        (panel, members) for panel in panels(shifts, values) if len(members := _members(panel)) > 1
    ]
    if not juries:
        return Estimates.empty()
    derived = ranked(pl.concat(_derived(*each) for each in juries))
    whole = derived.filter(subgroup="")
    evaluated = (*((each, derived) for each in EVALUATED), (net_flips, whole))
    found = [
        evaluate.draft(shifts=some).with_columns(statistic=pl.format("jury_{}", "statistic"))
        for evaluate, some in evaluated
    ]
    sizes = [row for each in juries for row in _sizes(*each)]
    return Estimates.draft(pl.concat([*found, pl.DataFrame(sizes, Estimates.dtypes())]))


def _members(panel: JudgePanel) -> list[int]:
    speaking = np.asarray((~np.isnan(panel.values["experimental"])).any(axis=0))
    speakers = [j for j, judge in enumerate(panel.judges) if speaking[j]]
    real = [j for j in speakers if not panel.simulated[j]]
    return real or speakers


def _derived(panel: JudgePanel, members: list[int]) -> pl.DataFrame:
    """Return the shifts of the jury and, if it has three or more, without each of its members."""
    many = len(members)
    juries = [members]
    if many > 2:
        juries += [members[:out] + members[out + 1 :] for out in range(many)]
    items = len(panel.values["control"])
    each = np.repeat(np.arange(len(juries)), items)
    size = np.diff([*panel.starts, items])
    score = {arm: _means(panel.values[arm][:, members], len(juries)) for arm in ARMS}
    shammed = np.nan_to_num(panel.values["shammed"]).any(axis=1)
    left_out = ["", *(panel.judges[j] for j in members)][: len(juries)]
    simulated = pl.Series([panel.simulated_of(jury) for jury in juries], dtype=pl.Boolean)
    votes = {"votes": panel.votes, **{f"{arm}_votes": panel.votes_of(arm) for arm in BESIDE}}
    frame = pl.DataFrame(
        {
            "has_sham": np.tile(shammed, len(juries)),
            **{f"{arm}_score": pl.Series(score[arm]).fill_nan(None) for arm in ARMS},
        }
    )
    clusters = pl.Series([f"{n:09}" for n in range(panel.clusters)], dtype=pl.String)
    places = np.tile(np.repeat(np.arange(panel.clusters), size), len(juries))
    return frame.with_columns(
        **{key: pl.lit(value, dtype=pl.String) for key, value in panel.cell.items()},
        cluster=clusters.gather(places),
        judge=pl.lit(ALL),
        subgroup=pl.Series(left_out, dtype=pl.String).gather(each),
        simulated=simulated.gather(each),
        **{
            name: pl.Series([int(of[jury].sum()) for jury in juries]).gather(each)
            for name, of in votes.items()
        },
        **{arm: verdict_of_mean(pl.col(f"{arm}_score")) for arm in ARMS},
    )


def _means(scores: Floats, juries: int) -> Floats:
    """Return the means over all members, and without each, concatenated by jury."""
    every = [scores, *(np.delete(scores, out, axis=1) for out in range(juries - 1))]
    means: Floats = np.concatenate([members.mean(axis=1) for members in every])
    return means


def _sizes(panel: JudgePanel, members: list[int]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the members' correlation and of the effective size."""
    base = "sham" if panel.over_sham else "control"
    shift = (panel.values["experimental"] - panel.values[base])[:, members]
    whole: NDArray[np.bool_] = np.asarray(~np.isnan(shift).any(axis=1))
    clusters = int((panel.sums(whole) > 0).sum())
    row = {
        **panel.cell,
        "judge": ALL,
        "subgroup": "",
        "simulated": panel.simulated_of(members),
        "dropped": int((~whole).sum()),
        "votes_per_pair": int(panel.votes[members].sum()),
    }
    if clusters and panel.cell["kind"] != "promote":
        estimated = Coefficient(None, reason=NO_ERRORS)
    else:
        estimated = correlation(panel.sums(products(shift, whole)), len(members), UNVARIED)
    used = int(whole.sum()), clusters
    yield from size_rows(("jury_correlation", "jury_size"), row, estimated, len(members), used)
