from collections.abc import Callable
from typing import Any

import pytest

from tasks.aggregate import count_votes
from tasks.statistics.order_kappa import order_kappa

Make = Callable[..., Any]
STRAIGHT = {"a": "first", "t": "second", "=": "tie", "-": "invalid"}
TURNED = {"a": "second", "t": "first", "=": "tie", "-": "invalid"}


def measured(make: Make, straight: str, turned: str, **more: Any) -> list[dict[str, Any]]:
    votes = [
        {"sample": f"s{at}", "shown_first": side, "choice": words[letter], **more}
        for side, words, text in (("anchor", STRAIGHT, straight), ("target", TURNED, turned))
        for at, letter in enumerate(text)
    ]
    return order_kappa(tallies=count_votes(make(votes))).to_dicts()


def test_docstring_example(make_vote_log: Make) -> None:
    (row,) = measured(make_vote_log, "aaaaaatttt", "aaattttttt")
    assert row["estimate"] == pytest.approx(4 / 9)
    assert (row["judge"], row["subgroup"], row["n"], row["dropped"]) == ("ada", "", 10, 0)
    assert row["low"] < row["estimate"] < row["high"]


def test_pairs_without_a_verdict_are_left_out(make_vote_log: Make) -> None:
    (row,) = measured(make_vote_log, "aat-t", "attt-")
    # a a, a t, t t of three: p_o 2/3, p_e (2 * 1 + 1 * 2) / 9
    assert row["estimate"] == pytest.approx((2 / 3 - 4 / 9) / (5 / 9))
    assert (row["n"], row["dropped"]) == (3, 2)


def test_one_verdict_only(make_vote_log: Make) -> None:
    (row,) = measured(make_vote_log, "aaa", "aaa")
    assert (row["estimate"], row["low"], row["n"]) == (None, None, 3)
    assert row["reason"].startswith("one label only")
    assert measured(make_vote_log, "--", "aa") == []
    assert measured(make_vote_log, "a", "a", arm="experimental") == []
    assert measured(make_vote_log, "", "") == []
