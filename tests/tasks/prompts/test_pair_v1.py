from tasks.judging.verdict_parser import parse
from tasks.prompts import PROMPTS
from tasks.simulation.judge import read_prompt

PROMPT = PROMPTS["pair_v1"]


def test_the_whole_user_message() -> None:
    assert PROMPT.messages("What is 2 + 2?", "Four.", "It is 4.")[-1]["content"] == (
        "[Question]\nWhat is 2 + 2?\n\n"
        "[Start of answer A]\nFour.\n[End of answer A]\n\n"
        "[Start of answer B]\nIt is 4.\n[End of answer B]\n"
    )


def test_the_verdicts_that_it_asks_for_are_those_that_are_read() -> None:
    asked = {tag: parse(f"So {tag}") for tag in ("[[A]]", "[[B]]", "[[C]]")}
    assert all(tag in PROMPT.system for tag in asked)
    assert list(asked.values()) == ["first", "second", "tie"]


def test_it_says_that_looks_do_not_count() -> None:
    assert "order of the answers, their length, their looks or their names" in PROMPT.system
    assert "\n" not in PROMPT.system


def test_a_simulated_judge_finds_its_way() -> None:
    answers = "Four.\n\nSurely.", "It is 4."
    seen = read_prompt(PROMPT.messages("What is 2 + 2?", *answers)[-1]["content"])
    assert seen == ("What is 2 + 2?", *answers)
