"""Measures of one judge's agreement with people: one cell of items at a time."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from schemas.frame import Row
from tasks.agreement.coefficients import (
    PERFECT,
    Coefficient,
    cohen_kappa,
    kendall,
    quadratic_kappa,
    spearman,
)
from tasks.agreement.label_kinds import FAIL, PASS, ScaleKind
from tasks.gates.more_questions import more_questions
from tasks.inference.cluster_sums import Sums, combined, numbered
from tasks.inference.intervals import (
    ALIKE,
    LEVEL,
    SINGLE,
    arrays,
    newcombe,
    proportions,
    ratios,
    share_bounds,
    t_interval,
    table_moments,
)
from tasks.inference.linearised_errors import ratio_difference
from tasks.inference.power_analysis import samples_needed
from tasks.inference.quantiles import normal_quantile
from tasks.kit.defaults import TARGET_HALF_WIDTH, calibration_limits

MOST_GRADES = 50
"""Most distinct labels for which marginals, and so agreement by chance, are computed."""
MANY = f"more than {MOST_GRADES} different labels"
NO_SUCH = "people gave this label to no item"
ONLY = "no other items: nothing to compare with"
LOWEST_KAPPA = -1.0
COEFFICIENTS = {"pass_fail": "kappa", "name": "kappa", "grade": "spearman"}
"""Kind of labels -> coefficient of agreement that decides whether a judge agrees with people."""
DESCRIPTIVE = "a description: no interval"
TO_DECIDE = "labels_to_decide"
MOST_TIMES = 100
"""No number of labelled items beyond this multiple of the existing ones is named."""

OTHER_GATES = dict.fromkeys(
    ("odds", "control", "shift_spread", "spread_p", "most_lost", "p_adjusted"), pl.Float64
) | dict.fromkeys(("finding", "no_reply", "lost_finding", "measure", "kind"), pl.String)
"""Columns of gates that an agreement does not have."""

INFERRED = ("low", "high", "level", "df", "hits", "p_value", "p_adjusted", "adjustment", "finding")
"""Columns that a description does not have."""
NO_ITEMS: Row = {"n": 0, "clusters": 0}


class PairedLabels(NamedTuple):
    """Labels of a judge and of people on the same items."""

    kind: ScaleKind
    judge: NDArray[np.int64]
    """Codes of the judge's labels: indices of ``words``."""
    human: NDArray[np.int64]
    words: list[str]
    judge_value: Sums
    """Values of grades, 1 and 0 for pass and fail; NaN for names."""
    human_value: Sums
    cluster: NDArray[np.int64]
    """Codes from 0 without gaps."""

    @classmethod
    def of(cls, kind: ScaleKind, rows: pl.DataFrame) -> "PairedLabels":
        """Return a cell from paired rows, all of which must be ``used``."""
        words = (
            pl.concat(
                rows.select(word=f"{side}_word", value=f"{side}_value")
                for side in ("judge", "human")
            )
            .group_by("word")
            .agg(pl.col("value").first() if kind != "grade" else pl.col("value").min())
            .sort("value", "word", nulls_last=True)["word"]
            .to_list()
        )
        place = {word: code for code, word in enumerate(words)}
        codes = [
            rows[f"{side}_word"].replace_strict(place, return_dtype=pl.Int64).to_numpy()
            for side in ("judge", "human")
        ]
        values = [
            rows[f"{side}_value"].cast(pl.Float64).fill_null(np.nan).to_numpy()
            for side in ("judge", "human")
        ]
        cluster, _ = combined([numbered(rows["cluster"])])
        return cls(kind, codes[0], codes[1], words, values[0], values[1], cluster.astype(np.int64))

    @property
    def widest(self) -> float:
        """Largest difference of two verdicts, or of two of the grades that were given."""
        return float(np.ptp([self.judge_value, self.human_value])) if self.kind == "grade" else 1.0

    def sums(self, values: Any) -> Sums:
        """Return the sums of values over the items of each cluster."""
        many = int(self.cluster.max()) + 1 if self.cluster.size else 0
        found = np.bincount(self.cluster, np.asarray(values, np.float64), minlength=many)
        return found.astype(np.float64)


