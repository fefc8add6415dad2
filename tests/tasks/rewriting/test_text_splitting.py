from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rewriting.text_splitting import plain, sentences, spans, words


def test_words_are_runs_of_letters_and_digits() -> None:
    assert words("Don't STRASSE-straße 3.5 x² _a_ 水!") == [
        "don",
        "t",
        "strasse",
        "strasse",
        "3",
        "5",
        "x²",
        "a",
        "水",
    ]


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("**S**pecific goals", "Specific goals"),
        ("![alt](a.png) [text](b)", "text"),
        ("```python\nx = 1\n```", "x = 1"),
        ("a <b>bold</b> word<br>next", "a bold word next"),
        ("1. one\n2) two\n- # three", "one two three"),
        ("it rained :rain: at 10:30:45", "it rained at 10:30:45"),
        ("1\ufe0f\u20e3 first 👩\u200d🔬✔\ufe0f", "first"),
        ("1990. 5 < 6 and a <b or c> d", "1990. 5 < 6 and a <b or c> d"),
    ],
)
def test_plain(text: str, bare: str) -> None:
    assert " ".join(plain(text).replace("*", "").replace("`", "").split()) == " ".join(
        bare.replace("<b or c>", " ").split()
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? four.", ["One.", "Two!", "Three? four."]),
        ('He said "No." Then he left.', ['He said "No."', "Then he left."]),
        (
            "About 3.5 of no. 7 are left. 12 are gone.",
            ["About 3.5 of no. 7 are left. 12 are gone."],
        ),
        ("1. First. Second\n\n- Third", ["1. First.", "Second", "- Third"]),
        (" \n ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(st.sampled_from(list("aB .!?\n\t\"'1-*\x00é")), max_size=60) | st.text())
def test_spans_cover_all_but_white_space(text: str) -> None:
    found = list(spans(text))
    assert all(left < right for left, right in found)
    assert all(a[1] <= b[0] for a, b in pairwise(found))
    kept = "".join(text[left:right] for left, right in found)
    assert "".join(kept.split()) == "".join(text.split())
