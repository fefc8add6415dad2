import csv
from pathlib import Path

import pytest

from tasks.readers import bounded
from tasks.readers.bounded import (
    LIMITS,
    FileLimits,
    FileRow,
    Problems,
    clip,
    csv_table,
    existing_file,
    json_lines,
    separator_of,
    text_fault,
)


def _said(problems: Problems) -> str:
    with pytest.raises(ValueError, match=problems.file) as error:
        problems.check()
    return str(error.value)


def test_no_problem_is_no_error() -> None:
    problems = Problems("x.csv")
    problems.check()
    assert not problems.full


def test_a_hint_ends_the_message() -> None:
    problems = Problems("x.csv", "See the docs.")
    problems.add("line 1", "is wrong", "Mend it.")
    assert _said(problems) == "x.csv, line 1: is wrong. Mend it. See the docs."
    problems.add("line 2", "is odd", "Mend it.")
    assert _said(problems).endswith("line 2: is odd. Mend it. See the docs.")


def test_tells_one_problem_on_one_line() -> None:
    problems = Problems("x.csv")
    problems.add("line 2", "is wrong", "Mend it.")
    assert _said(problems) == "x.csv, line 2: is wrong. Mend it."


def test_tells_five_problems_and_their_number() -> None:
    problems = Problems("x.csv")
    for line in range(1, 8):
        problems.add(f"line {line}", f"has {line} cells", "Mend it.")
    lines = _said(problems).split("\n")
    assert lines[0] == "x.csv has 7 problems. The first 5:"
    assert lines[1:] == [f"  x.csv, line {n}: has {n} cells. Mend it." for n in range(1, 6)]


def test_tells_a_shared_problem_once() -> None:
    problems = Problems("x.csv")
    for line in range(1, 8):
        problems.add(f"line {line}", "is wrong", "Mend it.")
    assert _said(problems) == "x.csv, line 1 and 6 more: is wrong. Mend it."


def test_tells_that_reading_stopped() -> None:
    problems = Problems("x.csv")
    for line in range(100):
        problems.add(f"line {line}", f"has {line} cells", "Mend it.")
    assert problems.full
    assert _said(problems).startswith("x.csv has 100 or more problems. The first 5:")


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (None, "is None, which is null; it must be text"),
        (True, "is True, which is true or false; it must be text"),
        (81, "is 81, which is a number; it must be text"),
        (float("nan"), "is nan, which is a number; it must be text"),
        (["a"], "is ['a'], which is a list; it must be text"),
        ({"a": 1}, "is {'a': 1}, which is an object; it must be text"),
        (b"a", "is b'a', which is bytes; it must be text"),
        ("", "is ''; it must not be empty"),
        (" \n\t\u00a0", r"is ' \n\t\xa0'; it must not be empty"),
        ("a\0b", r"is 'a\x00b' with a NUL character at position 2; none is allowed"),
        (
            "ab\udc80",
            (
                r"is 'ab\udc80' with an unpaired surrogate (U+DC80) at position 3; "
                "only complete characters are allowed"
            ),
        ),
        ("abcdef", "is 'abcdef' of 6 characters; at most 5 are allowed"),
    ],
)
def test_text_faults(value: object, what: str) -> None:
    fault = text_fault(value, 5)
    assert fault is not None
    assert fault.what == what
    assert fault.todo.endswith(".")


@pytest.mark.parametrize("value", ["a", " é ", "𝄞", "a" * 100_000, "\x1b[31m", "nan", "null"])
def test_texts_without_fault(value: str) -> None:
    assert text_fault(value) is None


def test_one_character_too_many() -> None:
    assert text_fault("a" * 100_001) is not None


def test_clips_long_values() -> None:
    assert len(clip("x" * 1_000_000)) == 60
    assert len(clip(["x" * 1000] * 1000)) < 500


def _json(
    path: Path, content: bytes, limits: FileLimits = LIMITS
) -> tuple[list[FileRow], Problems]:
    path.write_bytes(content)
    problems = Problems(path.name, limits=limits)
    return list(json_lines(path, problems).rows), problems


def test_json_lines_number_their_lines(tmp_path: Path) -> None:
    rows, problems = _json(tmp_path / "x", b'\xef\xbb\xbf{"a": "1"}\r\n\n  \n{"a": null}')
    problems.check()
    assert rows == [FileRow("line 1", {"a": "1"}), FileRow("line 4", {"a": None})]


