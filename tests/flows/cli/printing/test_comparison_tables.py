"""Judges compared with people on the terminal."""

from flows.cli.printing.comparison_tables import _with_footnotes

OTHER = "without 1 of 40 items, whose grade of people is not on the scale of the judge"


def test_what_ends_the_notes_of_several_rows_is_a_footnote() -> None:
    rows = [
        ("agreement", ".33", "[.1, .6]", f"by chance .25; {OTHER}"),
        ("kappa", ".11", "[-.1, .3]", OTHER),
        ("people", ".42", "[.2, .6]", "each person against the others, left out in turn"),
        ("bias", ".1", "[.0, .2]", "in points"),
        ("error", ".1", "[.0, .2]", "in points"),
    ]
    marked, footnotes = _with_footnotes(rows)
    assert [row[-1] for row in marked] == [
        "by chance .25; (1)",
        "(1)",
        "each person against the others, left out in turn",
        "in points",
        "in points",
    ]
    assert footnotes == [f"(1) {OTHER}"]
    assert _with_footnotes(rows[2:]) == (rows[2:], [])
