"""Errors of the members of a jury: by hand, and by numpy's correlations."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.results import Estimates
from tasks.aggregate import count_votes
from tasks.counting.annotations import ALIKE_OR_FEW
from tasks.counting.missing_reasons import NO_SCORES_OF_MEMBERS, START
from tasks.inference.bootstrap import FORMULAS, formulas_only, weights
from tasks.inference.intervals import SINGLE
from tasks.inference.quantiles import widened
from tasks.panels.error_correlation import OPPOSED
from tasks.statistics import STATISTICS
from tasks.statistics.jury_errors import UNVARIED

Make = Callable[..., Any]
Row = dict[str, Any]
CHOICES = {"1": ("second", "first"), "0": ("first", "second"), "t": ("tie", "tie")}
"""Score -> choice with the anchor first, and with the target first."""


@pytest.fixture(scope="module")
def errors(make_vote_log: Make) -> Callable[..., dict[str, Row]]:
    """Return a function of judges, a letter per pair, to rows by statistic."""

    def run(judges: dict[str, str], labels: list[str | None], **more: Any) -> dict[str, Row]:
        rows = [
            {
                "judge": judge,
                "sample": f"s{at:02}",
                "cluster": f"q{at:02}",
                "label": labels[at],
                "shown_first": side,
                "choice": choice,
                "human": judge[0].isupper(),
                "simulated": judge == "f",
                **more,
            }
            for judge, letters in judges.items()
            for at, letter in enumerate(letters)
            if letter != "-"
            for side, choice in zip(("anchor", "target"), CHOICES[letter], strict=True)
        ]
        found = STATISTICS["jury_errors"](tallies=count_votes(make_vote_log(rows)))
        assert Estimates.of(found).equals(found)
        return {row["statistic"]: row for row in found.to_dicts()}

    return run


def both(rows: dict[str, Row]) -> tuple[Row, Row]:
    return rows["jury_error_correlation"], rows["jury_error_size"]


def test_docstring_example(errors: Make) -> None:
    r, size = both(errors({"a": "1100", "b": "1010"}, ["target"] * 4))
    assert (r["judge"], r["estimate"], size["estimate"]) == ("jury/all", pytest.approx(0), 2)
    assert (r["n"], r["clusters"], r["votes_per_pair"], r["mode"]) == (4, 4, 4, "any")
    r, size = both(errors({"a": "1100", "b": "1100"}, ["target"] * 4))
    assert (r["estimate"], size["estimate"]) == (pytest.approx(1), pytest.approx(1))


def test_an_error_is_the_distance_from_the_label(errors: Make) -> None:
    # Both say target, tie, anchor where anchor, tie and target are right: errors 1, 0, -1 of both.
    r, _ = both(errors({"a": "1t0", "b": "1t0"}, ["anchor", "tie", "target"]))
    assert r["estimate"] == pytest.approx(1)
    # Always right: no error varies, though verdicts do.
    for row in both(errors({"a": "0t1", "b": "0t1"}, ["anchor", "tie", "target"])):
        assert (row["estimate"], row["n"], row["reason"]) == (None, 0, UNVARIED)


def test_a_member_that_never_errs_has_no_part_in_r_but_in_m(errors: Make) -> None:
    r, size = both(errors({"a": "1100", "b": "1100", "c": "1111"}, ["target"] * 4))
    assert (r["estimate"], size["estimate"]) == (pytest.approx(1), pytest.approx(1))
    r, size = both(errors({"a": "1100", "b": "1010", "c": "1111"}, ["target"] * 4))
    assert (r["estimate"], size["estimate"]) == (pytest.approx(0), pytest.approx(3))


def test_two_questions_give_no_interval(errors: Make) -> None:
    """Draws of two questions vary in one way only, so all have the same correlation."""
    for row in both(errors({"a": "10", "b": "10", "c": "01"}, ["target"] * 2)):
        assert (row["low"], row["high"], row["reason"]) == (None, None, ALIKE_OR_FEW)


def test_opposed_members_have_no_size(errors: Make) -> None:
    r, size = both(errors({"a": "1100" * 4, "b": "0011" * 4}, ["tie"] * 16))
    assert r["estimate"] == pytest.approx(-1)
    assert (size["estimate"], size["low"], size["n"], size["reason"]) == (None, None, 0, OPPOSED)


def test_only_labelled_pairs_of_all_members_count_and_people_are_none(errors: Make) -> None:
    labels = ["target"] * 4 + [None] * 2
    found = errors({"a": "110011", "b": "1010-0", "Ann": "000000", "f": "111111"}, labels)
    assert both(found)[0]["n"] == 4
    found = errors({"a": "110011", "b": "101-00"}, labels)
    assert (both(found)[0]["n"], both(found)[0]["dropped"]) == (3, 1)
    assert errors({"a": "1100", "b": "1010"}, [None] * 4) == {}
    assert errors({"a": "1100", "Ann": "1010"}, ["target"] * 4) == {}


@pytest.mark.parametrize("other", ["--10", "---1"])
def test_no_labelled_pair_of_all_members(errors: Make, other: str) -> None:
    for row in both(errors({"a": "11--", "b": other}, ["target", "tie", "tie", None])):
        reason = f"{START}: {NO_SCORES_OF_MEMBERS}"
        assert (row["estimate"], row["n"], row["clusters"]) == (None, 0, 0)
        assert (row["dropped"] > 0, row["reason"]) == (True, reason)


def test_one_cluster_and_formulas_only(errors: Make) -> None:
    judges, labels = {"a": "1100", "b": "1000"}, ["target"] * 4
    for row in both(errors(judges, labels, cluster="q")):
        assert (row["low"], row["reason"]) == (None, SINGLE)
        assert row["estimate"] is not None
    with formulas_only():
        for row in both(errors(judges, labels)):
            assert (row["low"], row["reason"]) == (None, FORMULAS)


def test_the_interval_is_that_of_draws_of_clusters(errors: Make) -> None:
    random = np.random.default_rng(3)
    shared = random.random(30) < 0.5
    tables = {
        judge: np.where(random.random(30) < 0.7, shared, random.random(30) < 0.5) for judge in "abc"
    }
    found = errors(
        {judge: "".join(str(int(x)) for x in table) for judge, table in tables.items()},
        ["target"] * 30,
    )

    def mean(weight: Any) -> float:
        again = np.repeat(np.arange(30), weight.astype(int))
        pairs = combinations(tables.values(), 2)
        return float(np.mean([np.corrcoef(x[again], y[again])[0, 1] for x, y in pairs]))

    drawn = [mean(weight) for some in weights(30) for weight in some]
    level = float(widened(0.95, 30))
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    r, size = both(found)
    assert r["estimate"] == pytest.approx(mean(np.ones(30)))
    assert (r["low"], r["high"]) == (pytest.approx(low), pytest.approx(high))
    assert size["low"] == pytest.approx(3 / (1 + 2 * high))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_correlation_by_numpy(errors: Make, data: st.DataObject) -> None:
    letters = st.text("01t", min_size=8, max_size=8)
    judges = {judge: data.draw(letters) for judge in "abc"}
    names = data.draw(
        st.lists(st.sampled_from(["anchor", "tie", "target"]), min_size=8, max_size=8)
    )
    right = {"anchor": 0.0, "tie": 0.5, "target": 1.0}
    score = {"0": 0.0, "t": 0.5, "1": 1.0}
    table = np.array(
        [
            [score[x] - right[y] for x, y in zip(said, names, strict=True)]
            for said in judges.values()
        ]
    )
    varied = [row for row in table if row.std() > 0]
    with formulas_only():
        r, size = both(errors(judges, names))
    if len(varied) < 2:
        assert (r["reason"], size["reason"]) == (UNVARIED, UNVARIED)
        return
    mean = np.mean([np.corrcoef(x, y)[0, 1] for x, y in combinations(varied, 2)])
    assert r["estimate"] == pytest.approx(mean, abs=1e-9)
    if 1 + 2 * mean > 1e-6:
        assert size["estimate"] == pytest.approx(3 / (1 + 2 * mean))
