"""Several judges as one."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts, Tallies
from schemas.results import Estimates
from tasks.statistics import statistic
from tasks.statistics._bootstrap import DRAWS, FORMULAS, by_chance, resampled
from tasks.statistics._even import planned
from tasks.statistics._intervals import EMPTY, LEVEL, SINGLE
from tasks.statistics._models import of_models
from tasks.statistics._panels import Panel, panels
from tasks.statistics._quantiles import widened
from tasks.statistics.asr import asr
from tasks.statistics.dasr import dasr
from tasks.statistics.mps import mps
from tasks.statistics.mps_sham import mps_sham
from tasks.statistics.net_flips import net_flips

ALL = "jury/all"
ARMS = ("control", "experimental", "sham")
BESIDE = ("control", "sham")
EVALUATED = (mps, mps_sham, asr, dasr)
FLIPS = tuple(f"jury_{name}" for name in net_flips.gives)
UNVARIED = "shifts of the members do not vary"
NO_ERRORS = "a judge that sees the flaw moves too: shifts are no errors"
OPPOSED = "errors of the members cancel out: the size has no bound"
UNBOUNDED = "errors of the members may cancel out: the interval has no upper end"
Floats = NDArray[np.float64]


@statistic(
    source="arXiv:2404.18796; methods.md, section 11",
    gives=(
        "jury_mps", "jury_mps_sham", "jury_asr", "jury_dasr", "jury_sham_floor",
        "jury_correlation", "jury_size", *FLIPS,
    ),
)  # fmt: skip
def jury(shifts: DataFrame[Shifts], tallies: DataFrame[Tallies]) -> DataFrame[Estimates]:
    """Evaluate the jury of all judges exactly like a judge, and without each of its members.

    Per item and arm the jury's score is the mean of its members' scores, its verdict the sign of
    ``score - 1/2``. ``jury_size = m / (1 + (m - 1) r)``, r the mean correlation of the members'
    shifts (``jury_correlation``): how many independent judges the noise of m members is worth.

    Parameters
    ----------
    shifts
        One row per sample and perturbation. Members are the judges that are no person and no
        formula and have a score under the perturbation; where all are simulated, all.
    tallies
        Read for who is a person.

    Returns
    -------
    Estimates
        Of judge ``jury/all``, per perturbation: what ``mps``, ``mps_sham``, ``asr`` and ``dasr``
        give, named ``jury_...``, ``subgroup`` empty for the whole jury, else the member left out
        (of three or more); of the whole jury what ``net_flips`` gives; and size and correlation,
        with expanded percentiles of 2000 cluster bootstraps.

    Notes
    -----
    An item needs every member's score in an arm, or the jury has none there: a member that falls
    silent in one arm alone would shift the mean. So ``jury_mps`` is the mean of the members' MPS on
    these items: noise falls with more members, a bias that they share does not. Shifts are errors
    where a fair judge has none, hence r; members that never vary have no part in it. Rates of a
    jury are not comparable with those of a judge: it has the votes of all members together. A jury
    has verdicts but no votes, so what is made of votes it cannot have: no log-odds shift, kappa,
    share of first picks, ties among votes or validity (``jury_accuracy`` has what its verdicts on
    control pairs tell). Its finding is in ``mart.jury``, adjusted over its own perturbations: as a
    function of its members it is no further member of their family.

    References
    ----------
    Verga et al. (2024), Replacing Judges with Juries, arXiv:2404.18796. methods.md, section 11.

    Examples
    --------
    Shifts of .2, 0 and -.2 in every item: jury 0; without the first -.1. Three members with r = .3
    are worth 3 / 1.6 = 1.875 judges.
    """
    return jury_of(of_models(shifts, tallies))


def jury_of(
    shifts: DataFrame[Shifts], members: Sequence[str] | None = None, name: str = ALL
) -> DataFrame[Estimates]:
    """Return the estimates of the jury of ``members``; by default of all, see :func:`jury`."""
    values = {
        **{arm: pl.col(f"{arm}_score") for arm in ARMS},
        "shammed": pl.col("has_sham").cast(pl.Float64),
        **{f"{arm}_votes": planned(arm) for arm in BESIDE},
    }
    juries = [(panel, chosen) for panel in panels(shifts, values)
              if len(chosen := _members(panel, members)) > 1]  # fmt: skip
    if not juries:
        return Estimates.empty()
    derived = pl.concat(_derived(panel, chosen, name) for panel, chosen in juries)
    whole = derived.filter(pl.col("subgroup").cast(pl.String) == "")
    found = [
        evaluate.draft(shifts=some).with_columns(statistic=pl.format("jury_{}", "statistic"))
        for evaluate, some in (*((each, derived) for each in EVALUATED), (net_flips, whole))
    ]
    sizes = [row for panel, chosen in juries for row in _sizes(panel, chosen, name)]
    return Estimates.draft(pl.concat([*found, pl.DataFrame(sizes, Estimates.dtypes())]))


def _members(panel: Panel, names: Sequence[str] | None) -> list[int]:
    speaking = np.asarray((~np.isnan(panel.values["experimental"])).any(axis=0))
    told = [j for j, judge in enumerate(panel.judges) if speaking[j]]
    if names is not None:
        return [j for j in told if panel.judges[j] in names]
    real = [j for j in told if not panel.simulated[j]]
    return real or told


def _derived(panel: Panel, members: list[int], name: str) -> pl.DataFrame:
    """Return the shifts of the jury and, of three or more, those without each of its members."""
    many = len(members)
    juries = [members]
    if many > 2:
        juries += [members[:out] + members[out + 1 :] for out in range(many)]
    items = len(panel.values["control"])
    each = np.repeat(np.arange(len(juries)), items)
    size = np.diff([*panel.starts, items])
    score = {
        arm: np.concatenate([panel.values[arm][:, jury].mean(axis=1) for jury in juries])
        for arm in ARMS
    }
    shammed = np.nan_to_num(panel.values["shammed"]).any(axis=1)
    cell = {key: value for key, value in panel.cell.items() if key != "has_sham"}
    left_out = pl.Series(["", *(panel.judges[j] for j in members)][: len(juries)])
    simulated = pl.Series([_simulated(panel, jury) for jury in juries], dtype=pl.Boolean)
    votes = {"votes": panel.votes, **{f"{arm}_votes": panel.votes_of(arm) for arm in BESIDE}}
    frame = pl.DataFrame(
        {
            "cluster": np.tile(np.repeat(np.arange(panel.clusters), size), len(juries)),
            "has_sham": np.tile(shammed, len(juries)),
            **{f"{arm}_score": pl.Series(score[arm]).fill_nan(None) for arm in ARMS},
        }
    )
    # Means of scores that add up to a tie may miss 1/2 by the last digits.
    lean = {arm: (pl.col(f"{arm}_score") - 0.5).round(9) for arm in ARMS}
    return frame.with_columns(
        pl.col("cluster").cast(pl.String).cast(pl.Categorical),
        **{key: pl.lit(value, dtype=pl.Categorical) for key, value in cell.items()},
        judge=pl.lit(name, dtype=pl.Categorical),
        subgroup=left_out.cast(pl.Categorical).gather(each),
        simulated=simulated.gather(each),
        **{
            name: pl.Series([int(of[jury].sum()) for jury in juries]).gather(each)
            for name, of in votes.items()
        },
        **{
            arm: pl.when(sign < 0).then(pl.lit("anchor")).when(sign > 0).then(pl.lit("target"))
            .when(sign == 0).then(pl.lit("tie"))
            for arm, sign in lean.items()
        },
    )  # fmt: skip


def _simulated(panel: Panel, members: list[int]) -> bool | None:
    marks = {panel.simulated[j] for j in members}
    return True if True in marks else None if None in marks else False


def _sizes(panel: Panel, members: list[int], name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of the members' correlation and of the size that it leaves."""
    base = "sham" if panel.cell["has_sham"] else "control"
    shift = (panel.values["experimental"] - panel.values[base])[:, members]
    whole: NDArray[np.bool_] = np.asarray(~np.isnan(shift).any(axis=1))
    clusters = int((panel.sums(whole) > 0).sum())
    r, low, high, why = _correlation(panel, shift, whole, clusters)
    row = {
        **{key: value for key, value in panel.cell.items() if key != "has_sham"},
        "judge": name, "subgroup": "", "simulated": _simulated(panel, members),
        "dropped": int((~whole).sum()), "votes_per_pair": int(panel.votes[members].sum()),
    }  # fmt: skip
    used = int(whole.sum()), clusters
    yield row | _numbers("jury_correlation", (r, low, high), used, why)
    size, least, most = (_size(value, len(members)) for value in (r, high, low))
    if r is not None and size is None:
        why = OPPOSED
    elif low is not None and most is None:
        why = UNBOUNDED
    yield row | _numbers("jury_size", (size, least, most), used, why)


