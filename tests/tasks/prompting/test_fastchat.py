"""FastChat's file of judge prompts in the user's own folder, as it is."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.prompts import PROMPTS, label_of

LINES = [
    {
        "name": "pair-v9",
        "type": "pairwise",
        "system_prompt": "Compare.",
        "prompt_template": "{question}\n{answer_a}\n{answer_b}",
        "description": "Prompt for general questions",
        "category": "general",
        "output_format": "[[A]]",
    },
    {
        "name": "scores",
        "type": "pairwise",
        "prompt_template": "{question}\n{answer_a}\n{answer_b}",
        "output_format": "[[rating_a,rating_b]]",
    },
    {
        "name": "single-math",
        "type": "single",
        "system_prompt": "Grade.",
        "prompt_template": "{question}\n{ref_answer_1}\n{answer}",
        "output_format": "[[rating]]",
    },
    {
        "name": "turns",
        "type": "single",
        "prompt_template": "{question_1}\n{answer_1}\n{ref_answer_1}\n{question_2}\n{answer_2}"
        "\n{ref_answer_2}",
        "output_format": "[[rating]]",
    },
    {
        "name": "three",
        "type": "single",
        "prompt_template": "{question_1}\n{answer_1}\n{question_3}\n{answer_3}",
        "output_format": "[[rating]]",
    },
    {
        "name": "json",
        "type": "single",
        "system_prompt": 'Reply as {"rating": 5}.',
        "prompt_template": 'Q: {question}\n{{"answer": {answer}, "x": {{"{{word}}": 1}}}}',
        "output_format": "[[rating]]",
    },
    {
        "name": "between",
        "type": "single",
        "prompt_template": "{question} {{{answer}}}",
        "output_format": "[[rating]]",
    },
    {"name": "odd", "type": "poem", "prompt_template": "{answer}", "output_format": "[[rating]]"},
    {"name": "pair-v9", "type": "single", "prompt_template": "", "output_format": ""},
    {"name": "a b", "type": "single", "prompt_template": "", "output_format": ""},
    {"type": "single"},
]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """FastChat's file in the user's own folder."""
    file = tmp_path / "prompts" / "judge_prompts.jsonl"
    file.parent.mkdir()
    file.write_text("\n".join([*map(json.dumps, LINES), "", "{"]), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setenv("VOIRDIRE_HOME", str(tmp_path))
        PROMPTS.read_own()
        yield file
    PROMPTS.read_own()


def test_each_line_is_a_prompt(file: Path) -> None:
    assert [*PROMPTS.own] == ["json", "pair-v9", "scores", "single-math", "turns"]
    assert {*PROMPTS.own.values()} == {file}
    assert PROMPTS["pair-v9"].read("So [[B]]") == "second"
    assert PROMPTS["pair-v9"].source == "Prompt for general questions (FastChat)"
    assert label_of("pair-v9").startswith("pair-v9@")
    single = PROMPTS["single-math"]
    assert single.messages("Q", "A", reference="R")[-1]["content"] == "Q\nR\nA"
    assert single.messages("Q", "A")[0]["content"] == "Grade."
    # FastChat's own pattern reads decimals as well.
    assert single.rate("Rating: [[7.5]]") == ("rated", {"": 7.5})


@pytest.mark.usefixtures("file")
def test_a_template_is_that_of_str_format() -> None:
    template = next(line for line in LINES if line["name"] == "json")["prompt_template"]
    system, user = PROMPTS["json"].messages("{answer}", "A")
    assert user["content"] == template.format(question="{answer}", answer="A")
    assert system["content"] == 'Reply as {"rating": 5}.'
    assert "it shows {answer} between braces" in PROMPTS.unusable["between"]


def test_the_eight_prompts_of_fastchat_give_its_messages(
    reference_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = reference_data / "mt_bench" / "judge_prompts.jsonl"
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / source.name).write_bytes(source.read_bytes())
    shown = {"question_1": "Q1 {answer}", "answer_1": "A1", "answer_a_1": "X1", "answer_b_1": "Y1"}
    earlier = {**shown, "reference_1": "R1"}
    with monkeypatch.context() as patch:
        patch.setenv("VOIRDIRE_HOME", str(tmp_path))
        PROMPTS.read_own()
        prompts = {name: PROMPTS[name] for name in PROMPTS.own}
    PROMPTS.read_own()
    records = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    assert len(records) == len(prompts) == 8
    for record in records:
        prompt, template = prompts[record["name"]], record["prompt_template"]
        answers = ("A2",) if prompt.pointwise else ("X2", "Y2")
        multi = "multi-turn" in record["name"]
        sent = prompt.messages("Q2 {{x}}", *answers, reference="R2", earlier=earlier)
        theirs = {
            **shown,
            "question": "Q2 {{x}}",
            "answer": "A2",
            "answer_a": "X2",
            "answer_b": "Y2",
            "question_2": "Q2 {{x}}",
            "answer_2": "A2",
            "answer_a_2": "X2",
            "answer_b_2": "Y2",
            "ref_answer_1": "R1" if multi else "R2",
            "ref_answer_2": "R2",
        }
        assert [each["content"] for each in sent] == [
            record["system_prompt"],
            template.format(**theirs),
        ]


@pytest.mark.usefixtures("file")
def test_the_second_turn_is_judged_and_the_first_is_shown() -> None:
    earlier = {"question_1": "Q1", "answer_1": "{answer}", "reference_1": "R1", "answer_a_1": "x"}
    shown = PROMPTS["turns"].messages("Q2", "A2", reference="R2", earlier=earlier)
    assert shown[-1]["content"] == "Q1\n{answer}\nR1\nQ2\nA2\nR2"


@pytest.mark.parametrize(
    ("reply", "choice", "grades"),
    [
        ("[[7,5]]", "first", (7, 5)),
        ("[[5, 7.5]] and again [[5,7.5]]", "second", (5, 7.5)),
        ("[[3,3.0]]", "tie", (3, 3)),
        ("[[7,5]] or [[5,7]]", "ambiguous", ()),
        ("[[7,11]]", "invalid", (7, 11)),
        ("[[nan,5]]", "invalid", ()),
        ("[[rating_a,rating_b]]", "invalid", ()),
        ("7,5", "invalid", ()),
    ],
)
@pytest.mark.usefixtures("file")
def test_two_grades_make_a_verdict_and_are_kept(
    reply: str, choice: str, grades: tuple[float, ...]
) -> None:
    assert PROMPTS["scores"].read(reply) == choice
    kept = dict(zip(("first", "second"), grades, strict=False))
    assert PROMPTS["scores"].rate(reply) == (choice, kept)


def test_a_line_that_cannot_be_used_says_why(file: Path) -> None:
    problems = PROMPTS.unusable
    assert "turn 3 of a conversation, and a question has at most 2 turns" in problems["three"]
    assert "type 'poem' with output_format '[[rating]]' is not known" in problems["odd"]
    assert "line 9 has the name of an earlier line" in problems["judge_prompts-9"]
    assert "the name 'a b' is not allowed" in problems["judge_prompts-10"]
    assert "with the texts name, output_format, prompt_template" in problems["judge_prompts-11"]
    assert "the line is not valid JSON" in problems["judge_prompts-13"]
    with pytest.raises(LookupError, match="at most 2 turns"):
        label_of("three")
    assert str(file) in problems["three"]


def test_a_line_and_a_file_of_the_same_name(file: Path) -> None:
    text = 'kind = "pair"\nsource = "mine"\nuser = "{answer_a} {answer_b}"'
    file.with_name("scores.toml").write_text(text)
    PROMPTS.read_own()
    assert PROMPTS["scores"].source == "mine"
    clash = PROMPTS.unusable["scores of judge_prompts.jsonl"]
    assert "another file has an entry of this name" in clash
