"""Derived columns of estimates: adjusted p-values, findings, shrinkage."""

from collections.abc import Callable
from typing import NamedTuple

from tasks.conclude import conclude
from tasks.conclusions.exclusions import exclude
from tasks.conclusions.scorecard import scorecard
from tasks.inference.multiplicity import (
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
    rejected_by_e_values,
    shrunk,
)


class Beside(NamedTuple):
    """A derived column or table, and the function that computes it."""

    about: str
    made_by: Callable[..., object]
    """The function that computes it; its docstring has the formula and the source."""


F1 = "of the primary endpoint (`mps_sham`, else `mps`), over all cells of the study (family F1)"
SHRUNK = "of the primary endpoint, toward the mean of the judges under the same perturbation"
SCORECARD = "scorecard"
COLUMNS = {
    "finding": Beside(
        "`biased`, `no relevant bias`, `mixed` or `inconclusive`; where an answer was made worse "
        "`detects`, `detects some`, `overlooks`, `rewards` or `inconclusive`",
        conclude,
    ),
    "p_adjusted": Beside(
        f"Benjamini-Hochberg {F1}, which decides; elsewhere `adjustment` says how",
        benjamini_hochberg,
    ),
    "p_holm": Beside(f"Holm {F1}", holm),
    "p_by": Beside(f"Benjamini-Yekutieli {F1}", benjamini_yekutieli),
    "e_rejected": Beside(f"whether e-BH rejects, at .05: by `e_value` {F1}", rejected_by_e_values),
    "shrunk": Beside(f"empirical Bayes estimate {SHRUNK}", shrunk),
    "shrunk_error": Beside(f"standard error of the empirical Bayes estimate {SHRUNK}", shrunk),
    "excluded": Beside("whether a judge is left out of means of attack success", exclude),
}
"""Columns that ``voirdire measure`` and ``mart.numbers`` add to the estimate's own columns."""

BESIDE = COLUMNS | {
    SCORECARD: Beside(
        "a row per judge and gate, `pass`, `fail` or `inconclusive`. Tolerances are those of the "
        "study (`[study.thresholds]`): `most_invalid`, `minimum_shift`, `detects_at`, "
        "`overlooks_below`, `most_agreement_lost` and the minima of drift (methods.md, section 11)",
        scorecard,
    )
}
"""The derived columns, and derived tables."""
