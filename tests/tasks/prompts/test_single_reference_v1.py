from tasks.prompts import PROMPTS

PROMPT = PROMPTS["single_reference_v1"]


def test_the_whole_user_message() -> None:
    # The mark as in test_single_v1.py, of three texts: the reference is the last.
    mark = "d40507786051"
    shown = PROMPT.messages("What is 2 + 2?", "Four.", reference="It is 4.")
    assert shown[-1]["content"] == (
        f"[Question {mark}]\nWhat is 2 + 2?\n\n"
        f"[Start of the reference answer {mark}]\nIt is 4.\n[End of the reference answer {mark}]\n"
        f"\n[Start of the answer {mark}]\nFour.\n[End of the answer {mark}]\n"
    )


def test_the_grade_that_it_asks_for_is_read() -> None:
    assert "[[6]]" in PROMPT.system
    assert PROMPT.rate("It agrees with the reference. [[10/10]]") == ("rated", {"": 10.0})
