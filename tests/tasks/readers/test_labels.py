import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.readers import labels as module
from tasks.readers.labels import read_labels

LABELS: dict[str, dict[str, Any]] = {
    "Ann": {"1": "a", "2": 3, "3": ["b", "a"], "4": None, "5": ""},
    "Bob": {"1": "<b>=1+1</b>", "2": True, "3": [], "4": float("nan"), "5": ["a", None]},
    "Cid": {},
}
READ = [
    ("Ann", "1", '"a"'),
    ("Ann", "2", "3"),
    ("Ann", "3", '["b", "a"]'),
    ("Ann", "4", None),
    ("Ann", "5", None),
    ("Bob", "1", '"<b>=1+1</b>"'),
    ("Bob", "2", "true"),
    ("Bob", "3", "[]"),
    ("Bob", "4", None),
    ("Bob", "5", None),
    ("Cid", None, None),
]


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def make(name: str, content: str | bytes) -> Path:
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return make


def test_json(write: Any) -> None:
    assert read_labels(write("x.json", json.dumps(LABELS))).rows() == READ
    assert read_labels(write("y.JSON", "\ufeff" + json.dumps(LABELS))).rows() == READ


def test_an_object_among_labels_cannot_be_read_and_is_kept_as_none(write: Any) -> None:
    text = '{"Ann": {"1": {"label": "a"}, "2": "b"}, "Bob": {"1": [{"x": 1}], "2": "b"}}'
    assert read_labels(write("x.json", text)).rows() == [
        ("Ann", "1", None),
        ("Ann", "2", '"b"'),
        ("Bob", "1", None),
        ("Bob", "2", '"b"'),
    ]


def test_csv(write: Any) -> None:
    text = (
        'item,annotator,label\n1,Ann,a\n2,Ann,3\n3,Ann,"[""b"", ""a""]"\n4,Ann,\n'
        '1,Bob,"=HYPERLINK(""x"")"\n2,Bob,[[A]]\n3,Bob,"two\nlines"\n4,Bob," "\n5,Bob,NaN\n'
    )
    assert read_labels(write("x.csv", text)).rows() == [
        ("Ann", "1", '"a"'),
        ("Ann", "2", '"3"'),
        ("Ann", "3", '["b", "a"]'),
        ("Ann", "4", None),
        ("Bob", "1", json.dumps('=HYPERLINK("x")')),
        ("Bob", "2", '"[[A]]"'),
        ("Bob", "3", '"two\\nlines"'),
        ("Bob", "4", None),
        ("Bob", "5", '"NaN"'),
    ]


@pytest.mark.parametrize(
    ("labels", "read"),
    [
        (["a", None, ""], ['"a"', None, None]),
        ([1, 2, None], ["1", "2", None]),
        ([1.5, float("nan"), 2.0], ["1.5", None, "2.0"]),
        ([["a", "b"], [], None], ['["a", "b"]', "[]", None]),
        ([True, False, None], ["true", "false", None]),
    ],
)
def test_parquet(tmp_path: Path, labels: list[Any], read: list[Any]) -> None:
    file = tmp_path / "x.parquet"
    who = {"annotator": ["Ann", "Bob", "Ann"], "item": [1, 1, 2]}
    pl.DataFrame({**who, "label": labels}, strict=False).write_parquet(file)
    found = read_labels(file)
    assert found["annotator"].to_list() == ["Ann", "Bob", "Ann"]
    assert found["item"].to_list() == ["1", "1", "2"]
    assert found["label"].to_list() == read


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.json", "", "is empty"),
        ("x.json", "{", "is not JSON in UTF-8"),
        ("x.json", b'{"A": {"1": "\xff"}}', "is not JSON in UTF-8"),
        ("x.json", "[" * 100_000, "is not JSON in UTF-8"),
        ("x.json", '{"A":' * 100_000, "is not JSON in UTF-8"),
        ("x.json", "[]", "is not an object of objects"),
        ("x.json", '{"A": ["a"]}', "is not an object of objects"),
        ("x.json", '{"A": "a"}', "is not an object of objects"),
        ("x.json", "{}", "has no labels"),
        ("x.json", '{"A": {"1": {"label": "a"}}}', "labels must not be objects"),
        ("x.json", '{"A": {"1": "a", "2": "b", "1": "a"}}', "'A' has the item '1' more than once"),
        ("x.json", '{"A": {"1": "a"}, "A": {}}', "annotator 'A' more than once"),
        ("x.json", '{"\\ud800": {"1": "a"}}', "a name that is not valid UTF-8"),
        ("x.csv", "annotator,item\nA,1\n", "has the wrong columns: annotator, item"),
        ("x.csv", "annotator,item,label,when\nA,1,a,2\n", "has the wrong columns:"),
        ("x.csv", "annotator,item,label\n", "has no labels"),
        ("x.csv", "annotator,item,label\nA,1,a,b\n", "is not CSV in UTF-8"),
        ("x.csv", b"annotator,item,label\nA,1,\xff\xfe\n", "is not CSV in UTF-8"),
        ("x.csv", "annotator,item,label\nA,1,a\n,2,b\n", "row 2 has no annotator"),
        ("x.csv", "annotator,item,label\nA,,a\n", "row 1 has no item"),
        ("x.parquet", "PAR1", "cannot be read as Parquet"),
        ("x.txt", "a", "the file type '.txt' is not supported"),
    ],
)
def test_what_is_refused(write: Any, name: str, content: str | bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_labels(write(name, content))


def test_parquet_of_other_types(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    pl.DataFrame({"annotator": [0.5], "item": ["1"], "label": ["a"]}).write_parquet(file)
    with pytest.raises(ValueError, match="column 'annotator' is of type Float64"):
        read_labels(file)
    pl.DataFrame({"annotator": ["A"], "item": ["1"], "label": [{"x": 1}]}).write_parquet(file)
    with pytest.raises(ValueError, match="column 'label' is of type Struct"):
        read_labels(file)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder, not a file"):
        read_labels(tmp_path)


def test_half_a_surrogate_pair_is_no_label(write: Any) -> None:
    found = read_labels(write("x.json", '{"A": {"1": "\\ud800", "2": ["\\udfff"], "3": "b"}}'))
    assert found["label"].to_list() == [None, None, '"b"']


@pytest.mark.parametrize(("suffix", "most"), [(".json", 128), (".csv", 512), (".parquet", 512)])
def test_a_file_of_a_gigabyte(tmp_path: Path, suffix: str, most: int) -> None:
    file = tmp_path / f"x{suffix}"
    with file.open("wb") as large:
        large.truncate(1 << 30)  # takes no room
    with pytest.raises(ValueError, match=f"has {1 << 30} bytes; at most {most << 20} are allowed"):
        read_labels(file)


def test_more_labels_than_are_read(
    tmp_path: Path, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    rows = pl.DataFrame({"annotator": ["A"] * 3, "item": ["1", "2", "3"], "label": ["a"] * 3})
    rows.write_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="has more than 2 labels, the maximum"):
        read_labels(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="has more than 2 labels"):
        read_labels(write("x.csv", rows.write_csv()))
