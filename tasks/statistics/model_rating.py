"""Mean rating and pass rate of each model's answers: what single grading says about models."""

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from tasks.pointwise.rated_items import control_things
from tasks.statistics import Rows, statistic
from tasks.statistics.mean_rating import means_and_pass_rates


@statistic(
    source="methods.md, sections 3 and 12; Zheng et al. 2023, section 3.1 (single answer grading)",
    gives=("model_rating", "model_pass_rate"),
    family="pointwise",
    unit="points",
    rows={"model_pass_rate": {"unit": "share"}},
    needs=("target_author",),
)
def model_rating(ratings: DataFrame[Ratings]) -> Rows:
    """Measure the mean rating and the pass rate of each model's unperturbed answers.

    ``mean_rating`` and ``pass_rate`` over the answers of one author: the score of MT-Bench, by
    turn, if a judge graded the answers of several models to the same questions.

    Parameters
    ----------
    ratings
        One row per rating, with ``target_author`` or, of anchors, ``anchor_author``.

    Returns
    -------
    Estimates
        One row per cell and model (``subgroup``), with the cluster-adjusted Wilson interval. For a
        rubric, of the weighted mean of its criteria.

    Notes
    -----
    The interval is about the judge's opinion; it ignores how far the judge differs from people. Of
    models that answered the same questions, intervals may overlap although one is better on nearly
    all of them. A judge may prefer answers of its own family, and longer ones.

    References
    ----------
    methods.md, sections 3 and 12. Zheng et al. (2023), section 3.1.

    Examples
    --------
    Grades 4 and 6 of model ``a`` and 9 and 5 of model ``b`` on two questions: 5 and 7.
    """
    author = pl.when(side="anchor").then("anchor_author").otherwise("target_author")
    whose = ["dataset", "item"]
    # Rows of people may not name the author; an item may stand for answers of several.
    only = pl.col("model").drop_nulls().unique().over(whose, mapping_strategy="join").list
    of_model = ratings.with_columns(model=author.cast(pl.String)).with_columns(
        model=pl.coalesce("model", pl.when(only.len() == 1).then(only.first()))
    )
    written = of_model.drop_nulls("model").with_columns(
        item=pl.concat_str(pl.col("item").cast(pl.String), "model", separator="\n")
    )
    found = control_things(written)
    if found.is_empty():
        return []
    authors = written.select(*whose, subgroup="model").unique()
    whole = found.filter(pl.col("subgroup") == "").drop("subgroup")
    parts = whole.join(authors, on=whose, maintain_order="left")
    return means_and_pass_rates(parts, "model_rating", "model_pass_rate")
