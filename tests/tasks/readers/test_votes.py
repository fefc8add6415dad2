import csv
import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from schemas.judging import VoteLog
from tasks.readers.votes import LIKE, read_votes

Row = dict[str, Any]
Write = Callable[..., Path]
CONTROL: Row = {
    "judge": "ada",
    "perturbation": None,
    "kind": None,
    "arm": "control",
    "sample": "q1/a2",
    "cluster": "q1",
    "shown_first": "anchor",
    "repeat": 0,
    "choice": "first",
}
PLANTED = {**CONTROL, "perturbation": "boast", "kind": "promote", "arm": "experimental"}


def write_jsonl(path: Path, rows: Iterable[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)


def write_parquet(path: Path, rows: Sequence[Row]) -> None:
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)


WRITERS = {"jsonl": write_jsonl, "csv": write_csv, "parquet": write_parquet}


@pytest.fixture(params=WRITERS)
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    def written(rows: Sequence[Row]) -> Path:
        path = tmp_path / f"own.{request.param}"
        WRITERS[request.param](path, rows)
        return path

    return written


def refusal(path: Path) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        read_votes(path)
    return str(caught.value)


def test_errors_about_a_packed_file_name_it(write: Write, tmp_path: Path) -> None:
    plain = write([{**CONTROL, "choice": "frist"}])
    packed = tmp_path / f"{plain.name}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert refusal(plain).startswith(f"{plain.name}, ")
    assert refusal(packed) == refusal(plain).replace(plain.name, packed.name)


def test_an_empty_value_is_not_listed_among_those_of_a_vote(write: Write) -> None:
    assert "the first is: judge 'ada', arm 'control', sample 'q1/a2'," in refusal(
        write([CONTROL, CONTROL])
    )


def test_every_format_reads_the_same(write: Write) -> None:
    log = read_votes(write([CONTROL, {**PLANTED, "repeat": 7, "choice": "tie"}]))
    assert VoteLog.of(log).equals(log)
    columns = ("judge", "arm", "perturbation", "kind", "shown_first", "repeat", "choice")
    assert log.select(columns).rows() == [
        ("ada", "control", None, None, "anchor", 0, "first"),
        ("ada", "experimental", "boast", "promote", "anchor", 7, "tie"),
    ]
    defaults = log.select("dataset", "prompt", "wave", "simulated", "cached").unique().rows()
    assert defaults == [("own", "unknown", "", None, None)]


def test_control_may_be_asked_again(write: Write) -> None:
    log = read_votes(write([CONTROL, {**CONTROL, "arm": "replicate"}]))
    assert log.select("arm", "repeat").rows() == [("control", 0), ("replicate", 0)]


def test_optional_columns_are_kept(write: Write) -> None:
    more = {
        "dataset": "d",
        "prompt": "p",
        "wave": "w",
        "simulated": True,
        "cached": False,
        "label": "tie",
        "human": False,
    }
    log = read_votes(write([{**CONTROL, **more}]))
    assert log.select(list(more)).to_dicts() == [more]


def test_what_is_known_of_the_answers_is_kept(write: Write) -> None:
    known = {
        "anchor_author": "ant",
        "target_author": "bee",
        "anchor_length": 120,
        "target_length": 0,
        "anchor_header": 1,
        "target_header": 0,
        "anchor_list": 2,
        "target_list": 0,
        "anchor_bold": 0,
        "target_bold": None,
        "anchor_markup": 3,
        "target_markup": 0,
        "human_score": 0.75,
        "label_chance": 0.5,
    }
    log = read_votes(write([{**CONTROL, **known}]))
    assert log.select(list(known)).to_dicts() == [known]
    whole = read_votes(write([{**CONTROL, "human_score": 1, "label_chance": 1}]))
    assert whole.select("human_score", "label_chance").rows() == [(1.0, 1.0)]


def test_a_vote_not_cast_is_null(write: Write) -> None:
    log = read_votes(write([CONTROL, {**CONTROL, "repeat": 1, "choice": None}]))
    assert log["choice"].to_list() == ["first", None]


def test_names_are_kept_verbatim(write: Write) -> None:
    names = [
        "<script>alert(1)</script>",
        "[red]x[/red]",
        "007",
        "1e3",
        "true",
        "a\nb",
        "Zoë 🌊",
        " ",
    ]
    rows = [{**CONTROL, "judge": name, "cluster": name, "sample": name} for name in names]
    log = read_votes(write(rows))
    assert sorted(log["judge"]) == sorted(log["cluster"]) == sorted(log["sample"]) == sorted(names)


