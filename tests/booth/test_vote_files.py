import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from booth._booth import Booth
from booth._vote_files import export_ballots, guarded, import_votes, unguarded
from warehouse.store import Warehouse

Open = Callable[..., Booth]
Audited = Callable[..., Warehouse]
Row = dict[str, Any]
VOTES = """
    select raw, choice, seconds, finish_reason from votes join ballots using (ballot_id)
    where judge = 'people/ann' order by raw
"""


def read_jsonl(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_jsonl(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "ballots.jsonl"


def test_what_goes_out_comes_back_as_votes(audited: Audited, opened: Open, place: Path) -> None:
    warehouse = audited()
    booth = opened(warehouse, limit=6)
    seat = booth.seat("ann")
    said = export_ballots(booth, seat, place)
    rows = read_jsonl(place)
    assert said.startswith(f"Wrote 6 ballots of ann to {place}.")
    assert [row["ballot_id"] for row in rows] == seat.order
    assert list(rows[0]) == ["ballot_id", "question", "answer_1", "answer_2", "choice"]
    # What stands first is the first answer.
    sides = dict(seat.every.select("ballot_id", "shown_first").iter_rows())
    for row in rows:
        assert row["answer_1"].startswith("Anchor") == (sides[row["ballot_id"]] == "anchor")
    for row, choice in zip(rows, ("1", " Answer 2", "TIE", "Not  familiar", "", None), strict=True):
        row["choice"] = choice
    rows[1]["seconds"] = 2.5
    write_jsonl(place, rows)
    said = import_votes(booth, seat, place)
    assert said.startswith(
        "Saved 4 votes of ann. The file also has 0 votes saved before and 2 rows without a choice."
    )
    assert warehouse.query(VOTES).rows() == [
        ("1", "first", 0.0, "untimed"),
        ("Answer 2", "second", 2.5, "timed"),
        ("Not  familiar", "abstain", 0.0, "untimed"),
        ("TIE", "tie", 0.0, "untimed"),
    ]
    # The same again is nothing new, and what has a vote is not exported again.
    assert import_votes(booth, seat, place).startswith(
        "Saved 0 votes of ann. The file also has 4 votes saved before and"
    )


def test_a_spreadsheet_computes_nothing_and_may_write_semicolons(
    audited: Audited, opened: Open, tmp_path: Path
) -> None:
    texts = {0: '=HYPERLINK("http://x")', 1: "'quoted", 2: '+1, "two"\nlines; more', 3: "@x"}
    booth = opened(audited(4, texts), arms=["control"])
    seat = booth.seat("ann")
    place = tmp_path / "ballots.csv"
    export_ballots(booth, seat, place)
    with place.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    cells = [cell for row in rows for cell in row.values()]
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in cells)
    assert {unguarded(cell) for cell in cells} >= set(texts.values())
    with place.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows({**row, "choice": "tie"} for row in rows)
    assert import_votes(booth, seat, place).startswith("Saved 4 votes of ann")


def test_texts_with_line_separators_come_back(
    audited: Audited, opened: Open, tmp_path: Path
) -> None:
    # Characters that end a line of Unicode, but none of JSON.
    booth = opened(audited(2, {0: "one\u2028two\x85three", 1: "four"}), arms=["control"])
    seat = booth.seat("ann")
    place = tmp_path / "ballots.jsonl"
    export_ballots(booth, seat, place)
    text = place.read_text(encoding="utf-8")
    place.write_text(text.replace('"choice": ""', '"choice": "1"'), encoding="utf-8")
    assert import_votes(booth, seat, place).startswith("Saved 2 votes of ann")


@given(st.text(), st.sampled_from(["", "=", "+", "-", "@", "'", "''", "\t", "\r", "'="]))
def test_the_guard_is_taken_off_exactly(text: str, start: str) -> None:
    cell = start + text
    assert unguarded(guarded(cell)) == cell
    assert not guarded(cell).startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"choice": "3"}, r"line 2: choice '3' must be 1, 2, tie or not familiar"),
        ({"choice": ["1"]}, r"line 2: choice \"\['1'\]\" must be"),
        (
            {"ballot_id": "nope"},
            r"line 2: ballot_id 'nope' is not a ballot of ann in study quick\. Remove the line, or",
        ),
        ({"ballot_id": 7}, r"line 2: ballot_id '7' is not a ballot"),
        (
            {"answer_1": "another"},
            r"line 2: answer_1 differs from the text of ballot .*were sorted: --export it again",
        ),
        ({"seconds": -1}, r"line 2: seconds -1 must be a number that is not negative"),
        ({"seconds": "nan"}, r"line 2: seconds 'nan' must be"),
    ],
)
def test_a_row_that_does_not_fit_is_named_and_nothing_is_saved(
    audited: Audited, opened: Open, place: Path, change: Row, said: str
) -> None:
    warehouse = audited()
    booth = opened(warehouse, limit=6)
    seat = booth.seat("ann")
    export_ballots(booth, seat, place)
    rows = [{**row, "choice": "1"} for row in read_jsonl(place)]
    rows[1] |= change
    write_jsonl(place, rows)
    with pytest.raises(ValueError, match=f"{said}.*Nothing was saved"):
        import_votes(booth, seat, place)
    assert warehouse.query(VOTES).is_empty()


