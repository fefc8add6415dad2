"""Grades turned into pass and fail, and tables that describe items."""

from pathlib import Path

import polars as pl
import pytest

from tasks.agreement.compare import Options, compare
from tasks.agreement.declared_labels import (
    described,
    require_grades,
    require_same_form,
    suitable_metrics,
)
from tasks.agreement.label_kinds import AS_GIVEN, Declared
from tasks.calibration.calibrate import labelled_by_files
from tasks.calibration.label_values import Labelled
from tasks.readers.label_table import LabelColumns, read_items


def labelled(people: list[str | None], judge: list[str | None]) -> Labelled:
    items = [f"t{at}" for at in range(len(judge))]
    humans, judges = (
        pl.DataFrame({"annotator": name, "item": items, "label": labels}).drop_nulls()
        for name, labels in (("ann", people), ("bot", judge))
    )
    return labelled_by_files("d", humans, judges)


def test_a_threshold_makes_verdicts_of_grades() -> None:
    # By hand, from 7 on: people pass t0, t1, t2 and t5; the judge passes t0, t1, t3, and t6, which
    # nobody labelled. "n/a" of t4 is left out. Agreement on t0, t1 and of t2, t3, t5 on none.
    each = labelled(
        ["9", "7", "8", "6.9", "3", "7", None], ["7", "10", "6", "8", '"n/a"', "1", "9"]
    )
    options = Options(Declared(threshold=7), random_labels=True)
    found = compare([each], options).measures
    rows = {row["statistic"]: row for row in found.filter(judge="bot").to_dicts()}
    assert {row["kind"] for row in rows.values()} == {"pass_fail"}
    assert (rows["agreement"]["hits"], rows["agreement"]["n"]) == (2, 5)
    assert (rows["agreement"]["invalid"], rows["agreement"]["unlabelled"]) == (1, 1)
    assert (rows["tpr"]["hits"], rows["tpr"]["n"]) == (2, 4)
    assert rows["all_judged_mean"]["estimate"] == pytest.approx(4 / 6)
    assert {"corrected_ppi", "corrected_rogan_gladen"} <= {*rows}


def test_a_threshold_leaves_verdicts_as_they_are() -> None:
    # From 3 on, people pass t0 and t1; the judge says pass of t0 and t2.
    each = labelled(["4", "3", "2", "1"], ['"pass"', '"fail"', '"pass"', '"fail"'])
    confusion = compare([each], Options(Declared(threshold=3))).confusion
    found = {(h, j) for h, j in confusion["human_label", "judge_label"].rows()}
    assert found == {("pass", "pass"), ("pass", "fail"), ("fail", "pass"), ("fail", "fail")}


@pytest.mark.parametrize(
    ("people", "judge", "declared", "refused"),
    [
        (["4", "2"], ['"pass"', '"fail"'], AS_GIVEN, True),
        (["4", "2"], ['"pass"', '"fail"'], Declared(threshold=3), False),
        (['"yes"', "0"], ['"pass"', '"fail"'], AS_GIVEN, False),
        (["4", "2"], ["4", "1"], AS_GIVEN, False),
        (["4", "2"], ["1", "0"], AS_GIVEN, False),
    ],
)
def test_verdicts_are_not_compared_with_grades(
    people: list[str | None], judge: list[str | None], declared: Declared, *, refused: bool
) -> None:
    each = labelled(people, judge)
    if not refused:
        require_same_form(each, declared, "s")
        return
    with pytest.raises(ValueError, match="labels of people are grades from 2 to 4"):
        require_same_form(each, declared, "s")


@pytest.mark.parametrize(
    ("people", "threshold", "says"),
    [
        (['"good"', '"bad"'], 5, "the labels of people in f.csv are no numbers"),
        (["3", "4"], 5, "from 3 to 4, so all of them fail"),
        (["3", "4"], 3, "from 3 to 4, so all of them pass"),
    ],
)
def test_a_threshold_that_decides_nothing_is_refused(
    people: list[str | None], threshold: float, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        require_grades([labelled(people, ["1", "2"])], Declared(threshold=threshold), "f.csv")


@pytest.mark.parametrize(
    ("people", "metrics"),
    [
        (['["a"]', "[]"], {"accuracy", "bits_jaccard", "hamming", "jaccard", "macro_jaccard"}),
        (["3", "4.5"], {"accuracy", "neg_rmse"}),
        (['"bug"', '"idea"'], {"accuracy"}),
    ],
)
def test_metrics_that_suit_the_labels(people: list[str], metrics: set[str]) -> None:
    found = suitable_metrics([pl.Series(people)], "accuracy")
    assert (found[0], {*found}) == ("accuracy", metrics)


def test_items_get_texts_and_slices(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("id,text,topic\nt0,Hello,a\nt1,Bye,\nt9,Unused,b\n", encoding="utf-8")
    known = read_items(file, LabelColumns(slices=("topic",)))
    each = labelled(["1", "0", "1"], ["1", "1", "1"])
    items = described(each.items, known)
    assert items["item", "texts", "slice:topic"].rows() == [
        ("t0", '{"text":"Hello"}', "a"),
        ("t1", '{"text":"Bye"}', "(empty)"),
        ("t2", "{}", "(empty)"),
    ]
    assert items["cluster"].to_list() == ["t0", "t1", "t2"]


@pytest.mark.parametrize(
    ("text", "columns", "says"),
    [
        ("name,text\na,b\n", LabelColumns(), "no column 'id' or 'item'. Name the column"),
        ("id,text\na,b\na,c\n", LabelColumns(), "have the same 'id': 'a'"),
        ("id,text\na,b\n", LabelColumns(slices=("topic",)), "no column 'topic'"),
        ("id,text\n", LabelColumns(), "has no rows"),
    ],
)
def test_a_table_of_items_that_cannot_be_used(
    tmp_path: Path, text: str, columns: LabelColumns, says: str
) -> None:
    file = tmp_path / "items.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=says):
        read_items(file, columns)
