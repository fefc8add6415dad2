"""Labels that a calibration tells a user to check."""

import re
from pathlib import Path

from click.testing import CliRunner

from flows.cli.main import main


def _said(path: Path, *words: str) -> str:
    done = CliRunner().invoke(main, ["calibrate", str(path), "--no-save", *words])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_a_rare_label_that_no_person_gave_is_named(tmp_path: Path) -> None:
    labels = [("C", "C")] * 12 + [("I", "I")] * 7 + [("I", "<i>parse\x1b[2J failure")]
    path = tmp_path / "graded.csv"
    rows = "".join(f"q{at},{judge},{human}\n" for at, (human, judge) in enumerate(labels))
    path.write_text(f"id,judge,human\n{rows}", encoding="utf-8")
    said = _said(path)
    assert "failure as people's label, but judge gave it to 1 of 20 items" in said
    assert "empty it, or name the label that passes with --pass LABEL" in said
    assert "\x1b" not in said
    # A label that is frequent is an opinion; the rare one is still named.
    path.write_text(f"id,judge,human\n{rows}".replace("I,I", "N,I"), encoding="utf-8")
    often = _said(path)
    assert "No item has N as people's label" not in often
    assert "failure as people's label" in often
    # Among passes and fails it is invalid, and named as such.
    passed = _said(path, "--pass", "C")
    assert "as people's label" not in passed
    assert "invalid labels of the judge" in passed
    # Of three labels no two are pass and fail.
    path.write_text(f"id,judge,human\n{rows}q90,N,N\n", encoding="utf-8")
    assert "without a verdict, empty it." in _said(path)


def test_labels_of_people_that_count_as_fails_are_named(tmp_path: Path) -> None:
    people = ["good"] * 20 + ["bad"] * 12 + ["N/A"] * 3 + ["unsure"] * 2
    path = tmp_path / "checked.csv"
    rows = "".join(f"q{at},{label},{label}\n" for at, label in enumerate(people))
    path.write_text(f"id,judge,human\n{rows}", encoding="utf-8")
    said = _said(path, "--pass", "good")
    counted = "count as fails, also where a judge gives them: bad 12, N/A 3, unsure 2. Empty"
    assert f"--pass good: all other labels of people {counted}" in said
    path.write_text(f"id,judge,human\n{rows.partition('q32')[0]}", encoding="utf-8")
    assert "count as fails" not in _said(path, "--pass", "good")


def test_two_scales_are_named_with_a_threshold_too(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    rows = "".join(f"q{at},{2 * (at % 5 + 1)},{at % 5 + 1}\n" for at in range(40))
    path.write_text(f"id,judge,human\n{rows}", encoding="utf-8")
    for words in ((), ("--threshold", "3")):
        said = _said(path, *words)
        assert "Grades of judge are from 2 to 10, those of people from 1 to 5." in said
    assert "Grades of judge" not in _said(path, "--threshold", "3", "--scale", "1", "10")


def test_rows_of_a_cluster_are_named_as_rows(tmp_path: Path) -> None:
    path = tmp_path / "repeated.csv"
    rows = [
        f"q{at},{'pass' if (at + turn) % 3 else 'fail'},{'pass' if at % 2 else 'fail'}"
        for at in range(30)
        for turn in range(3)
    ]
    path.write_text("\n".join(["id,judge,human", *rows]), encoding="utf-8")
    said = _said(path, "--cluster", "id")
    found = re.search(r"With (\d+) labelled rows \(of (\d+) clusters\) the interval", said)
    assert found
    labelled, clusters = map(int, found.groups())
    # Three rows a cluster.
    assert clusters == -(-labelled // 3)
    single = "\n".join(["id,judge,human", *rows[::3]])
    path.write_text(single, encoding="utf-8")
    assert re.search(r"With \d+ labelled items the interval", _said(path))


def test_labels_with_two_declared_chances_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "chance.csv"
    rows = "".join(
        f"q{at},{'pass' if at % 3 else 'fail'},{('pass' if at % 2 else 'fail') if at < 40 else ''},"
        f"{0.6 if at % 2 else 0.2}\n"
        for at in range(80)
    )
    path.write_text(f"id,judge,human,label_chance\n{rows}", encoding="utf-8")
    assert "corrected, PPI++" in _said(path)
    words = ["calibrate", str(path), "--no-save", "--random-labels"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "label_chance is from 0.2 to 0.6. Leave --random-labels out, or the" in done.stderr


def test_a_correction_beyond_0_says_that_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    labelled = [("pass", "pass")] * 22 + [("fail", "pass")] * 8
    labelled += [("pass", "fail")] * 5 + [("fail", "fail")] * 5
    rows = [f"q{at},{judge},{human}" for at, (judge, human) in enumerate(labelled)]
    rows += [f"r{at},{'pass' if at < 10 else 'fail'}," for at in range(40)]
    path.write_text("\n".join(["id,judge,human", *rows]), encoding="utf-8")
    said = _said(path, "--random-labels")
    # se .733, sp .5, p .25: (.25 + .5 - 1) / .233 = -1.07.
    assert "cut at the end of its range: error rates may differ between items with and" in said
    assert re.search(r"corrected, Rogan-Gladen \.00", said)
    # sp 1 and p 0: exactly 0, and nothing is cut.
    exact = [row.replace("pass,fail", "fail,fail") if row[0] == "q" else row for row in rows]
    exact = [row if row[0] == "q" else f"{row.partition(',')[0]},fail," for row in exact]
    path.write_text("\n".join(["id,judge,human", *exact]), encoding="utf-8")
    said = _said(path, "--random-labels")
    assert "cut at the end" not in said
    assert re.search(r"corrected, Rogan-Gladen \.00", said)


def test_slices_with_a_relevant_bias_are_named(tmp_path: Path) -> None:
    path = tmp_path / "sliced.csv"
    # People pass half of each topic; the judge passes all that is long.
    rows = [
        f"{topic}{at},{'pass' if topic == 'long' or at % 2 else 'fail'},"
        f"{'pass' if at % 2 else 'fail'},{topic}"
        for topic in ("long", "short")
        for at in range(40)
    ]
    path.write_text("\n".join(["id,judge,human,topic", *rows]), encoding="utf-8")
    said = _said(path, "--slice", "topic")
    assert "Biased on long (.50); `--format json` has the intervals." in said
    same = [row.replace(",pass,fail,", ",fail,fail,") for row in rows]
    path.write_text("\n".join(["id,judge,human,topic", *same]), encoding="utf-8")
    assert "No slice is shown to be biased." in _said(path, "--slice", "topic")
