import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from schemas.curation import Answers, Questions, Versions
from tasks import curate
from tasks.curate import _check, _keep_first, import_dataset
from tasks.datasets import Dataset, Imported
from tasks.kit.catalogue import Catalogue
from tasks.validation.unknown_names import UnknownNameError


def _imported(categories: dict[str, str | None], versions: list[str] | None = None) -> Imported:
    ids = list(categories)
    return Imported(
        Questions.of(
            pl.DataFrame(
                {
                    "question_id": ids,
                    "dataset": ["d"] * len(ids),
                    "category": pl.Series(list(categories.values()), dtype=pl.String),
                    "question": ids,
                }
            )
        ),
        Answers.of(
            pl.DataFrame(
                {
                    "answer_id": [f"{q}/a{slot}" for q in ids for slot in (1, 2)],
                    "question_id": [q for q in ids for _ in (1, 2)],
                    "slot": [slot for _ in ids for slot in (1, 2)],
                    "answer": [f"answer {slot}" for _ in ids for slot in (1, 2)],
                }
            )
        ),
        Versions.of(
            pl.DataFrame({"answer_id": versions, "perturbation": "rich_content", "version": "new"})
        )
        if versions
        else Versions.empty(),
    )


def test_imports_a_bundled_dataset() -> None:
    found = import_dataset("bloom")
    assert found.questions.height == 60
    assert found.versions.height == 120


@pytest.mark.parametrize("limit", [6, 7, 13, 60, 1000])
def test_limit_is_balanced_over_categories(limit: int) -> None:
    found = import_dataset("bloom", limit=limit)
    counts = Counter(found.questions["category"])
    assert sum(counts.values()) == min(limit, 60)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len(counts) == 6
    assert found.answers.height == found.versions.height == 2 * found.questions.height


def test_limit_deals_by_category() -> None:
    # by hand: turns A1 B1 null1, A2 null2, A3; so four are A1 B1 n1 A2
    kinds = {"d/1": "B", "d/2": "A", "d/3": None, "d/4": "A", "d/5": "A", "d/6": None}
    whole = _imported(kinds, ["d/4/a1", "d/5/a2"])
    kept = _keep_first(whole, 4)
    assert kept.questions["question_id"].to_list() == ["d/1", "d/2", "d/3", "d/4"]
    assert kept.answers["answer_id"].to_list() == [
        f"d/{n}/a{slot}" for n in (1, 2, 3, 4) for slot in (1, 2)
    ]
    assert kept.versions["answer_id"].to_list() == ["d/4/a1"]
    assert _keep_first(whole, 2).questions["question_id"].to_list() == ["d/1", "d/2"]
    assert _keep_first(whole, 5).questions["question_id"].to_list() == [
        "d/1",
        "d/2",
        "d/3",
        "d/4",
        "d/6",
    ]


def test_a_smaller_limit_is_a_part_of_a_larger_one() -> None:
    small = import_dataset("bloom", limit=10).questions
    large = import_dataset("bloom", limit=20).questions
    assert set(small["question_id"]) < set(large["question_id"])


@pytest.mark.parametrize("limit", [0, -1])
def test_refuses_a_limit_below_one(limit: int) -> None:
    with pytest.raises(ValueError, match=rf"limit is {limit}; it must be at least 1\."):
        import_dataset("bloom", limit=limit)


def test_suggests_a_name() -> None:
    with pytest.raises(
        UnknownNameError, match=r"no dataset 'blom'\. Did you mean 'bloom'\?.*\.jsonl.*\.parquet"
    ):
        import_dataset("blom")


def _write(path: Path) -> None:
    row = {"question_id": "1", "question": "q", "anchor": "a", "target": "t"}
    path.write_text(json.dumps(row))


