"""Drift: changes since the first wave."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.judging import Shifts, Tallies
from schemas.keys import SERIES
from tasks.drift.changes import changes
from tasks.statistics import Rows, statistic


@statistic(
    source="methods.md, section 10",
    gives=("mps_drift", "dasr_drift", "position_drift", "agreement_drift", "verdict_drift"),
    family="drift",
    null=0.0,
    rows={"mps_drift": {"unit": "score"}},
)
def drift(tallies: DataFrame[Tallies], shifts: DataFrame[Shifts]) -> Rows:
    """Measure how much each wave differs from the first one, on the same questions.

    ``mps_drift``: mean of ``d_i = effect_new - effect_base``, paired, cluster-robust t.
    ``dasr_drift``, ``position_drift``: difference of dASR, and of the position gap PG (share of
    first picks among control votes without ties, minus 1/2), linearised the same way.
    ``agreement_drift``: share of labelled pairs whose balanced verdict equals the label, minus the
    first wave's; p by McNemar's exact test or, if questions have several pairs, by the cluster t.
    ``verdict_drift``: mean of ``M = W_base + W_new - 2 X`` over the fixed prompts, W the share of
    equal pairs of votes within a wave, X across; p by permuting votes within prompts.

    Parameters
    ----------
    tallies
        One row per pair, judge and wave.
    shifts
        One row per sample, perturbation and wave; the shift is over the sham where there is one.

    Returns
    -------
    Estimates
        Rows for every wave but the first, which is their ``subgroup``; differences also have a
        cluster bootstrap interval.

    Notes
    -----
    The waves of a file are ordered by name, as dates are; the waves of an audit by time.
    p-values are raw; ``tasks/drift/alerts.py`` decides which changes are alerts. A wave whose votes
    all come from a cache has no p-value, because nothing was measured. ``verdict_drift`` needs two
    votes per prompt and order in both waves, and has no interval; its p-value is one-sided, because
    M has expectation 0 without drift and above 0 with any. If all questions changed by the same
    amount, or none did, the interval is Newcombe's of rises and falls. ``agreement_drift`` needs a
    ``label``, a valid vote in each order, and as many votes per pair as in the first wave, because
    more votes are right more often; so does ``dasr_drift``.
    ``clusters`` is the number of clusters in which something counts: a sample in V, a first pick.

    References
    ----------
    methods.md, section 10.

    Examples
    --------
    A fixed prompt gets a, a in the first wave and b, b in the second: W = 1, 1, X = 0, so M = 2.
    """
    first = pl.col("wave").cast(pl.String).min().over(SERIES)
    waves = tallies.select(*SERIES, "wave").unique()
    kind = tallies.schema["wave"]
    bases = waves.with_columns(base=first.cast(kind)).filter(
        pl.col("wave").cast(pl.String) > pl.col("base").cast(pl.String)
    )
    if bases.is_empty():
        return []
    return changes(tallies, shifts, bases)
