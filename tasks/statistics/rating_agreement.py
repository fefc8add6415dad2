"""Agreement of a judge's ratings with people's, beyond chance."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl
from pandera.typing.polars import DataFrame

from schemas.calibration import Ratings
from tasks.agreement.measures import PairedLabels, beyond_chance
from tasks.agreement.paired_labels import Paired, pair_labels
from tasks.calibration.rated_labels import labels_of_ratings
from tasks.statistics import Rows, statistic

NAMES = {"kappa": "rating_kappa", "spearman": "rating_correlation"}
"""Measure of a calibration -> its row here."""


@statistic(
    source="methods.md, sections 6 and 9; Cohen (1960)",
    gives=tuple(NAMES.values()),
    family="agreement",
    unit="coefficient",
    null=0.0,
)
def rating_agreement(ratings: DataFrame[Ratings]) -> Rows:
    """Measure how far a judge's ratings agree with people's beyond chance.

    ``rating_kappa``: Cohen's kappa of pass and fail, or of a label chosen or not.
    ``rating_correlation``: Spearman's rank correlation of grades.

    Parameters
    ----------
    ratings
        One row per rating; only unperturbed answers with ``human_value`` are used.

    Returns
    -------
    Estimates
        One row per criterion, the same numbers as in ``voirdire calibrate``: linearised by
        cluster on Fisher's scale. ``dropped`` counts answers of people without a valid rating.

    Notes
    -----
    Repeats are combined: the mean grade, or the verdict of the majority (none if they are tied).
    One person's labels do not tell how well people agree with each other. If the judge says pass or
    fail and people gave grades, nothing is compared.

    References
    ----------
    Cohen (1960), Educ. Psychol. Meas. 20, 37-46. methods.md, sections 9 and 17.

    Examples
    --------
    Ten answers: both pass 4, both fail 3, the judge alone passes 1, people alone pass 2:
    p_o = .7, p_e = .5 * .6 + .5 * .4 = .5, rating_kappa = .4.
    """
    known = ratings.filter(pl.col("human_value").is_not_null(), arm="control", side="target")
    rows = []
    for (dataset, _), part in known.partition_by("dataset", "prompt", as_dict=True).items():
        for labelled in labels_of_ratings(Ratings.of(part)):
            for paired in pair_labels(labelled):
                about = {"dataset": dataset, "subgroup": paired.criterion or ""}
                rows += [about | row for row in rows_of(paired)]
    return frame_of(rows)


def frame_of(rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Return rows of the statistic as a frame."""
    schema = {"estimate": pl.Float64, "low": pl.Float64, "high": pl.Float64, "reason": pl.String}
    return pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)


def rows_of(paired: Paired) -> Iterator[dict[str, object]]:
    """Yield the row of each judge with a label that can be compared."""
    for _, rows in paired.rows.group_by("name", maintain_order=True):
        used = rows.filter(status="used")
        if used.is_empty():
            continue
        found = beyond_chance(PairedLabels.of(paired.kind, used))
        yield {
            **found,
            **{name: rows[name][0] for name in ("judge", "prompt", "wave", "simulated")},
            "statistic": NAMES[found["statistic"]],
            "mode": "any",
            "perturbation": None,
            "kind": None,
            "dropped": rows.height - used.height,
            "votes_per_pair": 1,
        }
