from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from tasks.aggregate import count_votes, measure_all
from tasks.conclude import conclude
from tasks.conclusions.rules import WORST
from tasks.conclusions.worst_cases import worst_cases
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.inference.bootstrap import formulas_only

Make = Callable[..., Any]
SIDES = ("anchor", "target")
SIDE = {"a": "anchor", "b": "target"}


def frames(
    make_vote_log: Make, experimental: list[str], judge: str = "ada", others: str = "aa"
) -> dict[str, Any]:
    """Two votes an arm; those of control and sham are ``others``; ``x`` cannot be read."""
    log = make_vote_log(
        {
            "judge": judge,
            "sample": f"s{i:02}",
            "arm": arm,
            "shown_first": side,
            "choice": "invalid" if vote == "x" else "first" if SIDE[vote] == side else "second",
        }
        for i, votes in enumerate(experimental)
        for arm in ("control", "experimental", "sham")
        for side, vote in zip(SIDES, votes if arm == "experimental" else others, strict=True)
    )
    tallies = count_votes(log)
    return {"tallies": tallies, "shifts": match_groups(tally_votes(tallies, "balanced"))}


def test_unreadable_votes_are_for_one_answer_and_then_for_the_other(make_vote_log: Make) -> None:
    # Of 24 experimental votes six cannot be read; all others are for the anchor.
    rows = worst_cases(**frames(make_vote_log, ["ax"] * 6 + ["aa"] * 6))
    shifts = rows.filter(pl.col("statistic").is_in(["mps", "mps_sham"]))
    found = {(row["statistic"], row["subgroup"]): row["estimate"] for row in shifts.to_dicts()}
    assert found == {
        ("mps", WORST["anchor"]): 0.0,
        ("mps_sham", WORST["anchor"]): 0.0,
        ("mps", WORST["target"]): 0.25,
        ("mps_sham", WORST["target"]): 0.25,
    }
    assert shifts["n"].to_list() == [12] * 4


def test_only_cells_with_many_unreadable_votes_are_measured_again(make_vote_log: Make) -> None:
    whole = frames(make_vote_log, ["ab"] * 60)
    assert worst_cases(**whole).is_empty()
    other = frames(make_vote_log, ["ax"] * 12, judge="bob")
    both = {name: pl.concat([whole[name], other[name]]) for name in whole}
    assert set(worst_cases(**both)["judge"]) == {"bob"}


@pytest.mark.parametrize("statistic", ["mps", "los", "unanimous_rate"])
def test_they_are_measured_with_the_rest(make_vote_log: Make, statistic: str) -> None:
    given = frames(make_vote_log, ["bx"] * 10 + ["ab"] * 10)
    with formulas_only():
        rows = worst_cases(**given)
    assert set(rows.filter(statistic=statistic)["subgroup"]) == {*WORST.values()}


def test_a_bias_that_unreadable_votes_could_undo_is_no_finding(
    make_vote_log: Make, make_contests: Make, make_annotations: Make
) -> None:
    given = frames(make_vote_log, ["bb"] * 10 + ["xx"] * 12 + ["ab"] * 8, others="ab")
    with formulas_only():
        estimates = measure_all(
            **given, contests=make_contests([]), annotations=make_annotations([])
        )
    (row,) = conclude(estimates).filter(kind="promote").to_dicts()
    assert row["finding"] == "inconclusive"
    assert row["lost_finding"] == "verdicts lost: differential"
    assert row["reason"].startswith(".40 of the experimental votes are invalid")
