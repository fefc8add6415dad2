import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandera.errors import SchemaErrors

from schemas.curation import Answers, PerturbedAnswers, Questions
from schemas.frame import Fact, Frame, FrameError, Result
from schemas.judging import Ballots, Judges, Verdicts, Votes
from warehouse._ddl import FRAMES

ANSWER: dict[str, Any] = {
    "answer_id": "d/1/a1",
    "question_id": "d/1",
    "slot": 1,
    "author": "Ada",
    "answer": "Four.",
}
PERTURBED: dict[str, Any] = {
    "answer_id": "d/1/a2",
    "question_id": "d/1",
    "perturbation": "padding",
    "recipe": 1,
    "seed": 0,
    "made_by": "template",
}


@pytest.fixture
def refusal() -> Callable[..., str]:
    def refuse(model: type[Frame], *rows: dict[str, Any], **columns: Any) -> str:
        frame = pl.DataFrame(rows, strict=False).with_columns(**columns)
        with pytest.raises(FrameError) as raised:
            model.of(frame)
        return str(raised.value)

    return refuse


def test_columns_are_projected_in_order_and_others_dropped() -> None:
    rows = [{"extra": 1, **dict(reversed(ANSWER.items()))}]
    made = Answers.of(pl.DataFrame(rows))
    assert made.columns == ["answer_id", "question_id", "slot", "author", "answer"]
    assert made.rows() == [("d/1/a1", "d/1", 1, "Ada", "Four.")]


def test_a_missing_nullable_column_is_filled_with_null_of_its_type() -> None:
    made = Answers.of(pl.DataFrame([ANSWER]).drop("author"))
    assert made["author"].to_list() == [None]
    assert made.schema["author"] == pl.String


def test_values_are_cast_where_nothing_is_lost() -> None:
    rows = [{**ANSWER, "slot": value} for value in ("1", "2")]
    frame = pl.DataFrame(rows).with_columns(answer_id=pl.Series([7, 8]))
    made = Answers.of(frame)
    assert made["slot"].to_list() == [1, 2]
    assert made["answer_id"].to_list() == ["7", "8"]
    floats = Answers.of(pl.DataFrame([{**ANSWER, "slot": 2.0}]))
    assert floats["slot"].to_list() == [2]
    assert floats.schema == pl.Schema(Answers.dtypes())


@pytest.mark.parametrize(
    ("model", "row", "column", "value", "said"),
    [
        (Answers, ANSWER, "slot", "one", "column 'slot' must be Int64 in 1 row (row 0 is 'one')"),
        (Answers, ANSWER, "slot", 1.5, "column 'slot' must be Int64 in 1 row (row 0 is 1.5)"),
        (Answers, ANSWER, "slot", math.nan, "column 'slot' must be Int64 in 1 row (row 0 is nan)"),
        (Answers, ANSWER, "author", {"a": 1}, "column 'author' must be String in 1 row"),
        (Answers, ANSWER, "author", [1], "column 'author' must be String in 1 row"),
        (Answers, ANSWER, "author", object(), "column 'author' must be String in 1 row"),
        (Answers, ANSWER, "author", b"\xff", "column 'author' must be String in 1 row"),
        # 2**53 + 1 is the first integer that a double cannot hold
        (PerturbedAnswers, PERTURBED, "length_ratio", 2**53 + 1, "'length_ratio' must be Float64"),
        (PerturbedAnswers, PERTURBED, "length_ratio", math.nan, "must be finite in 1 row"),
        (PerturbedAnswers, PERTURBED, "length_ratio", math.inf, "must be finite in 1 row"),
    ],
)
def test_a_value_that_would_be_changed_is_refused(
    model: type[Frame], row: dict[str, Any], column: str, value: object, said: str
) -> None:
    frame = pl.DataFrame([row]).with_columns(pl.Series(column, [value]))
    with pytest.raises(FrameError) as raised:
        model.of(frame)
    assert said in str(raised.value)