# Column, value as JSON, what the message says besides file, place, column and value.
STRANGE = [
    ("choice", "A", "must be one of first, second, tie, invalid, abstain, ambiguous"),
    ("choice", "First", "must be one of first"),
    ("choice", "", "must be one of first"),
    ("choice", True, "must be a text"),
    ("choice", 1, "must be a text"),
    ("arm", "treatment", "must be one of control, experimental, sham"),
    ("arm", None, "must be given"),
    ("shown_first", "answer1", "must be one of anchor, target"),
    ("shown_first", None, "must be given"),
    ("kind", "bad", "must be one of promote, detract"),
    ("repeat", "1.5", "must be a whole number from 0"),
    ("repeat", "1", "must be a whole number from 0"),
    ("repeat", 1.5, "must be a whole number from 0"),
    ("repeat", 1.0, "must be a whole number from 0"),
    ("repeat", True, "must be a whole number from 0"),
    ("repeat", -1, "must be a whole number from 0"),
    ("repeat", 2**70, "must be at most 9223372036854775807"),
    ("repeat", None, "must be given"),
    ("repeat", [1], "must be a whole number from 0"),
    ("judge", 4, "must be a text"),
    ("judge", 4.5, "must be a text"),
    ("judge", False, "must be a text"),
    ("judge", None, "must be given"),
    ("judge", "", "must be given"),
    ("judge", {"name": "x"}, "must be a text"),
    ("judge", "jury/all", "must be another name: jury/all"),
    ("judge", "humans", "must be another name"),
    ("judge", "\ud800", "must be valid UTF-8 text"),
    ("sample", None, "must be given"),
    ("cluster", "", "must be given"),
    ("cluster", None, "must be given"),
    ("dataset", "", "must be null instead of empty"),
    ("simulated", "yes", "must be true or false"),
    ("simulated", 1, "must be true or false"),
    ("cached", "true", "must be true or false"),
    ("label", "A", "must be one of anchor, tie, target"),
    ("label", "", "must be one of anchor, tie, target"),
    ("label", 1, "must be a text"),
    ("human", "yes", "must be true or false"),
    ("human", 0, "must be true or false"),
    ("human_score", 1.5, "must be 0 to 1"),
    ("human_score", -0.1, "must be 0 to 1"),
    ("human_score", 2.0, "must be 0 to 1"),
    ("human_score", 2**70, "must be a number"),
    ("human_score", "1", "must be a number"),
    ("human_score", True, "must be a number"),
    ("label_chance", 0.0, "must be above 0 and at most 1"),
    ("anchor_length", -1, "must be a whole number from 0"),
    ("target_markup", 1.0, "must be a whole number from 0"),
    ("target_bold", -1, "must be a whole number from 0"),
    ("anchor_author", "", "must be null instead of empty"),
    ("target_author", "a vs b", "must be without ' vs '"),
]


@pytest.mark.parametrize(("column", "value", "rule"), STRANGE)
def test_strange_values_are_refused_where_they_stand(
    tmp_path: Path, column: str, value: object, rule: str
) -> None:
    # The first good vote sorts last, so a place in the sorted frame would be another one.
    good = {**PLANTED, "sample": "z"}
    path = tmp_path / "own.jsonl"
    write_jsonl(path, [good, {**PLANTED, column: value}])
    message = refusal(path)
    assert message.startswith(f"own.jsonl, line 2: {column} {value!r:.60} ")
    assert rule in message
    assert message.endswith(LIKE)


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("repeat", "1.5", "must be a whole number from 0"),
        ("repeat", "nan", "must be a whole number from 0"),
        ("repeat", " 1", "must be a whole number from 0"),
        ("repeat", "-1", "must be a whole number from 0"),
        ("repeat", "٣", "must be a whole number from 0"),
        ("repeat", "9" * 30, "must be a whole number from 0"),
        ("choice", "True", "must be one of first"),
        ("cached", "1", "must be true or false"),
        ("judge", "", "must be given"),
        ("human_score", "nan", "must be a number"),
        ("human_score", "1_0", "must be a number"),
        ("human_score", "inf", "must be a number"),
    ],
)
def test_strange_fields_of_csv(tmp_path: Path, column: str, value: str, rule: str) -> None:
    path = tmp_path / "own.csv"
    write_csv(path, [{**PLANTED, "sample": "z", "cached": ""}, {**PLANTED, column: value}])
    message = refusal(path)
    assert message.startswith(f"own.csv, line 3: {column} {value or None!r} {rule}")
    assert message.endswith(LIKE)


