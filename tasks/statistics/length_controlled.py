"""Length-controlled win rates."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.frame import Row
from schemas.judging import Contests
from schemas.results import Estimates
from tasks.counting.contests import sides
from tasks.counting.missing_reasons import NO_CONTEST
from tasks.counting.order_halves import HALVES, NOTE, ONE_HALF, without_biased_orders
from tasks.inference.cluster_sums import PART, Floats
from tasks.inference.linearised_errors import effective_clusters
from tasks.inference.logistic import TIES, CountedItems, fit, logit_row, rate_row, refits
from tasks.statistics import Rows, statistic

FEW = "fewer than three contests with a score and both lengths"
EQUAL = "all length differences are equal: the effects of length and quality cannot be separated"
SEPARATED = "length and quality predict every verdict: no finite fit"


@statistic(
    source="arXiv:2404.04475; methods.md, section 12",
    gives=("length_controlled", "length_slope"),
    family="correction",
    null=0.5,
    rows={"length_slope": {"unit": "logit", "null": 0.0}},
    needs=("anchor_author", "target_author", "anchor_length", "target_length"),
    missing=NO_CONTEST,
)
def length_controlled(contests: DataFrame[Contests]) -> Rows:
    """Estimate the win rate of a model if its answers were as long as the opponents'.

    Fractional logit ``y ~ b0 + b1 tanh(dlen / sd(dlen))``, y the swap-averaged score, dlen the
    difference in characters, sd with ddof 1; ``LC = 1 / (1 + exp(-b0))``, the mean fitted value at
    dlen = 0; ``length_slope`` is b1.

    Parameters
    ----------
    contests
        One row per judge and control pair of two models, with ``anchor_length, target_length``.

    Returns
    -------
    Estimates
        Two rows per model and pair of models with known lengths: the rate, and b1 in log-odds. If a
        judge saw every contest in one order, both are the mean of two fits, with the model shown
        first and second (null if the order depends on the models). Intervals by t of b0 and b1,
        with standard errors from a cluster bootstrap (2000 draws, seeded) that refits the model;
        ``boot_low, boot_high`` are its percentiles.

    Notes
    -----
    Any real quality that comes with length is removed too. The naive standard error of fitted
    values treats b as known and is several times too small (``benchmarks/corrections.py``). The sd
    of dlen is kept fixed in all draws. Null if all dlen are equal, or if the verdicts are separated
    (one model wins everything, or exactly where it is longer).

    References
    ----------
    Dubois et al. (2024), Length-Controlled AlpacaEval, arXiv:2404.04475 (offline form).

    Examples
    --------
    dlen = -1, 1 in equal numbers, of which a quarter and three quarters are won: the logits -1.0986
    and 1.0986 are symmetric around b0 = 0, so LC = .5, whatever the number of longer answers.
    """
    measured = pl.all_horizontal(pl.col("anchor_length", "target_length").is_not_null())
    if not contests.select(measured.any()).item():
        return []
    known = pl.col("score").is_not_null() & pl.col("longer").is_not_null()
    rows = sides(contests).filter(pl.col("longer").is_not_null().any().over(PART))
    if rows.is_empty():
        return []
    cells = rows.group_by(PART, maintain_order=True).agg(
        pl.col("kind", "simulated").first(),
        votes_per_pair=pl.col("votes").mode().max(),
        n=known.sum(),
        clusters=pl.col("cluster").filter(known).n_unique(),
        dropped=(~known).sum(),
    )
    kept = rows.filter(known).select(*PART, "cluster", "longer", "score", "half")
    fits = {keys: _fitted(part) for keys, part in kept.partition_by(PART, as_dict=True).items()}
    found = Estimates.draft(
        pl.DataFrame(
            [
                cell | {"statistic": name} | row
                for cell in cells.to_dicts()
                for name, row in zip(
                    ("length_controlled", "length_slope"),
                    fits.get(tuple(cell[key] for key in PART)) or _none(FEW),
                    strict=True,
                )
            ],
            schema_overrides={
                name: Estimates.dtypes()[name]
                for name in ("perturbation", "kind", "reason", "simulated")
            },
            infer_schema_length=None,
        )
    )
    return without_biased_orders(found, contests)


def _none(reason: str) -> tuple[Row, Row]:
    return ({"estimate": None, "method": "none", "reason": reason},) * 2


def _fitted(kept: pl.DataFrame) -> tuple[Row, Row]:
    excess, y = kept["longer"].to_numpy().astype(float), kept["score"].to_numpy()
    if refused := _refused(excess, y):
        return _none(refused)
    x = np.tanh(excess / excess.std(ddof=1))
    alone = kept["half"].null_count() == 0
    halves = [kept["half"].to_numpy() == half for half in HALVES] if alone else [np.ones_like(x)]
    if not all(half.any() for half in halves):
        return _none(ONE_HALF)
    # One fit with separate terms equals a fit of each half, and draws cover both at once.
    design = np.column_stack([term * half for half in halves for term in (np.ones_like(x), x)])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return _none(EQUAL)
    ones = np.ones(len(y))
    whole = fit(design, y[None], ones[None])
    if not whole.found[0]:
        return _none(SEPARATED)
    b = whole.coefficients
    codes = kept["cluster"].rank("dense").to_numpy().astype(np.int64) - 1
    clusters = float(effective_clusters(np.bincount(codes).astype(np.float64)))
    counted = CountedItems(np.arange(len(y)), codes, ones, y)
    draws = refits(design, counted, b[0]) if clusters > 1 else None
    columns = (None, None) if draws is None else _averaged(draws)
    rate, slope = (float(values[0]) for values in _averaged(b))
    rows = rate_row(rate, columns[0], clusters), logit_row(slope, columns[1], clusters)
    return tuple(_noted(row) for row in rows) if alone else rows  # type: ignore[return-value]


def _refused(excess: Floats, y: Floats) -> str:
    """Give the reason why nothing can be fitted; empty if a fit is possible."""
    if len(y) < 3:
        return FEW
    return EQUAL if np.ptp(excess) == 0 else TIES if (y == 0.5).all() else ""


def _averaged(b: Floats) -> tuple[Floats, Floats]:
    """Return, for each fit, the log-odds of the mean rate over halves, and the mean slope."""
    rates = (1 / (1 + np.exp(-b[:, ::2]))).mean(axis=1)
    return np.log(rates / (1 - rates)), b[:, 1::2].mean(axis=1)


def _noted(row: Row) -> Row:
    return row if row["method"] == "none" else row | {"method": f"{row['method']}; {NOTE}"}
