"""Verdicts that change in other words, by hand."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from schemas.judging import Shifts
from tasks.aggregate import count_votes
from tasks.annotate import annotate
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.statistics import STATISTICS
from tasks.statistics.rewording_sensitivity import rewording_sensitivity

Make = Callable[..., Any]
NO_SHIFTS = Shifts.empty()
LETTERS = {"a": ("first", "second"), "t": ("second", "first"), "-": ("tie", "tie")}
"""Verdict -> choices with the anchor, and with the target, shown first."""


def tallies(make_vote_log: Make, **arms: str) -> Any:
    """Count the votes of arms, each given by a letter per sample; ``.`` is an invalid vote."""
    rows = [
        {
            "sample": f"s{n}",
            "cluster": f"q{n}",
            "arm": name if name in {"control", "replicate"} else "reworded",
            "perturbation": None if name in {"control", "replicate"} else name,
            "kind": None,
            "shown_first": side,
            "choice": "invalid" if letter == "." else LETTERS[letter][at],
        }
        for name, letters in arms.items()
        for n, letter in enumerate(letters)
        for at, side in enumerate(("anchor", "target"))
    ]
    return count_votes(make_vote_log(rows))


def found(frame: Any) -> dict[tuple[str, str], dict[str, Any]]:
    rows = rewording_sensitivity(tallies=frame, shifts=NO_SHIFTS).to_dicts()
    return {(row["statistic"], row["subgroup"]): row for row in rows}


def test_docstring_example(make_vote_log: Make) -> None:
    rows = found(tallies(make_vote_log, control="a-tt", one="a--a", two="atta", replicate="a-ta"))
    values = {key: (row["estimate"], row["n"]) for key, row in rows.items()}
    # Scores: control 0 .5 1 1; one 0 .5 .5 0; two 0 1 1 0; replicate 0 .5 1 0.
    assert values == {
        ("rewording_sensitivity", ""): (pytest.approx(4 / 8), 8),
        ("rewording_sensitivity", "one"): (pytest.approx(2 / 4), 4),
        ("rewording_sensitivity", "two"): (pytest.approx(2 / 4), 4),
        ("rewording_score_change", ""): (pytest.approx(3 / 8), 8),
        ("rewording_score_change", "one"): (pytest.approx(1.5 / 4), 4),
        ("rewording_score_change", "two"): (pytest.approx(1.5 / 4), 4),
        ("repeat_sensitivity", ""): (pytest.approx(1 / 4), 4),
        ("repeat_score_change", ""): (pytest.approx(1 / 4), 4),
        ("rewording_excess", ""): (pytest.approx(0.25), 4),
    }
    assert {row["perturbation"] for row in rows.values()} == {None}
    whole = rows["rewording_sensitivity", ""]
    # Eight verdicts are of four questions.
    assert (whole["clusters"], whole["hits"]) == (4, 4)
    assert whole["low"] < 0.5 < whole["high"]
    excess = rows["rewording_excess", ""]
    assert (excess["null_value"], excess["floor"]) == (0.0, "replicate")


def test_what_cannot_be_read_is_dropped_and_counted(make_vote_log: Make) -> None:
    rows = found(tallies(make_vote_log, control="a.tt", one="atta", replicate="aata"))
    own = rows["rewording_sensitivity", ""]
    assert (own["estimate"], own["n"], own["dropped"]) == (pytest.approx(1 / 3), 3, 1)
    again = rows["repeat_sensitivity", ""]
    assert (again["estimate"], again["n"], again["dropped"]) == (pytest.approx(1 / 3), 3, 1)
    assert rows["rewording_excess", ""]["estimate"] == pytest.approx(0.0)


def test_without_other_words_there_is_no_row(make_vote_log: Make) -> None:
    assert found(tallies(make_vote_log, control="a-tt", replicate="a-ta")) == {}


def test_other_statistics_do_not_see_other_words(make_vote_log: Make) -> None:
    arms = {"control": "a-tta-tta-tt", "replicate": "a-taa-taa-ta"}
    both = []
    for more in ({}, {"one": "tttttt......"}):
        frame = tallies(make_vote_log, **arms, **more)
        shifts = match_groups(tally_votes(frame, "balanced"))
        frames = {"tallies": frame, "shifts": shifts, "annotations": annotate(frame)}
        rows = [
            entry.draft(**frames)
            for name, entry in STATISTICS.items()
            if name != "rewording_sensitivity" and {*entry.reads} <= {*frames}
        ]
        both.append(pl.concat(rows))
    assert both[0].height == 20
    assert both[0].equals(both[1])