@pytest.mark.parametrize(
    ("column", "values", "rule"),
    [
        ("repeat", [0.0, 1.5], "column 'repeat' is of type Float64, but must hold a whole number"),
        ("judge", [1, 2], "column 'judge' is of type Int64, but must hold a text"),
        ("choice", [True, False], "column 'choice' is of type Boolean, but must hold a text"),
        ("cached", [0, 1], "column 'cached' is of type Int64, but must hold true or false"),
        ("human_score", ["0", "1"], "column 'human_score' is of type String, but must hold a numb"),
        ("human_score", [0.5, float("nan")], "own.parquet, row 2: human_score nan must be 0 to 1"),
        ("repeat", [0, -1], "own.parquet, row 2: repeat -1 must be a whole number from 0"),
    ],
)
def test_strange_columns_of_parquet(
    tmp_path: Path, column: str, values: list[Any], rule: str
) -> None:
    path = tmp_path / "own.parquet"
    write_parquet(path, [{**PLANTED, column: value, "sample": str(value)} for value in values])
    message = refusal(path)
    assert message.startswith("own.parquet")
    assert rule in message
    assert message.endswith(LIKE)


TOGETHER = [
    ([{**CONTROL, "perturbation": "boast"}], "their perturbation and kind must be null"),
    ([{**CONTROL, "kind": "promote"}], "their perturbation and kind must be null"),
    ([{**PLANTED, "perturbation": None}], "must name its perturbation and kind"),
    ([{**PLANTED, "kind": None, "arm": "sham"}], "must name its perturbation and kind"),
    (
        [PLANTED, {**PLANTED, "repeat": 1, "kind": "detract"}],
        "all votes on a perturbation must have the same kind",
    ),
    (
        [PLANTED, {**PLANTED, "repeat": 1, "cluster": "q2"}],
        "all votes on a sample must have the same cluster",
    ),
    (
        [{**PLANTED, "human_score": 0.5}, {**PLANTED, "repeat": 1, "human_score": None}],
        "all votes on a pair must have the same human_score",
    ),
    (
        [{**PLANTED, "anchor_author": "x"}, {**PLANTED, "repeat": 1, "anchor_author": "y"}],
        "all votes on a pair must have the same anchor_author",
    ),
    ([PLANTED, {**PLANTED, "choice": "tie"}], "each vote must occur once"),
    (
        [{**PLANTED, "label": "tie"}, {**PLANTED, "repeat": 1, "label": "anchor"}],
        "all votes on a pair must have the same label",
    ),
    (
        [{**PLANTED, "label": "tie"}, {**PLANTED, "repeat": 1}],
        "all votes on a pair must have the same label",
    ),
    (
        [{**PLANTED, "target_header": 2, "target_bold": 2, "target_markup": 3}],
        "target_markup counts all markup, so it must be at least target_header + target_bold",
    ),
    (
        [{**PLANTED, "target_list": 9 * 10**17, "target_bold": 1, "target_markup": 3}],
        "target_markup counts all markup, so it must be at least target_list + target_bold",
    ),
    ([{**PLANTED, "arm": "replicate"}], "all perturbations share control and replicate votes"),
]


@pytest.mark.parametrize(("rows", "rule"), TOGETHER)
def test_votes_that_do_not_go_together(write: Write, rows: list[Row], rule: str) -> None:
    path = write([{**CONTROL, "sample": "zz", "cluster": "zz"}, *rows])
    message = refusal(path)
    place = "row 2" if path.suffix == ".parquet" else f"line {2 + (path.suffix == '.csv')}"
    assert message.startswith(f"{path.name}, {place}: ")
    assert rule in message
    breaks = "1 vote breaks" if len(rows) == 1 else f"{len(rows)} votes break"
    assert f"{breaks} this rule" in message
    assert "judge 'ada'" in message
    assert message.endswith(LIKE)


def test_a_judge_is_a_person_or_not(write: Write) -> None:
    rows = [{**CONTROL, "repeat": at, "human": human} for at, human in enumerate((True, False))]
    assert "all votes of a judge must have the same value of human" in refusal(write(rows))
    other = [{**rows[0]}, {**rows[1], "judge": "bea"}]
    assert read_votes(write(other))["human"].to_list() == [True, False]


