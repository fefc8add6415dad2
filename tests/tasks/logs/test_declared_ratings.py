"""A scale, a threshold and the label of a pass mean the same in every part of one output."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from flows.cli.main import main

COLUMNS = "item=id,judge=by,value=grade,human_value=person"
GRADES = [(n % 5 + 1, (n + n // 5) % 5 + 1) for n in range(40)]
"""Grades of the judge and of a person; the last two of the person are off the scale."""
ROWS = [
    {"id": n, "by": "g", "grade": judge, "person": person if n < 38 else 99}
    for n, (judge, person) in enumerate(GRADES)
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return path


def measured(*words: str | Path) -> str:
    done = CliRunner().invoke(main, ["measure", *map(str, words)])
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def numbers(log: Path, *words: str, columns: str = COLUMNS) -> dict[tuple[str, str], Any]:
    said = measured(log, "--map", columns, "--format", "json", *words)
    return {(row["judge"], row["statistic"]): row for row in json.loads(said)}


def test_a_grade_off_the_scale_neither_passes_nor_fails(tmp_path: Path) -> None:
    """Judge and person agree on 2, 3, 4, 5 and 1 in turn; 1 is off the scale, and no pass."""
    path = tmp_path / "same.csv"
    rows = [f"{n},{(2, 3, 4, 5, 1)[n % 5]},{(2, 3, 4, 5, 1)[n % 5]}" for n in range(30)]
    path.write_text("\n".join(["id,judge,human", *rows, ""]), encoding="utf-8")
    how = ("--scale", "2", "5", "--threshold", "4")
    mapped = ("--map", "item=id,value=judge,human_value=human")
    for words in (["calibrate", str(path), "--no-save"], ["measure", str(path), *mapped]):
        done = CliRunner().invoke(main, [*words, *how])
        said = " ".join(done.stdout.split())
        assert "24 items compared; left out: 6 with an invalid label of the judge" in said
        assert "of 12 items that people pass" in said
        # What to do with numbers has been said.
        assert "counts grades from GRADE on" not in said
    counted = " ".join(done.stderr.split())
    assert "48 labels" in counted
    assert "a grade off the scale (12)" in counted


def test_with_a_scale_what_is_no_number_is_an_invalid_grade(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    rows = [f"{n},{n % 5 + 1},{'n/a' if n == 7 else n % 5 + 1}" for n in range(30)]
    path.write_text("\n".join(["id,judge,human", *rows, ""]), encoding="utf-8")
    done = CliRunner().invoke(main, ["calibrate", str(path), "--scale", "1", "5", "--no-save"])
    said = " ".join(done.stdout.split())
    assert "29 items compared; left out: 1 without a valid label of people" in said
    assert 'invalid labels of people: 7 ("n/a")' in said
    assert "Spearman 1.00" in said


def test_what_is_no_number_is_counted_and_an_empty_cell_is_no_rating(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    rows = [f"{n},{n % 5 + 1},{n % 5 + 1}" for n in range(20)]
    rows[:4] = ["0,error: timeout,1", "1,,2", "2,3,n/a", "3,4,"]
    path.write_text("\n".join(["id,judge,human", *rows, ""]), encoding="utf-8")
    mapped = ("--map", "item=id,value=judge,human_value=human")
    done = CliRunner().invoke(main, ["doctor", str(path), *mapped])
    said = " ".join(done.stdout.split())
    # Nobody rated item 3; the judge was asked about all.
    assert "20 rows, 39 ratings, judge judge, 19 human ratings by 1 person" in said
    assert "invalid, which is no verdict: no rating (1), not a number (2)" in said


def test_grades_off_the_scale_are_in_no_mean(log: Path) -> None:
    found = numbers(log, "--scale", "1", "5")
    mean = sum(person for _, person in GRADES[:38]) / 38
    assert found["people", "mean_rating"]["estimate"] == pytest.approx(mean)
    assert found["people", "valid_rate"]["hits"] == 38
    said = measured(log, "--map", COLUMNS, "--scale", "1", "5")
    assert "people (person) 40 2 " in said
    assert "38 items compared" in said
    assert '38 ("99") and 39 ("99")' in said


def test_a_threshold_passes_grades_in_gates_and_agreement(log: Path) -> None:
    found = numbers(log, "--threshold", "3")
    assert found["g", "pass_rate"]["estimate"] == pytest.approx(24 / 40)
    both = [(judge >= 3) == (person >= 3) for judge, person in GRADES[:38]] + [
        judge >= 3 for judge, _ in GRADES[38:]
    ]
    people = [person >= 3 for _, person in GRADES[:38]] + [True] * 2
    by_chance = 0.6 * sum(people) / 40 + 0.4 * (1 - sum(people) / 40)
    kappa = (sum(both) / 40 - by_chance) / (1 - by_chance)
    assert found["g", "rating_kappa"]["estimate"] == pytest.approx(kappa)
    assert ("g", "mean_rating") not in found
    # All agreement is of pass and fail.
    assert found["g", "cohen_kappa"]["estimate"] == pytest.approx(kappa)
    said = measured(log, "--map", COLUMNS, "--threshold", "3")
    shown = f"{kappa:.2f}".replace("0.", ".")
    assert f"kappa {shown} [" in said


@pytest.mark.parametrize("how", [("--scale", "1", "5"), ("--threshold", "3")])
def test_numbers_that_are_mapped_as_labels_are_grades_too(log: Path, how: tuple[str, ...]) -> None:
    labels = COLUMNS.replace("value=", "label=")
    found, again = numbers(log, *how), numbers(log, *how, columns=labels)
    assert again.keys() == found.keys()
    for key, row in found.items():
        assert again[key]["estimate"] == row["estimate"], key


def test_a_judge_of_pass_and_fail_meets_people_of_grades(tmp_path: Path) -> None:
    """People grade 1 to 5; the judge passes 3 to 5, fails 1 and 2, and says a name once."""
    path = tmp_path / "mixed.csv"
    rows = [f"{n},{'PASS' if n % 5 >= 2 else 'fail'},{n % 5 + 1}" for n in range(40)]
    rows[0] = "0,maybe,1"
    path.write_text("\n".join(["id,judge,human", *rows, ""]), encoding="utf-8")
    mapped = ("--map", "item=id,label=judge,human_value=human", "--threshold", "4")
    said = measured(path, *mapped)
    assert "judge 40 1 .62 [" in said
    assert "39 items compared; left out: 1 with an invalid label of the judge" in said
    found = json.loads(measured(path, *mapped, "--format", "json", "--only", "rating_kappa"))
    assert "pass 24, fail 15" in said
    # Passed by both 16, by the judge alone 8, failed by both 15.
    chance = (24 * 16 + 15 * 23) / 39**2
    assert [row["estimate"] for row in found] == [pytest.approx((31 / 39 - chance) / (1 - chance))]


def test_without_people_other_labels_than_the_pass_fail(tmp_path: Path) -> None:
    path = tmp_path / "alone.csv"
    rows = [f"{n},{('Good', 'poor', 'good', 'ERROR: timeout')[n % 4]}" for n in range(40)]
    path.write_text("\n".join(["id,judge", *rows, ""]), encoding="utf-8")
    said = measured(path, "--map", "item=id,label=judge", "--pass", "good")
    assert "judge 40 10 .67 [" in said


def test_a_named_pass_makes_verdicts_of_all_labels(log: Path) -> None:
    found = numbers(log, "--pass", "5")
    assert found["g", "pass_rate"]["estimate"] == pytest.approx(8 / 40)
    assert ("g", "mean_rating") not in found
    labels = COLUMNS.replace("value=", "label=")
    again = numbers(log, "--pass", "5", columns=labels)
    assert again["g", "pass_rate"] == found["g", "pass_rate"]
    assert again["g", "rating_kappa"] == found["g", "rating_kappa"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pass", "7"), "no label of log.jsonl is '7'; the labels are: 1, 2, 3, 4, 5, 99."),
        (("--threshold", "200"), "--threshold 200: people's grades in log.jsonl are from 1 to 99"),
        (("--slice", "id", "--only", "validity"), "with the same --map and --slice."),
    ],
)
def test_what_cannot_be_read_so_is_refused(log: Path, words: tuple[str, ...], said: str) -> None:
    done = CliRunner().invoke(main, ["measure", str(log), "--map", COLUMNS, *words])
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_scale_is_refused_where_labels_are_words(tmp_path: Path) -> None:
    path = tmp_path / "words.jsonl"
    rows = [{"id": n, "judge": "pass", "human": ("pass", "fail")[n % 2]} for n in range(20)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    mapped = ("--map", "item=id,label=judge,human_label=human", "--scale", "1", "5")
    for command, said in (("measure", "has none. Leave it out"), ("calibrate", "are no numbers")):
        done = CliRunner().invoke(main, [command, str(path), *mapped])
        assert done.exit_code == 2
        assert "--scale is about grades" in done.stderr
        assert said in done.stderr


def test_verdicts_on_pairs_alone_have_no_pass(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("sample,cluster,judge,shown_first,repeat,choice\ns1,s1,ada,anchor,0,first\n")
    done = CliRunner().invoke(main, ["measure", str(path), "--scale", "1", "5"])
    assert done.exit_code == 2
    assert "--scale 1 5 says how grades and labels are read, and votes.csv has" in done.stderr


REPEATS = ((1, 7, 8), (9, 2, 2), (7, 7, 7), (1, 2, 3))
"""Grades that a judge repeats; by hand, from 7 on: pass, fail, pass, fail. The means are 5.3, 4.3,
7 and 2."""
PEOPLE = (8, 2, 9, 3)


def repeated(path: Path, grades: dict[int, object] | None = None) -> Path:
    named = grades or {}
    rows = [
        {"id": n, "by": "g", "grade": named.get(each, each), "person": named.get(each, person)}
        for n in range(40)
        for each, person in ((g, PEOPLE[n % 4]) for g in REPEATS[n % 4])
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", ["measure", "calibrate"])
def test_each_repeat_passes_or_fails_before_the_majority_counts(
    tmp_path: Path, command: str
) -> None:
    path = repeated(tmp_path / "log.jsonl")
    how = [str(path), "--map", COLUMNS, "--threshold", "7"]
    done = CliRunner().invoke(
        main, [command, *how, *(["--no-save"] if command == "calibrate" else [])]
    )
    said = " ".join(done.stdout.split())
    assert "agreement 1.00" in said
    assert "judge minus people: pass rate .50 and .50" in said


def test_a_repeat_off_the_scale_is_in_no_mean(tmp_path: Path) -> None:
    """On a scale to 7 people graded 2 and 3; of 9, 2 and 2 the judge's mean is 2."""
    said = measured(repeated(tmp_path / "log.jsonl"), "--map", COLUMNS, "--scale", "1", "7")
    assert "judge minus people: mean grade 2.00 and 2.50" in said


