import contextlib
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.readers import parquet
from tasks.readers.bounded import FileRow, Problems
from tasks.readers.labels import read_labels
from tasks.readers.parquet import parquet_frame, parquet_table
from tasks.readers.votes import read_votes


def _read(path: Path) -> tuple[list[str] | None, list[FileRow], Problems]:
    problems = Problems(path.name)
    table = parquet_table(path, problems)
    return table.columns, list(table.rows), problems


def _said(problems: Problems) -> str:
    with pytest.raises(ValueError, match=problems.file) as error:
        problems.check()
    return str(error.value)


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["1", "é"])])
def test_reads_every_kind_of_text(tmp_path: Path, kind: pl.DataType) -> None:
    frame = pl.DataFrame({"b": [None] * 3, "a": pl.Series(["1", None, "é"], dtype=kind)})
    frame.write_parquet(tmp_path / "x[1]*?.parquet")
    columns, rows, problems = _read(tmp_path / "x[1]*?.parquet")
    problems.check()
    assert columns == ["b", "a"]
    assert rows == [
        FileRow("row 1", {"a": "1"}),
        FileRow("row 2", {}),
        FileRow("row 3", {"a": "é"}),
    ]


def test_counts_rows_over_batches(tmp_path: Path) -> None:
    pl.DataFrame({"a": [str(n) for n in range(1, 151)]}).write_parquet(tmp_path / "x.parquet")
    rows = _read(tmp_path / "x.parquet")[1]
    assert rows == [FileRow(f"row {n}", {"a": str(n)}) for n in range(1, 151)]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([1, 2], "BIGINT"),
        ([float("nan"), 1.0], "DOUBLE"),
        ([b"a", b"b"], "BLOB"),
        ([["a"], ["b"]], "VARCHAR[]"),
        ([True, False], "BOOLEAN"),
    ],
)
def test_refuses_what_is_not_text(tmp_path: Path, column: list[object], kind: str) -> None:
    pl.DataFrame({"a": column}).write_parquet(tmp_path / "x.parquet")
    said = _said(_read(tmp_path / "x.parquet")[2])
    assert f"x.parquet, column 'a': has the type '{kind}'" in said
    assert "it must be text (VARCHAR). Cast it to text or drop it." in said


def test_refuses_another_format(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"question_id,question\n")
    # The cause is whole, and names no file: it may be an unpacked copy.
    what = "x.parquet is not Parquet (Invalid Input Error: No magic bytes found)."
    assert _said(_read(tmp_path / "x.parquet")[2]) == f"{what} Write the file again."


def test_refuses_a_broken_page(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": ["text"] * 5}).write_parquet(path, compression="uncompressed")
    content = bytearray(path.read_bytes())
    content[4:24] = b"\xff" * 20
    path.write_bytes(content)
    assert "x.parquet, after row 0: cannot be read (" in _said(_read(path)[2])


def test_refuses_wrong_encoding(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": ["café"]}).write_parquet(path, compression="uncompressed")
    path.write_bytes(path.read_bytes().replace("café".encode(), b"caf\xe9s"))
    said = _said(_read(path)[2])
    assert "x.parquet, after row 0: a text is not UTF-8 (" in said


def test_refuses_a_huge_text_unread(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"a": ["x" * 20_000_000]}).write_parquet(path)
    problems = Problems("x.parquet")
    parquet_table(path, problems)
    assert "column 'a': has a text of more than 100000 characters" in _said(problems)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("MAX_ROWS", "has 200 rows; at most 100 are"),
        ("MAX_FILE", "bytes unpacked; at most 100 are"),
    ],
)
def test_refuses_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, said: str
) -> None:
    pl.DataFrame({"a": [str(n) for n in range(200)]}).write_parquet(tmp_path / "x.parquet")
    monkeypatch.setattr(parquet, limit, 100)
    assert said in _said(_read(tmp_path / "x.parquet")[2])


def test_stops_when_small_pages_unpack_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # one text in the dictionary, shown 1000 times: few bytes on disk, 1 000 000 in memory
    pl.DataFrame({"a": ["x" * 1000] * 1000}).write_parquet(tmp_path / "x.parquet")
    monkeypatch.setattr(parquet, "MAX_FILE", 100_000)
    _, rows, problems = _read(tmp_path / "x.parquet")
    # 64 rows a batch of 1000 characters each: 100 000 are passed in the second batch
    assert len(rows) == 128
    assert "row 128: the texts up to here have more than 100000 characters" in _said(problems)


@pytest.fixture(scope="module")
def votes() -> bytes:
    """A Parquet file of votes."""
    rows = [
        {
            "judge": f"judge {number % 3}",
            "sample": f"s{number}",
            "arm": "control",
            "shown_first": "anchor",
            "repeat": 0,
            "choice": "first",
        }
        for number in range(60)
    ]
    buffer = io.BytesIO()
    pl.DataFrame(rows).write_parquet(buffer)
    return buffer.getvalue()


@settings(max_examples=50)
@given(st.data())
def test_no_broken_file_ends_the_process(
    votes: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    broken = bytearray(votes)
    for _ in range(3):
        broken[data.draw(st.integers(0, len(votes) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("broken") / "votes.parquet"
    path.write_bytes(broken)
    for read in (read_votes, read_labels, parquet_frame):
        found = None
        with contextlib.suppress(ValueError):  # which it may be, or still a file of votes
            found = read(path)
        assert found is None or isinstance(found, pl.DataFrame)


def test_a_frame_keeps_types_order_and_columns_without_a_type(tmp_path: Path) -> None:
    frame = pl.DataFrame({"b": [3, 1, 2], "a": [["x"], None, []], "c": [0.5, None, 1.0]})
    frame = frame.with_columns(d=pl.lit(None), e=pl.Series([True, None, False]))
    frame.write_parquet(tmp_path / "x.parquet")
    assert parquet_frame(tmp_path / "x.parquet").equals(frame)
    assert parquet_frame(tmp_path / "x.parquet").schema == frame.schema
    assert parquet_frame(tmp_path / "x.parquet", ["c", "b"], 2).rows() == [(0.5, 3), (None, 1)]
    with pytest.raises(ValueError, match="No files found"):
        parquet_frame(tmp_path / "y.parquet")
