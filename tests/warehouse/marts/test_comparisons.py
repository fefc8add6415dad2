from collections.abc import Callable
from typing import Any

from schemas.calibration import Disagreements, Ratings
from schemas.judging import Shifts, Verdicts, VoteLog
from tasks.aggregate import count_votes
from tasks.counting.verdicts import tally_votes
from warehouse.store import Saving, Warehouse

Make = Callable[..., Any]
SHOWN = """
    select study, sample, perturbation, criterion, control, sham, experimental
    from mart.comparisons
"""


def test_verdicts_stand_side_by_side_without_texts(judged: Warehouse) -> None:
    found = judged.query(f"{SHOWN} order by all")
    assert found.rows() == [
        ("quick", "d/1/a2", "boast", None, "anchor", "anchor", "target"),
        ("quick", "d/2/a2", "boast", None, "tie", None, "tie"),
    ]


def test_a_judge_of_single_answers_has_a_row_per_criterion(rated: Warehouse) -> None:
    found = rated.query(f"{SHOWN} where criterion = 'depth'")
    assert found.rows() == [("own", "s1", "boast", "depth", "3", None, "5")]


def test_a_verdict_flips_and_a_grade_moves(
    warehouse: Warehouse, make_shifts: Make, make_ratings: Make
) -> None:
    """A missing verdict is no flip and no distance, a changed grade no flip; 10 is beyond 9.5."""
    verdicts = [("anchor", "target"), ("tie", "tie"), (None, "tie"), ("tie", None)]
    shifts = make_shifts([{"control": one, "experimental": two} for one, two in verdicts])
    grades = [(9.5, 10.0), (7.0, 4.5), (3.0, 3.0), (None, 3.0)]
    labels = [(0, 1), (1, 1), (1, None)]
    ratings = [
        {"sample": f"{kind}{at}", "kind": kind, "arm": arm, "value": value}
        for kind, pairs in (("number", grades), ("label", labels))
        for at, pair in enumerate(pairs)
        for arm, value in zip(("control", "experimental"), pair, strict=True)
    ]
    frames = [Saving(Shifts, shifts), Saving(Ratings, make_ratings(ratings))]
    warehouse.save(frames, run="r1", study="quick")
    found = warehouse.query("select flipped, moved from mart.comparisons order by sample")
    of_pairs = [(True, None), (False, None), (None, None), (None, None)]
    of_grades = [(None, 0.5), (None, 2.5), (None, 0.0), (None, None)]
    # In the order of the names of samples: label, number, s.
    assert found.rows() == [(True, None), (False, None), (None, None), *of_grades, *of_pairs]


def test_what_was_not_perturbed_and_what_people_label_otherwise_has_a_row(
    warehouse: Warehouse, make: Make, make_vote_log: Make
) -> None:
    log = make_vote_log([{"shown_first": first, "choice": "tie"} for first in ("anchor", "target")])
    verdicts = tally_votes(count_votes(log), "balanced")
    frames = [Saving(VoteLog, log), Saving(Verdicts, verdicts)]
    warehouse.save(frames, run="r1", study="plain")
    warehouse.save([make(Disagreements)], run="r2", study="labels")
    labelled = warehouse.query("select item, judge_label from differing_labels").rows()
    assert warehouse.query(f"{SHOWN} where study = 'plain'").rows() == [
        ("plain", "s1", None, None, "tie", None, None)
    ]
    (row,) = warehouse.query(f"{SHOWN} where study = 'labels'").rows()
    assert (row[1], row[4]) == labelled[0]
