from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schemas.judging import CHOICES, Tallies, VoteLog
from tasks.aggregate import count_votes, measure_all
from tasks.annotate import annotate
from tasks.counting.contests import match_models
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.statistics import STATISTICS

Make = Callable[..., Any]
Ballot = tuple[str, str | None]  # shown first, choice
BALLOT = st.tuples(st.sampled_from(["anchor", "target"]), st.sampled_from([*CHOICES, None]))
OTHER = {"anchor": "target", "target": "anchor", "tie": "tie", None: None}


def cast(ballots: Sequence[Ballot], **more: object) -> list[dict[str, Any]]:
    return [
        {"shown_first": side, "repeat": number, "choice": choice, **more}
        for number, (side, choice) in enumerate(ballots)
    ]


def exact(ballots: list[Ballot], mode: str) -> Fraction | None:
    """Second implementation: the score of methods.md, section 1, as a fraction."""
    values: dict[str, list[int]] = {"anchor": [], "target": []}
    for side, choice in ballots:
        if choice in {"first", "second", "tie"}:
            for_target = (choice == "first") == (side == "target")
            values[side].append(0 if choice == "tie" else 1 if for_target else -1)
    if mode == "paper":
        pooled = values["anchor"] + values["target"]
        return (Fraction(sum(pooled), len(pooled)) + 1) / 2 if pooled else None
    if not (values["anchor"] and values["target"]):
        return None
    means = [Fraction(sum(order), len(order)) for order in values.values()]
    return (sum(means, Fraction(0)) / 2 + 1) / 2


def named(score: Fraction | None) -> str | None:
    if score is None:
        return None
    return "tie" if score == Fraction(1, 2) else "target" if score > Fraction(1, 2) else "anchor"


NOTHING = (None, None)
FIRST, SECOND = ("anchor", "first"), ("anchor", "second")
SWAPPED_FIRST, SWAPPED_SECOND = ("target", "first"), ("target", "second")


@pytest.mark.parametrize(
    ("ballots", "paper", "balanced"),
    [
        # Anchor shown first: `first` is a vote for the anchor; target first: for the target.
        ([FIRST, SWAPPED_SECOND], (0.0, "anchor"), (0.0, "anchor")),
        ([SECOND, SWAPPED_FIRST], (1.0, "target"), (1.0, "target")),
        ([FIRST, SWAPPED_FIRST], (0.5, "tie"), (0.5, "tie")),  # always the first slot
        ([("anchor", "tie"), SWAPPED_FIRST], (0.75, "target"), (0.75, "target")),
        # Two votes in one order, one in the other: paper counts votes, balanced orders.
        ([FIRST, FIRST, SWAPPED_FIRST], (pytest.approx(1 / 3), "anchor"), (0.5, "tie")),
        ([FIRST, ("anchor", "tie"), SWAPPED_FIRST], (0.5, "tie"), (0.625, "target")),
        # Asked in one order only: a score for the half of such samples, and no verdict.
        ([SECOND, SECOND], (1.0, "target"), (1.0, None)),
        ([FIRST, ("target", "invalid")], (0.0, "anchor"), (None, None)),
        (
            [("anchor", "invalid"), ("target", "abstain"), ("target", None)],
            (None,) * 2,
            (None,) * 2,
        ),
        ([("anchor", "ambiguous"), FIRST, SWAPPED_SECOND], (0.0, "anchor"), (0.0, "anchor")),
    ],
)
def test_verdicts_by_hand(
    make_vote_log: Make, ballots: list[Ballot], paper: tuple[Any, ...], balanced: tuple[Any, ...]
) -> None:
    log = make_vote_log(cast(ballots))
    for mode, expected in (("paper", paper), ("balanced", balanced)):
        row = tally_votes(count_votes(log), mode).to_dicts()[0]
        assert (row["score"], row["verdict"]) == expected
        assert (row["mode"], row["votes"]) == (mode, len(ballots))
        assert row["valid_votes"] == sum(c in {"first", "second", "tie"} for _, c in ballots)


def test_thirds_that_cancel_are_a_tie(make_vote_log: Make) -> None:
    # 1/3 - 1/3 with other denominators: floats of 1/3 and -2/6 must not tell.
    ballots = [SECOND, ("anchor", "tie"), ("anchor", "tie")]
    ballots += [SWAPPED_SECOND] * 2 + [("target", "tie")] * 4
    row = tally_votes(count_votes(make_vote_log(cast(ballots))), "balanced").to_dicts()[0]
    assert (row["score"], row["verdict"]) == (0.5, "tie")


