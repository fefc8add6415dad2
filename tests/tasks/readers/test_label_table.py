"""Tables with a column for each judge and each person, good and hostile."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.readers.label_table import EMPTY, MOST_VALUES, LabelColumns, read_label_table

CSV = "id,input,judge,human,topic\na,Is it?,pass,fail,x\nb,Why?,,pass,\nc,How?,ERROR,pass,y\n"


def write(folder: Path, text: str, name: str = "labels.csv") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_a_column_per_annotator(tmp_path: Path) -> None:
    found = read_label_table(write(tmp_path, CSV), LabelColumns(slices=("topic",)))
    annotators = found.labels.select("annotator", "human").unique(maintain_order=True)
    assert annotators.rows() == [("judge", False), ("human", True)]
    judged = found.labels.filter(~pl.col("human")).select("item", "label").rows()
    assert judged == [("a", '"pass"'), ("b", None), ("c", '"ERROR"')]
    assert found.items["slice:topic"].to_list() == ["x", EMPTY, "y"]
    assert json.loads(found.items["texts"][0]) == {"input": "Is it?"}
    assert found.items["cluster"].to_list() == ["a", "b", "c"]


def test_the_three_formats_say_the_same(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "judge": 4, "human": 5, "other": ["x", "y"]},
        {"id": "b", "judge": 2.5, "human": None, "other": []},
    ]
    lines = write(tmp_path, "\n".join(map(json.dumps, rows)), "labels.jsonl")
    table = write(tmp_path, 'id,judge,human,other\na,4,5,"[""x"", ""y""]"\nb,2.5,,[]\n')
    parquet = tmp_path / "labels.parquet"
    pl.DataFrame(rows, strict=False).write_parquet(parquet)
    columns = LabelColumns(humans=("human", "other"))
    found = [read_label_table(file, columns).labels for file in (lines, table, parquet)]
    values = [
        [json.loads(label) if label else None for label in labels["label"]] for labels in found
    ]
    assert values[0] == [4.0, 2.5, 5.0, None, ["x", "y"], []]
    assert values[2] == values[0]
    assert values[1] == ["4", "2.5", "5", None, ["x", "y"], []]


@given(
    ids=st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=5, unique=True),
    missing=st.booleans(),
)
def test_whole_numbers_of_json_lines_stay_names(ids: list[int], missing: bool) -> None:
    rows = [{"id": each, "judge": 1, "human": 1, "part": each % 2} for each in ids]
    lines = "\n".join(map(json.dumps, [*rows, *([{"judge": 1, "human": 1}] if missing else [])]))
    with TemporaryDirectory() as folder:
        path = write(Path(folder), lines, "labels.jsonl")
        table = read_label_table(path, LabelColumns(slices=("part",)))
    named = table.items["item"].to_list()
    assert named == [*map(str, ids), *([f"row {len(ids) + 1}"] if missing else [])]
    parts = [str(each % 2) for each in ids]
    assert table.items["slice:part"].to_list() == parts + [EMPTY] * missing


def test_a_missing_value_does_not_make_decimals_of_names(tmp_path: Path) -> None:
    # As pandas saves them: a missing id makes floats of all.
    frame = pl.DataFrame({"id": [7.0, None, 8.0], "judge": 1, "human": 1})
    frame.write_parquet(tmp_path / "labels.parquet")
    table = read_label_table(tmp_path / "labels.parquet", LabelColumns())
    assert table.items["item"].to_list() == ["7", "row 2", "8"]
    # A text is left as it is: it may be a version.
    versions = write(tmp_path, "id,judge,human\n1.0,1,1\n1,1,1\n")
    assert read_label_table(versions, LabelColumns()).items["item"].to_list() == ["1.0", "1"]


def test_repeats_of_an_item_form_a_cluster(tmp_path: Path) -> None:
    file = write(tmp_path, "id,judge,human\na,1,1\na,1,1\nb,0,1\n")
    items = read_label_table(file, LabelColumns(cluster="id")).items
    assert items["item"].to_list() == ["a", "a (2)", "b"]
    assert items["cluster"].to_list() == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (
            "id,judge,human\na,1,1\nb,1,1\na,0,1\n",
            LabelColumns(),
            "labels.csv: line 2 and line 4 have the same 'id': 'a'. Correct the ids",
        ),
        (
            'no,judge,human\na,"1\n",1\na,0,1\nb,0,1\na,0,1\n',
            LabelColumns(item="no"),
            "line 2 and line 4 have the same 'no': 'a'. 2 rows repeat an earlier one.",
        ),
        (
            "id,what,judge,human\na,x,1,1\na,y,0,1\na,y,0,1\n",
            LabelColumns(criterion="what"),
            "line 3 and line 4 have the same 'id': 'a' and 'what' 'y'.",
        ),
    ],
)
def test_two_rows_of_one_item_are_refused(
    tmp_path: Path, text: str, columns: LabelColumns, message: str
) -> None:
    with pytest.raises(ValueError, match="add --cluster") as raised:
        read_label_table(write(tmp_path, text), columns)
    assert message in str(raised.value)


def test_rows_of_other_criteria_and_without_an_id_are_no_repeats(tmp_path: Path) -> None:
    text = "id,what,judge,human\na,x,1,1\na,y,0,1\n,x,0,1\n,x,0,1\n"
    items = read_label_table(write(tmp_path, text), LabelColumns(criterion="what")).items
    assert items["item"].to_list() == ["a", "a", "row 3", "row 4"]


def test_rows_in_several_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.readers.label_table.BATCH", 2)
    file = write(tmp_path, "id,judge,human\n" + "".join(f"{i},{i},\n" for i in range(5)))
    labels = read_label_table(file, LabelColumns()).labels.filter(~pl.col("human"))
    assert labels["label"].to_list() == [f'"{i}"' for i in range(5)]


def test_without_an_id_rows_are_items(tmp_path: Path) -> None:
    file = write(tmp_path, "judge,human\n1,1\n0,1\n")
    items = read_label_table(file, LabelColumns()).items
    assert items["item"].to_list() == ["row 1", "row 2"]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("id,verdict,human\na,1,1\n", {}, "no column named 'judge'. Name the column"),
        ("id,judge,gold\na,1,1\n", {}, "with the labels of people with --human COLUMN"),
        (CSV, {"judges": ("jugde",)}, "has no column 'jugde'. The columns are: id, input, judge"),
        (CSV, {"humans": ("judge",)}, "column 'judge' is named more than once"),
        ("", {}, "is empty"),
        ("id,judge,human\n", {}, "has no rows"),
        (
            'id,judge,human\n1,pass,"fail\n2,pass\n',
            {},
            "line 2: is not CSV (a double quote that opens here is never closed)",
        ),
        ("id,judge,human\na,1\n", {}, "line 2: has 2 cells ['a', '1']; the header has 3"),
        ("id,judge,judge,human\na,1,1,1\n", {}, "header: column 'judge' occurs more than once"),
        ("id,judge,human,label_chance\na,1,1,2\n", {}, "label_chance of row 1 is '2'"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, text: str, columns: dict[str, tuple[str, ...]], message: str
) -> None:
    with pytest.raises(ValueError, match=r"labels\.csv|column") as raised:
        read_label_table(write(tmp_path, text), LabelColumns(**columns))  # type: ignore[arg-type]
    assert message in str(raised.value)


def test_too_many_slices(tmp_path: Path) -> None:
    rows = "\n".join(f"a{i},1,1,s{i}" for i in range(MOST_VALUES + 1))
    file = write(tmp_path, f"id,judge,human,topic\n{rows}\n")
    with pytest.raises(ValueError, match=r"'topic' of labels\.csv has 51 different values"):
        read_label_table(file, LabelColumns(slices=("topic",)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.csv", b"id,judge,human\na,\xff,1\n"),
        ("labels.csv", b'id,judge,human\na,"1,1\n'),
        ("labels.parquet", b"PAR1"),
        ("labels.jsonl", b'{"id": "a", "judge": NaN, "human": 1}\n'),
        ("labels.jsonl", b"[1]\n"),
        ("labels.xlsx", b"PK"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"labels\."):
        read_label_table(file, LabelColumns())