def test_a_vote_never_changes(audited: Audited, opened: Open, place: Path) -> None:
    warehouse = audited()
    booth = opened(warehouse, limit=3)
    seat = booth.seat("ann")
    export_ballots(booth, seat, place)
    rows = [{**row, "choice": "1"} for row in read_jsonl(place)]
    write_jsonl(place, rows[:1] * 2)
    with pytest.raises(ValueError, match=r"occurs twice in the file\. Keep one line"):
        import_votes(booth, seat, place)
    write_jsonl(place, rows)
    import_votes(booth, seat, place)
    with pytest.raises(
        ValueError, match="nothing to export: ann has made a choice on each of 3 ballots"
    ):
        export_ballots(booth, seat, place.with_name("none.jsonl"))
    assert not place.with_name("none.jsonl").exists()
    write_jsonl(place, [{**rows[0], "choice": "2"}])
    with pytest.raises(
        ValueError, match=r"already has the saved vote 'first', which cannot be changed\. Leave its"
    ):
        import_votes(booth, seat, place)
    assert warehouse.query(VOTES)["choice"].to_list() == ["first"] * 3


def test_a_ballot_of_the_booth_is_not_voted_on_by_file(
    audited: Audited, opened: Open, place: Path
) -> None:
    booth = opened(audited(), limit=3)
    seat = booth.seat("ann")
    export_ballots(booth, seat, place)
    shown = booth.show(seat, 0)
    assert shown
    booth.vote(seat, shown.nonce, "Tie", 0.0)
    write_jsonl(place, [{**row, "choice": "1"} for row in read_jsonl(place)])
    with pytest.raises(
        ValueError,
        match=r"line 1: ann has already voted on ballot .* in the booth\. Leave its choice empty",
    ):
        import_votes(booth, seat, place)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (("b.txt", b""), r"the file type '\.txt' is not supported; allowed are \.jsonl, \.csv"),
        (("b.jsonl", b"{"), r"line 1: '{' is not JSON"),
        (("b.jsonl", b"[1]"), r"line 1: \[1\] is a list; it must be an object"),
        (("b.jsonl", b'{"ballot_id": "1"}'), r"line 1: there is no choice"),
        (("b.jsonl", b'\xff{"a"'), r"line 1: byte 0xff at position 1 is not UTF-8"),
        (("b.csv", b"a,b\n1,2\n"), r"header: there is no ballot_id and no choice"),
        (("b.csv", b""), r"b.csv is empty"),
        (("b.csv", b"ballot_id,choice\n1,2,3\n"), r"line 2: has 3 cells .*; the header has 2"),
        (("b.csv", b"ballot_id,choice\n1\n"), r"line 2: has 1 cells .*; the header has 2"),
        (("b.csv", b'ballot_id,choice\n"1"x,2\n'), r"line 2: is not CSV \(.*expected"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    audited: Audited, opened: Open, tmp_path: Path, file: tuple[str, bytes], said: str
) -> None:
    booth = opened(audited(1))
    name, content = file
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=said):
        import_votes(booth, booth.seat("ann"), tmp_path / name)


def test_a_file_of_a_gigabyte_is_refused_unread(
    audited: Audited, opened: Open, place: Path
) -> None:
    booth = opened(audited(1))
    with place.open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(ValueError, match="at most 268435456 are allowed"):
        import_votes(booth, booth.seat("ann"), place)
