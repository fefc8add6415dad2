import pytest

from tasks.kit.printable import cause, first_few, joined_few, several, wrapped


@pytest.mark.parametrize(
    ("names", "parts", "text"),
    [
        ("", [], ""),
        ("a", ["a"], "a"),
        ("ab", ["a", "b"], "a, b"),
        ("abc", ["a", "b", "1 more"], "a, b and 1 more"),
        ("abcde", ["a", "b", "3 more"], "a, b and 3 more"),
    ],
)
def test_the_first_names_and_how_many_more_there_are(
    names: str, parts: list[str], text: str
) -> None:
    assert first_few([*names], 2) == parts
    assert joined_few([*names], 2) == text


def test_of_the_first_of_many_names_the_total_is_given() -> None:
    assert first_few(["a", "b"], 2, 5) == ["a", "b", "3 more"]
    assert first_few(["a", "b"], 2, 2) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two", ["one two"]),
        ("one two three", ["one two", "three"]),
        ("  one two three", ["  one", "  two", "  three"]),
        ("- one two three", ["- one", "  two", "  three"]),
        ("✓ one two", ["✓ one", "  two"]),
        # A path is not broken, and what follows it stands on its own line.
        ("in /a/long-path.duckdb now", ["in", "/a/long-path.duckdb", "now"]),
        ("/a/long-path.duckdb", ["/a/long-path.duckdb"]),
        # The space within a number is no place to break it, and a text may have lines.
        ("of all 1\u202f234\nare", ["of all", "1\u202f234", "are"]),
        # Each of these characters takes two columns.
        ("\u5b57\u5b57 \u5b57\u5b57", ["\u5b57\u5b57", "\u5b57\u5b57"]),
        ("a  b  cdefg", ["a  b", "cdefg"]),
    ],
)
def test_lines_are_broken_at_spaces_to_fit_eight_columns(text: str, lines: list[str]) -> None:
    assert wrapped(text, 8).split("\n") == lines


def test_numbers_of_things_are_written_in_groups() -> None:
    assert several(1, "id") == "1 id"
    assert several(1200, "reply", "replies") == "1\N{NARROW NO-BREAK SPACE}200 replies"


def test_the_cause_of_an_error_is_its_first_line_printable_and_bounded() -> None:
    hostile = OSError("No magic bytes\x1b[2J at the end.\nLINE 1: select")
    assert cause(hostile) == "No magic bytes\N{REPLACEMENT CHARACTER}[2J at the end"
    assert cause(ValueError("x" * 300)) == "x" * 300
    assert cause(ValueError("x" * 301)) == "x" * 300 + "..."
