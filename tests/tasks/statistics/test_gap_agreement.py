from collections.abc import Callable
from typing import Any

import pytest

from tasks.statistics.gap_agreement import NAMES, gap_agreement

Make = Callable[..., Any]


def rows_of(judge: str, *people: str) -> list[dict[str, Any]]:
    """Make one letter per item: a anchor, t target, = tie; a space is no label."""
    words = {"a": "anchor", "t": "target", "=": "tie"}
    return [
        {"annotator": who, "item": f"i{at:02}", "label": words[letter]}
        for who, text in (("ada", judge), *((f"P{at}", text) for at, text in enumerate(people)))
        for at, letter in enumerate(text)
        if letter != " "
    ]


def measured(make: Make, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    found = {row["statistic"]: row for row in gap_agreement(annotations=make(rows)).to_dicts()}
    return [(found[name]["estimate"], found[name]["hits"], found[name]["n"]) for name in NAMES]


def test_the_two_are_left_out_of_the_gap(make_annotations: Make) -> None:
    # One person and other judges: the gap is what the judges bea and cem say of an item.
    others = {"bea": "tt=", "cem": "tat"}  # gaps 1, 0 and .5
    words = {"a": "anchor", "t": "target", "=": "tie"}
    rows = rows_of("tat", "ttt") + [
        {"annotator": who, "item": f"i{at:02}", "label": words[letter]}
        for who, text in others.items()
        for at, letter in enumerate(text)
    ]
    mine = [
        row
        for row in gap_agreement(annotations=make_annotations(rows)).to_dicts()
        if row["judge"] == "ada"
    ]
    found = {row["statistic"]: (row["estimate"], row["n"]) for row in mine}
    # The judge and the person agree where the gap is 1 and where it is .5.
    assert [found[name] for name in NAMES] == [(0.0, 1), (1.0, 1), (1.0, 1)]


def test_shares_have_wilson_intervals(make_annotations: Make) -> None:
    found = gap_agreement(
        annotations=make_annotations(rows_of("tat=" * 4, "tatt" * 4, "taaa" * 4, "=ata" * 4))
    )
    reported = found.filter(found["low"].is_not_null())
    assert reported.height > 0
    assert set(reported["method"]) == {"cluster-adjusted Wilson"}


def test_equal_gaps_are_not_parted(make_annotations: Make) -> None:
    # All others say target: one gap, whose mid-rank is the middle.
    found = measured(make_annotations, rows_of("tttt", "tttt", "tttt"))
    assert found == [(None, None, 0), (1.0, 8, 8), (None, None, 0)]


def test_nobody_else(make_annotations: Make) -> None:
    assert {n for _, _, n in measured(make_annotations, rows_of("ta", "tt"))} == {0}
    assert gap_agreement(annotations=make_annotations(rows_of("ta"))).is_empty()


def test_labels_without_places(make_annotations: Make) -> None:
    rows = [
        {"annotator": who, "item": "i", "label": label}
        for who, label in (("ada", "x"), ("Bob", "x"), ("Cid", "y"))
    ]
    assert measured(make_annotations, rows) == [(None, None, 0)] * 3


def test_disagreement_sits_where_answers_are_close(make_annotations: Make) -> None:
    # Three clear items, three in doubt: the judge errs on those in doubt only.
    rows = rows_of("tttaaa", "tttttt", "ttttaa", "tttat=", "ttt==t")
    small, _, large = measured(make_annotations, rows)
    assert small[0] < large[0] == pytest.approx(1.0)