@pytest.mark.parametrize("passing", ["good", "fail"])
def test_repeats_keep_the_named_label_of_a_pass(tmp_path: Path, passing: str) -> None:
    """Of good, poor and bad most repeats are no pass; the most common label would not exist."""
    path = tmp_path / "log.jsonl"
    given = [(passing, passing, "bad"), (passing, "poor", "bad")]
    rows = [
        {"id": n, "by": "g", "grade": label, "person": (passing, "bad", passing, "poor")[n % 4]}
        for n in range(40)
        for label in given[n % 2]
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    columns = "item=id,judge=by,label=grade,human_label=person"
    said = measured(path, "--map", columns, "--pass", passing)
    assert "40 items compared" in said
    assert "agreement 1.00" in said


def test_a_label_off_the_scale_is_neither_the_pass_nor_a_fail(log: Path) -> None:
    """Of 40 items the person's grade of the last two is 99."""
    said = measured(log, "--map", COLUMNS, "--pass", "5", "--scale", "1", "5")
    assert "38 items compared; left out: 2 without a valid label of people" in said


def test_repeats_on_a_criterion_without_the_named_pass_keep_its_words(tmp_path: Path) -> None:
    """One criterion has good and poor, the other pass and fail, of which good is neither."""
    words = {"tone": ("good", "poor"), "facts": ("pass", "fail")}
    rows = [
        {"id": n, "by": "g", "on": on, "label": given[n % 2], "person": given[n % 2]}
        for on, given in words.items()
        for n in range(40)
        for _ in range(3)
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    columns = "item=id,judge=by,criterion=on,label=label,human_label=person"
    said = measured(path, "--map", columns, "--pass", "good")
    assert said.count("40 items compared") == 2
    assert said.count("agreement 1.00") == 2
