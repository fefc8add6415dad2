"""Rewording sensitivity: verdicts that change when a prompt says the same in other words."""

from collections.abc import Sequence

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts, Tallies
from schemas.keys import SAMPLE
from schemas.results import Estimates
from tasks.counting.cells import differences, known_shares, means
from tasks.counting.verdicts import tally_votes
from tasks.statistics import Rows, statistic

ARMS = ("control", "replicate", "reworded")
CELL = (*SAMPLE, "cluster", "simulated", "mode", "votes")


@statistic(
    source="docs/concepts/arms-and-floor.md",
    gives=(
        "rewording_sensitivity",
        "rewording_score_change",
        "repeat_sensitivity",
        "repeat_score_change",
        "rewording_excess",
    ),
    family="floor",
    rows={
        "rewording_score_change": {"unit": "score"},
        "repeat_score_change": {"unit": "score"},
        "rewording_excess": {"null": 0.0, "floor": "replicate"},
    },
    missing="no control pair has verdicts, or scores, in control and when it was asked again",
)
def rewording_sensitivity(tallies: DataFrame[Tallies], shifts: DataFrame[Shifts]) -> Rows:
    """Measure how many verdicts on control pairs change under other words of the same meaning.

    ``rewording_sensitivity`` is the share of (pair, variant) with another verdict than control,
    ``rewording_score_change`` the mean of ``|score - control score|``; ``repeat_sensitivity`` and
    ``repeat_score_change`` are the same of the replicate, control asked again in the same words.
    ``rewording_excess`` is the mean over pairs of the share of variants with another verdict minus
    the same (0 or 1) of the replicate.

    Parameters
    ----------
    tallies
        One row per pair and judge; the arms control, reworded and replicate are used.
    shifts
        Used to know the mode of verdicts.

    Returns
    -------
    Estimates
        Per judge and prompt with reworded pairs: shares and mean changes with cluster-adjusted
        Wilson intervals, over all variants and for each of them (``subgroup``), n pairs times
        variants; the excess in [-1, 1] by cluster linearisation, n pairs. ``perturbation`` is null.

    Notes
    -----
    A pair without a verdict (for changes of scores: a score) in one of the two arms is dropped and
    counted. A noisy judge also changes its verdict when it is asked the same again, so only the
    excess speaks of the wording. For a judge that always replies the same to the same request
    (temperature 0) the repeat rows are 0 by construction, and all sensitivity is excess.

    References
    ----------
    docs/concepts/arms-and-floor.md.

    Examples
    --------
    Four pairs, two variants, control anchor, tie, target, target. Variant one: anchor, tie, tie,
    anchor; two: anchor, target, target, anchor. Four of eight verdicts differ: .5, .5 in each
    variant. Replicates anchor, tie, target, anchor: .25. Excess (0 + .5 + .5 + 1) / 4 - .25 = .25.
    """
    asked = tallies.filter(pl.col("arm").cast(pl.String).is_in(ARMS))
    if not (asked["arm"].cast(pl.String) == "reworded").any():
        return []
    mode = str(shifts["mode"][0]) if shifts.height else "balanced"
    verdicts = tally_votes(asked, mode).with_columns(
        pl.col("arm", "verdict", "perturbation").cast(pl.String)
    )
    reworded = _beside_control(verdicts, "reworded")
    again = _beside_control(verdicts, "replicate").join(
        reworded.select(SAMPLE).unique(), on=SAMPLE, how="semi", maintain_order="left"
    )
    each = reworded.with_columns(subgroup=pl.col("variant"))
    return [
        *_changes(reworded, "rewording_sensitivity", "rewording_score_change"),
        *_changes(each, "rewording_sensitivity", "rewording_score_change"),
        *_changes(again, "repeat_sensitivity", "repeat_score_change"),
        excess("rewording_excess", reworded, again, SAMPLE, "changed"),
    ]


def _beside_control(verdicts: pl.DataFrame, arm: str) -> pl.DataFrame:
    """Return the verdicts of an arm with whether, and how far, they differ from control."""
    control = verdicts.filter(arm="control").select(*SAMPLE, before="verdict", before_score="score")
    return (
        verdicts.filter(arm=arm)
        .join(control, on=SAMPLE, how="left", maintain_order="left")
        .select(
            *CELL,
            variant="perturbation",
            perturbation=pl.lit(None, pl.String),
            kind=pl.lit(None, pl.String),
            changed=pl.col("verdict") != pl.col("before"),
            change=(pl.col("score") - pl.col("before_score")).abs(),
        )
    )


def _changes(items: pl.DataFrame, verdict: str, score: str) -> list[DataFrame[Estimates]]:
    changed, change = pl.col("changed"), pl.col("change")
    return [known_shares(verdict, items, changed), means(score, items, change)]


def excess(
    name: str, reworded: pl.DataFrame, again: pl.DataFrame, key: Sequence[str], change: str
) -> DataFrame[Estimates]:
    """Return the mean ``change`` over the wordings, minus the one from asking again, by ``key``."""
    own = pl.col(change).cast(pl.Float64)
    mean = reworded.group_by(key, maintain_order=True).agg(reworded=own.mean())
    both = again.join(mean, on=key, how="left", maintain_order="left")
    return differences(name, both, pl.col("reworded"), own)