def _correlation(
    panel: Panel, shift: Floats, whole: NDArray[np.bool_], clusters: int
) -> tuple[float | None, float | None, float | None, str | None]:
    """Return the mean correlation, its interval, and why one of them is missing."""
    if not clusters:
        return None, None, None, EMPTY
    if panel.cell["kind"] != "promote":
        return None, None, None, NO_ERRORS
    members = shift.shape[1]
    sums = _product_sums(panel, np.where(whole[:, None], shift, 0.0), whole)
    r = float(_mean_correlation(sums.sum(axis=0)[None], members)[0])
    if np.isnan(r):
        return None, None, None, UNVARIED
    if clusters < 2:
        return r, None, None, SINGLE
    if not by_chance():
        return r, None, None, FORMULAS
    drawn = _mean_correlation(resampled(sums), members)
    level = float(widened(LEVEL, clusters))
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(drawn[~np.isnan(drawn)], tails).tolist()
    return r, min(low, r), max(high, r), None


def _numbers(
    name: str,
    values: tuple[float | None, float | None, float | None],
    used: tuple[int, int],
    why: str | None,
) -> dict[str, Any]:
    """Return what a row says; an interval has both ends, and no estimate rests on nothing."""
    estimate, low, high = values
    known = None not in values
    n, clusters = (0, 0) if estimate is None else used
    return {
        "statistic": name, "estimate": estimate, "low": low if known else None,
        "high": high if known else None, "level": LEVEL if known else None, "n": n,
        "clusters": clusters, "reason": why,
        "method": f"cluster bootstrap, {DRAWS} draws" if known else "none",
    }  # fmt: skip


