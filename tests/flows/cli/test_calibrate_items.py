"""`voirdire calibrate` with texts for two files of labels, and with grades as verdicts."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from flows.cli.main import main

Call = Callable[..., Result]
N = 40


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    ids = [f"t{at:02}" for at in range(N)]
    # Grades from 1 to 10; the judge's are two higher, at most 10.
    people = {name: {i: at % 10 + 1 for at, i in enumerate(ids)} for name in ("ann", "ben")}
    judges = {"bot": {i: min(10, grade + 2) for i, grade in people["ann"].items()}}
    Path("people.json").write_text(json.dumps(people), encoding="utf-8")
    Path("judges.json").write_text(json.dumps(judges), encoding="utf-8")
    lines = [f"{i},Text of {i},{'ab'[at % 2]}" for at, i in enumerate(ids)]
    Path("items.csv").write_text("\n".join(["key,text,topic", *lines]), encoding="utf-8")

    def run(*words: str) -> Result:
        both = ("--humans", "people.json", "--judges", "judges.json")
        return CliRunner().invoke(main, ["calibrate", *both, "--no-save", *words])

    return run


def test_texts_and_slices_of_the_items(call: Call) -> None:
    done = call("--items", "items.csv", "--item", "key", "--slice", "topic")
    assert done.exit_code == 0, done.output
    listed = r"^t00 +people: 1 \(mean of 2\), judge: 3 +text: Text of t00"
    assert re.search(listed, done.stdout, re.MULTILINE)
    assert re.search(r"^a +20 ", done.stdout, re.MULTILINE)
    assert re.search(r"^b +20 ", done.stdout, re.MULTILINE)
    assert "p-values are adjusted together over" in done.stdout


def test_items_that_are_not_described_are_counted(call: Call) -> None:
    rows = Path("items.csv").read_text(encoding="utf-8").splitlines()
    Path("items.csv").write_text("\n".join(rows[:31]), encoding="utf-8")
    done = call("--items", "items.csv", "--item", "key")
    assert done.exit_code == 0, done.output
    said = " ".join(done.stderr.split())
    assert "items.csv does not describe 10 of 40 labelled items, such as 't30'." in said
    # A file of which no item joins gives no texts, and was accepted in silence.
    none = call("--items", "items.csv", "--item", "text")
    assert none.exit_code == 2
    said = " ".join(none.stderr.split())
    assert "items.csv describes none of the 40 labelled items: it has items such as" in said
    assert "with --item COLUMN" in said


def test_a_threshold_turns_grades_into_verdicts(call: Call) -> None:
    done = call("--threshold", "6")
    assert done.exit_code == 0, done.output
    # People pass 6 to 10, half of the items; the judge also 4 and 5.
    assert re.search(r"^TPR +1\.00 +\[.*of 20 items that people pass", done.stdout, re.MULTILINE)
    assert re.search(r"^TNR +\.60 +\[.*of 20 items that people fail", done.stdout, re.MULTILINE)
    assert "pass rate .70 and .50" in done.stdout
    refused = call("--threshold", "11")
    assert refused.exit_code == 2
    assert "are from 1 to 10, so all of them fail" in refused.stderr


def test_two_judges_have_all_intervals(call: Call, tmp_path: Path) -> None:
    judges = json.loads((tmp_path / "judges.json").read_text(encoding="utf-8"))
    judges["other"] = {item: max(1, grade - 3) for item, grade in judges["bot"].items()}
    (tmp_path / "judges.json").write_text(json.dumps(judges), encoding="utf-8")
    done = call()
    assert done.exit_code == 0, done.output
    for row in ("kappa, quadratic", "Spearman", "Kendall", "mean error", "bias"):
        assert len(re.findall(rf"^{row} +[-+]?[.\d]+ +\[", done.stdout, re.MULTILINE)) == 2, row
    assert "bias finding" in done.stdout


def test_words_of_the_summary_are_whole_in_80_columns(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = json.loads((tmp_path / "people.json").read_text(encoding="utf-8"))["ann"]
    names = ("offline/dazzled", "offline/fair")
    judges = {name: people | {"t04": 7, "t14": 7} for name in names}
    (tmp_path / "judges.json").write_text(json.dumps(judges), encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "80")
    table = call("--threshold", "6").stdout
    for name in names:
        assert re.search(rf"^{name} +40 .* inconclusive *$", table, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--slice", "topic"), "or give one for the two files of labels with --items."),
        (("--items", "items.csv"), "has no column 'id' or 'item'. Name the column"),
        (("--items", "items.csv", "--item", "key", "--slice", "x"), "has no column 'x'"),
    ],
)
def test_errors_say_what_to_do(call: Call, words: tuple[str, ...], says: str) -> None:
    done = call(*words)
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())


@pytest.mark.usefixtures("call")
def test_a_table_has_its_own_texts(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("id,judge,human\na,1,0\n", encoding="utf-8")
    words = ["calibrate", "table.csv", "--items", "items.csv"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "FILE and STUDY have texts of their own" in done.stderr
