from tasks.prompts import PROMPTS

PROMPT = PROMPTS["single_v1"]


def test_the_whole_user_message() -> None:
    # The mark is SHA-256 of the hexadecimal digests of both texts and of 0, between \\x1f:
    # printf '%s\\x1f%s\\x1f0' of `printf TEXT | sha256sum`, by sha256sum itself.
    mark = "625ea38cac5c"
    assert PROMPT.messages("What is 2 + 2?", "Four.")[-1]["content"] == (
        f"[Question {mark}]\nWhat is 2 + 2?\n\n"
        f"[Start of the answer {mark}]\nFour.\n[End of the answer {mark}]\n"
    )


def test_the_grade_that_it_asks_for_is_read() -> None:
    assert "[[6]]" in PROMPT.system
    assert PROMPT.rate("Good, but short. [[6]]") == ("rated", {"": 6.0})
    assert PROMPT.rate("Perfect. [[11]]") == ("invalid", {"": 11.0})
