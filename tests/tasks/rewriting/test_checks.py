from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rewriting.checks import (
    _common,
    additive,
    detracting,
    same_words,
    sham_failure,
    words_kept,
)

TEN = "one two three four five six seven eight nine ten"


@pytest.mark.parametrize(
    ("original", "perturbed", "reason"),
    [
        ("A b.", "A really big b (Moor, 2001).", None),
        ("A b.", "A B!", None),
        ("A b.", "A  b.\n", "is identical to the original"),
        ("A b.", " \n", "is empty"),
        ("A b.", "b a", "the word 'b' is missing or out of order"),
        ("A b b.", "a b c", "the word 'b' is missing or out of order"),
        ("?!", "? !x", "the original has no words"),
    ],
)
def test_additive(original: str, perturbed: str, reason: str | None) -> None:
    assert additive(original, perturbed) == reason


@pytest.mark.parametrize(
    ("perturbed", "reason"),
    [
        ("# **The** tide\n- falls. 🌊", None),
        ("The tide falls.", "is identical to the original"),
        ("🌊", "has 0 words, needs the original's 3"),
        ("**The** tide falls today.", "has 4 words, needs the original's 3"),
        ("**The** ebb falls", "word 2 is 'ebb', was 'tide'"),
    ],
)
def test_same_words(perturbed: str, reason: str | None) -> None:
    assert same_words("The tide falls.", perturbed) == reason


@pytest.mark.parametrize(
    ("perturbed", "reason"),
    [
        (TEN.replace("ten", "six"), None),
        (TEN.replace("one", "1ne").replace("two", "2wo").replace("ten", "1en"), None),  # .70
        (
            TEN.replace("one", "1ne")
            .replace("two", "2wo")
            .replace("ten", "1en")
            .replace("six", "6ix"),
            "keeps 0.60 of the words, needs 0.70",
        ),
        # all words, but in the order backwards: 1 of 10
        (" ".join(reversed(TEN.split())), "keeps 0.10 of the words, needs 0.70"),
        (TEN + " and more", None),  # 57 of 48 characters
        (TEN + " and more again", "is 1.32 of the original's length, needs 0.80 to 1.25"),  # 63
        (TEN + " - ten", None),
        (TEN.upper() + "!", "changes no content"),
        (TEN, "is identical to the original"),
        ("", "is empty"),
        (TEN[:30], "is 0.62 of the original's length, needs 0.80 to 1.25"),
    ],
)
def test_detracting(perturbed: str, reason: str | None) -> None:
    assert detracting(TEN, perturbed) == reason


def test_a_reason_never_rounds_to_the_limit() -> None:
    original = " ".join(f"w{i}" for i in range(1000))
    perturbed = " ".join(f"w{i}" if i < 699 else f"v{i}" for i in range(1000))
    assert detracting(original, perturbed) == "keeps 0.69 of the words, needs 0.70"


def test_words_kept() -> None:
    assert words_kept(TEN, TEN + " more") == 1.0
    assert words_kept(TEN, TEN.replace("ten", "six").replace("one", "two")) == 0.8
    assert words_kept("?!", "a") is None


WORDS = st.lists(st.sampled_from("abcd"), max_size=14)


@given(WORDS, WORDS)
def test_common_words_equal_a_second_implementation(before: list[str], after: list[str]) -> None:
    @cache
    def textbook(i: int, j: int) -> int:
        if i == len(before) or j == len(after):
            return 0
        if before[i] == after[j]:
            return 1 + textbook(i + 1, j + 1)
        return max(textbook(i + 1, j), textbook(i, j + 1))

    assert _common(before, after) == textbook(0, 0)


@pytest.mark.parametrize(
    ("sham", "reason"),
    [
        ("The tide falls at  noon.", None),
        ("The tide falls at noon in 7", "adds the number '7'"),
        ("The tide falls at noon...", None),
        ("The tide falls at noon.", "is identical to the original"),
        ("", "is empty"),
        (
            "The tide falls at noon now.",
            "is 1.13 of the perturbed text's length, needs 0.95 to 1.05",
        ),
        ("The tide falls.", "is 0.62 of the perturbed text's length, needs 0.95 to 1.05"),
        ("The *tide* falls at noon", "adds markup (1)"),
        ("The tide falls at noon 🌊", "adds emoji (1)"),
        ("The ebb rises at noon [1]", "adds references (1)"),
        ("The tide rises at noon.!", "is identical to the perturbed text"),
    ],
)
def test_sham_failure(sham: str, reason: str | None) -> None:
    perturbed = "The tide rises at noon.!"
    if "7" in sham:
        perturbed += " yes"
    assert sham_failure("The tide falls at noon.", perturbed, sham) == reason


@pytest.mark.slow
def test_hostile_texts_are_checked_within_bounds() -> None:
    same, other = "a b " * 250_000, "b a " * 250_000
    assert detracting(same, other + "c") == "has 500001 words, can compare 20000"
    assert words_kept(same + "c", other) is None
    assert additive(same, "x" + other) is not None
    assert same_words(same, other) == "word 1 is 'b', was 'a'"
    assert detracting("a b " * 9_999, "b a " * 9_999 + "c") is None


def test_a_long_word_is_clipped() -> None:
    assert additive("a" * 1000 + " b", "b") == f"the word '{'a' * 29}…' is missing or out of order"
