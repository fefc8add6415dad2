from tasks.judging.verdict_parser import parse
from tasks.prompts import PROMPTS

PROMPT = PROMPTS["pair_v2"]


def test_the_whole_user_message() -> None:
    # The mark is SHA-256 of the hexadecimal digests of the three texts and of 0, between \\x1f:
    # printf '%s\\x1f%s\\x1f%s\\x1f0' of `printf TEXT | sha256sum`, by sha256sum itself.
    mark = "d40507786051"
    assert PROMPT.messages("What is 2 + 2?", "Four.", "It is 4.")[-1]["content"] == (
        f"[Question {mark}]\nWhat is 2 + 2?\n\n"
        f"[Start of answer A {mark}]\nFour.\n[End of answer A {mark}]\n\n"
        f"[Start of answer B {mark}]\nIt is 4.\n[End of answer B {mark}]\n"
    )


def test_the_verdicts_that_it_asks_for_are_those_that_are_read() -> None:
    asked = {tag: parse(f"So {tag}") for tag in ("[[A]]", "[[B]]", "[[C]]")}
    assert all(tag in PROMPT.system for tag in asked)
    assert list(asked.values()) == ["first", "second", "tie"]
