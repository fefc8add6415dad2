"""Tables, and their rows as lines where the terminal is too narrow."""

from io import StringIO
from typing import Any

import polars as pl
import pytest

from flows.cli.printing.live import Printer
from flows.cli.printing.tables import RowLines, as_queried, print_line, print_rows, table_or_lines

COLUMNS = ("judge", "gate", "verdict", "value")
ROWS = [
    ("ada", "position", "fail", "gap .13 [.07, .18], limit .05"),
    ("ada", "validity", "pass", ""),
    ("bob", "position", "pass", "gap .01 [.00, .02], limit .05"),
]
LINES = [
    RowLines(
        f"[bold]{judge}[/bold]", f"{gate}: {verdict}", value.split(", limit ") if value else []
    )
    for judge, gate, verdict, value in ROWS
]


@pytest.mark.parametrize(
    ("width", "first"),
    [
        (60, ["title", "judge  gate      verdict  value"]),
        # A row in one line if everything fits there, else its parts below.
        (50, ["title", "ada", "  position: fail, gap .13 [.07, .18], .05", "  validity: pass"]),
        (
            40,
            ["title", "ada", "  position: fail", "    gap .13 [.07, .18], .05", "  validity: pass"],
        ),
        (24, ["title", "ada", "  position: fail", "    gap .13 [.07, .18]", "    .05"]),
    ],
)
def test_a_table_that_does_not_fit_becomes_lines(width: int, first: list[str]) -> None:
    page = StringIO()
    console = Printer(file=page, width=width)
    console.print(table_or_lines(console, COLUMNS, ROWS, LINES, "title"))
    lines = page.getvalue().splitlines()
    assert lines[: len(first)] == first
    assert lines.count("ada") == (1 if width < 60 else 0)


def test_a_list_has_no_line_for_an_empty_cell_but_one_for_null() -> None:
    page = StringIO()
    columns = [f"column_{at}" for at in range(12)]
    values = ["a long value of a cell", "", None, *["x"] * 9]
    print_rows(Printer(file=page, width=40), columns, [values])
    lines = [line.split()[0] for line in page.getvalue().splitlines() if line.strip()]
    assert lines == [name for name in columns if name != "column_1"]


def test_only_between_lists_is_an_empty_line() -> None:
    page = StringIO()
    rows = [["ada", 1, "w1"], ["bob", 20, "w2"]]
    print_rows(Printer(file=page, width=12), ["judge", "n", "wave"], rows, "title")
    assert page.getvalue().splitlines() == [
        "title",
        "judge  ada",
        "n      1",
        "wave   w1",
        "",
        "judge  bob",
        "n      20",
        "wave   w2",
    ]


@pytest.mark.parametrize("width", [80, 8])
def test_no_text_from_outside_controls_the_terminal(width: int) -> None:
    file = StringIO()
    hostile = "a\x1b[2Jb"
    print_rows(Printer(file=file, width=width), [hostile, "n"], [[hostile, 1]], hostile)
    assert "\x1b" not in file.getvalue()
    assert "a" in file.getvalue()


def test_a_line_is_broken_at_spaces_and_a_path_stays_whole() -> None:
    page = StringIO()
    console = Printer(file=page, width=20)
    print_line(console, "- see /of/a/team/with/long.duckdb for all of it [a]")
    assert page.getvalue().splitlines() == [
        "- see",
        "  /of/a/team/with/long.duckdb",
        "  for all of it [a]",
    ]


def test_counts_are_written_in_groups_and_numbers_of_a_query_are_not() -> None:
    rows = pl.DataFrame({"n": [5400, 21], "sure": [True, False]})

    def printed(cells: list[tuple[Any, ...]]) -> list[str]:
        page = StringIO()
        print_rows(Printer(file=page, width=80), rows.columns, cells)
        return page.getvalue().splitlines()[1:]

    assert printed(rows.rows()) == ["5\N{NARROW NO-BREAK SPACE}400   True", "   21  False"]
    assert printed(as_queried(rows)) == ["5400   True", "  21  False"]


@pytest.mark.parametrize("width", [46, 60, 80])
def test_an_interval_stays_on_one_line(width: int) -> None:
    page = StringIO()
    said = "agrees .24 [.13, .39] and loses -.05 [-.11, .01]"
    rows = [("offline/dazzled", said, "one more text")]
    print_rows(Printer(file=page, width=width), ("judge", "said", "more"), rows)
    printed = page.getvalue()
    assert "[.13, .39]" in printed
    assert "[-.11, .01]" in printed
    assert max(map(len, printed.splitlines())) <= width


def test_columns_leave_room_for_intervals_or_break_them_before_they_become_lists() -> None:
    columns = ("judge", "shift", "control", "more")
    rows = [("ada", *["-.24 [-.39, -.13]"] * 2, "a longer text of several words")]

    def printed(width: int) -> str:
        page = StringIO()
        print_rows(Printer(file=page, width=width), columns, rows)
        return page.getvalue()

    # 43 columns have room for whole intervals, 40 only for broken ones.
    assert printed(43).count("[-.39, -.13]") == 2
    broken = printed(40)
    assert "[-.39, -.13]" not in broken
    assert broken.split()[: len(columns)] == [*columns]
