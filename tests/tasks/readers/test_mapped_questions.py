"""Questions in files whose columns have other names."""

import json
from pathlib import Path

import polars as pl
import pytest

from flows.studies import Study
from tasks.readers.questions import load_own

MAP = {"question": "prompt", "anchor": "a", "target": "b", "category": "level"}
TABLE = {
    "nr": [7, 8],
    "prompt": ["Why?", "How?"],
    "a": ["So.", "Thus."],
    "b": ["Hence.", "Then."],
    "level": [1, 2],
    "cost": [0.5, 0.25],
}


@pytest.fixture(params=["csv", "parquet", "ndjson"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / f"faq.{request.param}"
    getattr(pl.DataFrame(TABLE), f"write_{request.param}")(file)
    return file


def test_columns_are_taken_under_the_names_that_the_file_has(path: Path) -> None:
    found = load_own(path, columns={**MAP, "question_id": "nr"})
    assert found.questions["question_id"].to_list() == ["faq/7", "faq/8"]
    assert found.questions["question"].to_list() == ["Why?", "How?"]
    assert found.questions["category"].to_list() == ["1", "2"]
    assert found.answers["answer"].to_list() == ["So.", "Hence.", "Thus.", "Then."]


def test_without_ids_the_texts_make_them(path: Path) -> None:
    one = load_own(path, columns=MAP).questions["question_id"]
    # The other answer as the target: other samples, so other ids.
    other = load_own(path, columns={**MAP, "anchor": "b", "target": "a"}).questions["question_id"]
    assert len({*one, *other}) == 4


def test_categories_by_a_column_of_the_file(path: Path) -> None:
    pairs = {name: column for name, column in MAP.items() if name != "category"}
    assert load_own(path, "level", MAP).known["category"].unique().sort().to_list() == ["1", "2"]
    assert load_own(path, "level", pairs).known["category"].drop_nulls().len() == 4


def test_one_answer(path: Path) -> None:
    found = load_own(path, columns={"question": "prompt", "answer": "a"})
    assert found.answers["answer"].to_list() == ["So.", "Thus."]


@pytest.mark.parametrize(
    ("names", "mapping"),
    [
        (("prompt", "answer_a", "answer_b"), "question=prompt,anchor=answer_a,target=answer_b"),
        (("Instruction", "Response A", "Response B"), "'question=Instruction,anchor=Response A,"),
        (("question", "chosen", "rejected"), "anchor=chosen,target=rejected"),
        (("text", "output_1", "output_2"), "question=COLUMN,anchor=output_1,target=output_2"),
        (("question", "answer_1", "answer_2"), "anchor=answer_1,target=answer_2"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_two_answers_under_other_names_get_a_mapping(
    tmp_path: Path, names: tuple[str, ...], mapping: str, form: str
) -> None:
    path = tmp_path / f"faq.{form}"
    getattr(pl.DataFrame([("Why?", "So.", "Hence.")], names, orient="row"), f"write_{form}")(path)
    with pytest.raises(ValueError, match="seem to be two answers") as refused:
        load_own(path)
    assert f"as in --map {mapping}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_dotted_path_names_a_nested_field(tmp_path: Path) -> None:
    path = tmp_path / "faq.jsonl"
    row = {"in": {"q": "Why?"}, "out": {"a": "So."}, "other": [1]}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    found = load_own(path, columns={"question": "in.q", "answer": "out.a"})
    assert found.questions["question"].to_list() == ["Why?"]
    assert found.answers["answer"].to_list() == ["So."]


@pytest.mark.parametrize(
    ("anchor", "target", "said", "label"),
    [
        ("answer_a", "answer_b", "A", "anchor"),
        ("answer_a", "answer_b", " b ", "target"),
        ("answer_b", "answer_a", "A", "target"),
        ("answer 1", "answer 2", "2", "target"),
        ("answer_a", "answer_b", "answer_b", "target"),
        ("answer_a", "answer_b", "tie", "tie"),
        ("answer_a", "answer_b", "anchor", "anchor"),
        ("answer_a", "answer_b", "C", None),
        ("old_answer", "new_answer", "answer", None),
    ],
)
def test_a_label_may_name_the_column_of_its_answer(
    tmp_path: Path, anchor: str, target: str, said: str, label: str | None
) -> None:
    path = tmp_path / "faq.csv"
    pl.DataFrame({"q": ["Why?"], anchor: ["So."], target: ["No."], "c": [said]}).write_csv(path)
    columns = {"question": "q", "anchor": anchor, "target": target, "label": "c"}
    if label:
        known = load_own(path, columns=columns).known
        # The second answer as the target; known has the first as one too.
        assert known.filter(pl.col("sample").str.ends_with("/a2"))["label"].to_list() == [label]
        return
    with pytest.raises(ValueError, match=f"{said}.*anchor, tie, target.*A for answer_a"):
        load_own(path, columns=columns)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({**MAP, "anchr": "a"}, "'anchr', which voirdire does not have; did you mean"),
        ({"xyz": "a"}, "'xyz', which voirdire does not have; allowed: question, anchor, target,"),
        (
            {**MAP, "question": "prmpt"},
            "has no column 'prmpt', for 'question' by the mapping",
        ),
        (
            {**MAP, "anchor": "b"},
            "--map, or `columns` .* uses 'b' for 'anchor' and 'target'",
        ),
        ({"question": "prompt"}, "missing|required"),
    ],
)
def test_one_error_names_what_is_wrong(path: Path, columns: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_own(path, columns=columns)


def test_two_choices_of_columns_are_two_designs(path: Path) -> None:
    one = Study(dataset=str(path), columns=MAP)
    other = Study(dataset=str(path), columns={**MAP, "anchor": "b", "target": "a"})
    assert one.fingerprint() != other.fingerprint()
