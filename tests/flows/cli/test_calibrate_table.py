"""`voirdire calibrate FILE`: a table with a column of a judge and a column of a person."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main
from flows.publishing.served_files import reports_of
from schemas.results import Annotations
from warehouse.store import Warehouse

Call = Callable[..., Result]
HUMAN = ["pass"] * 24 + ["fail"] * 16
JUDGE = ["pass"] * 20 + ["fail"] * 4 + ["pass"] * 6 + ["fail"] * 8 + ["ERROR: no reply", ""]


@pytest.fixture
def place(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb")


@pytest.fixture
def call(place: Warehouse) -> Call:
    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["calibrate", *words, "--warehouse", str(place.path)])

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def make(name: str = "labels.csv", **columns: list[Any]) -> str:
        file = tmp_path / name
        many = len(next(iter(columns.values())))
        pl.DataFrame({"id": [f"t{i:02}" for i in range(many)], **columns}).write_csv(file)
        return str(file)

    return make


def test_the_documented_example(
    tmp_path: Path, place: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (Path(__file__).parents[3] / "docs/how-to/calibrate.md").read_text(encoding="utf-8")
    _, table, _, shown, *_ = guide.split("```")
    (tmp_path / "support.csv").write_text(table.removeprefix("\n"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "90")
    first, *expected = shown.removeprefix("console\n$ voirdire ").splitlines()
    monkeypatch.setenv("VOIRDIRE_WAREHOUSE", str(place.path))
    done = CliRunner().invoke(main, first.split())
    assert done.exit_code == 0, done.output
    assert [line.rstrip() for line in done.stdout.splitlines()] == expected


def labels(write: Callable[..., str], **more: list[Any]) -> str:
    texts = {"input": [f"Question {i}?" for i in range(40)], "output": ["=cmd()"] * 40}
    return write(**texts, judge=JUDGE, human=HUMAN, **more)


def test_long_texts_of_disagreements_stand_below_their_item(
    call: Call, write: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    question = "Why does the lamp go out if its neighbour in the same circuit is unscrewed? " * 3
    done = call(write(input=[question] * 40, judge=JUDGE, human=HUMAN))
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    place = next(i for i, line in enumerate(lines) if line.endswith(": people: pass, judge: fail"))
    assert lines[place + 1].startswith("  input: Why does the lamp go out if its neighbour in")
    assert max(map(len, lines[place : place + 10])) <= 60


def test_the_shortest_command(call: Call, write: Callable[..., str], place: Warehouse) -> None:
    done = call(labels(write))
    assert done.exit_code == 0, done.output
    lines = [" ".join(line.split()) for line in done.output.splitlines()]
    text = " ".join(lines)
    assert "38 items compared" in text
    assert "1 without a label of the judge and 1 with an invalid label of the judge" in text
    assert 'invalid labels of the judge: t38 ("ERROR: no reply").' in text
    assert "judge minus people: pass rate .68 and .63; inconclusive (p ." in text
    assert "Agreement with people is saved under the name 'labels' in" in text
    # 28 of 38; by chance (26 * 24 + 12 * 14) / 38^2
    assert any(line.startswith("agreement .74 [.58, .85] by chance .55") for line in lines)
    assert any(line.startswith("TPR .83 ") for line in lines)
    assert any(line.startswith("TNR .57 ") for line in lines)
    place_of = lines.index("people \\ judge fail pass")
    assert lines[place_of + 1 : place_of + 3] == ["fail 8 6", "pass 4 20"]
    assert "10 disagreements, worst first; the first 5 (all are in the report)" in text
    assert "input: Question 20?" in text
    assert "it needs labels of two people or more" in text
    assert done.output.count("\n") < 50
    # Saved, and shown again from the warehouse.
    found = place.query(
        "select agreement, kappa, missing, invalid from mart.human_agreement"
    ).rows()
    assert found[0][0] == pytest.approx(28 / 38)
    assert found[0][2:] == (1, 1)
    assert place.query("select count(*) as n from mart.disagreements")["n"].item() == 10
    page = (reports_of(place.path) / "labels.html").read_text()
    assert "Do these judges agree with people?" in page
    assert "Question 20?" in page
    copy = place.path.parent / "again.html"
    words = ["report", "labels", "--out", str(copy), "--warehouse", str(place.path)]
    again = CliRunner().invoke(main, words)
    assert again.exit_code == 0, again.output
    assert copy.read_text() == page


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("my votes.csv", "my-votes"),
        ("our 'odd' \"v2\".csv", "our-odd-v2"),
        ("\u7968.csv", "calibration"),
        (f"{'long' * 20}.csv", "long" * 16),
    ],
)
def test_the_default_name_is_the_file_name_without_what_no_name_has(
    call: Call, write: Callable[..., str], place: Warehouse, file: str, name: str
) -> None:
    made = write(file, judge=JUDGE, human=HUMAN)
    done = call(made, "--judge", "judg")
    assert done.exit_code == 2
    assert "has no column 'judg'" in done.stderr
    done = call(made)
    assert done.exit_code == 0, done.output
    assert f"saved under the name '{name}'" in done.stderr
    assert (reports_of(place.path) / f"{name}.html").is_file()


ODD = (
    '1 of 40 labels of people is no word for pass or fail: "=1+1" (item t07). Words for pass and '
    "fail: pass and fail, passed and failed, true and false, "
)


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_one_odd_label_of_people_that_makes_names_of_all_is_named(
    call: Call, write: Callable[..., str], form: str
) -> None:
    human = [*HUMAN[:7], "=1+1", *HUMAN[8:]]
    done = call(write(judge=JUDGE, human=human), "--no-save", "--format", form)
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    assert f"Labels are compared as names, not as pass and fail, because {ODD}" in said
    assert "Correct or empty the label or, if it is right, name the one that passes" in said
    # So it is with the label that the line names corrected.
    better = call(write(judge=JUDGE, human=HUMAN), "--no-save", "--format", form)
    assert "as names" not in better.stderr


def test_one_odd_label_among_grades_is_named_with_its_criterion(
    call: Call, write: Callable[..., str]
) -> None:
    grades = [1 + at % 5 for at in range(40)]
    human = [*map(str, grades[:30]), "see note", "?", *map(str, grades[32:])]
    topic = ["tone"] * 20 + ["facts"] * 20
    file = write(judge=grades, human=human, topic=topic)
    done = call(file, "--criterion", "topic", "--no-save")
    assert done.exit_code == 0, done.output
    assert (
        "Labels of facts are compared as names, not as grades, because 2 of 20 labels of people "
        'are no number: "see note" (item t30). Correct or empty the label.'
    ) in " ".join(done.stderr.split())
    assert "Labels of tone" not in done.stderr


def test_names_that_are_not_mostly_verdicts_or_grades_are_names(
    call: Call, write: Callable[..., str]
) -> None:
    human = ["refund", "order", "yes", "other"] * 10
    done = call(write(judge=human, human=human), "--no-save")
    assert done.exit_code == 0, done.output
    assert "as names" not in done.stderr


def test_an_error_of_the_judge_is_no_label_in_any_test(
    call: Call, write: Callable[..., str], place: Warehouse
) -> None:
    assert call(labels(write)).exit_code == 0
    kept = place.read(Annotations)
    assert {*kept.filter(~pl.col("human"))["label"]} == {"pass", "fail"}
    assert kept.filter(~pl.col("human")).height == 38


def test_json(call: Call, write: Callable[..., str]) -> None:
    file = labels(write, topic=["easy", "hard"] * 20)
    done = call(file, "--slice", "topic", "--no-save", "--format", "json")
    assert done.exit_code == 0, done.output
    (judge,) = json.loads(done.stdout)
    assert judge["judge"] == "judge"
    compared = judge["with_people"]
    assert {*compared} == {"measures", "confusion_matrix", "disagreements", "among_people"}
    slices = {(row["slice_column"], row["slice"]) for row in compared["measures"]}
    assert slices == {(None, None), ("topic", "easy"), ("topic", "hard")}
    assert sum(cell["items"] for cell in compared["confusion_matrix"]) == 38
    worst = compared["disagreements"][0]
    assert (worst["rank"], worst["item"], worst["human_label"]) == (1, "t20", "pass")
    assert worst["texts"] == {"input": "Question 20?", "output": "=cmd()"}


def test_csv(call: Call, write: Callable[..., str]) -> None:
    done = call(labels(write), "--no-save", "--format", "csv")
    assert done.exit_code == 0, done.output
    head, *rows = done.stdout.splitlines()
    assert head.startswith("dataset,judge,prompt,wave,criterion,slice_column,slice,statistic")
    assert any(",kappa,pass_fail," in row for row in rows)


DIFFERING = {
    "always": 40,
    "blind": 20,
    "coin": 16,
    "dull": 14,
    "even": 12,
    "fair": 8,
    "good": 4,
    "zealous": 2,
}
"""Number of items on which each of eight judges differs from the person."""


@pytest.mark.parametrize(
    ("shown", "named"),
    [
        (["always", "blind", "coin", "dull"], []),
        (["always", "blind", "coin", "dull", "even", "fair"], []),
        (["always", "blind", "coin", "fair", "good", "zealous"], ["dull", "even"]),
    ],
)
def test_of_many_judges_the_best_and_the_worst_are_shown_and_the_others_named(
    call: Call,
    write: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    shown: list[str],
    named: list[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    other = {"pass": "fail", "fail": "pass"}
    human = HUMAN[::2] + HUMAN[1::2]
    judges = {
        name: [other[word] for word in human[:differing]] + human[differing:]
        for name, differing in DIFFERING.items()
        if name in {*shown, *named}
    }
    file = write(human=human, **judges, topic=["easy", "hard"] * 20)
    words = [word for name in judges for word in ("--judge", name)]
    done = call(file, *words, "--slice", "topic", "--no-save")
    assert done.exit_code == 0, done.output
    assert re.findall(r"^(\w+) against people: ", done.stdout, re.MULTILINE) == shown
    assert done.stdout.count("\neasy ") == len(shown)
    said = " ".join(done.stdout.split())
    if not named:
        assert "Shown one by one" not in said
        assert done.stdout.count("\nTNR ") == len(shown)
        return
    assert (
        "Shown one by one: of 8, the 3 with the highest and the 3 with the lowest kappa, without "
        "dull; even. All intervals, corrected means, confusion matrices, slices and disagreements "
        "of these 8: --format json. One judge alone: --judge COLUMN --no-save."
    ) in said
    alone = call(file, "--judge", "dull", "--slice", "topic", "--no-save")
    assert "\neasy " in alone.stdout


def test_several_people_and_judges(call: Call, write: Callable[..., str]) -> None:
    three = {
        "ann": HUMAN,
        "bob": HUMAN[:2] + ["fail"] * 3 + HUMAN[5:],
        "cid": HUMAN[:5] + ["fail"] * 3 + HUMAN[8:],
    }
    file = write(mini=JUDGE, large=HUMAN, **three)
    people = [word for who in three for word in ("--human", who)]
    done = call(file, "--judge", "mini", "--judge", "large", *people, "--no-save")
    assert done.exit_code == 0, done.output
    assert "Judges against the majority of people" in done.output
    assert "Agreement with single people, mean over items" in done.output
    assert "(3 of 3), judge: fail" in " ".join(done.output.split())
    assert "; the first 2 (more with --format json)" in " ".join(done.output.split())
    # The alternative annotator test follows.
    assert done.output.index("Judges against the majority") < done.output.index("winning rate  AP")


def test_grades_and_criteria(call: Call, write: Callable[..., str]) -> None:
    file = write(
        criterion=["tone", "facts"] * 30,
        judge=[1 + i % 5 for i in range(60)],
        human=[1 + (i + i % 3 // 2) % 5 for i in range(60)],
    )
    done = call(file, "--criterion", "criterion", "--item", "id", "--no-save", "--format", "json")
    assert done.exit_code == 0, done.output
    (judge,) = json.loads(done.stdout)
    found = {(row["criterion"], row["statistic"]) for row in judge["with_people"]["measures"]}
    assert {("tone", "spearman"), ("facts", "kappa_quadratic"), ("facts", "bias")} <= found
    words = (file, "--criterion", "criterion", "--item", "id", "--no-save")
    said = "Scale not declared: grades from 1 to 5 (facts) and 1 to 5 (tone)."
    assert said in " ".join(call(*words).stdout.split())
    assert "Scale not declared" not in call(*words, "--scale", "1", "5").stdout


def test_criteria_of_different_scales_are_not_pooled(call: Call, write: Callable[..., str]) -> None:
    tone = {"judge": (1, 5, 2, 4), "ann": (5, 1, 4, 2), "bob": (4, 2, 5, 1), "cid": (5, 2, 4, 1)}
    facts = {"judge": (9, 95, 50, 31), "ann": (10, 90, 52, 30), "bob": (12, 93, 48, 33)}
    facts["cid"] = (8, 94, 55, 29)
    sides = {"tone": tone, "facts": facts}
    people = [word for who in ("ann", "bob", "cid") for word in ("--human", who)]
    chosen = ("--metric", "neg_rmse", "--min-instances", "1", "--criterion", "criterion")

    def table(name: str, **columns: list[float]) -> dict[str, Any]:
        criteria = [each for each in sides for _ in range(40)]
        file = write(name, item=[*range(40)] * 2, criterion=criteria, **columns)
        words = (file, "--item", "item", *people, *chosen)
        done = call(*words, "--no-save", "--format", "json")
        assert done.exit_code == 0, done.output
        shown = " ".join(call(*words, "--no-save").stdout.split())
        assert "Agreement with single people is by criterion, as scales differ." in shown
        assert "judge / facts " in shown
        return dict(*json.loads(done.stdout))

    columns = {
        who: [float(side[who][i % 4]) for side in sides.values() for i in range(40)] for who in tone
    }
    found = table("two.csv", **columns)
    assert (found["agreement"]["noise_ceiling"], found["agreement"]["people"]) == (None, [])
    kappas = {
        criterion: [each["cohen_kappa_quadratic"]["estimate"] for each in rows["people"]]
        for criterion, rows in found["agreement_by_criterion"].items()
    }
    # The judge turns the scale of tone around; with facts, its kappa with each person is above .99.
    assert max(kappas["tone"]) < -0.7
    assert min(kappas["facts"]) > 0.98
    # Whether judge or person is closer to the others is the same on any scale.
    narrow = {
        who: [*values[:40], *(v / 20 for v in values[40:])] for who, values in columns.items()
    }
    again = table("narrow.csv", **narrow)
    for key in ("winning_rate", "advantage_probability", "low", "high", "tied", "instances"):
        assert found[key] == again[key]
    for one, other in zip(found["annotators"], again["annotators"], strict=True):
        assert one == other


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--judge", "jugde"), "has no column 'jugde'. The columns are: id, input, output, judge"),
        (("--judge", "jugde"), "Did you mean --judge judge?"),
        (("--slice", "id"), None),
        (("--pass", "PASS"), None),
        (
            ("--pass", "ok"),
            "no label of labels.csv is 'ok'; the labels are: ERROR: no reply, fail, pass. Name the",
        ),
        (("--scale", "5", "1"), "of a scale the low end (5) must be below the high end (1)"),
        (("--humans", "people.json"), "labels are given twice"),
    ],
)
def test_wrong_use(
    call: Call, write: Callable[..., str], words: tuple[str, ...], message: str | None
) -> None:
    done = call(labels(write), *words)
    if message is None:
        assert done.exit_code == 0
        return
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize(
    ("words", "row"),
    [(("--pass", "ok"), ""), ((), "t00,x,x,fail,pass\n")],
    ids=["no label is a pass", "an id occurs twice"],
)
def test_an_error_replaces_no_saved_result(
    call: Call, write: Callable[..., str], place: Warehouse, words: tuple[str, ...], row: str
) -> None:
    file = labels(write)
    assert call(file).exit_code == 0
    saved = place.query("from mart.human_agreement").rows()
    with Path(file).open("a") as out:
        out.write(row)
    assert call(file, *words).exit_code == 2
    assert place.query("from mart.human_agreement").rows() == saved


def test_columns_without_a_file(call: Call) -> None:
    alone = call("--judge", "judge")
    assert alone.exit_code == 2
    assert "--judge 'judge' names a column of FILE, but no FILE is given" in alone.output
    beside = call("study", "--judge", "judge")
    assert beside.exit_code == 2
    assert "names a column of FILE, and 'study' is read as a study" in beside.output


def test_hostile_texts_stay_texts(call: Call, write: Callable[..., str], place: Warehouse) -> None:
    script = "<script>alert(1)</script>"
    file = write(judge=["pass", "fail"] * 10, human=["fail", "fail"] * 10, note=[script] * 20)
    assert call(file, "--slice", "note").exit_code == 0
    page = (reports_of(place.path) / "labels.html").read_text()
    assert script not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"judge": ["pass", "fail"] * 10, "human": ["pass", "fail"] * 10}, "every judged item has"),
        ({"judge": ["a", "b"] * 10, "human": ["a", "b"] * 9 + ["", ""]}, "no passes or grades"),
        ({"judge": ["pass", "fail"] * 10, "human": ["pass", "fail"] * 9 + ["", ""]}, None),
    ],
)
def test_random_labels_without_effect(
    call: Call, write: Callable[..., str], columns: dict[str, list[str]], message: str | None
) -> None:
    done = call(write(**columns), "--random-labels", "--no-save")
    assert done.exit_code == 0, done.output
    if message is None:
        assert "nothing to correct" not in done.output
        assert "corrected, PPI++" in done.output
    else:
        assert "--random-labels: nothing to correct: " in done.stderr
        assert message in done.stderr


def test_a_corrected_rate_says_which_items_it_is_about(
    call: Call, write: Callable[..., str]
) -> None:
    # Judge and people: 20 pass both, 5 and 7 differ, 18 fail both; of the others 40 of 50 pass.
    counts = {("pass", "pass"): 20, ("fail", "pass"): 5, ("pass", "fail"): 7, ("fail", "fail"): 18}
    counts |= {("pass", ""): 40, ("fail", ""): 10}
    rows = [pair for pair, many in counts.items() for _ in range(many)]
    judge, human = ([row[side] for row in rows] for side in (0, 1))
    shown = " ".join(call(write(judge=judge, human=human), "--no-save").output.split())
    # (.8 + 18 / 25 - 1) / (20 / 25 + 18 / 25 - 1) = 1, of the 50 that only the judge knows.
    assert "corrected, Rogan-Gladen 1.00 [.66, 1.00] the 50 items without a label" in shown


def test_a_plan_names_the_only_person(call: Call, write: Callable[..., str]) -> None:
    done = call(labels(write), "--plan")
    assert done.exit_code == 2
    assert (
        "The plan needs items that two people labelled; labels.csv has one person (human)."
        in done.output
    )


def test_unreadable_labels_are_few_and_harmless(call: Call, write: Callable[..., str]) -> None:
    bad = ["[bold]\x1b[31m" + "x" * 500, "[/]", "no way", "none", "?"]
    file = write(judge=["pass"] * 15 + bad, human=["pass", "fail"] * 10)
    done = call(file, "--no-save")
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    text = " ".join(done.output.split())
    assert 'invalid labels of the judge: t15 ("[bold]' in text
    assert 't16 ("[/]"), t17 ("no way") and 2 more.' in text
    assert "x" * 100 not in text


def test_the_counts_sum_to_the_items_and_a_grade_of_people_off_the_scale_is_named(
    tmp_path: Path,
) -> None:
    rows = [f"{at},{1 + at % 5},{1 + at % 5}" for at in range(12)]
    # No grade of people: of a valid, an invalid and a missing one of the judge, and one off scale.
    rows += ["a,3,", "b,ERROR,", "c,,", "d,4,40"]
    file = tmp_path / "g.csv"
    file.write_text("\n".join(["id,judge,human", *rows, ""]), encoding="utf-8")

    def said(*words: str) -> str:
        done = CliRunner().invoke(main, ["calibrate", str(file), "--no-save", *words])
        return " ".join(done.output.split())

    shown = said("--scale", "1", "5")
    assert (
        "12 items compared; left out: 1 without a label of the judge, 1 with an invalid label of "
        "the judge and 2 without a valid label of people"
    ) in shown
    assert 'invalid labels of people: d ("40")' in shown
    assert (
        "--threshold 7 is not on the scale from 1 to 5, so all grades fail. Choose a threshold "
        "above 1 and at most 5."
    ) in said("--scale", "1", "5", "--threshold", "7")


def test_labels_that_are_no_verdicts_and_files_of_no_known_kind_are_named(tmp_path: Path) -> None:
    rows = [f"{at},helper-7b,{'pass' if at % 2 else 'fail'}" for at in range(12)]
    text = "\n".join(["id,author,ann", *rows, "12,helper-7b,", ""])
    for name in ("t.csv", "t.xlsx"):
        (tmp_path / name).write_text(text, encoding="utf-8")

    def said(*words: str) -> str:
        done = CliRunner().invoke(main, ["calibrate", *words, "--no-save"])
        assert done.exit_code == 2
        return " ".join(done.output.split())

    shown = said(str(tmp_path / "t.csv"), "--judge", "author", "--human", "ann")
    assert 'invalid labels of the judge: 0 ("helper-7b"), 1 ("helper-7b"),' in shown
    assert "Write labels of the judge in the same form as people's" in shown
    assert "t.xlsx is a file of no known kind." in said(str(tmp_path / "t.xlsx"))
