"""Bradley-Terry strengths of models, with and without control of order and style."""

import numpy as np
import polars as pl
from pandera.typing.polars import DataFrame

from schemas.frame import Row
from schemas.judging import FORMATS, SIDES, Contests
from schemas.keys import JUDGE
from schemas.results import Estimates
from tasks.counting.contests import all_excess, excess
from tasks.counting.order_halves import ONE_ORDER_NOTE
from tasks.inference.bootstrap import by_chance
from tasks.inference.cluster_sums import Floats, numbered
from tasks.inference.linearised_errors import effective_clusters
from tasks.inference.logistic import TIES, CountedItems, fit, logit_row, refits
from tasks.statistics import Rows, statistic

APART = "models are not connected by contests with a score"
SEPARATED = "a model wins or loses everything, or style predicts every verdict: no finite fit"
INSEPARABLE = "the effects of style or order cannot be separated from those of the models"
BY_KIND, WHOLE = ("length", *FORMATS, "other"), ("length", "markup")
AUTHORS = ("target_author", "anchor_author")
EFFECTS = {"o": "order_effect", **{style: f"{style}_effect" for style in (*BY_KIND, *WHOLE)}}
"""Term of the model -> its row."""


@statistic(
    source="arXiv:2403.04132; methods.md, section 12",
    gives=("bt_strength", "style_controlled", *EFFECTS.values()),
    family="correction",
    unit="logit",
    null=0.0,
    rows={"order_effect": {"order": "needed"}},
    needs=("anchor_author", "target_author"),
)
def style_controlled(contests: DataFrame[Contests]) -> Rows:
    """Estimate each model's strength from all contests (Bradley-Terry) at equal style.

    ``logit P = theta_target - theta_anchor + kappa o + sum_k b_k tanh(d_k / sd(d_k))``, P the
    probability of the target; o = 1 with the target first, -1 with the anchor first, 0 if the order
    was not recorded (without any order there is no kappa); d_k the target's characters, headings,
    list items, bold words and other markup (table rows, code blocks, emoji) minus the anchor's.
    Ties count half. ``bt_strength`` omits b, and kappa if the judge saw each contest in both
    orders.

    Parameters
    ----------
    contests
        One row per judge and control pair of two models; each order is an observation, as is the
        score of a contest whose order was not recorded.

    Returns
    -------
    Estimates
        ``bt_strength`` and ``style_controlled`` per model (``subgroup``), in log-odds relative to
        the mean of the models; ``order_effect`` (kappa); ``length_effect``, ``header_effect``,
        ``list_effect``, ``bold_effect``, ``other_effect`` (b). If markup was only counted as a
        whole, or its kinds are collinear with each other or the models, ``markup_effect`` replaces
        the last four. Intervals by t, with standard errors from a cluster bootstrap (2000 draws,
        seeded) that refits the model.

    Notes
    -----
    A strength .4 above another's is a probability of ``1 / (1 + exp(-.4)) = .60`` to win. Any real
    quality that comes with length or markup is removed too. Contests without known style are left
    out of the controlled fit, and so is a style that is unknown or does not differ between answers.
    Null if contests do not connect the models, if one wins everything, or if style is collinear
    with the models.

    References
    ----------
    Bradley and Terry (1952), Biometrika 39, 324-345; Chiang et al. (2024), Chatbot Arena,
    arXiv:2403.04132, and its style control.

    Examples
    --------
    Two models, a wins three contests of four: logit .75 = 1.0986 = theta_a - theta_b, so
    ``bt_strength`` is .549 and -.549.
    """
    if contests.is_empty():
        return []
    styles = [f"{side}_{style}" for side in SIDES for style in WHOLE + FORMATS]
    scores = ("score", "score_12", "score_21", "shown_first", "votes", "simulated")
    texts = contests.select(
        pl.col(*JUDGE, *AUTHORS).cast(pl.String), "sample", "cluster", *scores, *styles
    )
    cells = texts.partition_by(JUDGE, as_dict=True)
    found = [row for judge in sorted(cells, key=str) for row in _strengths(cells[judge])]
    nullable = {name: Estimates.dtypes()[name] for name in ("reason", "simulated")}
    return pl.DataFrame(found, schema_overrides=nullable, infer_schema_length=None)


def _strengths(cell: pl.DataFrame) -> list[Row]:
    shared = {name: cell[name][0] for name in (*JUDGE, "simulated")} | {
        "mode": "any",
        "votes_per_pair": int(cell["votes"].mode().max()),  # type: ignore[arg-type]
    }
    models = sorted({*cell["anchor_author"].unique(), *cell["target_author"].unique()})
    # As integers: texts take several times as long.
    asked = _by_order(cell.with_columns(pl.col(AUTHORS).cast(pl.Enum(models)).to_physical()))
    plain = [("bt_strength", model) for model in models]
    one_order = cell["shown_first"].null_count() == 0
    rows = _fitted(asked, models, plain, ["o"] if one_order else [])
    told_apart = any(asked[kind].count() for kind in FORMATS)
    held = _controlled(asked, models, BY_KIND if told_apart else WHOLE)
    if told_apart and held[0].get("reason") == INSEPARABLE:
        held = _controlled(asked, models, WHOLE)
    rows += held
    for row in rows:
        row["dropped"] = cell.height - row["n"]
        if one_order and row["method"] != "none":
            row["method"] += ONE_ORDER_NOTE
    return [shared | row for row in rows]