def measure(cell: PairedLabels) -> Iterator[Row]:
    """Yield all measures of a cell, one row each."""
    agreement = _agreement(cell)
    yield agreement
    # What the marginals alone give, and what the majority's label gives.
    judge, human = _shares(cell)
    yield _plain(cell, "agreement_by_chance", float(judge @ human))
    yield _plain(cell, "majority_share", float(human.max()))
    yield from _kappas(cell, agreement)
    if cell.kind == "pass_fail":
        yield from _rates(cell)
    if cell.kind == "grade":
        yield _spearman(cell, agreement)
        ranked = kendall(cell.judge_value, cell.human_value, cell.cluster)
        yield _coefficient(cell, "kendall", ranked)
        error = np.abs(cell.judge_value - cell.human_value)
        yield _mean(cell, "mean_error", error) | {"p_value": None}
    if cell.kind != "name":
        yield from _means(cell)


def compare_with_rest(cell: PairedLabels, inside: NDArray[np.bool_]) -> Row:
    """Return how a slice differs from all other items: in agreement, or in the error of grades.

    Shares: Newcombe's interval from the two cluster-adjusted ones. Means: Welch's, both variances
    by clusters. If clusters have items on both sides, the two are linearised together instead.
    """
    grades = cell.kind == "grade"
    value = np.abs(cell.judge_value - cell.human_value) if grades else cell.judge == cell.human
    name = "error_difference" if grades else "agreement_difference"
    row: Row = {"statistic": name, "n": int(inside.sum()), "clusters": 0, "method": "none"}
    if inside.all() or not inside.any():
        return row | {"reason": ONLY}
    own, rest = (
        (cell.sums(np.where(side, value, 0)), cell.sums(side)) for side in (inside, ~inside)
    )
    row["clusters"] = int((own[1] > 0).sum())
    if np.any((own[1] > 0) & (rest[1] > 0)):
        found = ratio_difference(own, rest, cell.sums(np.ones(inside.size)))
        estimate, error, df = (float(each) for each in found)
        return row | _t_row(estimate, error, df, "cluster linearisation, t")
    tables = [table_moments(sums[:, None], sizes[:, None]) for sums, sizes in (own, rest)]
    return row | (_welch(tables) if grades else _newcombe(tables))


def _welch(tables: list[pl.DataFrame]) -> Row:
    sides = [ratios(table).row(0, named=True) for table in tables]
    difference = sides[0]["estimate"] - sides[1]["estimate"]
    if any(side["standard_error"] is None for side in sides):
        reason = next(side["reason"] for side in sides if side["standard_error"] is None)
        return {"estimate": difference, "reason": reason}
    variances = [side["standard_error"] ** 2 for side in sides]
    df = sum(variances) ** 2 / sum(v**2 / s["df"] for v, s in zip(variances, sides, strict=True))
    return _t_row(difference, sum(variances) ** 0.5, df, "Welch t, by clusters")


def _t_row(estimate: float, error: float, df: float, method: str) -> Row:
    low, high, p = t_interval(np.array([estimate]), np.array([error]), np.array([df]))
    if not np.isfinite(low[0]):
        return {"estimate": estimate, "reason": ALIKE}
    ends = {"low": float(low[0]), "high": float(high[0]), "df": df, "p_value": float(p[0])}
    return {"estimate": estimate, "method": method, **ends}


