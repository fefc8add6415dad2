import numpy as np
import pytest

from tasks.inference.intervals import ALIKE
from tasks.inference.logistic import CountedItems, fit, logit_row, rate_row, refits


def test_draws_that_are_all_alike_give_no_interval() -> None:
    # All ties: every draw of questions fits the same, which tells nothing of other questions.
    same = np.zeros(2000)
    reported = {"df": 19, "method": "none", "reason": ALIKE}
    assert logit_row(0.0, same, 20) == {"estimate": 0.0, **reported}
    assert rate_row(0.0, same, 20) == {"estimate": 0.5, **reported}


def test_an_error_is_that_of_the_draws_and_a_little_more() -> None:
    draws = np.array([-1.0, 1.0] * 1000)
    # Standard deviation of +-1 with ddof 1 over 2000, times sqrt(20 / 19); t_{.975, 19} = 2.0930.
    error = np.sqrt(2000 / 1999 * 20 / 19)
    row = logit_row(0.2, draws, 20)
    assert row["standard_error"] == pytest.approx(error)
    assert (row["low"], row["high"]) == pytest.approx(
        (0.2 - 2.0930 * error, 0.2 + 2.0930 * error), 1e-4
    )


def test_equal_rows_counted_together_fit_as_single_rows() -> None:
    random = np.random.default_rng(3)
    design = np.column_stack([random.integers(-1, 2, (600, 2)), random.choice([-1.0, 1.0], 600)])
    y, cluster = random.integers(0, 3, 600) / 2, np.arange(600) // 8
    rows, row = np.unique(design, axis=0, return_inverse=True)
    assert len(rows) == 18
    single = fit(design, y[None], np.ones((1, 600))).coefficients
    wins, n = (np.bincount(row.ravel(), each).astype(float) for each in (y, np.ones(600)))
    assert fit(rows, wins[None], n[None]).coefficients == pytest.approx(single, abs=1e-9)
    # The same for draws: clusters are drawn, and a row of the design belongs to many of them.
    alone = refits(
        design, CountedItems(np.arange(600), cluster, np.ones(600), y), single[0], draws=40
    )
    pairs, pair = np.unique(np.column_stack([row.ravel(), cluster]), axis=0, return_inverse=True)
    wins, n = (np.bincount(pair.ravel(), each).astype(float) for each in (y, np.ones(600)))
    assert len(n) < 600
    together = refits(rows, CountedItems(pairs[:, 0], pairs[:, 1], n, wins), single[0], draws=40)
    # Single precision: draws are read to two digits.
    assert together == pytest.approx(alone, abs=1e-5)
