from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.judging import Ballots, Pairs, VoteLog, Votes
from tasks import providers
from tasks.aggregate import count_votes
from tasks.annotate import annotate
from tasks.counting.contests import match_models
from tasks.counting.verdicts import match_groups, tally_votes
from tasks.judging.people import (
    ASKED_ARMS,
    CHOSEN,
    PROMPT,
    Programme,
    both_orders,
    draw_for,
    log_people,
    people_prompt,
    people_table,
)
from tasks.statistics import STATISTICS

Make = Callable[..., Any]
KINDS = ("boast", "fib")
ANN, BEN = "people/ann", "people/ben"


@pytest.fixture(scope="session")
def many(make_pairs: Make) -> Any:
    """Twelve samples in three arms, under two perturbations: five pairs each."""
    return make_pairs(
        [
            {
                "pair_id": f"{n}-{arm}-{kind}",
                "sample": f"q/{n}/a2",
                "cluster": f"q/{n}",
                "arm": arm,
                "perturbation": kind,
                "anchor": f"A {n}.",
                "target": f"T {n} {arm} {kind}.",
                "question": f"Q {n}?",
                "kind": "promote" if kind else None,
            }
            for n in range(12)
            for kind in (None, *KINDS)
            for arm in (("experimental", "sham") if kind else ("control", "replicate"))
        ]
    )


def seen(pairs: pl.DataFrame, judge: str, number: int, **programme: Any) -> pl.DataFrame:
    """Return what a voter sees, in order."""
    draw = draw_for(pairs, judge, number, Programme(**programme))
    order = pl.DataFrame({"ballot_id": draw.order})
    return order.join(draw.ballots, on="ballot_id", how="left").join(
        pairs, on="pair_id", how="left", maintain_order="left"
    )


def test_a_person_is_a_judge_and_the_page_a_prompt() -> None:
    row = people_table([ANN]).to_dicts()[0]
    assert (row["judge"], row["provider"], row["simulated"]) == (ANN, "people", False)
    assert people_prompt()["prompt"].to_list() == ["booth_v1"]
    # The wording is a fact: another one needs another name.
    assert PROMPT["user"] == (
        "Which answer is better?\n\n{question}\n\n{answer_a}\n\n{answer_b}\n\n"
        "Answer 1 / Answer 2 / Tie / Not familiar"
    )
    assert [*CHOSEN.values()] == ["first", "second", "tie", "abstain"]


def test_every_arm_once_and_no_replicate(many: Any) -> None:
    rows = seen(many, ANN, 0)
    assert rows.height == 12 * 5
    assert rows["pair_id"].n_unique() == 60
    assert "replicate" not in rows["arm"]


@pytest.mark.parametrize("programme", [{}, {"limit": 30}, {"perturbations": ("fib",)}])
def test_orders_are_balanced_and_turned_for_the_next_voter(
    many: Any, programme: dict[str, Any]
) -> None:
    ann, ben = seen(many, ANN, 0, **programme), seen(many, BEN, 1, **programme)
    half = ann.height / 2
    assert (ann["shown_first"] == "anchor").sum() == half
    both = ann.join(ben, on="pair_id", suffix="_ben")
    assert both.height == ann.height
    assert (both["shown_first"] != both["shown_first_ben"]).all()
    # A liking for a slot cancels out of a shift.
    assert ann.group_by("sample").agg(pl.col("shown_first").n_unique())["shown_first"].max() == 1


def test_ballots_of_a_sample_lie_far_apart_and_each_voter_has_another_order(many: Any) -> None:
    ann, ben = seen(many, ANN, 0), seen(many, BEN, 1)
    gaps = ann.with_row_index("at").select(pl.col("at").cast(pl.Int64).diff().over("sample"))["at"]
    assert gaps.min() == 12  # 60 ballots, 5 of each sample
    assert ann["pair_id"].to_list() != ben["pair_id"].to_list()
    assert ann.filter(pl.col("arm") == "control").height == 12
    firsts = ann.group_by("sample", maintain_order=True).first()["arm"]
    assert firsts.n_unique() == 3


def test_a_limit_takes_whole_samples_the_same_for_all_and_perturbations_in_turns(
    many: Any,
) -> None:
    ann, ben = seen(many, ANN, 0, limit=20), seen(many, BEN, 1, limit=20)
    assert (ann.height, set(ann["pair_id"])) == (18, set(ben["pair_id"]))
    assert ann["sample"].n_unique() == 6
    planted = ann.filter(arm="experimental")["perturbation"].value_counts().rows()
    assert sorted(planted) == [("boast", 3), ("fib", 3)]
    more = seen(many, ANN, 0, limit=45)
    assert set(ann["pair_id"]) < set(more["pair_id"])
    # Whoever raises the limit shows nothing in another order.
    kept = ann.join(more, on="pair_id", suffix="_more")
    assert (kept["shown_first"] == kept["shown_first_more"]).all()
    assert more["sample"].n_unique() == 12