@settings(max_examples=50)
@given(st.lists(BALLOT, min_size=1, max_size=25), st.sampled_from(["paper", "balanced"]))
def test_verdict_is_the_sign_of_the_exact_score(
    make_vote_log: Make, ballots: list[Ballot], mode: str
) -> None:
    row = tally_votes(count_votes(make_vote_log(cast(ballots))), mode).to_dicts()[0]
    score = exact(ballots, mode)
    if mode == "balanced" and len({order for order, _ in ballots}) == 1:
        # Asked in one order only: the score of that order, and no verdict.
        score = exact(ballots, "paper")
        assert row["verdict"] is None
    else:
        assert row["verdict"] == named(score)
    assert row["score"] == (None if score is None else pytest.approx(float(score), abs=1e-15))


@settings(max_examples=30)
@given(st.lists(BALLOT, min_size=1, max_size=20), st.sampled_from(["paper", "balanced"]))
def test_swapping_anchor_and_target_mirrors(
    make_vote_log: Make, ballots: list[Ballot], mode: str
) -> None:
    swapped = [(str(OTHER[side]), choice) for side, choice in ballots]
    before, after = (
        tally_votes(count_votes(make_vote_log(cast(b))), mode).to_dicts()[0]
        for b in (ballots, swapped)
    )
    assert after["verdict"] == OTHER[before["verdict"]]
    if before["score"] is not None:
        assert after["score"] == pytest.approx(1 - before["score"], abs=1e-15)


@settings(max_examples=30)
@given(
    st.lists(BALLOT, min_size=1, max_size=20),
    st.lists(st.sampled_from(["invalid", "abstain", "ambiguous", None]), min_size=1, max_size=9),
    st.sampled_from(["anchor", "target"]),
)
def test_invalid_votes_of_one_order_change_nothing(
    make_vote_log: Make, ballots: list[Ballot], lost: list[str | None], side: str
) -> None:
    # A judge that is asked in one order only is measured by that order, others by both.
    orders = {shown_first for shown_first, _ in ballots}
    assume(len(orders) == 2 or side in orders)
    more = ballots + [(side, choice) for choice in lost]
    for mode in ("paper", "balanced"):
        before, after = (
            tally_votes(count_votes(make_vote_log(cast(b))), mode).to_dicts()[0]
            for b in (ballots, more)
        )
        same = ("score", "verdict", "valid_votes")
        assert [before[column] for column in same] == [after[column] for column in same]


@settings(max_examples=5)
@given(st.data(), st.sampled_from(["paper", "balanced"]))
def test_order_of_rows_changes_nothing(make_vote_log: Make, data: st.DataObject, mode: str) -> None:
    rows = [
        row
        for arm in ("control", "experimental", "sham")
        for sample in ("s1", "s2")
        for row in cast(data.draw(st.lists(BALLOT, min_size=1, max_size=4)), arm=arm, sample=sample)
    ]
    log = make_vote_log(rows)
    mixed = log[data.draw(st.permutations(range(log.height)))]
    verdicts, again = tally_votes(count_votes(log), mode), tally_votes(count_votes(mixed), mode)
    shifts = match_groups(verdicts)
    assert again.equals(verdicts)
    assert match_groups(again).equals(shifts)
    frames, shuffled = (
        {
            "tallies": tallies,
            "shifts": shifts,
            "contests": match_models(tallies),
            "annotations": annotate(tallies),
        }
        for tallies in (count_votes(log), count_votes(mixed))
    )
    assert measure_all(**shuffled).equals(measure_all(**frames))


def test_unknown_mode_is_refused(make_vote_log: Make) -> None:
    with pytest.raises(ValueError, match="mode 'strict' must be 'paper' or 'balanced'"):
        tally_votes(count_votes(make_vote_log([{}])), "strict")


def test_groups_are_laid_side_by_side(make_vote_log: Make) -> None:
    both = [SECOND, SWAPPED_FIRST]
    log = make_vote_log(
        [
            *cast([FIRST, SWAPPED_SECOND]),
            *cast(both, arm="experimental"),
            *cast([("anchor", "tie"), ("target", "tie")], arm="sham"),
            *cast(both, arm="experimental", perturbation="error", kind="detract"),
            *cast(both, arm="experimental", sample="s2"),  # never asked about in control
            *cast(both, sample="s3"),  # control alone is no shift
        ]
    )
    shifts = match_groups(tally_votes(count_votes(log), "balanced"))
    columns = ("sample", "perturbation", "kind", "control", "experimental", "sham", "has_sham")
    assert shifts.select(columns).rows() == [
        ("s1", "boast", "promote", "anchor", "target", "tie", True),
        ("s1", "error", "detract", "anchor", "target", None, False),
        ("s2", "boast", "promote", None, "target", None, False),
    ]
    scores = shifts.select("control_score", "experimental_score", "sham_score").rows()
    assert scores == [(0.0, 1.0, 0.5), (0.0, 1.0, None), (None, 1.0, None)]
    assert shifts["votes"].to_list() == [2, 2, 2]


