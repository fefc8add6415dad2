import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.results import FINDINGS
from tasks.conclusions.rules import written
from tasks.kit.defaults import Thresholds
from tasks.reporting.summary import REFUSED
from tasks.reporting.wording import (
    clean,
    clip,
    columns,
    formulas,
    glossary,
    interval,
    listing,
    number,
    p_value,
    short_names,
    with_who,
)
from tasks.reporting.wording import count as counted

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.21, 2, ".21"),
        (-0.05, 2, f"{MINUS}.05"),
        (1.0, 2, "1.00"),
        (0.0, 3, ".000"),
        (-0.0001, 2, ".00"),
        (-1.0, 1, f"{MINUS}1.0"),
        (0.999, 2, "1.00"),
        (12.5, 1, "12.5"),
        (0.125, 2, ".13"),
        (-0.125, 2, f"{MINUS}.13"),
        (0.045, 2, ".05"),
        (1.005, 2, "1.00"),
    ],
)
def test_numbers_have_no_leading_nought(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text


@given(st.floats(-2, 2), st.integers(1, 3))
def test_numbers_are_rounded_as_in_sql(value: float, digits: int) -> None:
    # DuckDB is the second implementation, also for what expressions of Polars write into reasons.
    [rounded] = duckdb.execute("select round(?::double, ?::integer)", [value, digits]).fetchone()
    assert float(number(value, digits).replace(MINUS, "-")) == rounded
    if digits == 2:
        assert pl.select(x=pl.lit(value)).select(written("x")).item() == number(value).replace(
            MINUS, "-"
        )


def test_an_interval_does_not_break() -> None:
    assert interval(-0.1, 0.2) == f"[{MINUS}.10,\N{NO-BREAK SPACE}.20]"


@pytest.mark.parametrize(
    ("value", "text"), [(None, "none"), (0.0, "<.001"), (0.0005, ".001"), (0.04, ".040")]
)
def test_p_values(value: float | None, text: str) -> None:
    assert p_value(value) == text


def test_counts_and_lists() -> None:
    assert counted(1, "judge") == "1 judge"
    assert counted(1234, "judge") == "1\N{NARROW NO-BREAK SPACE}234 judges"
    assert [listing([]), listing(["a"]), listing(["a", "b", "c"])] == ["", "a", "a, b and c"]


def test_clean_takes_out_what_is_unseen() -> None:
    assert clean(" a\n\tb\x00\u202ec ") == "a b\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}c"


def test_clip_keeps_both_ends() -> None:
    assert clip("abcdefghijklmnop", 40) == "abcdefghijklmnop"
    clipped = clip("a" * 50 + "z" * 50, 12)
    assert (clipped[0], clipped[-1], columns(clipped) <= 12) == ("a", "z", True)


@given(st.lists(st.text(), max_size=12), st.integers(10, 40))
def test_short_names_fit_and_stay_apart(given_names: list[str], width: int) -> None:
    short = short_names(given_names, width)
    assert set(short) == set(given_names)
    assert len(set(short.values())) == len(short)
    assert all(columns(text) <= width for text in short.values())


def test_who_names_what_differs() -> None:
    cell = {"dataset": "d", "wave": "", "mode": "paper"}
    frame = pl.DataFrame(
        [
            {**cell, "judge": "a", "prompt": "one", "simulated": None},
            {**cell, "judge": "a", "prompt": "two", "simulated": True},
            {**cell, "judge": "b", "prompt": "one", "simulated": None},
        ]
    )
    named = with_who(frame)
    assert named["who"].to_list() == ["a / one", "a / two", "b / one"]
    assert named["simulated"].to_list() == [True, True, False]


def test_a_row_of_two_judges_marks_neither() -> None:
    rows = [
        ("gpt", "", False),
        ("toy", "", True),
        ("claude", "", None),
        ("claude", "toy", True),
        ("gpt", "tone: toy", True),
        ("toy", "zoe", True),
        ("judges", "", True),
        ("ann", "toy", True),
    ]
    frame = pl.DataFrame(rows, ["judge", "subgroup", "simulated"], orient="row").with_columns(
        dataset=pl.lit("d"), prompt=pl.lit("p"), wave=pl.lit("")
    )
    # Of ann there is nothing but a row of two: she may be one.
    assert formulas(frame) == {"toy", "judges", "ann"}
    reported = with_who(frame.cast({"judge": pl.Categorical, "subgroup": pl.Categorical}))
    assert reported["simulated"].to_list() == [False, True, False, False, False, True, True, True]
    assert formulas(frame.drop("subgroup")) == {"toy", "claude", "gpt", "judges", "ann"}


def test_every_finding_is_explained() -> None:
    assert sorted(glossary(Thresholds())) == sorted([*FINDINGS, REFUSED])
    own = glossary(Thresholds(fewest_questions=20, overlooks_below=0.3))
    assert "needs 20 independent questions" in own[REFUSED]
    assert "below .30" in own["overlooks"]


def test_a_dataset_that_is_named_after_the_prompt_is_named_once() -> None:
    prompts = ["strict", "mild"]
    rows = {"judge": "j", "prompt": prompts, "wave": "", "simulated": False}
    one = pl.DataFrame(rows | {"dataset": [f"own: {prompt}" for prompt in prompts]})
    assert with_who(one)["who"].to_list() == ["j / strict", "j / mild"]
    two = one.with_columns(dataset=pl.Series(["own: strict", "other: mild"]))
    assert with_who(two)["who"].to_list() == ["j / own / strict", "j / other / mild"]
