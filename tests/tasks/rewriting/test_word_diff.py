from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tasks.rewriting.word_diff import WHITE_SPACE, Passage, changed_words, difference

TEXTS = st.text(alphabet="ab \n.-é", max_size=40)


def test_only_changed_words_are_marked() -> None:
    assert changed_words("It is 7 km, says Ann.", "It is 9 km.") == [
        Passage("same", "It is "),
        Passage("removed", "7"),
        Passage("added", "9"),
        Passage("same", " km"),
        Passage("removed", ", says Ann"),
        Passage("same", "."),
    ]


def test_an_added_sentence_is_one_passage() -> None:
    assert changed_words("So.", "So. As shown (Lee, 2019).") == [
        Passage("same", "So."),
        Passage("added", " As shown (Lee, 2019)."),
    ]


def test_white_space_alone_is_said_and_not_marked() -> None:
    assert difference("So it is.", "So  it\nis.") == ([Passage("same", "So  it\nis.")], WHITE_SPACE)
    assert difference("So it is.", "So  it was.").note == ""
    assert difference("So it is.", "So it is.") == ([Passage("same", "So it is.")], "")
    assert difference("now here", "nowhere").note == ""


def test_equal_and_empty_texts() -> None:
    assert changed_words("a b", "a b") == [Passage("same", "a b")]
    assert changed_words("", "") == []


def test_very_long_passages_are_replaced_as_a_whole() -> None:
    # Both longer than words are compared by, and than the pieces of what replaces them.
    for many in (4000, 60):
        before, after = "x " * many, "y " * many
        parts = changed_words(f"So {before}end", f"So {after}end")
        assert [part.change for part in parts] == ["same", "removed", "added", "same"]


@given(TEXTS, TEXTS)
def test_both_texts_can_be_read_from_the_parts(before: str, after: str) -> None:
    parts = changed_words(before, after)
    assert "".join(p.text for p in parts if p.change != "added") == before
    assert "".join(p.text for p in parts if p.change != "removed") == after
    assert all(p.text for p in parts)
    assert all(p.change != q.change for p, q in pairwise(parts))


def test_frequent_words_of_a_long_text_are_compared_too() -> None:
    middle = " the a" * 200 + " "
    parts = changed_words(f"x{middle}y", f"z{middle}w")
    assert [part for part in parts if part.change == "same"] == [Passage("same", middle)]
