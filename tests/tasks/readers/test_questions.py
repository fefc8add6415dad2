import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.curate import categories_of
from tasks.datasets import Imported
from tasks.readers.questions import load_own

FORMATS = ["jsonl", "ndjson", "csv", "parquet"]
Record = dict[str, str | None]
GOOD: Record = {
    "question_id": "1",
    "question": "What is 2 + 2?",
    "anchor": "Four.",
    "target": "It is 4.",
}
FULL: list[Record] = [
    {
        **GOOD,
        "category": "sums",
        "reference": "4",
        "author": "Ada",
        "anchor_author": "Bob",
        "label": "target",
        "human_score": "0.75",
        "label_chance": ".5",
        "factual_error": "It is 5.",
        "fake_reference": 'It is 4 ("Sums", 1999).\n',
    },
    {
        **GOOD,
        "question_id": "b/2",
        "anchor": "Vier, \u201egenau\u201c",
        "category": None,
        "reference": None,
        "author": None,
        "anchor_author": None,
        "label": None,
        "human_score": None,
        "label_chance": None,
        "factual_error": None,
        "fake_reference": None,
    },
]


def _bytes(suffix: str, rows: list[Record]) -> bytes:
    if suffix == "csv":
        out = io.StringIO(newline="")
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue().encode()
    if suffix == "parquet":
        buffer = io.BytesIO()
        pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String)).write_parquet(buffer)
        return buffer.getvalue()
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[str, bytes], str]:
    def refuse(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=r"\w") as error:
            load_own(tmp_path / name)
        return str(error.value)

    return refuse


@pytest.mark.parametrize("suffix", FORMATS)
def test_reads_every_format_alike(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"mine.{suffix}"
    path.write_bytes(_bytes(suffix, FULL))
    questions, answers, versions, known = load_own(path)
    assert questions.rows() == [
        ("mine/1", "mine", "sums", "What is 2 + 2?", "4", None),
        ("mine/b/2", "mine", None, "What is 2 + 2?", None, None),
    ]
    assert answers.rows() == [
        ("mine/1/a1", "mine/1", 1, "Bob", "Four."),
        ("mine/1/a2", "mine/1", 2, "Ada", "It is 4."),
        ("mine/b/2/a1", "mine/b/2", 1, None, "Vier, \u201egenau\u201c"),
        ("mine/b/2/a2", "mine/b/2", 2, None, "It is 4."),
    ]
    assert versions.rows() == [
        ("mine/1/a2", "factual_error", "It is 5."),
        ("mine/1/a2", "fake_reference", 'It is 4 ("Sums", 1999).\n'),
    ]
    # From the other side, what is known is turned round.
    assert known.rows() == [
        ("mine/1/a1", "Ada", "Bob", "anchor", 0.25, 0.5, None, None, None),
        ("mine/1/a2", "Bob", "Ada", "target", 0.75, 0.5, None, None, None),
        *((f"mine/b/2/a{slot}", *[None] * 8) for slot in (1, 2)),
    ]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("label", "second", "field 'label' is 'second'; it must be one of anchor, tie, target."),
        ("human_score", "1.5", "field 'human_score' is '1.5'; it must be a number from 0 to 1."),
        ("human_score", "high", "it must be a number from 0 to 1."),
        ("human_score", "nan", "it must be a number from 0 to 1."),
        ("human_score", True, "it must be a number from 0 to 1."),
        ("label_chance", "0", "it must be a number from above 0 to 1."),
        ("target_author", "a\nb", "it must be one line"),
    ],
)
def test_what_is_known_of_a_pair_is_checked(
    refusal: Callable[[str, bytes], str], field: str, value: object, said: str
) -> None:
    assert said in refusal("mine.jsonl", json.dumps({**GOOD, field: value}).encode())


