from collections.abc import Callable
from typing import Any

import pytest
from scipy.stats import ttest_rel

from tasks.aggregate import count_votes
from tasks.statistics.accuracy_change import accuracy_change

Make = Callable[..., Any]
SLOTS = {"anchor": ("first", "second"), "target": ("second", "first"), None: ("tie", "invalid")}


def votes(sample: str, arm: str, *answers: str | None, label: str | None = "target") -> Any:
    """Return a vote in each order for each answer named, in turn."""
    return [
        {
            "sample": sample,
            "arm": arm,
            "repeat": repeat,
            "shown_first": side,
            "label": label,
            "choice": SLOTS[answer][side == "target"],
        }
        for repeat, answer in enumerate(answers)
        for side in ("anchor", "target")
    ]


def measured(make: Make, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {r["statistic"]: r for r in accuracy_change(tallies=count_votes(make(rows))).to_dicts()}


def half(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turn the first vote into a tie."""
    return [rows[0] | {"choice": "tie"}, *rows[1:]]


def test_docstring_example(make_vote_log: Make) -> None:
    rows = [
        *votes("a", "control", "target"),
        *half(votes("b", "control", "target")),
        *half(votes("a", "experimental", "target")),
        *votes("b", "experimental", "anchor"),
    ]
    found = measured(make_vote_log, rows)
    assert {name: row["estimate"] for name, row in found.items()} == {
        "accuracy_before": 0.75,
        "accuracy_after": 0.25,
        "accuracy_change": -0.5,
    }
    assert {(row["n"], row["perturbation"], row["kind"]) for row in found.values()} == {
        (2, "boast", "promote")
    }


def test_change_is_a_paired_t(make_vote_log: Make) -> None:
    before = [2, 1, 2, 0, 1, 2, 2, 1]
    after = [1, 1, 0, 0, 2, 1, 0, 0]
    rows = []
    for n, pair in enumerate(zip(before, after, strict=True)):
        for arm, right in zip(("control", "experimental"), pair, strict=True):
            row = votes(f"s{n}", arm, "target" if right else "anchor")
            rows += half(row) if right == 1 else row
    row = measured(make_vote_log, rows)["accuracy_change"]
    # Second implementation: scipy's paired t-test of the shares.
    test = ttest_rel([b / 2 for b in after], [b / 2 for b in before])
    interval = test.confidence_interval()
    assert row["p_value"] == pytest.approx(test.pvalue)
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))


def test_each_arm_by_its_label_and_only_samples_with_both(make_vote_log: Make) -> None:
    rows = [
        *votes("a", "control", "target"),
        *votes("a", "experimental", "anchor", label="anchor"),
        *votes("b", "control", "target", label=None),
        *votes("b", "experimental", "anchor"),
        *votes("c", "control", None),
        *votes("c", "experimental", None),
    ]
    rows[-1] |= {"choice": None}
    rows[-2] |= {"choice": None}
    found = measured(make_vote_log, rows)
    # a is right in both; b has one label; of c nobody voted after.
    assert {row["n"] for row in found.values()} == {1}
    assert {row["dropped"] for row in found.values()} == {1}
    assert found["accuracy_change"]["estimate"] == 0.0
    assert found["accuracy_change"]["reason"] == "a single cluster: no interval"


def test_without_labels_there_is_nothing(make_vote_log: Make) -> None:
    rows = [*votes("a", "control", "target", label=None)]
    assert measured(make_vote_log, rows) == {}
    assert measured(make_vote_log, votes("a", "control", "target")) == {}
    assert measured(make_vote_log, []) == {}


@pytest.mark.parametrize("silent", ["control", "experimental"])
def test_an_arm_without_any_verdict_is_not_compared(make_vote_log: Make, silent: str) -> None:
    rows = [
        row
        for at in range(12)
        for arm in ("control", "experimental")
        for row in votes(f"s{at}", arm, "target")
    ]
    mute = [row | {"choice": "invalid"} if row["arm"] == silent else row for row in rows]
    for row in measured(make_vote_log, mute).values():
        assert (row["estimate"], row["p_value"], row["n"], row["dropped"]) == (None, None, 0, 12)
        assert row["reason"].endswith("or one arm has no valid vote")
    assert measured(make_vote_log, rows)["accuracy_change"]["n"] == 12
