import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.readers.votes import COLUMNS, LIKE, read_votes

CONTROL: dict[str, Any] = {
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


def refusal(path: Path) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        read_votes(path)
    return str(caught.value)


def lines(tmp_path: Path, *texts: str | bytes, name: str = "own.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(b"\n".join(t if isinstance(t, bytes) else t.encode() for t in texts))
    return path


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"judge": "ada"', "is not JSON ("),
        ("not json", "is not JSON ("),
        (json.dumps(CONTROL).replace("0", "NaN"), "NaN is not a number"),
        (json.dumps(CONTROL).replace("0", "Infinity"), "Infinity is not a number"),
        (json.dumps(CONTROL).replace("{", '{"judge": "bea", '), "field 'judge' occurs twice"),
        ("[1, 2]", "it must be an object"),
        ("7", "it must be an object"),
        ("[" * 100_000, "is not JSON ("),
        (b'{"judge": "\xe9"}', "byte 0xe9 at position 12 is not UTF-8"),
        (b"\xff\xfe{\x00", "byte 0xff at position 1 is not UTF-8"),
        ("\ufeff" + json.dumps(CONTROL), "is not JSON ("),  # a mark, but not at the start
        ("9" * 5000, "is not JSON ("),
    ],
)
def test_malformed_lines(tmp_path: Path, text: str | bytes, rule: str) -> None:
    message = refusal(lines(tmp_path, json.dumps(CONTROL), "", text))
    assert message.startswith("own.jsonl, line 3: ")
    assert rule in message
    assert message.endswith(LIKE)
    assert len(message) < 500


def test_blank_lines_and_a_byte_order_mark_are_no_votes(tmp_path: Path) -> None:
    second = json.dumps({**CONTROL, "repeat": 1})
    path = lines(tmp_path, "\ufeff" + json.dumps(CONTROL), "", "  ", second + "\r")
    assert read_votes(path)["repeat"].to_list() == [0, 1]
    header, row = ",".join(COLUMNS), "ada,,,control,s,c,anchor,0,first"
    table = lines(tmp_path, "\ufeff" + header, row, "", name="own.csv")
    assert read_votes(table)["judge"].to_list() == ["ada"]


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("ada,,,control,s,c,anchor,0", "line 3: has 8 cells"),
        ("ada,,,control,s,c,anchor,0,first,more", "line 3: has 10 cells"),
        ('"ada,,,control,s,c,anchor,0,first', "line 3: is not CSV ("),
        (b"\xe9,,,control,s,c,anchor,0,first", "line 3: byte 0xe9 at position 1 is not UTF-8"),
        ("a" * 200_000 + ",,,control,s,c,anchor,0,first", "line 3: is not CSV (a cell has"),
    ],
)
def test_malformed_rows_of_csv(tmp_path: Path, row: str | bytes, rule: str) -> None:
    good = "ada,,,control,s,c,anchor,0,first"
    message = refusal(lines(tmp_path, ",".join(COLUMNS), good, row, name="own.csv"))
    assert message.startswith("own.csv")
    assert rule in message
    assert message.endswith(LIKE)


def test_a_column_twice_in_csv(tmp_path: Path) -> None:
    message = refusal(lines(tmp_path, "judge,judge", "ada,bea", name="own.csv"))
    assert message.startswith("own.csv: a column occurs twice in ['judge', 'judge']")


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("own.jsonl", b"", "own.jsonl is empty"),
        ("own.csv", b"", "own.csv is empty"),
        ("own.parquet", b"", "own.parquet is empty"),
        ("own.jsonl", b"\n \n", "own.jsonl holds no votes"),
        ("own.csv", ",".join(COLUMNS).encode(), "own.csv holds no votes"),
        ("own.parquet", b"PAR1 no parquet", "own.parquet cannot be read as Parquet"),
        (
            "own.xlsx",
            b"x",
            "the file type '.xlsx' is not supported; allowed are .jsonl, .ndjson,",
        ),
        ("own", b"x", "the file type '' is not supported"),
    ],
)
def test_files_that_hold_no_votes(tmp_path: Path, name: str, content: bytes, rule: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert rule in refusal(path)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert "folder.csv is a folder, not a file" in refusal(folder)
    assert "nowhere.jsonl: there is no such file" in refusal(tmp_path / "nowhere.jsonl")


@settings(max_examples=60)
@given(st.binary(max_size=300), st.sampled_from(["jsonl", "csv", "parquet"]))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str
) -> None:
    path = tmp_path_factory.mktemp("bytes") / f"own.{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"own\."):
        read_votes(path)
