import numpy as np
import pytest

from tasks.inference.intervals import ALIKE
from tasks.inference.logistic import logit_row, rate_row


def test_draws_that_are_all_alike_give_no_interval() -> None:
    # All ties: every draw of questions fits the same, which tells nothing of other questions.
    same = np.zeros(2000)
    told = {"df": 19, "method": "none", "reason": ALIKE}
    assert logit_row(0.0, same, 20) == {"estimate": 0.0, **told}
    assert rate_row(0.0, same, 20) == {"estimate": 0.5, **told}


def test_an_error_is_that_of_the_draws_and_a_little_more() -> None:
    draws = np.array([-1.0, 1.0] * 1000)
    # Standard deviation of +-1 with ddof 1 over 2000, times sqrt(20 / 19); t_{.975, 19} = 2.0930.
    error = np.sqrt(2000 / 1999 * 20 / 19)
    row = logit_row(0.2, draws, 20)
    assert row["standard_error"] == pytest.approx(error)
    assert (row["low"], row["high"]) == pytest.approx(
        (0.2 - 2.0930 * error, 0.2 + 2.0930 * error), 1e-4
    )