def _newcombe(tables: list[pl.DataFrame]) -> Row:
    """Return a difference of shares; its p-value is the level at which the interval reaches 0."""

    def ends(level: float) -> tuple[float, float]:
        found = (proportions(table, level) for table in tables)
        low, high = newcombe(*(np.stack(arrays(f, "estimate", "low", "high")) for f in found))
        return float(low[0]), float(high[0])

    sides = [proportions(table).row(0, named=True) for table in tables]
    difference = sides[0]["estimate"] - sides[1]["estimate"]
    if any(side["low"] is None for side in sides):
        return {"estimate": difference, "reason": SINGLE}
    below, above = 0.0, 1.0
    for _ in range(BISECTIONS if difference else 0):
        middle = (below + above) / 2
        low, high = ends(1 - middle)
        below, above = (below, middle) if low > 0 or high < 0 else (middle, above)
    low, high = ends(LEVEL)
    df = min(side["df"] for side in sides)
    p = above if difference else 1.0
    return {
        "estimate": difference,
        "low": low,
        "high": high,
        "df": df,
        "p_value": p,
        "method": "Newcombe",
    }


def labels_for_agreement(row: Row) -> int | None:
    """Return how many labelled items give the agreement an interval of +- .05.

    ``z^2 p (1 - p) / .05^2``, times what clusters cost in this one: the ratio of its width to that
    of the interval of as many independent items. p is moved toward one half by two hits and
    two misses, so that a perfect agreement on few items does not promise one.
    """
    if row.get("low") is None:
        return None
    z, n = float(normal_quantile((1 + LEVEL) / 2)), row["n"]
    p = (row["hits"] + 2) / (n + 4)
    low, high = share_bounds(row["estimate"] * n, n)
    costs = max(1.0, ((row["high"] - row["low"]) / (high - low)) ** 2)
    return int(np.ceil(z**2 * p * (1 - p) / TARGET_HALF_WIDTH**2 * costs))


def labels_for_bias(row: Row) -> int | None:
    """Return how many labelled items would detect the smallest relevant bias (power .8).

    If no item differs there is no spread: as many as exclude that bias while none does.
    """
    nowhere = row.get("standard_error") is None
    if row.get("low") is None or not row["least"] or (nowhere and row["estimate"] != 0):
        return None
    if not nowhere:
        return samples_needed(row["least"], row["standard_error"] * np.sqrt(row["n"]))
    z = float(normal_quantile((1 + LEVEL) / 2))
    # The end of the interval is z^2 / (n + z^2) of the largest difference.
    least = row["least"] / (row["high"] * (row["clusters"] + z**2) / z**2)
    clusters = z**2 * (1 - least) / least
    return int(np.ceil(clusters * row["n"] / row["clusters"]))


def labels_to_decide(agreements: pl.DataFrame) -> pl.DataFrame:
    """Return how many more labelled items would decide inconclusive agreements: a row of each.

    Columns that such a number does not have are left out.
    By the rule of the gates (``more_questions``). Agreements that no number would decide have none.
    """
    limits = calibration_limits()
    gates = agreements.with_columns(
        pl.lit(None, kind).alias(name) for name, kind in OTHER_GATES.items()
    ).with_columns(
        gate=pl.lit("agreement"),
        value="estimate",
        tolerance=limits.least_agreement,
        questions="clusters",
    )
    more = more_questions(gates, MOST_TIMES)
    least = pl.max_horizontal(more, limits.fewest_questions - pl.col("clusters"))
    items = (least * pl.col("n") / pl.col("clusters")).ceil()
    return (
        agreements.with_columns(estimate=pl.when(more.is_not_null()).then(items).cast(pl.Float64))
        .drop_nulls("estimate")
        .drop(INFERRED)
        .with_columns(
            statistic=pl.lit(TO_DECIDE), method=pl.lit("none"), reason=pl.lit(DESCRIPTIVE)
        )
    )


def _row(name: str, found: pl.DataFrame, **more: Any) -> Row:
    row = found.row(0, named=True)
    return {"statistic": name, **{k: row[k] for k in KEPT}, **more}


BISECTIONS = 30
"""Steps in the search for a p-value, which is then known to 1e-9."""
KEPT = ("estimate", "low", "high", "standard_error", "df", "method", "reason")


def _share(cell: PairedLabels, name: str, hits: Sums, among: Sums) -> Row:
    """Return a proportion with its cluster-adjusted interval."""
    table = table_moments(cell.sums(hits * among)[:, None], cell.sums(among)[:, None])
    row = _row(
        name,
        proportions(table),
        hits=int((hits * among).sum()),
        n=int(among.sum()),
        clusters=int(table["clusters"][0]),
    )
    return row if row["n"] else row | {"reason": NO_SUCH, "hits": None}