def test_numbers_may_be_numbers(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(json.dumps({**GOOD, "human_score": 1, "label": "tie"}))
    known = load_own(tmp_path / "mine.jsonl").known
    assert known["human_score"].to_list() == [0, 1]
    assert known["label"].to_list() == ["tie", "tie"]
    pl.DataFrame([{**GOOD, "human_score": 0.25}]).write_parquet(tmp_path / "mine.parquet")
    assert load_own(tmp_path / "mine.parquet").known["human_score"].to_list() == [0.75, 0.25]


@pytest.mark.parametrize("suffix", FORMATS)
def test_any_column_may_be_the_category(tmp_path: Path, suffix: str) -> None:
    rows = [{**GOOD, "category": "sums", "level": "easy"}, {**GOOD, "question_id": "2"}]
    rows = [{"level": None, "category": None} | row for row in rows]
    path = tmp_path / f"mine.{suffix}"
    path.write_bytes(_bytes(suffix, rows))
    found = load_own(path, "level")
    # What the question is stays as it is.
    assert found.questions["category"].to_list() == ["sums", None]
    assert found.known["category"].to_list() == ["easy", "easy", None, None]
    groups = categories_of(found).sort("question_id")
    assert groups["category"].to_list() == ["easy", None]
    with pytest.raises(ValueError, match="unknown column 'level'"):
        load_own(path)
    with pytest.raises(ValueError, match="has no column 'levl', which --by "):
        load_own(path, "levl")
    many = {f"own_{n}": "a" for n in range(6)}
    path.write_bytes(_bytes(suffix, [{**GOOD, **many}]))
    columns = {name: name for name in GOOD}
    for more in ({}, {"columns": columns}):
        with pytest.raises(ValueError, match=f"it has {', '.join(map(repr, many))}. Correct"):
            load_own(path, "levl", **more)
    # A column with a meaning of its own keeps it.
    path.write_bytes(_bytes(suffix, [{**GOOD, "label": "tie"}]))
    found = load_own(path, "label")
    assert found.known.select("label", "category").rows() == [("tie", "tie")] * 2


def test_the_turn_is_the_category_of_questions_without_one(tmp_path: Path) -> None:
    rows = [{**GOOD, "turn": 1}, {**GOOD, "question_id": "2", "turn": "2", "category": "sums"}]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = load_own(path)
    assert found.known["category"].to_list() == ["turn 1", "turn 1", None, None]
    assert load_own(path, "turn").known["category"].to_list() == ["1", "1", "2", "2"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_four_columns_are_enough(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"Other_name-1.0.{suffix.upper()}"
    path.write_bytes(_bytes(suffix, [GOOD]))
    found = load_own(path)
    assert found.questions["question_id"].to_list() == ["Other_name-1.0/1"]
    assert found.versions.height == 0


def test_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    for suffix in ("jsonl", "csv"):
        path = tmp_path / f"mine.{suffix}"
        path.write_bytes(b"\xef\xbb\xbf" + _bytes(suffix, [GOOD]))
        assert load_own(path).questions.height == 1


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": "   "}, "field 'target' is '   '; it must not be empty. Write the text."),
        ({"question": "\n"}, "field 'question' is '\\n'; it must not be empty."),
        ({"anchor": None}, "field 'anchor' is missing, but required. Add it."),
        ({"anchor": " It is 4. "}, "field 'target' is 'It is 4.', the same as 'anchor'; the two"),
        ({"target": "a\0"}, "field 'target' is 'a\\x00' with a NUL character at position 2; none"),
        ({"target": "x" * 100_001}, "of 100001 characters; at most 100000 are allowed. Shorten"),
        ({"question_id": " 1"}, "field 'question_id' is ' 1'; it must be one line without leading"),
        ({"question_id": "x" * 201}, "of 201 characters; at most 200 are allowed. Shorten"),
        ({"category": "a\nb"}, "field 'category' is 'a\\nb'; it must be one line"),
        ({"author": "a\x1b"}, "field 'author' is 'a\\x1b'; it must be one line"),
        ({"gender_bias": " "}, "field 'gender_bias' is ' '; it must not be empty."),
    ],
)
def test_refuses_a_wrong_row(
    refusal: Callable[[str, bytes], str], suffix: str, change: Record, said: str
) -> None:
    optional = dict.fromkeys(["category", "author", "gender_bias"])
    rows = [{**GOOD, "question_id": "0", **optional}, {**GOOD, **optional, **change}]
    error = refusal(f"mine.{suffix}", _bytes(suffix, rows))
    place = {"csv": "line 3", "parquet": "row 2"}.get(suffix, "line 2")
    assert error.startswith(f"mine.{suffix}, {place}: field ")
    assert said in error


@pytest.mark.parametrize("suffix", FORMATS)
def test_refuses_an_id_used_twice(refusal: Callable[[str, bytes], str], suffix: str) -> None:
    first = {"csv": "line 2", "parquet": "row 1"}.get(suffix, "line 1")
    error = refusal(f"mine.{suffix}", _bytes(suffix, [GOOD, GOOD]))
    assert f"'question_id' is '1', which {first} already has; it must be unique" in error


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_row_without_an_id_gets_one_of_its_texts(tmp_path: Path, suffix: str) -> None:
    rows = [{k: v for k, v in GOOD.items() if k != "question_id"} | {"target": t} for t in "xy"]
    path = tmp_path / f"mine.{suffix}"
    path.write_bytes(_bytes(suffix, rows))
    both = load_own(path).questions["question_id"].to_list()
    assert len({*both}) == 2
    path.write_bytes(_bytes(suffix, rows[1:]))
    [alone] = load_own(path).questions["question_id"]
    assert alone in both


def test_a_copy_under_another_id_is_no_independent_question(
    refusal: Callable[[str, bytes], str], tmp_path: Path
) -> None:
    rows = [GOOD, {**GOOD, "question_id": "2", "target": "other"}, {**GOOD, "question_id": "3"}]
    error = refusal("mine.jsonl", _bytes("jsonl", rows))
    assert "line 3: the row is a copy of line 1 with another question_id. Delete one" in error
    # Two models may give the same answer.
    rows[2] |= {"target_author": "m/other"}
    path = tmp_path / "mine.jsonl"
    path.write_bytes(_bytes("jsonl", rows))
    assert load_own(path).questions.height == 3


@pytest.mark.parametrize("suffix", FORMATS)
def test_refuses_unknown_columns(refusal: Callable[[str, bytes], str], suffix: str) -> None:
    rows = [{**GOOD, "fake_referense": "x"}, {**GOOD, "question_id": "2", "fake_referense": "y"}]
    error = refusal(f"mine.{suffix}", _bytes(suffix, rows))
    place = "line 1" if suffix in {"jsonl", "ndjson"} else "header"
    assert error.startswith(
        f"mine.{suffix}, {place}: unknown column 'fake_referense': did you mean 'fake_reference'? "
    )
    assert error.endswith("? Rename it, remove it, or map it (--map, or `columns` of the study).")
    assert "\n" not in error


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("column", ["label", "human_score"])
def test_one_answer_is_compared_with_none(
    refusal: Callable[[str, bytes], str], suffix: str, column: str
) -> None:
    rows = [{"question": "Why?", "answer": "x", "label_chance": ".5", column: "1"}]
    error = refusal(f"mine.{suffix}", _bytes(suffix, rows))
    assert f"column {column!r} compares two answers, and each question has one here" in error
    assert error.endswith(
        "Rename it: what people say of one is human_label (pass or fail), human_grade or "
        "human_CRITERION."
    )


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_misspelt_column_is_reported_once(
    refusal: Callable[[str, bytes], str], suffix: str
) -> None:
    rows = [
        {"id": str(n), "question": f"Why {n}?", "answer": "x", "anchor": "y", "target": "z"}
        for n in range(3)
    ]
    error = refusal(f"mine.{suffix}", _bytes(suffix, rows))
    place = "line 1" if suffix in {"jsonl", "ndjson"} else "header"
    first, second = error.split("\n")[1:]
    start = f"  mine.{suffix}, {place}: unknown column"
    assert first.startswith(f"{start} 'id': did you mean 'question_id'? Rename it, remove it, or ")
    assert second.startswith(f"{start} 'answer'; allowed: question, anchor, target, question_id, ")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_refuses_missing_columns(refusal: Callable[[str, bytes], str], suffix: str) -> None:
    rows = [{k: v for k, v in GOOD.items() if k != "question"}]
    error = refusal(f"mine.{suffix}", _bytes(suffix, rows))
    assert "header: missing column 'question'; required: question, anchor, target. " in error


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("81", "field 'anchor' is 81, which is a number; it must be text. Write it as text."),
        ("1e400", "field 'anchor' is inf, which is a number; it must be text."),
        ("true", "field 'anchor' is True, which is true or false; it must be text."),
        ('["a"]', "field 'anchor' is ['a'], which is a list; it must be text."),
        ('""', "field 'anchor' is ''; it must not be empty."),
        (r'"\ud800"', r"field 'anchor' is '\ud800' with an unpaired surrogate"),
    ],
)
def test_json_values_are_not_coerced(
    refusal: Callable[[str, bytes], str], value: str, said: str
) -> None:
    line = '{"question_id": "1", "question": "q", "target": "t", "anchor": ' + value + "}\n"
    assert f"mine.jsonl, line 1: {said}" in refusal("mine.jsonl", line.encode())


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("mine.jsonl", b"", "mine.jsonl is empty. Write at least one row."),
        ("mine.jsonl", b"\n\n", "mine.jsonl has no questions. Write at least one."),
        ("mine.csv", b"question_id,question,anchor,target\n", "mine.csv has no questions."),
        ("mine.csv", b"\n", "missing column 'question', 'anchor', 'target'"),
        (
            "mine.csv",
            b"question_id|question|anchor|target\n",
            "Columns are separated by commas, semicolons or tabs",
        ),
        ("mine.csv", b"target,target,x,x,question_id,question,anchor\n", "'target' occurs more"),
        ("mine.parquet", b"PAR1PAR1", "mine.parquet is not Parquet ("),
        (
            "mine.txt",
            b"x",
            "mine.txt: the file type '.txt' is not supported; allowed are .jsonl",
        ),
        (
            "mine",
            b"x",
            "mine: the file type '' is not supported; allowed are .jsonl",
        ),
        (
            "my file.csv",
            b"x",
            "dataset name 'my file' is not allowed: use only letters A to Z, digits,",
        ),
        ("\u00fcber.csv", b"x", "dataset name '\u00fcber' is not allowed: use only letters"),
        ("bloom.csv", b"x", "dataset name 'bloom' belongs to a built-in dataset."),
    ],
)
def test_refuses_a_wrong_file(
    refusal: Callable[[str, bytes], str], name: str, content: bytes, said: str
) -> None:
    assert said in refusal(name, content)