def test_a_path_is_an_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(tmp_path / "mine.jsonl")
    assert import_dataset(str(tmp_path / "mine.jsonl")).questions["dataset"][0] == "mine"
    monkeypatch.chdir(tmp_path)
    assert import_dataset("mine.jsonl").questions["dataset"][0] == "mine"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert import_dataset("~/mine.jsonl").questions["dataset"][0] == "mine"


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        ("./none.jsonl", r"none\.jsonl: there is no such file"),
        ("none.CSV", r"none\.CSV: there is no such file"),
        ("some/where", r"where: the file type '' is not supported"),
        ("~no-such-user-here/x.csv", r"Write the whole path\."),
    ],
)
def test_refuses_a_wrong_path(dataset: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        import_dataset(dataset)


def test_study_needs_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VOIRDIRE_HUMANS_OR_LLMS", raising=False)
    with pytest.raises(ValueError, match=r"not bundled\. Get .*VOIRDIRE_HUMANS_OR_LLMS\."):
        import_dataset("humans_or_llms")
    with pytest.raises(ValueError, match=r"no file raw\.jsonl, factual_error\.jsonl"):
        import_dataset("humans_or_llms", folder=str(tmp_path))


def test_study_folder_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, reference_data: Path
) -> None:
    monkeypatch.setenv("VOIRDIRE_HUMANS_OR_LLMS", str(reference_data / "bias_study"))
    assert import_dataset("humans_or_llms").questions.height == 142
    found = import_dataset("humans_or_llms", limit=12)
    assert set(Counter(found.questions["category"]).values()) == {2}
    assert found.versions.height == 48


def test_given_folder_goes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VOIRDIRE_HUMANS_OR_LLMS", str(tmp_path / "variable"))
    with pytest.raises(ValueError, match="given"):
        import_dataset("humans_or_llms", folder=str(tmp_path / "given"))


WHOLE = _imported({"d/1": "A"}, ["d/1/a1"])


def test_passes_on_what_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Dataset("d", "source", "license", lambda _: WHOLE, "summary")
    monkeypatch.setattr(curate, "DATASETS", Catalogue("dataset", {"d": Path()}, lambda *_: entry))
    assert import_dataset("d") is WHOLE


GOOD = _imported({"d/1": "A"})


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (
            GOOD._replace(answers=Answers.of(GOOD.answers.filter(slot=1))),
            r"has 1 question without one answer in slot 1 and one in slot 2 \(d/1\)\.",
        ),
        (
            GOOD._replace(answers=Answers.of(GOOD.answers.with_columns(slot=2))),
            r"has 1 question without one answer in slot 1 and one in slot 2 \(d/1\)\.",
        ),
        (
            GOOD._replace(answers=Answers.of(GOOD.answers.with_columns(answer=pl.lit(" \n")))),
            r"has 2 empty answers \(d/1/a1, d/1/a2\)\.",
        ),
        (
            GOOD._replace(answers=_imported({"d/1": "A", "d/2": "A"}).answers),
            r"has 2 answers to no question \(d/2/a1, d/2/a2\)\.",
        ),
        (
            GOOD._replace(versions=_imported({"d/1": "A"}, ["d/1/a3"]).versions),
            r"has 1 version of no answer \(d/1/a3\)\.",
        ),
        (
            GOOD._replace(
                versions=Versions.of(
                    pl.DataFrame({"answer_id": ["d/1/a1"], "perturbation": ["x"], "version": [" "]})
                )
            ),
            r"has 1 empty version \(d/1/a1\); 1 version by no known perturbation \(x\)\.",
        ),
        (
            Imported(Questions.empty(), Answers.empty(), Versions.empty()),
            r"dataset 'd' has no questions\. Correct its importer or files\.",
        ),
    ],
)
def test_check_names_what_is_broken(broken: Imported, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        _check("d", broken)


def test_every_import_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = GOOD._replace(answers=Answers.empty())
    entry = Dataset("d", "source", "license", lambda _: broken, "summary")
    monkeypatch.setattr(curate, "DATASETS", Catalogue("dataset", {"d": Path()}, lambda *_: entry))
    with pytest.raises(ValueError, match="dataset 'd' has 1 question without one answer"):
        import_dataset("d")


def test_columns_do_not_tell_whether_a_judge_wrote_an_answer(tmp_path: Path) -> None:
    """Where the authors are known, the end of an audit says whether a judge is one of them."""
    file = tmp_path / "mine.csv"
    rows = ["question,anchor,target", "Why?,Because.,So."]
    file.write_text("\n".join(rows), encoding="utf-8")
    said = curate.cannot_compute(str(file), import_dataset(str(file)))
    assert "self_score_error" in said
    rows = [rows[0] + ",anchor_author,target_author", rows[1] + ",acme/a,acme/b"]
    file.write_text("\n".join(rows), encoding="utf-8")
    said = curate.cannot_compute(str(file), import_dataset(str(file)))
    assert "accuracy" in said
    assert "self_score_error" not in said
