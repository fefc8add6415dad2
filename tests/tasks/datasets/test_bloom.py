from pathlib import Path

import polars as pl
import pytest

from tasks.datasets import DATASETS
from tasks.datasets.bloom import FOLDER, BloomQuestion, _read, _replace
from tasks.kit.catalogue import read_toml

LEVELS = ["analyzing", "applying", "creating", "evaluating", "remembering", "understanding"]
MAX_WORDS = {"remembering": 50, "understanding": 100}
OTHERS_MAX_WORDS = 150


def test_has_ten_questions_a_level() -> None:
    questions, answers, versions, _ = DATASETS["bloom"].load(None)
    counts = dict(questions.group_by("category").len().iter_rows())
    assert counts == dict.fromkeys(LEVELS, 10)
    assert answers.height == 120
    assert versions.height == 120


def test_reads_a_row_as_it_is_written() -> None:
    # copied by hand from _bloom/remembering.toml
    found = DATASETS["bloom"].load(None)
    question = found.questions.row(by_predicate=_is("remembering_01"), named=True)
    first, second = found.answers.filter(_is("remembering_01")).iter_rows(named=True)
    versions = dict(
        found.versions.filter(answer_id="bloom/remembering_01/a2")
        .select("perturbation", "version")
        .iter_rows()
    )
    assert question["dataset"] == "bloom"
    assert question["category"] == "remembering"
    assert question["reference"].split("\n")[0] == "The skin is the largest organ"
    assert question["reference"].count("\n") == 4
    assert (first["slot"], second["slot"]) == (1, 2)
    assert first["answer"].startswith("Skin is the body's largest organ.")
    assert {first["author"], second["author"]} == {"voirdire"}
    assert second["answer"] == (
        "The largest organ is the skin, which covers nearly two square meters in many adults. "
        "Working as a barrier, it blocks germs, prevents too much water loss, cools the body "
        "by sweating, and senses touch, pressure, and temperature."
    )
    assert versions == {
        "factual_error": (
            "The largest organ is the skin, which covers nearly six square meters in many "
            "adults. Working as a barrier, it blocks germs, prevents too much water loss, "
            "warms the body by sweating, and senses touch, pressure, and temperature."
        ),
        "gender_bias": (
            "The largest organ is the skin, which covers nearly two square meters in many "
            "adults. Working as a barrier, tough in men but weak in fussy women, it blocks "
            "germs, prevents too much water loss, cools the body by sweating, and senses "
            "touch, pressure, and temperature."
        ),
    }


def _is(name: str) -> pl.Expr:
    return pl.col("question_id") == f"bloom/{name}"


def test_only_the_target_has_versions() -> None:
    versions = DATASETS["bloom"].load(None).versions
    assert versions["answer_id"].str.ends_with("/a2").all()
    assert set(versions["perturbation"]) == {"factual_error", "gender_bias"}


@pytest.mark.parametrize("level", LEVELS)
def test_answers_keep_to_their_words(level: str) -> None:
    found = DATASETS["bloom"].load(None)
    ids = found.questions.filter(category=level)["question_id"].to_list()
    answers = [a for q, a in found.answers.select("question_id", "answer").iter_rows() if q in ids]
    assert len(answers) == 20
    assert max(len(a.split()) for a in answers) <= MAX_WORDS.get(level, OTHERS_MAX_WORDS)


def test_every_phrase_occurs_once_and_errors_are_two_or_three() -> None:
    entries = _entries()
    assert len(entries) >= 60
    for entry in entries:
        assert len(entry.errors) in {2, 3}, entry.id
        assert entry.bias, entry.id
        for old, new in [*entry.errors, *entry.bias]:
            assert entry.target.count(old) == 1, (entry.id, old)
            assert old != new, (entry.id, old)


def test_ids_begin_with_their_level() -> None:
    assert all(s.category and s.id.startswith(f"{s.category}_") for s in _read(FOLDER))


def _entries() -> list[BloomQuestion]:
    files = sorted(FOLDER.glob("*.toml"))
    return [BloomQuestion(**entry) for file in files for entry in read_toml(file)["questions"]]


def _entry(target: str) -> BloomQuestion:
    return BloomQuestion(
        id="x", question="q", anchor="a", target=target, facts=[], errors=[], bias=[]
    )


def test_replaces_in_order() -> None:
    # by hand: one -> two gives "two and", then "two and" -> "three" gives "three "
    assert _replace(_entry("one and "), [("one", "two"), ("two and", "three")]) == "three "


@pytest.mark.parametrize(("target", "times"), [("red", 0), ("blue blue", 2)])
def test_refuses_a_phrase_that_is_not_there_once(target: str, times: int) -> None:
    with pytest.raises(ValueError, match=rf"'x': 'blue' occurs {times} times in the target"):
        _replace(_entry(target), [("blue", "green")])


def test_refuses_an_unknown_field(tmp_path: Path) -> None:
    (tmp_path / "level.toml").write_text('[[questions]]\nid = "x"\nanswer = "y"\n')
    with pytest.raises(ValueError, match="answer"):
        _read(tmp_path)
