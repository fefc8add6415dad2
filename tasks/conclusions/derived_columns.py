"""Derived columns of estimates: adjusted p-values, findings, shrinkage."""

from collections.abc import Callable
from typing import NamedTuple

from tasks.conclude import conclude
from tasks.conclusions.exclusions import exclude
from tasks.gates.scorecard import scorecard
from tasks.inference.multiplicity import (
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
    rejected_by_e_values,
    shrunk,
)


class DerivedColumn(NamedTuple):
    """A derived column or table, and the function that computes it."""

    about: str
    made_by: Callable[..., object]
    """The function that computes it; its docstring has the formula and the source."""


F1 = "of the primary endpoint (`mps_sham`, else `mps`) over all cells of the study (family F1)"
SHRUNK = "of the primary endpoint, shrunk to the mean of the judges under the same perturbation"
SCORECARD = "scorecard"
COLUMNS = {
    "finding": DerivedColumn(
        "promote perturbations: `biased`, `no relevant bias`, `mixed` or `inconclusive`; detract "
        "perturbations: `detects`, `detects some`, `overlooks`, `rewards` or `inconclusive`",
        conclude,
    ),
    "p_adjusted": DerivedColumn(
        f"p-value that findings use: Benjamini-Hochberg {F1}; `adjustment` names other methods",
        benjamini_hochberg,
    ),
    "p_holm": DerivedColumn(f"Holm-adjusted p-value {F1}", holm),
    "p_by": DerivedColumn(f"p-value adjusted by Benjamini-Yekutieli {F1}", benjamini_yekutieli),
    "e_rejected": DerivedColumn(
        f"whether e-BH rejects at .05, using the `e_value` {F1}", rejected_by_e_values
    ),
    "shrunk": DerivedColumn(f"empirical Bayes estimate {SHRUNK}", shrunk),
    "shrunk_error": DerivedColumn(
        f"standard error of the empirical Bayes estimate {SHRUNK}", shrunk
    ),
    "excluded": DerivedColumn(
        "whether the judge is excluded from mean attack success rates", exclude
    ),
}
"""Columns that ``voirdire measure`` and ``mart.numbers`` add to the estimate's own columns."""

DERIVED = COLUMNS | {
    SCORECARD: DerivedColumn(
        "a row per judge and gate: `pass`, `fail` or `inconclusive`. The study sets the "
        "tolerances (`[study.thresholds]`): `most_invalid`, `minimum_shift`, `detects_at`, "
        "`overlooks_below`, `most_agreement_lost` and the minima of drift (methods.md, section 11)",
        scorecard,
    )
}
"""The derived columns, and the scorecard."""
