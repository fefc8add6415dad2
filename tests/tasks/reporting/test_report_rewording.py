from collections.abc import Callable
from typing import Any

from tasks.reporting.juries_and_models import reworded, rewording

Make = Callable[..., Any]
Row = dict[str, Any]

CHANGED = {"statistic": "rewording_sensitivity", "estimate": 0.3, "low": 0.2, "high": 0.4}
AGAIN = {"statistic": "repeat_sensitivity", "estimate": 0.1}
EXCESS = {"statistic": "rewording_excess", "estimate": 0.2, "low": 0.1, "high": 0.3}
VERDICTS = "verdicts on control pairs that change if the prompt is reworded"


def test_a_judge_is_named_with_the_prompt_that_was_reworded(make_estimates: Make) -> None:
    other = {"statistic": "valid_rate", "prompt": "without_variants", "estimate": 1.0}
    rows = [{**row, "prompt": "with_variants"} for row in (CHANGED, AGAIN, EXCESS)]
    found = rewording(make_estimates([*rows, other]))
    judge = make_estimates([CHANGED])["judge"][0]
    assert found == {
        VERDICTS: f"{judge} / with_variants .30 (in the same words .10, difference .20"
        " [.10,\N{NO-BREAK SPACE}.30])"
    }


def test_each_wave_is_named(make_estimates: Make) -> None:
    rows = [{**row, "wave": wave} for wave in ("may", "june") for row in (CHANGED, AGAIN)]
    assert [row.judge.split(" / ")[-1] for row in reworded(make_estimates(rows))] == ["june", "may"]


def test_of_an_unknown_change_the_reason_is_given(make_estimates: Make) -> None:
    unknown = {**CHANGED, "estimate": None, "low": None, "high": None, "reason": "no pair has both"}
    (row,) = reworded(make_estimates([unknown]))
    assert row.missing == "no pair has both; not measured"
    (text,) = rewording(make_estimates([unknown])).values()
    assert text.endswith(" not estimable (no pair has both; not measured)")


def test_changes_of_ratings_have_their_unit(make_estimates: Make) -> None:
    rows: list[Row] = [
        {"statistic": f"rating_{name}", "estimate": 0.4, "unit": unit, "judge": unit}
        for name in ("rewording_change", "repeat_change")
        for unit in ("points", "share")
    ]
    (text,) = rewording(make_estimates(rows)).values()
    assert text == (
        "points .40 points (in the same words .40); share .40 in the pass rate (in the same words"
        " .40)"
    )