def _controlled(asked: pl.DataFrame, models: list[str], styles: tuple[str, ...]) -> list[Row]:
    vary = [style for style in styles if asked[style].drop_nulls().n_unique() > 1]
    terms = ["o", *vary] if (asked["o"] != 0).any() else vary
    names = [("style_controlled", model) for model in models]
    names += [(EFFECTS[term], "") for term in terms]
    return _fitted(asked.drop_nulls(vary), models, names, terms)


def _by_order(cell: pl.DataFrame) -> pl.DataFrame:
    """Return one row per contest and order that has a score, or per contest without orders."""
    scored = pl.any_horizontal(pl.col("score", "score_12", "score_21").is_not_null())
    rows = cell.filter(scored).sort("sample").with_row_index("contest")
    texts = (
        # As integers: grouping strings takes several times as long.
        rows.with_columns(pl.Series("cluster", numbered(rows["cluster"])[0])).select(
            "contest",
            "cluster",
            *AUTHORS,
            "score_12",
            "score_21",
            unordered=pl.when(pl.col("score_12").is_null() & pl.col("score_21").is_null()).then(
                "score"
            ),
            **{what: excess(what, "target", "anchor") for what in ("length", *FORMATS)},
            markup=all_excess("target", "anchor"),
            other=excess("markup", "target", "anchor"),
        )
    )
    # Markup without a column of its own counts as other.
    kinds = [kind for kind in FORMATS if texts[kind].count()]
    counted = pl.sum_horizontal(pl.lit(0), *kinds, ignore_nulls=False)
    texts = texts.with_columns(pl.col("other") - counted)
    orders = [
        texts.with_columns(y=pl.col(score), o=pl.lit(o))
        for score, o in (("score_12", -1.0), ("score_21", 1.0), ("unordered", 0.0))
    ]
    return pl.concat(orders).filter(pl.col("y").is_not_null())


def _fitted(
    asked: pl.DataFrame, models: list[str], names: list[tuple[str, str]], terms: list[str]
) -> list[Row]:
    contests, at = np.unique(asked["contest"].to_numpy(), return_index=True)
    of_cluster = np.bincount(asked["cluster"].to_numpy()[at])
    sizes = of_cluster[of_cluster > 0].astype(float)
    worth = float(effective_clusters(sizes))
    b, draws, reason = _fit(asked, models, terms)
    rows: list[Row] = []
    for place, (statistic_name, subgroup) in enumerate(names):
        known = {"estimate": None, "method": "none", "reason": reason}
        if b is not None:
            drawn = None if draws is None else draws[:, place]
            known = logit_row(float(b[place]), drawn, worth)
        row = {
            "statistic": statistic_name,
            "subgroup": subgroup,
            "n": len(contests),
            "clusters": len(sizes),
        }
        rows.append(row | known)
    return rows


def _fit(
    asked: pl.DataFrame, models: list[str], terms: list[str]
) -> tuple[Floats | None, Floats | None, str]:
    """Return centred strengths and terms, the same for each draw, or the reason for none."""
    items = asked.select("cluster", "y", *AUTHORS, *(_term(asked[term]) for term in terms))
    # Contests between the same models at the same style are one row of the design.
    key = [*AUTHORS, *terms]
    sums = (pl.len().cast(pl.Float64).alias("n"), pl.col("y").sum())
    rows = items.group_by(key, maintain_order=True).agg(sums).with_row_index("row")
    target, anchor = (rows[side].to_numpy()[:, None] == np.arange(len(models)) for side in key[:2])
    # The first model is the reference level; strengths are centred at the end.
    contrasts = (target.astype(float) - anchor.astype(float))[:, 1:]
    if np.linalg.matrix_rank(contrasts) < contrasts.shape[1]:
        return None, None, APART
    design = np.column_stack([contrasts, *(rows[term] for term in terms)])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None, None, INSEPARABLE
    if (items["y"] == 0.5).all():
        return None, None, TIES
    whole = fit(design, rows["y"].to_numpy()[None], rows["n"].to_numpy()[None])
    if not whole.found[0]:
        return None, None, SEPARATED
    draws = None
    if by_chance() and items["cluster"].n_unique() > 1:
        cells = items.group_by("cluster", *key).agg(sums).join(rows.select("row", *key), on=key)
        codes = (pl.col("row").cast(pl.Int64), pl.col("cluster").rank("dense").cast(pl.Int64) - 1)
        cells = cells.sort("row", "cluster").select(*codes, "n", "y")
        counted = CountedItems(*(column.to_numpy() for column in cells))
        draws = refits(design, counted, whole.coefficients[0])
    others = len(models) - 1
    b = _over_mean(whole.coefficients, others)[0]
    return b, None if draws is None else _over_mean(draws, others), ""


def _term(values: pl.Series) -> pl.Series:
    """Return a style difference scaled to -1 to 1; the order unchanged."""
    own = values.cast(pl.Float64)
    if values.name == "o" or own.n_unique() == 1:
        return own
    return (own / own.std()).tanh()


def _over_mean(b: Floats, others: int) -> Floats:
    strengths = np.column_stack([np.zeros(len(b)), b[:, :others]])
    return np.column_stack([strengths - strengths.mean(axis=1, keepdims=True), b[:, others:]])
