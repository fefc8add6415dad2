from tasks.prompts import PROMPTS

PROMPT = PROMPTS["binary_v1"]


def test_the_verdicts_that_it_asks_for_are_read() -> None:
    assert "[[pass]] or [[fail]]" in PROMPT.system
    read = [PROMPT.rate(f"So {tag}") for tag in ("[[pass]]", "[[FAIL]]", "[[pass]] [[fail]]")]
    assert read == [("rated", {"": True}), ("rated", {"": False}), ("ambiguous", {})]


def test_the_answer_stands_between_marked_lines() -> None:
    user = PROMPT.messages("Why?", "So.")[-1]["content"]
    mark = user.partition("]")[0].removeprefix("[Question ")
    assert user == (
        f"[Question {mark}]\nWhy?\n\n"
        f"[Start of the answer {mark}]\nSo.\n[End of the answer {mark}]\n"
    )