def test_json_lines_split_at_line_feeds_only(tmp_path: Path) -> None:
    rows, problems = _json(tmp_path / "x", '{"a": "1\u2028\u0085\\r2"}\n'.encode())
    problems.check()
    assert rows == [FileRow("line 1", {"a": "1\u2028\u0085\r2"})]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"a": "1"', 'line 2: \'{"a": "1"\' is not JSON ('),
        (b"nonsense", "line 2: 'nonsense' is not JSON (Expecting value at character 1)"),
        (b"[1, 2]", "line 2: [1, 2] is a list; it must be an object"),
        (b'"a"', "line 2: 'a' is text; it must be an object"),
        (b"NaN", "line 2: 'NaN' is not JSON (NaN is not a number)"),
        (b'{"a": "1", "a": "2"}', "is not JSON (field 'a' occurs twice)"),
        (b'{"a": "1"} {"a": "2"}', "is not JSON (Extra data"),
        (b"[" * 100_000, "is not JSON (maximum recursion depth"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not JSON (Exceeds the limit"),
    ],
)
def test_json_lines_that_are_not_objects(tmp_path: Path, line: bytes, said: str) -> None:
    rows, problems = _json(tmp_path / "x", b'{"a": "1"}\n' + line + b'\n{"a": "3"}\n')
    assert said in _said(problems)
    assert rows == [FileRow("line 1", {"a": "1"}), FileRow("line 3", {"a": "3"})]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": "caf\xe9"}\n', "x, line 1: byte 0xe9 at position 11 is not UTF-8. Save it as"),
        ('{"a": "é"}\n'.encode("utf-16"), "x, line 1: byte 0xff at position 1 is not UTF-8."),
        (b'{}\n{"a": "\xed\xa0\x80"}\n', "x, line 2: byte 0xed at position 8 is not UTF-8."),
    ],
)
def test_wrong_encodings(tmp_path: Path, content: bytes, said: str) -> None:
    _, problems = _json(tmp_path / "x", content)
    assert _said(problems).startswith(said)


def test_too_many_lines(tmp_path: Path) -> None:
    rows, problems = _json(tmp_path / "x", b"{}\n{}\n{}\n", FileLimits(rows=2))
    assert len(rows) == 2
    assert "line 3: the file has more than 2 lines, the maximum. Split it" in _said(problems)


def _csv(path: Path, content: str) -> tuple[list[str] | None, list[FileRow], Problems]:
    path.write_bytes(content.encode())
    problems = Problems(path.name)
    table = csv_table(path, problems)
    return table.columns, list(table.rows), problems


def test_csv_quotes_breaks_and_empty_cells(tmp_path: Path) -> None:
    content = '\ufeffa,b\r\n"1\n, ""x""\r",2\r\n\r\n,"3"\r\n'
    columns, rows, problems = _csv(tmp_path / "x", content)
    problems.check()
    assert columns == ["a", "b"]
    assert rows == [FileRow("line 2", {"a": '1\n, "x"\r', "b": "2"}), FileRow("line 5", {"b": "3"})]


@pytest.mark.parametrize(
    ("header", "separator"),
    [
        ("a,b", ","),
        ("a;b", ";"),
        ("a\tb", "\t"),
        ("\ufeffa;b;c\r\n1;2,5;3", ";"),
        ('"a, b, c";d', ";"),
        ("a;b,c;d,e,f", ","),
        ("alone", ","),
        ("", ","),
        ("\n1;2", ","),
    ],
)
def test_the_separator_makes_most_columns_of_the_header(header: str, separator: str) -> None:
    assert separator_of(header.encode()) == separator


def test_csv_coerces_nothing(tmp_path: Path) -> None:
    rows = _csv(tmp_path / "x", "a,b,c\n007,NaN, true\n")[1]
    assert rows == [FileRow("line 2", {"a": "007", "b": "NaN", "c": " true"})]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b\n1\n1,2\n", "line 2: has 1 cells ['1']; the header has 2"),
        ("a,b\n1,2,3\n", "line 2: has 3 cells ['1', '2', '3']; the header has 2"),
        ('a,b\n"1"2,3\n', "line 2: is not CSV (',' expected after '\"')"),
        ('a,b\n1,"2\n3', "line 2: is not CSV (a double quote that opens here is never"),
        ("a,b\r1,2\r", "line 1: is not CSV (new-line character seen in unquoted field"),
        ("a\n" + "x" * 131_073, "line 2: is not CSV (a cell has more than 131072 characters"),
    ],
)
def test_csv_faults(tmp_path: Path, content: str, said: str) -> None:
    assert csv.field_size_limit() == 131_072
    problems = _csv(tmp_path / "x", content)[2]
    assert said in _said(problems)


def test_csv_row_over_many_lines_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "MAX_LINE", 20)
    fine = "a\n" + "12345678\n" * 9
    assert len(_csv(tmp_path / "x", fine)[1]) == 9
    problems = _csv(tmp_path / "x", 'a\n"12345678\n' + "12345678\n" * 9 + '"\n')[2]
    assert "line 2: is not CSV (one row has more than 20 characters)" in _said(problems)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.csv", "none.csv: there is no such file at "),
        ("empty.csv", "empty.csv is empty. Write at least one row."),
        ("folder.csv", "folder.csv is a folder, not a file. Give the path of a file in it."),
        ("large.csv", "large.csv has 11 bytes; at most 10 are allowed. Split it"),
        ("n\0ul.csv", "there is no such file at "),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "large.csv").write_bytes(b"x" * 11)
    with pytest.raises(ValueError, match=r"file|empty|bytes") as error:
        existing_file(tmp_path / name, Problems(name, limits=FileLimits(size=10)))
    assert said in str(error.value)
