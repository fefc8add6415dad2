"""The counts of the SQL aggregate equal those of a plain loop over the ballots."""

from collections import Counter
from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.judging import LAST_REPEAT
from tasks.aggregate import count_votes

Make = Callable[..., pl.DataFrame]
SIDES = {("anchor", "first"): "anchor", ("anchor", "second"): "target"}
SIDES |= {("target", "first"): "target", ("target", "second"): "anchor"}
CHOICES = ("first", "second", "tie", "invalid", "abstain", "ambiguous", None)
BALLOTS = st.dictionaries(
    st.tuples(st.sampled_from(["anchor", "target"]), st.integers(0, LAST_REPEAT)),
    st.sampled_from(CHOICES),
    min_size=1,
    max_size=20,
)


def _fate(shown_first: str, choice: str | None) -> str:
    """Return the answer voted for, or the choice that is no such vote."""
    return SIDES.get((shown_first, str(choice)), choice or "none")


@settings(max_examples=60)
@given(BALLOTS, st.sampled_from(["anchor", "tie", "target", None]))
def test_counts_are_those_of_a_loop(
    make_vote_log: Make, ballots: dict[tuple[str, int], str | None], label: str | None
) -> None:
    log = make_vote_log(
        [
            {"shown_first": shown, "repeat": repeat, "choice": choice, "label": label}
            for (shown, repeat), choice in ballots.items()
        ]
    )
    (row,) = count_votes(log).to_dicts()
    fate = {place: _fate(place[0], choice) for place, choice in ballots.items()}
    total = Counter(fate.values())
    straight = {r: f for (shown, r), f in fate.items() if shown == "anchor"}
    turned = {r: f for (shown, r), f in fate.items() if shown == "target"}
    matches = [(straight[r], turned[r]) for r in straight if r in turned]
    sides = ("anchor", "tie", "target")
    valid = [(x, y) for x, y in matches if x in sides and y in sides]
    differ = [(x, y) for x, y in valid if x != y]
    to_first = [(x, y) for x, y in differ if x == "anchor" or y == "target"]
    expected = {
        "planned": len(ballots),
        "planned_12": len(straight),
        "matched": len(matches),
        "voted": len(ballots) - total["none"],
        "voted_12": sum(f != "none" for f in straight.values()),
        "voted_21": sum(f != "none" for f in turned.values()),
        **{name: total[name] for name in ("invalid", "abstain", "ambiguous")},
        **{f"{side}_12": Counter(straight.values())[side] for side in sides},
        **{f"{side}_21": Counter(turned.values())[side] for side in sides},
        "alone": sum((x in sides) != (y in sides) for x, y in matches),
        "consistent": len(valid) - len(differ),
        "both_target": valid.count(("target", "target")),
        "both_tie": valid.count(("tie", "tie")),
        "primacy": len(to_first),
        "recency": len(differ) - len(to_first),
        "first_first": valid.count(("anchor", "target")),
        "second_second": valid.count(("target", "anchor")),
        "matched_once": 0 in straight and 0 in turned,
        "matched_voted": sum("none" not in match for match in matches),
        "matched_invalid": sum(
            "none" not in (x, y) and x not in sides and y not in sides for x, y in matches
        ),
        "matched_right": valid.count((label, label)) if label else None,
        "once_12": {"anchor": -1, "tie": 0, "target": 1}.get(straight.get(0, "")),
        "once_21": {"anchor": -1, "tie": 0, "target": 1}.get(turned.get(0, "")),
    }
    assert {name: row[name] for name in expected} == expected


def test_a_repeat_that_cannot_be_counted_is_refused(make_vote_log: Make) -> None:
    log = make_vote_log([{"shown_first": "anchor", "repeat": LAST_REPEAT + 1, "choice": "tie"}])
    with pytest.raises(ValueError, match="repeat 127 is too high: a pair has at most 127 votes"):
        count_votes(log)