def test_each_sample_once_with_arms_in_turns(many: Any) -> None:
    voters = [seen(many, f"people/{n}", n, once=True) for n in range(3)]
    for rows in voters:
        assert rows.height == rows["sample"].n_unique() == 12
        assert sorted(rows["arm"].value_counts()["count"]) == [4, 4, 4]
    arms = pl.concat(voters).group_by("sample").agg(pl.col("arm").n_unique())
    assert arms["arm"].to_list() == [3] * 12


def test_arms_and_perturbations_are_left_out(many: Any) -> None:
    assert set(seen(many, ANN, 0, arms=("control",))["arm"]) == {"control"}
    rows = seen(many, ANN, 0, arms=("control", "experimental"), perturbations=("fib",))
    assert (rows.height, set(rows["perturbation"])) == (24, {None, "fib"})


def test_a_limit_below_one_sample_is_refused(many: Any) -> None:
    with pytest.raises(ValueError, match=r"limit \(2\) is below the 3 ballots of one sample"):
        draw_for(many, ANN, 0, Programme(limit=2))


def test_what_was_voted_on_keeps_its_order(many: Any) -> None:
    every = both_orders(many, ANN)
    turned = Ballots.of(every.filter(shown_first="target"))
    draw = draw_for(many, ANN, 0, Programme(), turned)
    assert set(draw.ballots["shown_first"]) == {"target"}


def test_an_id_depends_on_person_wording_and_texts_alone(many: Any) -> None:
    every = both_orders(many, ANN)
    assert every["ballot_id"].n_unique() == 120
    renamed = Pairs.of(many.with_columns(pair_id="x" + pl.col("pair_id")))
    assert set(both_orders(renamed, ANN)["ballot_id"]) == set(every["ballot_id"])
    assert not set(both_orders(many, BEN)["ballot_id"]) & set(every["ballot_id"])


@given(
    st.integers(0, 5),
    st.builds(
        Programme,
        arms=st.just(ASKED_ARMS),
        limit=st.integers(3, 70),
        once=st.booleans(),
        seed=st.integers(0, 3),
        perturbations=st.sets(st.sampled_from(KINDS)).map(tuple),
    ),
)
def test_any_draw_is_sound(many: Any, number: int, programme: Programme) -> None:
    limit, once = programme.limit or 0, programme.once
    draw = draw_for(many, ANN, number, programme)
    assert sorted(draw.order) == sorted(draw.ballots["ballot_id"])
    assert 0 < len(draw.order) <= limit
    assert draw.ballots["pair_id"].is_unique().all()
    assert draw_for(many, ANN, number, programme).order == draw.order
    rows = draw.ballots.join(many, on="pair_id")
    if not once:
        # Each shift has its control.
        by_sample = rows.group_by("sample").agg((pl.col("arm") == "control").sum().alias("n"))
        assert set(by_sample["n"]) == {1}


def cast(make_votes: Make, ballots: pl.DataFrame, **more: Any) -> Any:
    rows = [
        {"ballot_id": ballot, "finish_reason": "timed", "seconds": 9.0, **more}
        for ballot in ballots["ballot_id"]
    ]
    return make_votes(rows)


@pytest.mark.parametrize(
    ("vote", "choice"),
    [
        ({"seconds": 3.0}, "first"),
        ({"seconds": 2.99}, "invalid"),
        ({"seconds": 0.0, "finish_reason": "untimed"}, "first"),
        ({"seconds": 60.0, "choice": "abstain"}, "abstain"),
        ({"seconds": 1.0, "choice": "abstain"}, "abstain"),
    ],
)
def test_who_was_too_fast_has_not_voted(
    many: Any, make_votes: Make, vote: dict[str, Any], choice: str
) -> None:
    ballots = both_orders(many, ANN).head(1)
    log = log_people(
        many,
        Ballots.of(ballots),
        cast(make_votes, ballots, **vote),
        prompt="plain",
        wave="w",
        too_fast_seconds=3.0,
    )
    row = log.to_dicts()[0]
    assert (row["choice"], row["prompt"], row["wave"], row["human"]) == (choice, "plain", "w", True)
    assert row["simulated"] is False


def test_one_look_of_a_person_is_a_verdict_and_of_a_model_it_is_not(
    many: Any, make_votes: Make
) -> None:
    draw = draw_for(many, ANN, 0, Programme(limit=3))
    votes = Votes.of(cast(make_votes, draw.ballots, choice="first"))
    log = log_people(many, draw.ballots, votes, prompt="plain", wave="", too_fast_seconds=3.0)
    (side,) = set(draw.ballots["shown_first"])
    tallies = count_votes(log)
    verdicts = tally_votes(tallies, "balanced")
    assert set(verdicts["verdict"]) == {side}
    assert set(verdicts["score"]) == {0.0 if side == "anchor" else 1.0}
    (shift,) = match_groups(verdicts).to_dicts()
    assert (shift["control"], shift["experimental"], shift["sham"]) == (side,) * 3
    assert annotate(tallies)["label"].to_list() == [side]
    model = tally_votes(count_votes(log.with_columns(human=pl.lit(value=False))), "balanced")
    assert model["verdict"].null_count() == model.height == 3
    authors = log.with_columns(anchor_author=pl.lit("ant"), target_author=pl.lit("bee"))
    (contest,) = match_models(count_votes(authors)).to_dicts()
    assert contest["score"] == (0.0 if side == "anchor" else 1.0)


