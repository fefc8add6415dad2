"""Labels as spreadsheets and other tools write them: white space, decimal commas."""

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main

PEOPLE = ["通过", "不通过"] * 10
JUDGE = ["通过 ", "不通过\u3000", "\u00a0通过", "不通过"] * 5


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def rows(*columns: list[str], separator: str = ",") -> str:
    lines = [separator.join((str(at), *row)) for at, row in enumerate(zip(*columns, strict=True))]
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("source", ["table", "files", "mapped"])
def test_white_space_around_a_label_is_no_part_of_it(tmp_path: Path, source: str) -> None:
    if source == "files":
        words = []
        for who, labels in (("humans", PEOPLE), ("judges", JUDGE)):
            file = tmp_path / f"{who}.json"
            said = {who: {str(at): label for at, label in enumerate(labels)}}
            file.write_text(json.dumps(said), encoding="utf-8")
            words += [f"--{who}", str(file)]
    else:
        file = tmp_path / "labels.csv"
        head = "id,human,judge\n" if source == "table" else "nr,mensch,modell\n"
        file.write_text(head + rows(PEOPLE, JUDGE), encoding="utf-8")
        named = ("item=nr", "label=modell", "human_label=mensch")
        mapped = [word for name in named for word in ("--map", name)]
        words = [str(file), *(mapped if source == "mapped" else [])]
    done = run("calibrate", *words, "--no-save", "--format", "json")
    assert done.exit_code == 0, done.output
    [judge] = json.loads(done.stdout)
    [agreement] = [
        row for row in judge["with_people"]["measures"] if row["statistic"] == "agreement"
    ]
    assert (agreement["hits"], agreement["n"]) == (20, 20)
    assert len(judge["with_people"]["confusion_matrix"]) == 2


GRADES = [f"{1 + at % 4},5" for at in range(30)]


def test_a_table_of_grades_with_decimal_commas_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    whole = ["3"] * 30
    file.write_text("id;human;judge\n" + rows(GRADES, whole, separator=";"), encoding="utf-8")
    done = run("calibrate", file, "--no-save")
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "labels.csv: 30 values of column 'human' such as '1,5' have a decimal comma" in said
    assert "Write 1.5" in said