@pytest.mark.parametrize("name", ["a b", "a\n", "é"])
def test_refuses_a_wrong_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.jsonl"
    path.write_bytes(_bytes("jsonl", [GOOD]))
    with pytest.raises(ValueError, match="is not allowed: use only letters"):
        load_own(path)


def test_refuses_a_folder_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder with 0 files of questions"):
        load_own(tmp_path)
    with pytest.raises(ValueError, match=r"x\.csv: there is no such file at"):
        load_own(tmp_path / "x.csv")
    (tmp_path / "faq.csv").touch()
    with pytest.raises(ValueError, match=r"faqq\.csv: .*/faqq\.csv'\. Did you mean 'faq\.csv'\?"):
        load_own(tmp_path / "faqq.csv")


def test_lists_five_problems(refusal: Callable[[str, bytes], str]) -> None:
    rows = [{**GOOD, "question_id": str(n), "target": " " * (n + 1)} for n in range(7)]
    lines = refusal("mine.jsonl", _bytes("jsonl", rows)).split("\n")
    assert lines[0] == "mine.jsonl has 7 problems. The first 5:"
    assert len(lines) == 6
    assert lines[5].startswith("  mine.jsonl, line 5: field 'target' is '     '; ")


TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30
).filter(lambda text: bool(text.strip()))
PAIR = st.tuples(TEXT, TEXT).filter(lambda pair: pair[0].strip() != pair[1].strip())