def _mean(cell: PairedLabels, name: str, values: Sums, widest: float = 0.0) -> Row:
    """Return a mean with its cluster-robust t interval and its p-value against 0.

    ``widest`` is the largest possible value, either way; 0 if there is none.
    """
    counts = cell.sums(np.ones(values.size))[:, None]
    table = table_moments(cell.sums(values / (widest or 1.0))[:, None], counts)
    found = ratios(table, bounded=widest > 0).with_columns(
        pl.col("estimate", "low", "high", "standard_error") * (widest or 1.0)
    )
    p_value = found["p_value"].fill_nan(None)[0]
    return _row(name, found, n=values.size, clusters=len(counts), p_value=p_value)


def without_interval(name: str, value: float | None, of: Row) -> Row:
    """Return a row with a number that has no interval, about the items of another row."""
    about = {"n": of["n"], "clusters": of["clusters"]}
    return {"statistic": name, "estimate": value, "method": "none", "reason": DESCRIPTIVE, **about}


def _plain(cell: PairedLabels, name: str, value: float | None) -> Row:
    items = {"n": cell.judge.size, "clusters": int(cell.cluster.max()) + 1}
    return without_interval(name, value, items)


def _shares(cell: PairedLabels) -> tuple[Sums, Sums]:
    """Return how often the judge, and people, give each label."""
    many, n = len(cell.words), cell.judge.size
    judge, human = (np.bincount(each, minlength=many) / n for each in (cell.judge, cell.human))
    return judge, human


def beyond_chance(cell: PairedLabels) -> Row:
    """Return the kappa of verdicts and names, or Spearman's correlation of grades."""
    if cell.kind == "grade":
        return _spearman(cell, _agreement(cell))
    return next(_kappas(cell, _agreement(cell)))


def _spearman(cell: PairedLabels, agreement: Row) -> Row:
    found = spearman(cell.judge_value, cell.human_value, cell.cluster)
    row = _coefficient(cell, "spearman", found)
    return row | _ends_of_one(row, agreement, cell.human_value)


def _agreement(cell: PairedLabels) -> Row:
    equal = (cell.judge == cell.human).astype(np.float64)
    return _share(cell, "agreement", equal, np.ones(equal.size))


def _ends_of_one(row: Row, agreement: Row, grades: Sums) -> Row:
    """Return the interval of a coefficient of 1 if judge and people gave equal grades everywhere.

    At most a share w of all items, what Wilson's interval of the agreement leaves, differ, each by
    at most the range of the grades (of Spearman's their midranks): of ``1 - O / E``, with O the
    mean squared distance and E twice the variance, the low end is ``1 - w range^2 / E``.
    """
    known = row["reason"] == PERFECT and agreement["estimate"] == 1
    if not known or agreement["low"] is None or row["estimate"] < 0:
        return {}
    if row["statistic"] == "spearman":
        _, place, counts = np.unique(grades, return_inverse=True, return_counts=True)
        grades = (counts.cumsum() - counts / 2)[place]
    unlike = (1 - agreement["low"]) * np.ptp(grades) ** 2 / (2 * grades.var())
    ends = {"low": max(1 - unlike, -1.0), "high": 1.0, "reason": None}
    return ends | {"method": agreement["method"]}