def test_a_number_is_no_boolean_unless_0_or_1() -> None:
    judge = {
        "judge": "a/b",
        "provider": "a",
        "model": "m",
        "params": "{}",
        "system": "",
        "simulated": 1,
    }
    assert Judges.of(pl.DataFrame([judge]))["simulated"].to_list() == [True]
    with pytest.raises(FrameError, match=r"'simulated' must be Boolean in 1 row \(row 0 is 2\)"):
        Judges.of(pl.DataFrame([{**judge, "simulated": 2}]))


def test_every_failure_is_listed_at_once(refusal: Callable[..., str]) -> None:
    said = refusal(
        Answers,
        {"answer_id": "b", "slot": "x", "answer": ""},
        {"answer_id": "a", "slot": "1", "answer": None},
        {"answer_id": "c", "slot": "2", "answer": "text"},
    )
    assert said.startswith("Answers: ")
    assert "no column 'question_id' (found: 'answer_id', 'slot', 'answer')" in said
    assert "column 'slot' must be Int64 in 1 row (row 0 is 'x')" in said
    assert "column 'answer' breaks 'not_nullable' in 1 row (row 1 is None)" in said
    assert "column 'answer' breaks 'str_length(1, None)' in 1 row (row 0 is '')" in said
    assert said.count("slot") == 2  # once as a failure, once as found
    assert said.endswith(".")


def test_a_broken_rule_shows_the_first_three_rows_of_the_frame_as_given(
    refusal: Callable[..., str],
) -> None:
    rows = [{**ANSWER, "answer_id": f"{9 - i}", "slot": i} for i in range(7)]
    said = refusal(Answers, *rows)
    # slots 0, 3, 4, 5, 6 are refused; the frame is in descending order of its key
    assert "column 'slot' breaks 'isin([1, 2])' in 5 rows (row 0 is '0', row 3 is '3'" in said
    assert "row 4 is '4')" in said
    assert "row 5" not in said


def test_long_values_are_clipped(refusal: Callable[..., str]) -> None:
    said = refusal(Votes, {"choice": "x" * 1000, "ballot_id": "b"})
    assert len(said) < 1500
    assert "x" * 70 not in said


def test_a_key_occurs_once(refusal: Callable[..., str]) -> None:
    other = {**ANSWER, "answer_id": "d/2/a1"}
    said = refusal(Answers, ANSWER, other, ANSWER, ANSWER)
    assert "key (answer_id) occurs more than once in 3 rows (first: ('d/1/a1',))" in said


def test_a_null_in_a_key_counts_as_a_value(refusal: Callable[..., str]) -> None:
    verdict = {
        "dataset": "d",
        "judge": "j",
        "prompt": "p",
        "wave": "",
        "sample": "s",
        "cluster": "c",
        "arm": "control",
        "mode": "paper",
        "votes": 1,
        "valid_votes": 1,
    }
    assert "occurs more than once in 2 rows" in refusal(Verdicts, verdict, verdict)
    both = [{**verdict, "perturbation": p} for p in ("b", None, "a")]
    made = Verdicts.of(pl.DataFrame(both))
    assert made["perturbation"].to_list() == [None, "a", "b"]


def test_rows_are_sorted_by_the_whole_key() -> None:
    ballot = {"ballot_id": "x", "judge": "j", "prompt": "p", "wave": "", "shown_first": "anchor"}
    rows = [{**ballot, "pair_id": p, "repeat": r} for p, r in [("b", 0), ("a", 10), ("a", 9)]]
    made = Ballots.of(pl.DataFrame(rows))
    assert made.select("pair_id", "repeat").rows() == [("a", 9), ("a", 10), ("b", 0)]


def test_times_are_kept_as_utc() -> None:
    moment = datetime(2024, 1, 1, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=2)))
    vote = {"ballot_id": "b", "choice": "tie", "raw": "", "seconds": 0, "attempts": 1}
    made = Votes.of(pl.DataFrame([{**vote, "cast_at": moment}]))
    assert made["cast_at"].to_list() == [datetime(2024, 1, 1, 10, 0, 0, 1, tzinfo=UTC)]
    assert made.schema["cast_at"] == pl.Datetime("us", "UTC")


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), unique_by=lambda r: r[0]))
def test_making_again_changes_nothing(rows: list[tuple[str, str]]) -> None:
    frame = pl.DataFrame(
        rows, schema={"question_id": pl.String, "question": pl.String}, orient="row"
    )
    once = Questions.of(frame.with_columns(dataset=pl.lit("d")))
    assert Questions.of(once).equals(once)
    assert once["question_id"].to_list() == sorted(i for i, _ in rows)
    assert dict(once.select("question_id", "question").iter_rows()) == dict(rows)