@st.composite
def _records(draw: st.DrawFn) -> list[Record]:
    # Copies of a row are refused.
    pairs = draw(st.lists(PAIR, min_size=1, max_size=4, unique=True))
    maybe = st.one_of(st.none(), TEXT)
    return [
        {
            "question_id": f"q{number}",
            "question": draw(TEXT),
            "anchor": anchor,
            "target": target,
            "reference": draw(maybe),
            "rich_content": draw(maybe),
        }
        for number, (anchor, target) in enumerate(pairs)
    ]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=_records())
def test_any_text_survives_every_format(tmp_path: Path, rows: list[Record]) -> None:
    for suffix in FORMATS:
        path = tmp_path / f"mine.{suffix}"
        path.write_bytes(_bytes(suffix, rows))
        found = load_own(path)
        assert found.answers["answer"].to_list() == [
            row[side] for row in rows for side in ("anchor", "target")
        ]
        assert found.questions["reference"].to_list() == [row["reference"] for row in rows]
        assert found.versions["version"].to_list() == [
            row["rich_content"] for row in rows if row["rich_content"]
        ]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    suffix=st.sampled_from(FORMATS),
    cuts=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=5),
    junk=st.binary(max_size=40),
)
def test_broken_bytes_are_refused_or_read(
    tmp_path: Path, suffix: str, cuts: list[tuple[int, int]], junk: bytes
) -> None:
    content = bytearray(_bytes(suffix, FULL))
    for place, byte in cuts:
        content[place % len(content)] = byte
    path = tmp_path / f"mine.{suffix}"
    path.write_bytes(bytes(content) + (b"" if suffix == "parquet" else junk))
    try:
        found = load_own(path)
    except ValueError as error:
        assert f"mine.{suffix}" in str(error)  # noqa: PT017
    else:
        assert isinstance(found, Imported)
        assert found.answers.height == 2 * found.questions.height > 0


def test_a_label_of_the_users_own_passes_and_the_others_fail(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    rows = ["a,x,no,no,4", "b,y,yes,yes,2", "c,z,,3,"]
    head = "question,answer,human_label,human_rude,human_grade"
    path.write_text("\n".join([head, *rows]), encoding="utf-8")
    found = load_own(path, pass_label=" NO ")
    said = {json.dumps(json.loads(text), sort_keys=True) for text in found.known["human_values"]}
    assert said == {
        '{"grade": 4.0, "label": 1.0, "rude": 1.0}',
        '{"grade": 2.0, "label": 0.0, "rude": 0.0}',
        '{"rude": 3.0}',
    }
