import polars as pl
import pytest

from tasks.counting import annotations
from tasks.panels import panels
from tasks.reporting.summary import (
    count_of_judges,
    is_person,
    marks_of,
    share_of,
    simulated_sentence,
    with_mark,
)
from tasks.reporting.wording import GROUPS
from tasks.statistics import judge_mean


@pytest.mark.parametrize(
    ("judges", "reported"),
    [
        (["a"], "1 judge"),
        (["a", "a", "b"], "2 judges"),
        (["a", "people/ann"], "1 judge and 1 person"),
        (["people/ann", "Ben"], "2 people"),
        ([], "0 judges"),
    ],
)
def test_judges_and_people_are_counted_apart(judges: list[str], reported: str) -> None:
    assert count_of_judges(judges, {"Ben"}) == reported


def test_who_is_a_person() -> None:
    assert is_person("people/ann")
    assert is_person("Ben", {"Ben"})
    assert not is_person("peoples/ann")
    assert not is_person("Ben")


def test_a_share_has_a_part_for_each_kind() -> None:
    of = ["a", "b", "people/ann"]
    assert share_of(["b"], of, ()) == "1 of 2 judges and 0 of 1 person"
    assert share_of(["b", "b"], of[:2], ()) == "1 of 2 judges"
    assert share_of([], of[2:], ()) == "0 of 1 person"


def test_each_name_has_its_own_mark_and_a_mixed_group_says_so() -> None:
    rows = [("gpt", False), ("toy", True), ("judges", True), ("jury/all", False), ("Ben", False)]
    frame = pl.DataFrame(rows, ["judge", "simulated"], orient="row").with_columns(
        subgroup=pl.lit("")
    )
    marks = marks_of(frame, {"Ben"})
    assert marks == {"toy": "(simulated)", "judges": "(some simulated)"}
    # A person does not make a group of formulas mixed.
    alone = marks_of(frame.filter(pl.col("judge") != "gpt"), {"Ben"})
    assert alone == dict.fromkeys(("toy", "judges"), "(simulated)")
    assert [with_mark(name, marks) for name in ("gpt", "toy")] == ["gpt", "toy (simulated)"]


def test_groups_are_called_as_statistics_call_them() -> None:
    names = (annotations.HUMANS, annotations.JUDGES, panels.ALL, judge_mean.ALL)
    assert names == GROUPS


def test_the_banner_says_which_judges_are_simulated() -> None:
    of = [f"j{n:02}" for n in range(12)]
    assert simulated_sentence(of, []) == ""
    assert simulated_sentence(of[:2], of) == (
        "All judges are simulated, with planted biases; they are not language models"
    )
    assert simulated_sentence(["gpt", "claude", "toy"], ["toy"]) == (
        "1 of 3 judges is simulated with planted biases, not a language model: toy"
    )
    assert simulated_sentence(of, of[1:]) == (
        "11 of 12 judges are simulated with planted biases, not language models: j01,"
        " j02, j03, j04, j05, j06, j07, j08 and 3 more"
    )
