import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.datasets import DATASETS, Imported

NAMES = ["factual_error", "gender", "reference", "rich_content"]
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def study(reference_data: Path) -> Imported:
    return DATASETS["humans_or_llms"].load(reference_data / "bias_study")


def test_public_study_has_its_questions(study: Imported) -> None:
    # 142 questions: SOURCES.md; the levels counted with grep in raw.jsonl
    assert study.questions.height == 142
    assert study.answers.height == 284
    assert dict(study.questions.group_by("category").len().iter_rows()) == {
        "Analyzing": 25,
        "Applying": 22,
        "Creating": 22,
        "Evaluating": 26,
        "Remembering": 25,
        "Understanding": 22,
    }
    assert set(study.answers["author"]) == {"gpt-4"}
    assert study.questions["reference"].null_count() == 142


def test_public_study_perturbs_either_slot(study: Imported) -> None:
    # SOURCES.md: factual_error 70/72, gender 142/0, reference 65/77, rich_content 69/73
    slots = [(p, a[-2:]) for a, p, _ in study.versions.iter_rows()]
    assert Counter(slots) == {
        ("factual_error", "a1"): 70,
        ("factual_error", "a2"): 72,
        ("gender_bias", "a1"): 142,
        ("fake_reference", "a1"): 65,
        ("fake_reference", "a2"): 77,
        ("rich_content", "a1"): 69,
        ("rich_content", "a2"): 73,
    }


def test_public_study_keeps_two_identical_pairs(study: Imported) -> None:
    # SOURCES.md: two raw pairs are identical
    texts = study.answers.group_by("question_id").agg("answer").iter_rows()
    same = {question for question, answers in texts if len(set(answers)) == 1}
    assert same == {"humans_or_llms/Remembering_15", "humans_or_llms/Remembering_27"}


def test_public_study_versions_differ_as_profiled(study: Imported) -> None:
    # data_profile.json: mean_char_delta of each file, which was measured without the line
    # breaks that stand around 106 of the factual errors (137 in all)
    original = dict(study.answers.select("answer_id", "answer").iter_rows())
    deltas: dict[str, list[int]] = {}
    for answer_id, name, text in study.versions.iter_rows():
        before, after = original[answer_id].strip(), text.strip()
        assert before != after
        deltas.setdefault(name, []).append(len(after) - len(before))
    assert {name: sum(d) / 142 for name, d in deltas.items()} == pytest.approx(
        {
            "factual_error": -7.028169014084507,
            "gender_bias": 62.852112676056336,
            "fake_reference": 459.1901408450704,
            "rich_content": 152.54225352112675,
        }
    )


def test_line_breaks_around_an_answer_do_not_reveal_its_version(study: Imported) -> None:
    # 106 of the 142 texts of factual_error.jsonl begin with a line break, none of raw.jsonl does
    texts = [*study.versions["version"], *study.answers["answer"]]
    assert [text for text in texts if text != text.strip()] == []


def _answer(text: str, key: str, **more: str) -> dict[str, str]:
    return {"answer": text, "answer_id": key, **more}


def _row(key: str, first: dict[str, str], second: dict[str, str]) -> dict[str, Any]:
    return {
        "question_id": key,
        "question": f"Question of {key.partition('-')[0]}?",
        "answers": {"answer1": first, "answer2": second},
    }


@pytest.fixture
def rows() -> Rows:
    """Two made-up questions; each file perturbs answer2 of A_1 and answer1 of B_2."""
    ids = ["A_1", "B_2"]
    made: Rows = {
        "raw": [
            {**_row(k, _answer(f"{k} one", "idone"), _answer(f"{k} two", "idtwo")), **more}
            for k in ids
            for more in [{"model_id": f"model of {k}", "level": k[0]}]
        ]
    }
    for name in NAMES:
        made[name] = [
            _row(
                f"A_1-{name}",
                _answer("A_1 one", "anyid", perturb=""),
                _answer(f"A_1 {name}", "idtwo+", perturb=name),
            ),
            _row(
                f"B_2-{name}",
                _answer(f"B_2 {name}", "idone+", perturb=name),
                _answer("B_2 two", "anyid"),
            ),
        ]
    return made