def test_replicates_stand_beside_every_perturbation(make_vote_log: Make) -> None:
    both = [SECOND, SWAPPED_FIRST]
    log = make_vote_log(
        [
            *cast([FIRST, SWAPPED_SECOND]),
            *cast(both, arm="replicate"),
            *cast(both, arm="experimental"),
            *cast(both, arm="experimental", perturbation="error", kind="detract"),
            *cast(both, arm="experimental", sample="s2"),
        ]
    )
    shifts = match_groups(tally_votes(count_votes(log), "balanced"))
    assert shifts.select("sample", "control", "replicate", "has_replicate").rows() == [
        ("s1", "anchor", "target", True),
        ("s1", "anchor", "target", True),
        ("s2", None, None, False),
    ]


def test_judges_prompts_and_waves_do_not_mix(make_vote_log: Make) -> None:
    apart = [{"judge": "bea"}, {"prompt": "stern"}, {"wave": "later"}, {"dataset": "other"}]
    rows = [row for more in apart for row in cast([FIRST], arm="experimental", **more)]
    shifts = match_groups(
        tally_votes(count_votes(make_vote_log([*rows, *cast([SECOND])])), "paper")
    )
    assert shifts["control"].to_list() == [None] * 4


def test_nothing_gives_nothing() -> None:
    verdicts = tally_votes(count_votes(VoteLog.empty()), "balanced")
    shifts = match_groups(verdicts)
    assert (verdicts.height, shifts.height) == (0, 0)
    for name in STATISTICS:
        none = Tallies.empty()
        frames = {
            "tallies": none,
            "shifts": shifts,
            "contests": match_models(none),
            "annotations": annotate(none),
        }
        assert STATISTICS[name](**frames).is_empty()


def test_contests_are_control_pairs_of_two_known_models(make_vote_log: Make) -> None:
    two = {"anchor_author": "ant", "target_author": "bee", "human_score": 0.25}
    log = make_vote_log(
        [
            *cast([SECOND, ("anchor", "tie"), SWAPPED_SECOND], **two),
            *cast([SECOND], sample="one order", **two),
            *cast([SECOND, SWAPPED_FIRST], sample="planted", arm="experimental", **two),
            *cast([SECOND], sample="alone", anchor_author="ant", target_author="ant"),
            *cast([SECOND], sample="unknown", anchor_author="ant"),
        ]
    )
    contests = match_models(count_votes(log))
    columns = ("sample", "score_12", "score_21", "score", "votes", "human_score")
    assert contests.select(columns).rows() == [
        ("one order", 1.0, None, None, 1, 0.25),
        ("s1", 0.75, 0.0, 0.375, 3, 0.25),  # whatever the mode, each order counts the same
    ]


def test_an_empty_arm_is_reported(make_vote_log: Make) -> None:
    both = [SECOND, SWAPPED_FIRST]
    log = make_vote_log([*cast(both), *cast(both, arm="sham"), *cast(both, sample="s2")])
    shifts = match_groups(tally_votes(count_votes(log), "balanced"))
    columns = ("sample", "control", "experimental", "sham", "votes")
    assert shifts.select(columns).rows() == [("s1", "target", None, "target", 2)]
    row = STATISTICS["asr"](shifts=shifts).row(0, named=True)
    assert (row["estimate"], row["n"]) == (None, 0)
    assert row["reason"].startswith("nothing qualifies: no sample has verdicts in both arms")


def test_votes_that_others_made_needless_belong_to_the_design(make_vote_log: Make) -> None:
    asked = [
        {"shown_first": first, "repeat": repeat, "choice": choice, "arm": "experimental"}
        for repeat in (0, 1)
        for first, choice in (("anchor", "second"), ("target", "first"))
    ]
    spared = [{**row, "repeat": 2, "choice": None, "stopped": "lossless"} for row in asked[:2]]
    shifts = match_groups(tally_votes(count_votes(make_vote_log([*asked, *spared])), "balanced"))
    assert shifts["votes"].to_list() == [6]
    # Section 1: six random votes name the target with chance .4033, four with .3827.
    baseline = STATISTICS["random_baseline"](shifts=shifts).filter(statistic="random_baseline")
    assert baseline["estimate"].to_list() == [pytest.approx(0.4033, abs=5e-5)]
