"""`voirdire calibrate FILE`: what is made of grades, and what is said of unusual ones."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main

Columns = Sequence[Any]


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., Result]:
    def run(*options: str, **columns: Columns) -> Result:
        file = tmp_path / "labels.csv"
        many = len(next(iter(columns.values())))
        table = {"id": [f"t{at:02}" for at in range(many)], **columns}
        pl.DataFrame(table, strict=False).write_csv(file)
        people = [word for name in columns if name in "abc" for word in ("--human", name)]
        return CliRunner().invoke(main, ["calibrate", str(file), *people, *options, "--no-save"])

    return run


def matrix(done: Result) -> set[tuple[str, str, int]]:
    assert done.exit_code == 0, done.output
    [judge] = json.loads(done.stdout)
    rows = judge["with_people"]["confusion_matrix"]
    return {(row["human_label"], row["judge_label"], row["items"]) for row in rows}


@pytest.mark.parametrize(
    ("scale", "judged", "expected"),
    [
        # People's 37.5 is next to 25 and 50, which they use; 47.5 is a grade of the judge only.
        ((), 47.5, {("50", "47.5", 20), ("0", "0", 20), ("100", "100", 20)}),
        # On a declared scale of whole numbers, 37.5 is next to 37 and 38.
        (("0", "100"), 38, {("38", "38", 20), ("0", "0", 20), ("100", "100", 20)}),
        # With an end that is no whole number, those that people use count.
        (("0", "100.5"), 38, {("50", "38", 20), ("0", "0", 20), ("100", "100", 20)}),
    ],
)
def test_the_grade_nearest_to_a_mean_is_none_that_only_the_judge_gave(
    call: Callable[..., Result], scale: tuple[str, ...], judged: float, expected: set[Any]
) -> None:
    options = ("--scale", *scale) if scale else ()
    done = call(
        *options,
        "--format",
        "json",
        judge=[judged, 0, 100] * 20,
        a=[25, 0, 100] * 20,
        b=[50, 0, 100] * 20,
    )
    assert matrix(done) == expected


def test_a_judge_that_gives_one_grade_has_no_finding_on_its_bias_for_a_reason(
    call: Callable[..., Result],
) -> None:
    people = [at * 4 for at in range(26)] * 2
    # .1 is no sum of powers of two: the mean of 52 of it need not be .1.
    done = call(judge=[0.1] * 52, human=people)
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    why = "the judge's grades are all equal: no smallest relevant bias, so no finding"
    assert "judge minus people: mean grade .10 and 50.00 (p" in said
    assert why in said
    # Grades that are all equal have no range that could differ from people's.
    assert "those of people from" not in said
    given = call("--format", "json", judge=[0.1] * 52, human=people)
    measures = json.loads(given.stdout)[0]["with_people"]["measures"]
    [bias] = [row for row in measures if row["statistic"] == "bias"]
    assert (bias["finding"], bias["reason"]) == (None, why)
    assert bias["estimate"] == pytest.approx(-49.9)
    assert bias["high"] < 0


def test_few_grades_that_are_not_whole_are_named_with_what_they_change(
    call: Callable[..., Result],
) -> None:
    # Means of 7/3 are next to 2.5 if anybody gave that, else to 2. Item 69 is all of 3.
    grades = {"judge": [2] * 69 + [3], "a": [2] * 69 + [3], "b": [2] * 69 + [3]}
    done = call(**grades, c=[3] * 70)
    assert done.exit_code == 0, done.output
    assert "not whole" not in done.stderr
    for form in ("table", "json"):
        done = call("--format", form, **grades, c=[3] * 40 + [2.5] + [3] * 29)
        assert done.exit_code == 0, done.output
        said = " ".join(done.stderr.split())
        assert "1 of 210 grades of people is not whole: 2.5 (item t40)." in said
        # Of item 40, whose mean is 13/6, the grade is 2 with it and without.
        assert "so 68 of 70 items count as another grade in agreement" in said
    # Half grades that are usual are a scale.
    done = call(**grades, c=[3, 2.5] * 35)
    assert "not whole" not in done.stderr


def test_a_judge_on_another_scale_than_people_is_named(call: Callable[..., Result]) -> None:
    people, judge = [1, 2, 3, 4, 5] * 8, [2, 4, 6, 8, 10] * 8
    done = call(judge=judge, human=people)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    assert "Grades of judge are from 2 to 10, those of people from 1 to 5." in said
    assert "If it is one, declare it with --scale LOW HIGH." in said
    quiet = [
        call("--scale", "1", "10", judge=judge, human=people),
        # 8 is less than 1.8 times 5; and 15 grades are few.
        call(judge=[2, 4, 6, 8, 8] * 8, human=people),
        call(judge=judge[:15], human=people[:15]),
    ]
    for each in quiet:
        assert each.exit_code == 0, each.output
        assert "those of people from" not in each.stderr


def test_judges_and_criteria_on_other_scales_have_a_line_each(call: Callable[..., Result]) -> None:
    topic = ["tone"] * 40 + ["facts"] * 40
    people = [1, 2, 3, 4, 5] * 16
    two = [2, 4, 6, 8, 10] * 8 + people[:40]
    asked = ("--judge", "one", "--judge", "two", "--criterion", "topic")
    done = call(*asked, one=two, two=two, human=people, topic=topic)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    assert "Grades of tone of one and two are from 2 to 10, those of people from 1 to 5." in said
    assert said.count("those of people from") == 1


def test_a_judge_of_fractions_beside_whole_grades_is_named(call: Callable[..., Result]) -> None:
    topic = ["tone"] * 40 + ["facts"] * 40
    people = [1, 2, 3, 4, 5] * 16
    odd = [grade + 0.2 for grade in people[:40]] + people[40:]
    done = call("--judge", "odd", "--criterion", "topic", odd=odd, human=people, topic=topic)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    named = "Most grades of tone of odd are fractions, and those of people are whole numbers: "
    assert f"{named}agreement, linear kappa and the confusion matrix compare whether" in said
    assert said.count("are fractions") == 1
    # Fewer than half of the grades; and people who give fractions too.
    few = [grade + 0.2 * (at % 5 < 2) for at, grade in enumerate(people)]
    halves = [grade + 0.5 * (at % 2) for at, grade in enumerate(people)]
    for each in (call(judge=few, human=people), call(judge=odd, human=halves)):
        assert each.exit_code == 0, each.output
        assert "are fractions" not in each.stderr