def test_a_log_says_that_grades_have_decimal_commas(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("nr;Note;Mensch\n" + rows(GRADES, GRADES, separator=";"), encoding="utf-8")
    mapped = ("--map", "item=nr", "--map", "value=Note", "--map", "human_value=Mensch")
    done = run("doctor", file, *mapped)
    assert "a decimal comma, such as '1,5': write 1.5 (60)" in " ".join(done.output.split())


def test_a_mapped_label_says_that_it_has_decimal_commas(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("nr;Note;Mensch\n" + rows(GRADES, GRADES, separator=";"), encoding="utf-8")
    mapped = ("--map", "item=nr", "--map", "label=Note", "--map", "human_label=Mensch")
    for command in (("doctor", file), ("calibrate", file, "--no-save")):
        said = " ".join(run(*command, *mapped).output.split())
        assert "a decimal comma, such as '1,5': write 1.5 (60)" in said, said
    file.write_text("nr;Note;Mensch\n" + rows(["1,5", "a"] * 15, ["a", "b"] * 15, separator=";"))
    assert "a decimal comma, such as '1,5': write 1.5 (15)" in " ".join(
        run("doctor", file, *mapped).output.split()
    )


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_a_file_of_people_with_decimal_commas_is_refused(tmp_path: Path, suffix: str) -> None:
    people, judges = tmp_path / f"people.{suffix}", tmp_path / "judges.csv"
    head = "annotator;item;label\n"
    judges.write_text(head + "".join(f"m;{at};3\n" for at in range(30)), encoding="utf-8")
    if suffix == "csv":
        lines = [f"{who};{at};{grade}\n" for who in "ab" for at, grade in enumerate(GRADES)]
        people.write_text(head + "".join(lines), encoding="utf-8")
    else:
        said = {str(at): grade for at, grade in enumerate(GRADES)}
        people.write_text(json.dumps({"a": said, "b": said}), encoding="utf-8")
    done = run("calibrate", "--humans", people, "--judges", judges, "--no-save")
    assert done.exit_code == 2
    reported = " ".join(done.output.split())
    assert f"people.{suffix}: 60 values of column 'label' such as '1,5' have a decimal" in reported
    assert "Write 1.5" in reported


def test_scores_of_langfuse_say_that_they_have_decimal_commas(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    lines = [f's{at};{at};tone;EVAL;NUMERIC;"{grade}"' for at, grade in enumerate(GRADES)]
    file.write_text("\n".join(["id;traceId;name;source;dataType;value", *lines, ""]), "utf-8")
    done = run("doctor", file)
    assert "a decimal comma, such as '1,5': write 1.5 (30)" in " ".join(done.output.split())


def test_labels_that_judge_and_people_do_not_share_name_the_next_step(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    people = ["ja", "nein"] * 12
    judge = [("Pass", "0"), ("PASS", "0"), ("TRUE", "refused")]
    said = [words[at % 2] for at in range(24) for words in [judge[at // 2 % 3]]]
    file.write_text("id,human,judge\n" + rows(people, said), encoding="utf-8")
    shown = " ".join(run("calibrate", file, "--no-save").output.split())
    assert "judge and people share no label, so they cannot agree: the labels of people" in shown
    assert "are ja and nein, those of the judge 0, PASS, Pass, TRUE and refused." in shown
    assert "with `--pass LABEL`" in shown
    done = run("calibrate", file, "--pass", "ja", "--no-save", "--format", "json")
    [found] = json.loads(done.stdout)
    measures = found["with_people"]["measures"]
    [row] = [row for row in measures if row["statistic"] == "agreement"]
    assert (row["hits"], row["n"], row["invalid"]) == (20, 20, 4)


def test_other_names_than_those_of_people_are_to_be_written_alike(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    text = rows(["ja", "nein"] * 12, ["gut", "schlecht"] * 12)
    file.write_text("id,human,judge\n" + text, encoding="utf-8")
    shown = " ".join(run("calibrate", file, "--no-save").output.split())
    assert "Write the labels of both alike." in shown


@pytest.mark.parametrize("side", ["judge", "human"])
def test_a_column_of_grades_some_of_which_have_decimal_commas_is_refused(
    tmp_path: Path, side: str
) -> None:
    file = tmp_path / "labels.csv"
    some = ["47,5" if at % 3 == 0 else str(25 * (at % 5)) for at in range(30)]
    whole = [str(25 * (at % 5)) for at in range(30)]
    columns = (whole, some) if side == "judge" else (some, whole)
    file.write_text("id;human;judge\n" + rows(*columns, separator=";"), encoding="utf-8")
    done = run("calibrate", file, "--no-save")
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert f"10 values of column '{side}' such as '47,5' have a decimal comma. Write 47.5." in said
    # A name in a column of names is no number.
    names = ["1,5", *["yes", "no"] * 10]
    file.write_text("id;human;judge\n" + rows(names, names, separator=";"), encoding="utf-8")
    assert run("calibrate", file, "--no-save").exit_code == 0


def test_a_grade_with_a_decimal_comma_among_few_grades_says_how_to_write_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "labels.csv"
    topic = ["tone"] * 20 + ["facts"] * 8
    people = [*["pass", "fail"] * 10, "3,5", *"2345123"]
    file.write_text("id;human;judge;topic\n" + rows(people, people, topic, separator=";"), "utf-8")
    done = run("calibrate", file, "--criterion", "topic", "--no-save")
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert 'is no number: "3,5" (item 20). It has a decimal comma: write 3.5.' in said


def test_a_grade_with_a_decimal_comma_in_data_says_how_to_write_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text('question,answer,human_label\nWhy?,So.,"3,5"\nHow?,Thus.,4\n', "utf-8")
    done = run("audit", "--dataset", file, "--prompt", "single_reference_v1")
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "field 'human_label' is '3,5'; it must be a grade, or a word such as pass" in said
    assert "It has a decimal comma. Write 3.5." in said


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_labels_given_twice_are_counted(tmp_path: Path, suffix: str) -> None:
    items = [f"i{at}" for at in range(30)]
    for again in (1, 2):
        who = ["ann"] * 30 + ["ben"] * 30 + ["ann"] * again
        table = pl.DataFrame({"annotator": who, "item": [*items, *items, *items[:again]]})
        people, judges = tmp_path / f"people{suffix}", tmp_path / "judges.csv"
        labelled = table.with_columns(label=pl.lit("x"))
        if suffix == ".csv":
            # The first label has two lines.
            text = labelled.write_csv().replace("ann,i0,x", 'ann,i0,"x\ny"', 1)
            people.write_text(text, encoding="utf-8")
        else:
            labelled.write_parquet(people)
        labelled.head(30).with_columns(annotator=pl.lit("m")).write_csv(judges)
        done = run("calibrate", "--humans", people, "--judges", judges, "--no-save")
        labels = "1 label" if again == 1 else "2 labels"
        where = "lines 2 and 63" if suffix == ".csv" else "rows 1 and 61"
        assert (
            f"voirdire: people{suffix}, {where}: 'ann' labels 'i0' twice ({labels} too many). If "
            "these are two people, give them two names; else keep one label each."
        ) in " ".join(done.output.split()), done.output