def _kappas(cell: PairedLabels, agreement: Row) -> Iterator[Row]:
    """Yield Cohen's kappa, and the weighted ones of grades.

    The mean of several people's grades need not be a grade of the scale: the plain and the linear
    kappa use the nearest one, the quadratic kappa the mean itself.
    """
    kinds = len(cell.words)
    names = ["kappa", "kappa_linear"][: 2 if cell.kind == "grade" else 1]
    if kinds > MOST_GRADES:
        yield from (_plain(cell, name, None) | {"reason": MANY} for name in names)
    else:
        distance = 1 - np.eye(kinds)
        plain = cohen_kappa(cell.judge, cell.human, distance, cell.cluster)
        known = agreement["low"] is not None
        one_verdict = any(each.max() == 1 for each in _shares(cell))
        if cell.kind == "pass_fail" and one_verdict and plain.reason == ALIKE and known:
            yield _coefficient(cell, "kappa", plain) | _ends_of_one_verdict(cell, agreement)
        elif plain.reason == PERFECT and agreement["estimate"] in {0, 1} and known:
            # On every item, or on none: what is left is the uncertainty of the agreement itself.
            judge, human = _shares(cell)
            chance = float(judge @ human)
            low, high = ((agreement[end] - chance) / (1 - chance) for end in ("low", "high"))
            ends = {"low": max(low, LOWEST_KAPPA), "high": high, "df": plain.df, "reason": None}
            yield _coefficient(cell, "kappa", plain) | ends | {"method": agreement["method"]}
        else:
            yield _coefficient(cell, "kappa", plain)
        if cell.kind == "grade":
            scale = np.array([float(word) for word in cell.words])
            distance = np.abs(scale[:, None] - scale)
            found = cohen_kappa(cell.judge, cell.human, distance, cell.cluster)
            yield _coefficient(cell, "kappa_linear", found)
    if cell.kind == "grade":
        found = quadratic_kappa(cell.judge_value, cell.human_value, cell.cluster)
        row = _coefficient(cell, "kappa_quadratic", found)
        yield row | _ends_of_one(row, agreement, cell.human_value)


def _ends_of_one_verdict(cell: PairedLabels, agreement: Row) -> Row:
    """Return the interval of a kappa of 0 because one of two annotators gave a single verdict.

    The share q of items on which this annotator would decide otherwise is at most Wilson's upper
    limit for none of the items. The kappa is highest if all these decisions are right, and lowest
    if none is; with h the share of items on which the two differ, the distance by chance is
    ``h + q - 2 q h``.
    """
    none, each = np.zeros(cell.judge.size), np.ones(cell.judge.size)
    other = _share(cell, "other", none, each)
    q = other["high"]
    fewest, most = 1 - agreement["high"], 1 - agreement["low"]
    low = 1 - min(most + q, 1) / (most + q - 2 * q * most)
    high = 1 - max(fewest - q, 0) / (fewest + q - 2 * q * fewest)
    method = f"{other['method']}, of verdicts not given"
    ends = {"low": max(low, LOWEST_KAPPA), "high": high}
    return ends | {"df": other["df"], "reason": None, "method": method}


def _coefficient(cell: PairedLabels, name: str, found: Coefficient) -> Row:
    method = "none" if found.low is None else "linearised, Fisher z, t"
    return _plain(cell, name, None) | found._asdict() | {"method": method}


def _rates(cell: PairedLabels) -> Iterator[Row]:
    """Yield the share of people's passes, and of their fails, that the judge gets right."""
    sides = {word: np.array([w == word for w in cell.words]) for word in (PASS, FAIL)}
    judge, human = (
        {w: s[each].astype(np.float64) for w, s in sides.items()}
        for each in (cell.judge, cell.human)
    )
    yield _share(cell, "tpr", judge[PASS], human[PASS])
    yield _share(cell, "tnr", judge[FAIL], human[FAIL])


def _means(cell: PairedLabels) -> Iterator[Row]:
    """Yield the pass rate or mean grade of judge and people, and the bias: their difference."""
    difference = cell.judge_value - cell.human_value
    if cell.kind == "pass_fail":
        ones = np.ones(difference.size)
        yield _share(cell, "judge_mean", cell.judge_value, ones)
        yield _share(cell, "human_mean", cell.human_value, ones)
    else:
        yield _mean(cell, "judge_mean", cell.judge_value) | {"p_value": None}
        yield _mean(cell, "human_mean", cell.human_value) | {"p_value": None}
    yield _mean(cell, "bias", difference, cell.widest)