@pytest.mark.parametrize("model", FRAMES, ids=lambda model: str(model.__name__))
def test_the_empty_frame_has_its_columns(model: type[Frame]) -> None:
    empty = model.empty()
    assert empty.is_empty()
    assert empty.schema == pl.Schema(model.dtypes())


@pytest.mark.parametrize("model", FRAMES, ids=lambda model: str(model.__name__))
def test_a_frame_says_what_it_is(model: type[Frame]) -> None:
    place = model.place()
    assert model.grain().startswith("One row per ")
    assert all(model.descriptions().values()), model.descriptions()
    assert place.table
    assert place.key
    assert set(place.key) <= set(model.dtypes())
    assert issubclass(model, Fact | Result) or place.table in {"runs", "claims", "batches"}


def test_references_lead_to_a_fact_that_has_that_key() -> None:
    tables = {model.place().table: model for model in FRAMES}
    for model in FRAMES:
        for column, other in model.place().references.items():
            assert column in model.dtypes()
            assert issubclass(tables[other], Fact)
            assert column in tables[other].dtypes() or other == "questions"


def test_a_draft_is_what_the_check_would_return_for_rows_that_pass() -> None:
    rows = [{"extra": 1, **ANSWER, "answer_id": f"d/1/{end}", "slot": end} for end in "21"]
    frame = pl.DataFrame(rows).drop("author")
    assert Answers.draft(frame).equals(Answers.of(frame))


def test_a_draft_with_a_broken_rule_is_refused_by_the_check_of_the_whole() -> None:
    draft = Answers.draft(pl.DataFrame([{**ANSWER, "slot": 3}]))
    with pytest.raises(FrameError, match="slot"):
        Answers.of(pl.concat([draft, Answers.empty()]))


CANDIDATES: dict[Any, list[Any]] = {
    pl.String: ["", "x", "control", "pair", "paper", "promote", "first", "anchor", "pass", "mps"],
    pl.Float64: [-1.5, -1.0, 0.0, 0.5, 1.0, 1.5, 3.0],
    pl.Boolean: [False, True],
}


def refused(model: type[Frame], rows: pl.DataFrame) -> dict[str, set[int]]:
    """Second implementation: pandera's own validation; the rows that each column refuses."""
    try:
        model.to_schema().validate(rows, lazy=True)
    except SchemaErrors as errors:
        cases = errors.failure_cases.select("column", "index").unique()
        return {str(c): {*group["index"]} for (c,), group in cases.group_by("column")}
    return {}


@cache
def tried(model: type[Frame]) -> tuple[pl.DataFrame, dict[str, set[int]]]:
    """Return ten values of each column of a frame, and which of them the column refuses."""
    dtypes, numbers = model.dtypes(), range(-2, 4)
    values = {name: [None, *CANDIDATES.get(t, numbers)][:10] for name, t in dtypes.items()}
    filled = {name: found + found[-1:] * (10 - len(found)) for name, found in values.items()}
    table = pl.DataFrame(filled, schema_overrides=dtypes, strict=False)
    return table, refused(model, table)


@settings(max_examples=50)
@given(st.data())
def test_a_row_is_refused_where_pandera_refuses_it(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(FRAMES))
    dtypes = model.dtypes()
    table, bad = tried(model)
    row = {name: data.draw(st.sampled_from(range(10))) for name in dtypes}
    # All values but one are allowed where a column allows any of them.
    odd = data.draw(st.sampled_from([*dtypes]))
    for name in dtypes:
        allowed = [index for index in range(10) if index not in bad.get(name, ())]
        if name != odd and allowed and row[name] not in allowed:
            row[name] = allowed[0]
    typed = pl.DataFrame([table[name].gather([index]) for name, index in row.items()])
    if refused(model, typed):
        with pytest.raises(FrameError):
            model.of(typed)
    else:
        assert model.of(typed).equals(typed)