@pytest.fixture
def load(tmp_path: Path) -> Callable[[Rows], Imported]:
    def write_and_load(rows: Rows) -> Imported:
        for name, made in rows.items():
            lines = "".join(f"{json.dumps(row)}\n" for row in made)
            (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        return DATASETS["humans_or_llms"].load(tmp_path)

    return write_and_load


def test_the_slot_with_perturb_is_the_target(rows: Rows, load: Callable[[Rows], Imported]) -> None:
    questions, answers, versions, _ = load(rows)
    assert questions.rows() == [
        ("humans_or_llms/A_1", "humans_or_llms", "A", "Question of A_1?", None, None),
        ("humans_or_llms/B_2", "humans_or_llms", "B", "Question of B_2?", None, None),
    ]
    assert answers.rows() == [
        ("humans_or_llms/A_1/a1", "humans_or_llms/A_1", 1, "model of A_1", "A_1 one"),
        ("humans_or_llms/A_1/a2", "humans_or_llms/A_1", 2, "model of A_1", "A_1 two"),
        ("humans_or_llms/B_2/a1", "humans_or_llms/B_2", 1, "model of B_2", "B_2 one"),
        ("humans_or_llms/B_2/a2", "humans_or_llms/B_2", 2, "model of B_2", "B_2 two"),
    ]
    assert versions.rows() == [
        ("humans_or_llms/A_1/a2", "factual_error", "A_1 factual_error"),
        ("humans_or_llms/A_1/a2", "fake_reference", "A_1 reference"),
        ("humans_or_llms/A_1/a2", "gender_bias", "A_1 gender"),
        ("humans_or_llms/A_1/a2", "rich_content", "A_1 rich_content"),
        ("humans_or_llms/B_2/a1", "factual_error", "B_2 factual_error"),
        ("humans_or_llms/B_2/a1", "fake_reference", "B_2 reference"),
        ("humans_or_llms/B_2/a1", "gender_bias", "B_2 gender"),
        ("humans_or_llms/B_2/a1", "rich_content", "B_2 rich_content"),
    ]


def _set(row: dict[str, Any], path: str, value: object) -> None:
    *outer, last = path.split(".")
    for key in outer:
        row = row[key]
    row[last] = value


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("raw answers.answer2.answer", "  ", "field 'answers.answer2.answer' is '  '; it must"),
        ("raw answers.answer1.answer", 7, "is 7, which is a number; it must be text"),
        ("raw answers", None, "field 'answers' is None; "),
        ("raw level", "", "field 'level' is ''; it must not be empty"),
        ("raw question_id", "A_1", "field 'question_id' 'A_1' occurs twice"),
        ("gender question_id", "B_2", "is 'B_2'; it must be an id of raw.jsonl with '-gender'"),
        ("gender question_id", "C_3-gender", "is 'C_3-gender'; it must be an id of raw.jsonl"),
        ("gender question_id", "A_1-gender", "field 'question' is 'Question of B_2?'; raw"),
        ("gender question", "Else?", "field 'question' is 'Else?'; raw.jsonl has 'Question"),
        ("gender answers.answer1.perturb", "", "'perturb' is ['', None]; it must be 'gender'"),
        ("gender answers.answer2.perturb", "gender", "must be 'gender' in one answer only"),
        ("gender answers.answer1.perturb", "reference", "is ['reference', None]; it must be"),
        ("gender answers.answer1.perturb", 1, "field 'answers.answer1.perturb' is 1; "),
        ("gender answers.answer1.answer_id", "xid", "must begin with 'idone', its id in raw"),
        ("gender answers.answer2.answer", "Other", "is 'Other'; raw.jsonl has another answer"),
    ],
)
def test_refuses_a_wrong_row(
    rows: Rows,
    load: Callable[[Rows], Imported],
    place: str,
    value: object,
    said: str,
) -> None:
    file, _, path = place.partition(" ")
    _set(rows[file][1], path, value)
    with pytest.raises(ValueError, match=f"{file}.jsonl") as error:
        load(rows)
    assert f"{file}.jsonl, line 2: " in str(error.value)
    assert said in str(error.value)
    assert "Get the file again from https://github.com/" in str(error.value)


def test_refuses_a_missing_field(rows: Rows, load: Callable[[Rows], Imported]) -> None:
    del rows["raw"][0]["answers"]["answer2"]
    with pytest.raises(ValueError, match=r"line 1: field 'answers\.answer2' is missing"):
        load(rows)


def test_refuses_a_question_without_version(rows: Rows, load: Callable[[Rows], Imported]) -> None:
    del rows["reference"][0]
    said = r"reference\.jsonl, .*has no row for 1 question of raw\.jsonl, the first 'A_1'"
    with pytest.raises(ValueError, match=said):
        load(rows)


def test_refuses_a_second_version(rows: Rows, load: Callable[[Rows], Imported]) -> None:
    rows["reference"].append(rows["reference"][0])
    with pytest.raises(ValueError, match=r"line 3: field 'question_id' occurs twice"):
        load(rows)


def test_refuses_raw_rows_of_blank_lines(
    rows: Rows, load: Callable[[Rows], Imported], tmp_path: Path
) -> None:
    load(rows)
    (tmp_path / "raw.jsonl").write_text("\n\n")
    with pytest.raises(ValueError, match=r"raw\.jsonl has no questions"):
        DATASETS["humans_or_llms"].load(tmp_path)


def test_names_the_missing_files(
    rows: Rows, load: Callable[[Rows], Imported], tmp_path: Path
) -> None:
    load(rows)
    (tmp_path / "gender.jsonl").unlink()
    with pytest.raises(ValueError, match=r"no file gender\.jsonl in .*Get raw\.jsonl, .*folder"):
        DATASETS["humans_or_llms"].load(tmp_path)


def test_says_how_to_get_it() -> None:
    with pytest.raises(ValueError, match=r"not bundled\. Get raw\.jsonl.*VOIRDIRE_HUMANS_OR_LLMS"):
        DATASETS["humans_or_llms"].load(None)
