"""Own questions with one answer each, and what people say of it."""

import json
from pathlib import Path

import pytest

from tasks.curate import import_dataset, require_shown
from tasks.judging.turns import earlier_turn
from tasks.prompts import PROMPTS

CSV = """question,answer,human_label,human_clear style,reference
Why is the sky blue?,Air scatters blue light.,pass,3.5,Scattering.
How many legs has a spider?,Six.,FAIL,,
What is 2 + 2?,Four.,,1,
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """File of questions with one answer each."""
    file = tmp_path / "mine.csv"
    file.write_text(CSV, encoding="utf-8")
    return file


def test_each_row_is_a_question_with_a_target(file: Path) -> None:
    questions, answers, versions, known = import_dataset(str(file))
    assert questions["question"].to_list() != []
    assert answers["slot"].to_list() == [2, 2, 2]
    assert versions.is_empty()
    by_text = dict(
        answers.join(known, left_on="answer_id", right_on="sample")
        .select("answer", "human_values")
        .iter_rows()
    )
    assert {text: json.loads(values) for text, values in by_text.items()} == {
        "Air scatters blue light.": {"label": 1.0, "clear style": 3.5},
        "Six.": {"label": 0.0},
        "Four.": {"clear style": 1.0},
    }


def test_an_id_is_made_of_the_texts(file: Path) -> None:
    before = import_dataset(str(file)).questions
    file.write_text(CSV.replace("Six.", "Eight."), encoding="utf-8")
    after = import_dataset(str(file)).questions
    assert before.join(after, on="question_id").height == 2
    file.write_text(CSV + CSV.splitlines()[1], encoding="utf-8")
    last = len(CSV.splitlines()) + 1
    said = rf"line {last}: the row is the same \(question, answer\) as that of line 2\. Delete"
    with pytest.raises(ValueError, match=said):
        import_dataset(str(file))


def test_an_empty_cell_is_named_as_the_file_names_it(tmp_path: Path) -> None:
    file = tmp_path / "faq.csv"
    file.write_text("question,answer\nWhy?,So.\nHow?,\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 3: field 'answer' is missing, but required"):
        import_dataset(str(file))
    file.write_text("Q,output\nWhy?,So.\nHow?,\n", encoding="utf-8")
    mapping = {"question": "Q", "answer": "output"}
    with pytest.raises(ValueError, match="line 3: field 'output' is missing, but required"):
        import_dataset(str(file), columns=mapping)


@pytest.mark.parametrize("column", ["answer", "target"])
def test_in_json_lines(tmp_path: Path, column: str) -> None:
    rows = [
        {"question_id": "a", "question": "Why?", column: "So.", "human_grade": 4},
        {"question_id": "b", "question": "How?", column: "Thus.", "context": "Rules."},
    ]
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = import_dataset(str(file))
    assert found.answers["answer_id"].to_list() == ["mine/a/a2", "mine/b/a2"]
    assert found.questions["context"].to_list() == [None, "Rules."]
    assert found.known["human_values"].to_list() == ['{"grade": 4.0}', None]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "pass",
            "8/10",
            "it must be a grade, or a word such as pass or fail. Write the number alone: 8.",
        ),
        ("pass", "so-so", "field 'human_label' is 'so-so'; it must be a grade, or a word such as"),
        ("human_label", "humanlabel", "unknown column 'humanlabel': did you mean 'human_label'?"),
        ("reference", "label", "column 'label' compares two answers"),
        (
            ",answer,",
            ",answr,",
            "unknown column 'answr': did you mean 'answer'? Rename it, or map it",
        ),
    ],
)
def test_a_wrong_column_is_named(file: Path, old: str, new: str, said: str) -> None:
    file.write_text(CSV.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match="mine") as raised:
        import_dataset(str(file))
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("pair_v2", "'pair_v2' shows {answer_a} and {answer_b}, which 3 of 3 questions"),
        ("single_reference_v1", "'single_reference_v1' shows {reference}, which 2 of 3 questions"),
    ],
)
def test_a_prompt_that_shows_more_is_refused(file: Path, prompt: str, said: str) -> None:
    found = import_dataset(str(file))
    require_shown("mine", found, ["binary_v1"])
    with pytest.raises(ValueError, match="judge prompt") as raised:
        require_shown("mine", found, ["binary_v1", prompt])
    assert said in str(raised.value)
    some = "To audit the questions that have one, name a file with only those."
    assert (some in str(raised.value)) == ("2 of 3" in said)


@pytest.mark.parametrize("shown", ["{turns}", "{answer_1}", "{question_1} {turns}"])
def test_a_prompt_that_shows_the_turn_before_needs_one(
    file: Path, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'kind = "binary"\nsource = "mine"\nsystem = "{shown}"\nuser = "{{answer}}"'
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "mine.toml").write_text(text)
    with monkeypatch.context() as patch:
        patch.setenv("VOIRDIRE_HOME", str(tmp_path))
        PROMPTS.read_own()
        with pytest.raises(ValueError, match="judge prompt 'mine'") as raised:
            require_shown("mine", import_dataset(str(file)), ["mine"])
    PROMPTS.read_own()
    assert f"shows {shown.split(maxsplit=1)[0]}, which 3 of 3 questions" in str(raised.value)
    assert "or add columns 'question_1', 'anchor_1' and 'target_1'" in str(raised.value)


def test_the_turn_before_is_context(tmp_path: Path) -> None:
    file = tmp_path / "turns.csv"
    rows = "question_1,answer_1,question,answer\nWhere?,Here.,Why?,So.\n,,How?,Thus.\n"
    file.write_text(rows, encoding="utf-8")
    found = import_dataset(str(file))
    assert found.answers["answer"].sort().to_list() == ["So.", "Thus."]
    contexts = dict(found.questions.select("question", "context").iter_rows())
    assert contexts["How?"] is None
    pair = {"sample": "turns/x/a2", "context": contexts["Why?"]}
    earlier = earlier_turn(pair, "target")
    assert (earlier["question_1"], earlier["answer_1"]) == ("Where?", "Here.")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("question_1,question,answer\nWhere?,Why?,So.\n", "'target_1' is missing, but the row has"),
        ("answer_1,question,answer\nHere.,Why?,So.\n", "'question_1' is missing, but the row has"),
        (
            "context,question_1,answer_1,question,answer\nx,Where?,Here.,Why?,So.\n",
            "'context' cannot be there together with an earlier turn",
        ),
        (
            'context,question,answer\n"{""turn 1"": [",Why?,So.\n',
            "'context' cannot be there together with an earlier turn",
        ),
    ],
)
def test_half_a_turn_is_an_error(tmp_path: Path, rows: str, said: str) -> None:
    file = tmp_path / "turns.csv"
    file.write_text(rows, encoding="utf-8")
    with pytest.raises(ValueError, match="field") as raised:
        import_dataset(str(file))
    assert said in str(raised.value)