def _size(r: float | None, members: int) -> float | None:
    rest = 0.0 if r is None else 1 + (members - 1) * r
    return members / rest if rest > 1e-9 else None


def _product_sums(panel: Panel, shift: Floats, whole: NDArray[np.bool_]) -> Floats:
    """Return cluster sums of one, of shifts, of their squares and of their products by pair."""
    first, second = np.triu_indices(shift.shape[1], 1)
    products = shift[:, first] * shift[:, second]
    return panel.sums(np.concatenate([whole[:, None], shift, shift**2, products], axis=1))


def _mean_correlation(sums: Floats, members: int) -> Floats:
    """Return the mean correlation of pairs, a row of sums each; not a number if none varies."""
    first, second = np.triu_indices(members, 1)
    n = np.maximum(sums[:, :1], 1.0)
    mean, square, product = np.split(sums[:, 1:] / n, [members, 2 * members], axis=1)
    variance = square - mean**2
    spread = np.sqrt(np.where(variance > 1e-12, variance, 0.0))
    scale = spread[:, first] * spread[:, second]
    shared = product - mean[:, first] * mean[:, second]
    told = scale > 0
    r = np.divide(shared, scale, out=np.zeros_like(shared), where=told)
    many = told.sum(axis=1)
    found: Floats = np.where(many > 0, r.sum(axis=1) / np.maximum(many, 1), np.nan)
    return found