def test_no_provider_file_can_pass_for_people() -> None:
    with pytest.raises(ValueError, match="the name 'people' is reserved for people who vote"):
        providers._parse("people", {})


def test_what_is_new_of_a_sample_is_shown_as_the_rest_of_it_was(many: Any) -> None:
    first = draw_for(many, ANN, 0, Programme(limit=6)).ballots
    turned = first.with_columns(
        shown_first=pl.col("shown_first").replace({"anchor": "target", "target": "anchor"})
    )
    again = draw_for(many, ANN, 0, Programme(), Ballots.of(turned)).ballots
    pairs = again.join(many.select("pair_id", "sample"), on="pair_id")
    sides = pairs.group_by("sample").agg(pl.col("shown_first").unique())
    assert set(sides["shown_first"].list.len()) == {1}
    begun = turned.join(many.select("pair_id", "sample"), on="pair_id")
    both = begun.join(pairs, on="sample", suffix="_now")
    assert (both["shown_first"] == both["shown_first_now"]).all()


def test_votes_on_control_pairs_are_scores_of_people(
    make_pairs: Make, make_votes: Make, make_vote_log: Make
) -> None:
    pairs = make_pairs(
        {"pair_id": str(n), "sample": f"demo/{n}/a2", "cluster": f"demo/{n}", "target": f"T {n}."}
        for n in range(4)
    )
    # Ann prefers the target of pair 0 and the anchor of pair 1; to Ben, pair 0 is a tie, and pair 2
    # not familiar.
    given = {(ANN, "0"): "target", (ANN, "1"): "anchor", (BEN, "0"): "tie", (BEN, "2"): None}
    shown = pl.concat(both_orders(pairs, judge) for judge in (ANN, BEN))
    ballots = shown.filter(
        pl.struct("judge", "pair_id", "shown_first").map_elements(
            lambda row: (row["judge"], row["pair_id"]) in given and row["shown_first"] == "target",
            return_dtype=pl.Boolean,
        )
    )
    choices = {"target": "first", "anchor": "second", "tie": "tie", None: "abstain"}
    votes = pl.concat(
        cast(make_votes, ballots[at : at + 1], choice=choices[given[row["judge"], row["pair_id"]]])
        for at, row in enumerate(ballots.to_dicts())
    )
    log = log_people(
        pairs, Ballots.of(ballots), Votes.of(votes), prompt="p", wave="", too_fast_seconds=3.0
    )
    scores = log.select("judge", "sample", "human_score", "label_chance").sort("judge", "sample")
    assert scores.rows() == [
        (ANN, "demo/0/a2", 0.75, 0.5),  # the mean of 1 and 1/2; two of four pairs
        (ANN, "demo/1/a2", 0.0, 0.5),
        (BEN, "demo/0/a2", 0.75, 0.5),
        (BEN, "demo/2/a2", None, None),
    ]
    judged = make_vote_log(
        {
            "judge": "ada",
            "dataset": "demo",
            "prompt": "p",
            "sample": f"demo/{n}/a2",
            "cluster": f"demo/{n}",
            "shown_first": side,
            "choice": "first" if (side == "target") == (n != 1) else "second",
            "anchor_author": "ant",
            "target_author": "bee",
        }
        for n in range(4)
        for side in ("anchor", "target")
    )
    contests = match_models(count_votes(VoteLog.of(pl.concat([judged, log]))))
    known = contests.filter(pl.col("human_score").is_not_null())
    # People's own votes are not held against themselves.
    assert known.select("judge", "human_score").rows() == [("ada", 0.75), ("ada", 0.0)]
    found = STATISTICS["ppi"](contests=contests).filter(subgroup="bee")
    # Y = .75, 0; F = 1, 0; G = 1, 1: cov .375, variance of 1, 0, 1, 1 is .25, so lambda =
    # .375 / (2 * .25) = .75 and theta = .75 * 1 + (0 + 0) / 2.
    estimates = dict(found.select("statistic", "estimate").rows())
    assert estimates["human_win_rate"] == pytest.approx(0.375)
    assert estimates["ppi_win_rate"] == pytest.approx(0.75)
    # What the data say comes first.
    reported = VoteLog.of(judged.with_columns(human_score=pl.lit(1.0), label_chance=pl.lit(1.0)))
    contests = match_models(count_votes(VoteLog.of(pl.concat([reported, log]))))
    assert set(contests.filter(judge="ada")["human_score"]) == {1.0}
