"""Ballots laid beside their pairs and votes."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.curation import Known
from tasks.aggregate import count_votes, log_votes, text_sizes
from tasks.counting.verdicts import tally_votes
from tasks.judging.sequential_stopping import Schedule, mark_stops

Make = Callable[..., Any]


def _log(pairs: Any, ballots: Any, judges: Any, votes: Any, waiting: list[str]) -> Any:
    stops = mark_stops(ballots, votes, Schedule(2))
    return log_votes(pairs, ballots, judges, votes, waiting=pl.Series(waiting), stops=stops)


def test_ballots_are_laid_beside_pairs_and_votes(
    make_pairs: Make, make_ballots: Make, make_judges: Make, make_votes: Make
) -> None:
    pairs = make_pairs([{"pair_id": "p1"}, {"pair_id": "p2", "arm": "experimental"}])
    ballots = make_ballots(
        [
            {"ballot_id": "old", "pair_id": "p1"},
            {"ballot_id": "new", "pair_id": "p2"},
            {"ballot_id": "lost", "pair_id": "p2", "repeat": 1},
        ]
    )
    votes = make_votes([{"ballot_id": "old", "choice": "tie"}, {"ballot_id": "new"}])
    log = _log(pairs, ballots, make_judges([{}]), votes, ["new", "lost"])
    columns = ("arm", "perturbation", "kind", "repeat", "choice", "cached", "simulated")
    assert log.select(columns).rows() == [
        ("control", None, None, 0, "tie", True, True),
        ("experimental", "boast", "promote", 0, "first", False, True),
        ("experimental", "boast", "promote", 1, None, False, True),
    ]


def test_lengths_and_markup_come_from_the_texts(
    make_pairs: Make, make_ballots: Make, make_judges: Make, make_votes: Make
) -> None:
    texts = {"anchor": "Zoë", "target": "# Head\n- **bold** item 🚀\n1. two * three"}
    log = _log(make_pairs([texts]), make_ballots([{}]), make_judges([{}]), make_votes([{}]), [])
    row = log.to_dicts()[0]
    assert (row["anchor_length"], row["target_length"]) == (3, len(texts["target"]))
    # A heading, two items, a bold word, and these with an emoji.
    kinds = ("header", "list", "bold", "markup")
    assert [row[f"target_{kind}"] for kind in kinds] == [1, 2, 1, 5]
    assert [row[f"anchor_{kind}"] for kind in kinds] == [0, 0, 0, 0]
    assert (row["anchor_author"], row["human_score"]) == (None, None)


def test_what_a_dataset_knows_of_a_pair_stands_beside_the_arms_that_it_is_true_of(
    make_pairs: Make, make_ballots: Make, make_judges: Make, make_votes: Make
) -> None:
    arms = [("control", None), ("sham", "promote"), ("experimental", "promote")]
    pairs = make_pairs(
        [
            {"pair_id": f"{arm}/{kind}", "arm": arm, "kind": kind, "perturbation": kind}
            for arm, kind in [*arms, ("experimental", "detract")]
        ]
    )
    ballots = make_ballots([{"ballot_id": p, "pair_id": p} for p in pairs["pair_id"]])
    known = Known.of(
        pl.DataFrame(
            {
                "sample": pairs["sample"][0],
                "anchor_author": "ada",
                "target_author": "bob",
                "label": "tie",
                "human_score": 0.25,
                "label_chance": 0.5,
            }
        )
    )
    votes = make_votes([{"ballot_id": p} for p in pairs["pair_id"]])
    stops = mark_stops(ballots, votes, Schedule(2))
    waiting = pl.Series([], dtype=pl.String)
    judges = make_judges([{}])
    log = log_votes(pairs, ballots, judges, votes, waiting=waiting, stops=stops, known=known)
    columns = ("anchor_author", "target_author", "human_score", "label_chance", "label")
    found = {(row["arm"], row["kind"]): row for row in log.iter_rows(named=True)}
    full, kept = ("ada", "bob", 0.25, 0.5, "tie"), (None, None, None, None, "tie")
    assert {key: tuple(row[name] for name in columns) for key, row in found.items()} == {
        ("control", None): full,
        ("sham", "promote"): kept,
        ("experimental", "promote"): kept,
        ("experimental", "detract"): (None,) * 5,
    }


@pytest.mark.parametrize(
    ("text", "header", "listed", "bold", "markup"),
    [
        ("plain **not bold\nat all** - nor a list, #1", 0, 0, 0, 0),
        ("## One\n###### Six\n####### Seven\n#none", 2, 0, 0, 2),
        ("- a\n* b\n+ c\n  1. d\n2) e\n-f", 0, 5, 0, 5),
        ("**a** and **b c**, ** d", 0, 0, 2, 2),
        # Two rows of a table, both ends of a block of code, an emoji
        ("| **a** |\n| - |\n```\n# x\n```\n\N{ROCKET}", 1, 0, 1, 7),
        ("* **a**: # b\n- # c", 0, 2, 1, 3),
    ],
)
def test_kinds_of_markup_are_parts_of_it(
    text: str, header: int, listed: int, bold: int, markup: int
) -> None:
    frame = pl.DataFrame({"anchor": [text], "target": [""]}).select(text_sizes())
    found = frame.select(f"anchor_{kind}" for kind in ("header", "list", "bold", "markup"))
    assert found.rows() == [(header, listed, bold, markup)]


@given(st.text("#*-+1.)|`ab \n\N{ROCKET}", max_size=60))
def test_kinds_are_never_more_than_all(text: str) -> None:
    frame = pl.DataFrame({"anchor": [text], "target": [text]}).select(text_sizes())
    row = frame.to_dicts()[0]
    assert row["anchor_header"] + row["anchor_list"] + row["anchor_bold"] <= row["anchor_markup"]


def test_repeats_of_a_replicate_are_numbered_from_0(
    make_pairs: Make, make_ballots: Make, make_judges: Make, make_votes: Make
) -> None:
    pairs = make_pairs([{"pair_id": "p1"}, {"pair_id": "p2", "arm": "replicate"}])
    ballots = make_ballots(
        {
            "ballot_id": f"{pair}{side}{repeat}",
            "pair_id": pair,
            "shown_first": side,
            "repeat": repeat,
        }
        for pair, repeats in (("p1", (0, 1)), ("p2", (2, 3)))
        for side in ("anchor", "target")
        for repeat in repeats
    )
    log = _log(pairs, ballots, make_judges([{}]), make_votes([]), [])
    assert log.select("arm", "shown_first", "repeat").rows() == [
        (arm, side, repeat)
        for arm in ("control", "replicate")
        for side in ("anchor", "target")
        for repeat in (0, 1)
    ]


def test_a_shared_ballot_serves_each_of_its_pairs(
    make_pairs: Make, make_ballots: Make, make_judges: Make, make_votes: Make
) -> None:
    # One control pair seen from both sides: the same reply is for the anchor of one, the target
    # of the other.
    pairs = make_pairs([{"pair_id": "p1", "sample": "a"}, {"pair_id": "p2", "sample": "b"}])
    ballots = make_ballots(
        [{"pair_id": "p1", "shown_first": "anchor"}, {"pair_id": "p2", "shown_first": "target"}]
    )
    log = _log(pairs, ballots, make_judges([{}]), make_votes([{}]), ["b1"])
    verdicts = tally_votes(count_votes(log), "paper").select("sample", "verdict").rows()
    assert verdicts == [("a", "anchor"), ("b", "target")]
