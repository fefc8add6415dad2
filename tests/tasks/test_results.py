from collections.abc import Callable, Collection
from typing import Any

import pytest

from tasks.conclusions.rules import WORST
from tasks.results import Results, results_of
from tasks.statistics import STATISTICS

Make = Callable[..., Any]


def measured(make_vote_log: Make, only: Collection[str] = ()) -> Results:
    """Twelve questions; half of the judge's experimental votes are lost; two people voted too."""
    log = make_vote_log(
        {
            "judge": judge,
            "sample": f"s{i:02}",
            "anchor_author": "old",
            "target_author": "new",
            "arm": arm,
            "shown_first": side,
            "choice": "invalid" if arm == "experimental" and (i + at) % 2 else choice,
        }
        for judge, arms in (
            ("ada", ("control", "experimental")),
            ("people/ann", ("control",)),
            ("people/ben", ("control",)),
        )
        for i in range(12)
        for arm in arms
        for at, (side, choice) in enumerate((("anchor", "first"), ("target", "second")))
    )
    return results_of(log, "balanced", only=only)


@pytest.mark.parametrize("only", [("mps", "asr"), ("win_rate", "fleiss_kappa")])
def test_chosen_statistics_are_computed_as_among_all(
    make_vote_log: Make, only: tuple[str, ...]
) -> None:
    whole, some = measured(make_vote_log), measured(make_vote_log, only)
    rows = {row for name in only for row in STATISTICS[name].gives}
    assert set(some.estimates["statistic"]) <= rows
    alone = some.estimates.drop("excluded").to_dicts()
    # Worst cases of lost votes are of attrition.
    others = whole.estimates.drop("excluded").filter(
        ~whole.estimates["subgroup"].is_in(WORST.values())
    )
    assert alone == [row for row in others.to_dicts() if row["statistic"] in rows]
    assert alone


def test_what_no_chosen_statistic_reads_is_not_made(make_vote_log: Make) -> None:
    whole = measured(make_vote_log)
    assert whole.contests.height
    assert whole.annotations.height
    some = measured(make_vote_log, ("mps",))
    assert some.contests.is_empty()
    assert some.annotations.is_empty()
    assert measured(make_vote_log, ("win_rate",)).contests.equals(whole.contests)
    # What they are counted of is there in any case.
    assert some.shifts.equals(whole.shifts)


def test_worst_cases_of_lost_votes_go_with_attrition(make_vote_log: Make) -> None:
    def worst(*only: str) -> set[str]:
        found = measured(make_vote_log, only).estimates
        return {part for part in found["subgroup"] if part in WORST.values()}

    assert worst("attrition") == worst() == {*WORST.values()}
    assert worst("mps") == set()
    assert measured(make_vote_log, ("mps",)).findings["lost_finding"].to_list() == [None]