def test_a_whole_number_is_a_number(write: Write) -> None:
    assert "human_score 3.0 must be 0 to 1" in refusal(write([{**CONTROL, "human_score": 3}]))


def test_a_judge_is_simulated_or_not(write: Write) -> None:
    rows = [
        {**CONTROL, "repeat": at, "simulated": reported}
        for at, reported in enumerate((True, False))
    ]
    assert "all votes of a judge must have the same value of simulated" in refusal(write(rows))
    # Not known is no contradiction.
    rows[1]["simulated"] = None
    assert read_votes(write(rows))["simulated"].to_list() == [True, None]


def test_a_pair_may_have_another_label_once_perturbed(write: Write) -> None:
    rows = [{**CONTROL, "label": "target"}, {**PLANTED, "label": "anchor"}]
    assert read_votes(write(rows))["label"].to_list() == ["target", "anchor"]


def test_votes_without_a_perturbation_need_not_say_so(write: Write) -> None:
    rows = [{k: v for k, v in CONTROL.items() if k not in {"arm", "perturbation", "kind"}}]
    assert read_votes(write(rows)).equals(read_votes(write([CONTROL])))
    message = refusal(write([{**rows[0], "perturbation": "boast"}]))
    assert "their perturbation and kind must be null" in message


def test_samples_of_two_datasets_may_share_a_name(write: Write) -> None:
    rows = [{**CONTROL, "dataset": d, "cluster": f"{d}/1"} for d in ("one", "two")]
    assert read_votes(write(rows)).height == 2


def test_missing_and_unknown_columns(write: Write) -> None:
    row = {k: v for k, v in PLANTED.items() if k not in {"cluster", "repeat"}}
    path = write([{**row, "vote": "A"}])
    message = refusal(path)
    assert message.startswith(
        f"{path.name}: missing columns 'cluster', 'repeat'; unknown column 'vote'. "
        "Remove unknown columns. Required: judge, "
    )
    assert message.endswith(LIKE)
    extra = refusal(write([{**PLANTED, "note": "x"}]))
    assert f"{path.name}: unknown column 'note'. Remove unknown" in extra
    near = refusal(write([{**row, "repeat": 0, "clusters": "q1"}]))
    assert "missing column 'cluster'; unknown column 'clusters'. Did you mean 'cluster'?" in near


def test_labels_that_differ_are_reported(write: Write) -> None:
    rows = [{**PLANTED, "label": "tie"}, {**PLANTED, "judge": "bob", "label": "anchor"}]
    assert "(found: tie and anchor)" in refusal(write(rows))
    rows = [{**PLANTED, "label": "tie"}, {**PLANTED, "repeat": 1}]
    assert "(found: tie and null)" in refusal(write(rows))


def test_people_and_judges_may_leave_facts_about_a_pair_to_each_other(write: Write) -> None:
    judge = {**PLANTED, "label": "tie", "category": "maths", "human": False}
    person = {**PLANTED, "judge": "ann", "human": True, "human_score": 0.5}
    assert read_votes(write([judge, person])).height == 2
    other = {**person, "category": "law"}
    assert "same category (found: maths and law)" in refusal(write([judge, other]))
    second = {**PLANTED, "judge": "ben", "human": True}
    assert "same human_score (found: 0.5 and null)" in refusal(write([judge, person, second]))


def test_an_error_about_a_number_for_a_name_says_how_to_write_it(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({**PLANTED, "sample": 17}) + "\n", encoding="utf-8")
    assert 'sample 17 must be a text, in quotes: "17".' in refusal(path)


def test_a_line_that_is_no_json_is_shown_as_text(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"judge": "zoë"' + "y" * 99, encoding="utf-8")
    message = refusal(path)
    assert '{"judge": "zoë"yyy' in message
    assert "b'" not in message
    path.write_bytes(b"\xff\xfe\n")
    assert "byte 0xff at position 1 is not UTF-8" in refusal(path)


@pytest.mark.slow
def test_a_hundred_thousand_votes(write: Write) -> None:
    rows = [
        {**PLANTED, "sample": f"s{n // 10}", "cluster": f"c{n // 100}", "repeat": n % 10}
        for n in range(100_000)
    ]
    log = read_votes(write(rows))
    assert log.height == 100_000
    assert log["sample"].n_unique() == 10_000
    assert log["repeat"].sum() == 450_000
